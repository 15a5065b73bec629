//! The defaults that the administrator gives: for all, and for single users. Must not know
//! sessions, nor where the texts were written.

use std::collections::HashMap;

use super::Mistake;
use super::layer::{Foreign, Layer};
use super::registry::{self, Key};

/// Server defaults and per-user defaults. Empty by default.
#[derive(Clone, Debug, Default)]
pub struct Defaults {
    pub(crate) server: Layer,
    users: HashMap<String, Layer>,
}

impl Defaults {
    /// Defaults of the server, and of users by name. Keys of an engine are known by
    /// `engine_prefixes`; the engine checks their values when a session opens.
    ///
    /// # Errors
    /// All that is wrong, each under `settings.KEY` or `users.NAME.defaults.KEY`.
    pub fn try_new(
        server: &[(String, String)],
        users: &[(String, Vec<(String, String)>)],
        engine_prefixes: &[&str],
    ) -> std::result::Result<Self, Vec<Mistake>> {
        let mut mistakes = Vec::new();
        let mut read = |place: &str, pairs: &[(String, String)]| {
            let mut layer = Layer::default();
            for (key, value) in pairs {
                if let Err(message) = put(&mut layer, key, value, engine_prefixes) {
                    mistakes.push((format!("{place}.{key}"), message));
                }
            }
            layer
        };
        let server = read("settings", server);
        let users = users
            .iter()
            .map(|(user, pairs)| (user.clone(), read(&format!("users.{user}.defaults"), pairs)))
            .collect();
        if mistakes.is_empty() {
            Ok(Self { server, users })
        } else {
            Err(mistakes)
        }
    }

    /// The defaults of one user, if there are any.
    pub(crate) fn user(&self, user: &str) -> Option<&Layer> {
        self.users.get(user)
    }
}

fn put(
    layer: &mut Layer,
    name: &str,
    text: &str,
    prefixes: &[&str],
) -> std::result::Result<(), String> {
    if let Some(key) = Key::find(name) {
        if layer.ours(key.id).is_some() {
            return Err(format!(
                "{} is given already, under another of its names",
                key.name
            ));
        }
        let value = key.read(name, text).map_err(|error| error.to_string())?;
        layer.put_ours(key.id, Some(value));
        return Ok(());
    }
    if !has_prefix(name, prefixes) {
        return Err(registry::unknown(name).to_string());
    }
    let (key, value) = (name.to_owned(), text.to_owned());
    layer.put_foreign(Foreign {
        key,
        value,
        is_engine: true,
    });
    Ok(())
}

/// Whether `name` begins with one of `prefixes`, in any case, and goes on after it.
pub(crate) fn has_prefix(name: &str, prefixes: &[&str]) -> bool {
    prefixes.iter().any(|prefix| {
        name.len() > prefix.len()
            && name
                .get(..prefix.len())
                .is_some_and(|head| head.eq_ignore_ascii_case(prefix))
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn all_mistakes_at_once() {
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        let server = [
            pair("arrow.compression.codec", "brotli"),
            pair("datafusion.execution.batch_size", "1"),
            pair("no.such", "1"),
            pair("arrow.compression.level", "1"),
            pair("arrow.compression.zstd.level", "2"),
        ];
        let users = [("ann".to_owned(), vec![pair("query.timeout", "soon")])];
        let mistakes = Defaults::try_new(&server, &users, &["datafusion."]).unwrap_err();
        let keys: Vec<_> = mistakes.iter().map(|(key, _)| key.as_str()).collect();
        let want = [
            "settings.arrow.compression.codec",
            "settings.no.such",
            "settings.arrow.compression.zstd.level",
            "users.ann.defaults.query.timeout",
        ];
        assert_eq!(keys, want);
        assert!(mistakes[0].1.contains("none, lz4, zstd, auto"));
    }
}
