//! A setting as a row of `SET`, `SHOW` and `SHOW ALL`. Secrets are masked here. Must not know how
//! rows become columns.

use super::change::Source;
use super::layer::Foreign;
use super::secret::mask;

/// Shown as the effective value of what was kept for a driver's sake.
const NOT_EFFECTIVE: &str = "(not effective)";

/// One setting with its value and where that comes from. No field shows a secret.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The canonical name; an engine's key as it was written.
    pub key: String,
    /// The value that was asked for, or the default.
    pub value: String,
    /// The value in force, where that differs: under a ceiling, or as the gateway resolves it.
    pub effective: String,
    /// The value without the session's and the connection's own.
    pub default: String,
    /// Who gave the value.
    pub source: Source,
    /// What it does, and the allowed values.
    pub description: String,
    /// Whether the key is the engine's own, which knows its value better.
    pub is_engine: bool,
}

impl Row {
    /// A key that is not ours; `default` is the administrator's value for it.
    pub(crate) fn foreign(foreign: &Foreign, default: Option<&str>, source: Source) -> Self {
        let value = mask(&foreign.key, &foreign.value).into_owned();
        let (effective, description) = match foreign.is_engine {
            true => (value.clone(), "A setting of the engine."),
            false => (
                NOT_EFFECTIVE.to_owned(),
                "Kept because drivers send it; has no effect.",
            ),
        };
        Self {
            key: foreign.key.clone(),
            value,
            effective,
            default: mask(&foreign.key, default.unwrap_or_default()).into_owned(),
            source,
            description: description.to_owned(),
            is_engine: foreign.is_engine,
        }
    }

    /// A key of the engine that nobody set here.
    pub(crate) fn unset(key: &str) -> Self {
        let (key, value) = (key.to_owned(), String::new());
        Self::foreign(
            &Foreign {
                key,
                value,
                is_engine: true,
            },
            None,
            Source::Default,
        )
    }

    /// A key that the policy drops.
    pub(crate) fn ignored(key: &str) -> Self {
        let (key, value) = (key.to_owned(), String::new());
        let mut row = Self::foreign(
            &Foreign {
                key,
                value,
                is_engine: false,
            },
            None,
            Source::Default,
        );
        row.description = "Ignored by the administrator's policy.".to_owned();
        row
    }

    /// The same row with what the engine says of its own key.
    #[must_use]
    pub fn with_engine_value(mut self, value: &str, description: &str) -> Self {
        self.value = mask(&self.key, value).into_owned();
        self.effective.clone_from(&self.value);
        description.clone_into(&mut self.description);
        self
    }
}
