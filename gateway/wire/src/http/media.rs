//! Which form a result is wanted in: `Accept` (RFC 9110, section 12.5.1) with the parameters of
//! Arrow over HTTP, and the query parameters that say the same. Must not know how a form is
//! written.
//!
//! `Accept: application/vnd.apache.arrow.stream; codecs="zstd, lz4"; types="views, dictionaries"`
//! says that a reader opens these codecs, the first one rather than the others, and takes these
//! types as they are. A list that is there is complete: what it leaves out is not read.

use std::cmp::Reverse;
use std::fmt;

use super::accept::{Range, split};

/// The media type of an Arrow IPC stream.
pub const ARROW: &str = "application/vnd.apache.arrow.stream";
/// The media type of JSON.
pub const JSON: &str = "application/json";
/// The media type of JSON objects, one a line.
pub const NDJSON: &str = "application/x-ndjson";
/// The media type of CSV.
pub const CSV: &str = "text/csv";

/// Media ranges that are looked at.
const MAX_RANGES: usize = 64;

/// The form of a result.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Form {
    /// An Arrow IPC stream.
    #[default]
    Arrow,
    /// One JSON object: columns, rows, count.
    Json,
    /// A JSON object a row.
    NdJson,
    /// RFC 4180, with a header.
    Csv,
}

impl Form {
    /// All forms; when a client has no preference, the first that it takes.
    pub const ALL: [Self; 4] = [Self::Arrow, Self::Json, Self::NdJson, Self::Csv];

    /// The name that `?format=` uses.
    pub fn name(self) -> &'static str {
        match self {
            Self::Arrow => "arrow",
            Self::Json => "json",
            Self::NdJson => "ndjson",
            Self::Csv => "csv",
        }
    }

    /// The media type, without parameters.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Arrow => ARROW,
            Self::Json => JSON,
            Self::NdJson => NDJSON,
            Self::Csv => CSV,
        }
    }
}

/// A codec of Arrow buffers that a reader may or may not open. Uncompressed ones everybody reads.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[allow(missing_docs)]
pub enum Codec {
    Lz4,
    Zstd,
}

impl Codec {
    /// The name in `codecs`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lz4 => "lz4",
            Self::Zstd => "zstd",
        }
    }
}

/// Arrow types beyond the plain ones that a reader takes as they are.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Types {
    /// `Utf8View` and `BinaryView`.
    pub views: bool,
    /// Dictionary-encoded columns.
    pub dictionaries: bool,
}

/// What a client wants.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Wanted {
    /// The form.
    pub form: Form,
    /// The codecs that the reader declares, its own preference first; `None` when it declares none.
    pub codecs: Option<Vec<Codec>>,
    /// The types that the reader declares.
    pub types: Option<Types>,
}

/// The query parameters that say what `Accept` says, for those who cannot send a header. Each
/// wins over its part of the header.
#[derive(Clone, Copy, Debug, Default)]
pub struct QueryParameters<'a> {
    /// `format`: the name of a form.
    pub format: Option<&'a str>,
    /// `codecs`: as in `Accept`.
    pub codecs: Option<&'a str>,
    /// `types`: as in `Accept`.
    pub types: Option<&'a str>,
}

/// Why there is no form.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum Refusal {
    /// No form that there is was accepted.
    #[error("Accept allows no form that there is; forms: {ARROW}, {JSON}, {NDJSON}, {CSV}")]
    NotAcceptable,
    /// A query parameter has a value that it cannot have.
    #[error("query parameter {parameter} cannot be {value:?}; allowed values: {allowed}")]
    Parameter {
        /// Its name.
        parameter: &'static str,
        /// What is wrong in it, shortened.
        value: String,
        /// What there is.
        allowed: &'static str,
    },
}

