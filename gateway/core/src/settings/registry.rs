//! The registry: every key that the gateway itself knows, with its synonyms, type, default and a
//! line of help. The one table that all ways in, `SHOW` and the documentation share. Must not
//! know sessions or policy.

use super::value::{Kind, PlainUnit, Value};
use crate::error::{Error, Result};

/// Which key it is; the position in [`KEYS`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Id {
    Codec,
    Level,
    BatchRows,
    BatchBytes,
    MaxRows,
    Format,
    Timeout,
    TimeZone,
    Engine,
}

/// One key.
#[derive(Debug)]
pub struct Key {
    pub(crate) id: Id,
    pub(crate) kind: Kind,
    /// The canonical name.
    pub name: &'static str,
    /// Other names that are taken.
    pub synonyms: &'static [&'static str],
    /// The allowed values, for people.
    pub values: &'static str,
    /// The value when nobody set one; empty when there is none of its own.
    pub default: &'static str,
    /// What it does, in a line.
    pub description: &'static str,
}

/// Longest piece of a refused value that an error repeats.
const MAX_ECHO: usize = 100;

/// Kyuubi's own name of the time-out, under which a plain number is milliseconds, as there.
const KYUUBI_TIMEOUT: &str = "kyuubi.operation.query.timeout";

/// All keys.
pub static KEYS: [Key; 9] = [
    Key {
        id: Id::Codec,
        kind: Kind::Codec,
        name: "arrow.compression.codec",
        synonyms: &["spark.sql.execution.arrow.compression.codec"],
        values: "none, lz4, zstd, auto",
        default: "none",
        description: "Compression of result batches. A codec that the client cannot read is not \
                      used; see SHOW CLIENT. auto is zstd at the session's level.",
    },
    Key {
        id: Id::Level,
        kind: Kind::Level,
        name: "arrow.compression.zstd.level",
        synonyms: &[
            "spark.sql.execution.arrow.compression.zstd.level",
            "arrow.compression.level",
        ],
        values: "-7 to 22, not 0",
        default: "3",
        description: "Level of zstd: higher is smaller and slower.",
    },
    Key {
        id: Id::BatchRows,
        kind: Kind::BatchRows,
        name: "arrow.maxRecordsPerBatch",
        synonyms: &["spark.sql.execution.arrow.maxRecordsPerBatch"],
        values: "a number of rows; 0 or less: the administrator's ceiling",
        default: "65536",
        description: "Most rows in one batch.",
    },
    Key {
        id: Id::BatchBytes,
        kind: Kind::Bytes,
        name: "arrow.maxBytesPerBatch",
        synonyms: &["spark.sql.execution.arrow.maxBytesPerBatch"],
        values: "a size of at least one byte, such as 8MiB, 64m or 1048576",
        default: "8MiB",
        description: "Most bytes in one batch before compression.",
    },
    Key {
        id: Id::MaxRows,
        kind: Kind::RowBound,
        name: "result.max.rows",
        synonyms: &["kyuubi.operation.result.max.rows"],
        values: "a number of rows; 0: no bound",
        default: "0",
        description: "Most rows of a result. A result that was cut says that it is truncated.",
    },
    Key {
        id: Id::Format,
        kind: Kind::Format,
        name: "result.format",
        synonyms: &["kyuubi.operation.result.format"],
        values: "thrift, arrow",
        default: "thrift",
        description: "Form of rows over HiveServer2; other ways out always send Arrow.",
    },
    Key {
        id: Id::Timeout,
        kind: Kind::Duration,
        name: "query.timeout",
        synonyms: &[KYUUBI_TIMEOUT],
        values: "a duration such as 30s, 5m, 1h, PT30S or a number of seconds; 0: none",
        default: "0",
        description: "Longest time for a statement and its result. A plain number is seconds \
                      (milliseconds under Kyuubi's name, as there).",
    },
    Key {
        id: Id::TimeZone,
        kind: Kind::TimeZone,
        name: "session.timeZone",
        synonyms: &["spark.sql.session.timeZone"],
        values: "an IANA time zone such as Europe/Berlin, or an offset such as +08:00",
        default: "UTC",
        description: "Zone of timestamps with time zone; the engine gets it too.",
    },
    Key {
        id: Id::Engine,
        kind: Kind::Name,
        name: "gateway.engine",
        synonyms: &[],
        values: "the name of an engine that the user may use",
        default: "",
        description: "Engine that statements go to; the default engine when empty.",
    },
];

