//! The administrator's policy: what nobody may set, what is dropped when set, and how high values
//! may be. Holds for canonical names and synonyms alike, whichever way in. Must not know sessions.

use super::Mistake;
use super::registry::{self, Id, KEYS, Key};
use super::value::Value;
use crate::error::{Error, ErrorKind, Result};

/// What may not be set, and how high. The default allows everything.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    restrict: Vec<Pattern>,
    ignore: Vec<Pattern>,
    max: [Option<Value>; KEYS.len()],
}

/// What the policy says of a key.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Verdict {
    Allowed,
    Ignored,
    Restricted,
}

impl Policy {
    /// A policy of `restrict` and `ignore` lists, whose entries are a key or `prefix.*`, and
    /// `max`, ceilings by key.
    ///
    /// # Errors
    /// All that is wrong, each under `restrict`, `ignore` or `max.KEY`.
    pub fn try_new(
        restrict: &[String],
        ignore: &[String],
        max: &[(String, String)],
    ) -> std::result::Result<Self, Vec<Mistake>> {
        let mut mistakes = Vec::new();
        let mut policy = Self {
            restrict: patterns("restrict", restrict, &mut mistakes),
            ignore: patterns("ignore", ignore, &mut mistakes),
            max: Default::default(),
        };
        for (name, text) in max {
            match policy.ceiling_of(name, text) {
                Ok((id, ceiling)) => policy.max[id as usize] = Some(ceiling),
                Err(message) => mistakes.push((format!("max.{name}"), message)),
            }
        }
        if mistakes.is_empty() {
            Ok(policy)
        } else {
            Err(mistakes)
        }
    }

    /// The verdict on one of our keys: on any of its names.
    pub(crate) fn verdict_on(&self, key: &Key) -> Verdict {
        key.names()
            .map(|name| self.verdict(name))
            .fold(Verdict::Allowed, Verdict::strictest)
    }

    /// The verdict on the name of a key that is not ours.
    pub(crate) fn verdict(&self, name: &str) -> Verdict {
        let name = name.to_ascii_lowercase();
        if self.restrict.iter().any(|pattern| pattern.matches(&name)) {
            Verdict::Restricted
        } else if self.ignore.iter().any(|pattern| pattern.matches(&name)) {
            Verdict::Ignored
        } else {
            Verdict::Allowed
        }
    }

    /// The ceiling for values of a key.
    pub(crate) fn ceiling(&self, id: Id) -> Option<&Value> {
        self.max[id as usize].as_ref()
    }

    /// Refuses a value that somebody asks for and that is above its ceiling.
    pub(crate) fn check(&self, key: &Key, value: &Value) -> Result<()> {
        match self.ceiling(key.id) {
            Some(ceiling) if value.exceeds(ceiling) => {
                let message = format!(
                    "{} = {value} is above the administrator's ceiling of {ceiling}",
                    key.name
                );
                Err(Error::invalid("22023", message))
            }
            _ => Ok(()),
        }
    }

    /// A value that nobody asked for: lowered to its ceiling.
    pub(crate) fn lowered(&self, id: Id, value: Value) -> Value {
        match self.ceiling(id) {
            Some(ceiling) if value.exceeds(ceiling) => ceiling.clone(),
            _ => value,
        }
    }

    fn ceiling_of(&self, name: &str, text: &str) -> std::result::Result<(Id, Value), String> {
        let key = Key::find(name).ok_or_else(|| registry::unknown(name).to_string())?;
        if !key.kind.has_order() {
            let bounded = KEYS
                .iter()
                .filter(|key| key.kind.has_order())
                .map(|key| key.name);
            let bounded: Vec<_> = bounded.collect();
            return Err(format!(
                "values of {} have no order, so no ceiling; allowed keys: {}",
                key.name,
                bounded.join(", ")
            ));
        }
        if self.ceiling(key.id).is_some() {
            return Err(format!(
                "{} has a ceiling already, under another of its names",
                key.name
            ));
        }
        let value = key.read(name, text).map_err(|error| error.to_string())?;
        match value.is_bound() {
            true => Ok((key.id, value)),
            false => Err(format!(
                "{value} bounds nothing; leave the key out for no ceiling"
            )),
        }
    }
}

impl Verdict {
    fn strictest(self, other: Self) -> Self {
        match (self, other) {
            (Self::Restricted, _) | (_, Self::Restricted) => Self::Restricted,
            (Self::Ignored, _) | (_, Self::Ignored) => Self::Ignored,
            (Self::Allowed, Self::Allowed) => Self::Allowed,
        }
    }
}