impl Wanted {
    /// Decides by the values of all `Accept` headers and the query.
    ///
    /// Highest quality first; then forms that are named over those that only a wildcard allows,
    /// then the order of the header. Ranges that are not well-formed are passed over.
    ///
    /// # Errors
    /// Why there is no form.
    pub fn negotiate<'a>(
        accept: impl IntoIterator<Item = &'a str>,
        query: QueryParameters<'_>,
    ) -> Result<Self, Refusal> {
        let ranges: Vec<Range> = accept
            .into_iter()
            .flat_map(|value| split(value, ','))
            .take(MAX_RANGES)
            .filter_map(Range::parse)
            .collect();
        let mut wanted = match query.format {
            Some(name) => Self::named(form_of(name)?, &ranges),
            None if ranges.is_empty() => Self::default(),
            None => Self::best(&ranges).ok_or(Refusal::NotAcceptable)?,
        };
        if let Some(list) = query.codecs {
            wanted.codecs = Some(strict(list, "codecs", "none, lz4, zstd", codec_of)?);
        }
        if let Some(list) = query.types {
            let kinds = strict(list, "types", "none, views, dictionaries", type_of)?;
            wanted.types = Some(Types::of(&kinds));
        }
        Ok(wanted)
    }

    fn best(ranges: &[Range]) -> Option<Self> {
        Form::ALL
            .into_iter()
            .filter_map(|form| Some((form, Range::for_form(ranges, form)?)))
            .filter(|(_, (_, range))| range.quality > 0)
            .min_by_key(|(_, (position, range))| {
                (Reverse(range.quality), Reverse(range.precision), *position)
            })
            .map(|(form, (_, range))| Self::of(form, range))
    }

    /// `form` because the query says so, with what `Accept` says about it.
    fn named(form: Form, ranges: &[Range]) -> Self {
        match Range::for_form(ranges, form) {
            Some((_, range)) => Self::of(form, range),
            None => Self {
                form,
                ..Self::default()
            },
        }
    }

    fn of(form: Form, range: &Range) -> Self {
        match form {
            Form::Arrow => Self {
                form,
                codecs: range.codecs.clone(),
                types: range.types,
            },
            _ => Self {
                form,
                ..Self::default()
            },
        }
    }
}

impl Types {
    pub(super) fn of(kinds: &[Kind]) -> Self {
        Self {
            views: kinds.contains(&Kind::Views),
            dictionaries: kinds.contains(&Kind::Dictionaries),
        }
    }
}

impl fmt::Display for Types {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match (self.views, self.dictionaries) {
            (true, true) => "views, dictionaries",
            (true, false) => "views",
            (false, true) => "dictionaries",
            (false, false) => "",
        })
    }
}

/// The value of `Content-Type` for an Arrow stream whose buffers are compressed with `codec`.
pub fn arrow_content_type(codec: Option<Codec>) -> &'static str {
    match codec {
        None => ARROW,
        Some(Codec::Lz4) => "application/vnd.apache.arrow.stream; codecs=lz4",
        Some(Codec::Zstd) => "application/vnd.apache.arrow.stream; codecs=zstd",
    }
}

/// The value of `Accept` for a reader of Arrow streams.
pub fn arrow_accept(codecs: &[Codec], types: Types) -> String {
    let codecs: Vec<_> = codecs.iter().map(|codec| codec.name()).collect();
    format!(
        "{ARROW}; codecs=\"{}\"; types=\"{types}\"",
        codecs.join(", ")
    )
}

fn items(list: &str) -> impl Iterator<Item = &str> {
    list.split(',')
        .map(str::trim)
        .filter(|item| !item.is_empty())
}

/// The items that are known: a newer client may name more.
pub(super) fn lenient<T>(list: &str, known: fn(&str) -> Option<T>) -> Vec<T> {
    items(list).filter_map(known).collect()
}

/// The items, all of which must be known: somebody typed them.
fn strict<T>(
    list: &str,
    parameter: &'static str,
    allowed: &'static str,
    known: fn(&str) -> Option<T>,
) -> Result<Vec<T>, Refusal> {
    items(list)
        .filter(|item| !item.eq_ignore_ascii_case("none"))
        .map(|item| known(item).ok_or_else(|| refusal(parameter, item, allowed)))
        .collect()
}

fn refusal(parameter: &'static str, value: &str, allowed: &'static str) -> Refusal {
    Refusal::Parameter {
        parameter,
        value: value.chars().take(40).collect(),
        allowed,
    }
}

fn form_of(name: &str) -> Result<Form, Refusal> {
    Form::ALL
        .into_iter()
        .find(|form| form.name().eq_ignore_ascii_case(name))
        .ok_or_else(|| refusal("format", name, "arrow, json, ndjson, csv"))
}

pub(super) fn codec_of(name: &str) -> Option<Codec> {
    [Codec::Lz4, Codec::Zstd]
        .into_iter()
        .find(|codec| codec.name().eq_ignore_ascii_case(name))
}

#[derive(Clone, Copy, Eq, PartialEq)]
pub(super) enum Kind {
    Views,
    Dictionaries,
}