impl Key {
    /// The key of that canonical name or synonym, in any case.
    pub(crate) fn find(name: &str) -> Option<&'static Self> {
        KEYS.iter()
            .find(|key| key.names().any(|known| known.eq_ignore_ascii_case(name)))
    }

    /// The canonical name, then the synonyms.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.name).chain(self.synonyms.iter().copied())
    }

    /// Checks `text` as a value of this key, which was called `name`.
    pub(crate) fn read(&self, name: &str, text: &str) -> Result<Value> {
        let plain = match name.eq_ignore_ascii_case(KYUUBI_TIMEOUT) {
            true => PlainUnit::Milliseconds,
            false => PlainUnit::Seconds,
        };
        self.kind.read(text, plain).ok_or_else(|| {
            let message = format!(
                "{} cannot be {}; allowed values: {}",
                self.name,
                echo(text),
                self.values
            );
            Error::invalid("22023", message)
        })
    }

    /// The default as a value; `None` when there is none.
    pub(crate) fn default_value(&self) -> Option<Value> {
        self.kind.read(self.default, PlainUnit::Seconds)
    }
}

/// `text` in quotes, shortened.
pub(crate) fn echo(text: &str) -> String {
    match text.char_indices().nth(MAX_ECHO) {
        Some((end, _)) => format!("'{}…'", &text[..end]),
        None => format!("'{text}'"),
    }
}

/// The error for a name that nobody knows, with the nearest names there are.
pub(crate) fn unknown(name: &str) -> Error {
    let near = nearest(name);
    let hint = match near.as_slice() {
        [] => "SHOW ALL lists the names".to_owned(),
        near => format!("did you mean {}?", near.join(" or ")),
    };
    Error::invalid(
        "42704",
        format!("no setting is called {}; {hint}", echo(name)),
    )
}

/// Up to three canonical names that `name` may have meant, the likeliest first.
fn nearest(name: &str) -> Vec<&'static str> {
    let wanted = name.to_ascii_lowercase();
    if wanted.len() > MAX_ECHO {
        return Vec::new();
    }
    let score = |known: &str| {
        let known = known.to_ascii_lowercase();
        let is_part = wanted.len() >= 3 && known.split('.').any(|part| part == wanted);
        let is_tail = wanted.len() >= 3 && known.ends_with(&format!(".{wanted}"));
        let distance = if is_part || is_tail {
            1
        } else {
            distance(&wanted, &known)
        };
        (distance <= 3.max(known.len() / 4)).then_some(distance)
    };
    let mut near: Vec<_> = KEYS
        .iter()
        .filter_map(|key| Some((key.names().filter_map(score).min()?, key.name)))
        .collect();
    near.sort_unstable();
    near.into_iter().take(3).map(|(_, name)| name).collect()
}

/// Levenshtein's distance.
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, from) in left.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, to) in right.iter().enumerate() {
            let substituted = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sound() {
        for (index, key) in KEYS.iter().enumerate() {
            assert_eq!(key.id as usize, index, "{}", key.name);
            match key.default_value() {
                Some(value) => assert_eq!(value.to_string(), key.default, "{}", key.name),
                None => assert_eq!(key.default, "", "{}", key.name),
            }
            for name in key.names() {
                let found = Key::find(&name.to_uppercase()).map(|found| found.name);
                assert_eq!(found, Some(key.name));
            }
        }
    }

    #[test]
    fn a_wrong_value_names_the_allowed_ones() {
        let key = &KEYS[Id::Codec as usize];
        let error = key
            .read(key.name, "gzip")
            .map(|_| ())
            .map_err(|error| error.to_string());
        let want =
            "arrow.compression.codec cannot be 'gzip'; allowed values: none, lz4, zstd, auto";
        assert_eq!(error, Err(want.to_owned()));
    }

    #[test]
    fn near_names_are_found() {
        for (name, want) in [
            ("arrow.compression.codek", "arrow.compression.codec"),
            ("compression.codec", "arrow.compression.codec"),
            ("codec", "arrow.compression.codec"),
            ("timezone", "session.timeZone"),
            ("query.timeuot", "query.timeout"),
            ("spark.sql.session.timezon", "session.timeZone"),
        ] {
            assert_eq!(nearest(name).first(), Some(&want), "{name}");
        }
        assert!(nearest("zzzzzz").is_empty());
        assert!(nearest(&"a".repeat(1_000_000)).is_empty());
        assert_eq!(unknown("codek.x").sqlstate(), "42704");
    }

    #[test]
    fn a_plain_number_has_kyuubis_unit_under_kyuubis_name() {
        let key = &KEYS[Id::Timeout as usize];
        let shown = |name| key.read(name, "2000").map(|value| value.to_string()).ok();
        assert_eq!(shown("query.timeout").as_deref(), Some("2000s"));
        assert_eq!(shown(KYUUBI_TIMEOUT).as_deref(), Some("2s"));
    }
}
