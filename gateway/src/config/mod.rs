//! Configuration in two steps: `raw`, the file's shape, to [`Config`], checked and typed.
//!
//! ```text
//!   built-in defaults < file < SLUICE__SECTION__KEY < --set section.key=value
//!                            │ layers: one tree, each value with its origin
//!                            ▼
//!                     raw: serde, unknown keys refused ── resolved: every module's own Config
//! ```
//!
//! Owns the environment (nothing else reads it) and the report of mistakes: all at once, each
//! with its key and the allowed values. Must not start anything.

mod bounds;
mod clients;
mod engines;
mod layers;
mod mistake;
mod raw;
mod resolve;
mod show;
mod values;

use std::path::{Path, PathBuf};

pub use clients::built_in as built_in_clients;
pub use mistake::{Mistake, Mistakes};
pub use resolve::{Admin, Config, Server};
pub use show::Shown;

/// Prefix of environment variables that set a key; `__` separates what dots do elsewhere.
const ENVIRONMENT_PREFIX: &str = "SLUICE__";

/// Where a configuration comes from.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    file: Option<PathBuf>,
    environment: Vec<(String, String)>,
    set: Vec<String>,
}

impl Sources {
    /// The built-in defaults alone.
    pub fn defaults() -> Self {
        Self::default()
    }

    /// What the process was started with: a file, `--set` arguments and the environment.
    pub fn of_process(file: Option<PathBuf>, set: Vec<String>) -> Self {
        let environment = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .filter(|(name, _)| name.starts_with(ENVIRONMENT_PREFIX))
            .collect();
        Self {
            file,
            environment,
            set,
        }
    }

    /// Adds a TOML file.
    #[must_use]
    pub fn with_file(mut self, file: impl Into<PathBuf>) -> Self {
        self.file = Some(file.into());
        self
    }

    /// Adds `key=value`, as `--set` does.
    #[must_use]
    pub fn with(mut self, assignment: impl Into<String>) -> Self {
        self.set.push(assignment.into());
        self
    }
}

/// Reads and checks a configuration.
///
/// # Errors
/// Everything that is wrong with it.
pub fn load(sources: &Sources) -> Result<Config, Mistakes> {
    let (tree, mut mistakes) = layers::merge(sources);
    let raw = raw::read(&tree, &mut mistakes);
    let base = sources
        .file
        .as_deref()
        .and_then(Path::parent)
        .map(Path::to_path_buf)
        .unwrap_or_default();
    let config = resolve::resolve(
        &raw,
        &resolve::Place {
            base,
            file: sources.file.clone(),
        },
        &mut mistakes,
    );
    mistakes.locate(|key| layers::origin_of_key(&tree, key));
    match config {
        Some(mut config) if mistakes.is_empty() => {
            config.shown = show::shown(&raw, &tree);
            Ok(config)
        }
        _ => Err(mistakes),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