pub(super) fn type_of(name: &str) -> Option<Kind> {
    match name.to_ascii_lowercase().as_str() {
        "views" => Some(Kind::Views),
        "dictionaries" => Some(Kind::Dictionaries),
        _ => None,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn form(accept: &str) -> Option<Form> {
        let wanted = Wanted::negotiate([accept], QueryParameters::default());
        wanted.ok().map(|wanted| wanted.form)
    }

    fn asked(format: &str, codecs: &str, types: &str) -> Result<Wanted, Refusal> {
        let some = |text| Some(text).filter(|text: &&str| !text.is_empty());
        let query = QueryParameters {
            format: some(format),
            codecs: some(codecs),
            types: some(types),
        };
        Wanted::negotiate([], query)
    }

    #[test]
    fn the_best_form_is_chosen() {
        for (accept, want) in [
            ("", Some(Form::Arrow)),
            ("*/*", Some(Form::Arrow)),
            ("application/*", Some(Form::Arrow)),
            ("text/*", Some(Form::Csv)),
            ("application/json", Some(Form::Json)),
            ("APPLICATION/JSON; charset=utf-8", Some(Form::Json)),
            ("application/x-ndjson", Some(Form::NdJson)),
            ("application/ndjson", Some(Form::NdJson)),
            ("text/csv;q=0.5, application/json;q=0.4", Some(Form::Csv)),
            ("application/json, text/plain, */*", Some(Form::Json)),
            (
                "text/csv, application/vnd.apache.arrow.stream",
                Some(Form::Csv),
            ),
            (
                "text/html,application/xml;q=0.9,*/*;q=0.8",
                Some(Form::Arrow),
            ),
            (
                "*/*, application/vnd.apache.arrow.stream;q=0",
                Some(Form::Json),
            ),
            ("application/json;q=0, */*;q=0.1", Some(Form::Arrow)),
            ("text/csv;q=0.001", Some(Form::Csv)),
            ("text/html", None),
            ("*/*;q=0", None),
            ("text/csv;q=0.000", None),
        ] {
            assert_eq!(form(accept), want, "{accept}");
        }
    }

    #[test]
    fn malformed_ranges_are_passed_over() {
        for accept in [
            "text/html;q=2, text/csv",
            "a b/c, text/csv",
            "x;q=0.1234, text/csv",
        ] {
            assert_eq!(form(accept), Some(Form::Csv), "{accept}");
        }
        assert_eq!(
            form("application/json;q=x"),
            Some(Form::Arrow),
            "as if there were none"
        );
        assert_eq!(form(&"text/html,".repeat(10_000)), None);
    }

    #[test]
    fn codecs_and_types_are_read() {
        let accept = r#"application/vnd.apache.arrow.stream; codecs="zstd, br, LZ4" ; types="views,x";q=0.9"#;
        let wanted = Wanted::negotiate([accept], QueryParameters::default()).unwrap();
        assert_eq!(wanted.codecs, Some(vec![Codec::Zstd, Codec::Lz4]));
        assert_eq!(
            wanted.types,
            Some(Types {
                views: true,
                dictionaries: false
            })
        );

        let plain = Wanted::negotiate([ARROW], QueryParameters::default()).unwrap();
        assert_eq!((plain.codecs, plain.types), (None, None));
        let none = Wanted::negotiate(
            [&*format!("{ARROW};codecs=\"\"")],
            QueryParameters::default(),
        );
        assert_eq!(none.unwrap().codecs, Some(vec![]));
    }

    #[test]
    fn what_the_client_writes_the_gateway_reads() {
        let types = Types {
            views: true,
            dictionaries: true,
        };
        let accept = arrow_accept(&[Codec::Zstd, Codec::Lz4], types);
        assert_eq!(
            accept,
            r#"application/vnd.apache.arrow.stream; codecs="zstd, lz4"; types="views, dictionaries""#
        );
        let wanted = Wanted::negotiate([&*accept], QueryParameters::default()).unwrap();
        assert_eq!(wanted.codecs, Some(vec![Codec::Zstd, Codec::Lz4]));
        assert_eq!(wanted.types, Some(types));
        assert_eq!(
            arrow_content_type(Some(Codec::Zstd)),
            format!("{ARROW}; codecs=zstd")
        );
    }

    #[test]
    fn quoted_separators_do_not_separate() {
        let accept = r#"text/html;x="a,application/json;\"", text/csv"#;
        assert_eq!(form(accept), Some(Form::Csv));
    }

    #[test]
    fn the_query_wins_and_is_strict() {
        assert_eq!(asked("CSV", "", "").unwrap().form, Form::Csv);
        let wanted = asked("", "lz4,zstd", "none").unwrap();
        assert_eq!(wanted.form, Form::Arrow);
        assert_eq!(wanted.codecs, Some(vec![Codec::Lz4, Codec::Zstd]));
        assert_eq!(wanted.types, Some(Types::default()));
        assert_eq!(asked("", "none", "").unwrap().codecs, Some(vec![]));
        for (format, codecs, types) in [("xml", "", ""), ("", "gzip", ""), ("", "", "lists")] {
            let error = asked(format, codecs, types).unwrap_err();
            assert!(error.to_string().contains("allowed values"), "{error}");
        }
        let query = QueryParameters {
            format: Some("csv"),
            ..QueryParameters::default()
        };
        assert_eq!(
            Wanted::negotiate(["text/html"], query).unwrap().form,
            Form::Csv
        );
    }
}