/// The refusal of a restricted key.
pub(crate) fn restricted(name: &str) -> Error {
    let message = format!(
        "{} is restricted by the administrator",
        registry::echo(name)
    );
    Error::new(ErrorKind::Forbidden, message)
}

/// A name, or all names under a prefix; in lower case.
#[derive(Clone, Debug, Eq, PartialEq)]
enum Pattern {
    Name(String),
    /// With its dot.
    Under(String),
}

impl Pattern {
    fn read(text: &str) -> Option<Self> {
        let text = text.to_ascii_lowercase();
        let is_name = |name: &str| {
            !name.is_empty()
                && !name.contains(|letter: char| letter == '*' || letter.is_whitespace())
        };
        match text.strip_suffix('*') {
            Some(prefix) if prefix.ends_with('.') && prefix.len() > 1 && is_name(prefix) => {
                Some(Self::Under(prefix.to_owned()))
            }
            Some(_) => None,
            None => is_name(&text).then_some(Self::Name(text)),
        }
    }

    fn matches(&self, name: &str) -> bool {
        match self {
            Self::Name(own) => own == name,
            Self::Under(prefix) => name.starts_with(prefix.as_str()),
        }
    }

    /// Whether it speaks of names like ours and yet matches none: a slip that would leave open
    /// what was meant to be shut.
    fn misses(&self) -> bool {
        let (Self::Name(text) | Self::Under(text)) = self;
        let family = |name: &str| name.split('.').next().map(str::to_ascii_lowercase);
        let is_like_ours = KEYS.iter().any(|key| family(key.name) == family(text));
        let mut names = KEYS.iter().flat_map(Key::names);
        is_like_ours && !names.any(|name| self.matches(&name.to_ascii_lowercase()))
    }
}

fn patterns(list: &str, texts: &[String], mistakes: &mut Vec<Mistake>) -> Vec<Pattern> {
    let read = |text: &String| {
        let message = match Pattern::read(text) {
            Some(pattern) if !pattern.misses() => return Some(pattern),
            Some(_) => registry::unknown(text).to_string(),
            None => format!("'{text}' is neither a key nor prefix.*"),
        };
        mistakes.push((list.to_owned(), message));
        None
    };
    texts.iter().filter_map(read).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn texts(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect()
    }

    #[test]
    fn any_name_of_a_key_counts() {
        let restrict = texts(&["Arrow.Compression.*", "kyuubi.operation.result.max.rows"]);
        let policy = Policy::try_new(&restrict, &texts(&["spark.x.*"]), &[]).unwrap();
        let verdict = |name| policy.verdict_on(Key::find(name).unwrap());
        assert_eq!(verdict("arrow.compression.codec"), Verdict::Restricted);
        assert_eq!(
            verdict("spark.sql.execution.arrow.compression.codec"),
            Verdict::Restricted
        );
        assert_eq!(verdict("result.max.rows"), Verdict::Restricted);
        assert_eq!(verdict("arrow.maxRecordsPerBatch"), Verdict::Allowed);
        assert_eq!(policy.verdict("SPARK.x.y"), Verdict::Ignored);
        assert_eq!(policy.verdict("spark.xy"), Verdict::Allowed);
    }

    #[test]
    fn all_mistakes_at_once() {
        let mistakes = Policy::try_new(
            &texts(&["*", "arrow.compresion.*", ""]),
            &texts(&["a b"]),
            &pairs(&[
                ("arrow.compression.codec", "zstd"),
                ("arrow.compression.zstd.level", "99"),
                ("result.max.rows", "0"),
                ("no.such", "1"),
                ("arrow.maxBytesPerBatch", "1m"),
                ("spark.sql.execution.arrow.maxBytesPerBatch", "2m"),
            ]),
        );
        let keys: Vec<_> = mistakes
            .unwrap_err()
            .into_iter()
            .map(|(key, _)| key)
            .collect();
        let want = [
            "restrict",
            "restrict",
            "restrict",
            "ignore",
            "max.arrow.compression.codec",
            "max.arrow.compression.zstd.level",
            "max.result.max.rows",
            "max.no.such",
            "max.spark.sql.execution.arrow.maxBytesPerBatch",
        ];
        assert_eq!(keys, want);
    }
}
