//! How the settings of a session are shown: every key with its value, what is in force, and who
//! gave it. Must not change anything.

use std::collections::BTreeMap;

use super::change::{Source, Target};
use super::policy::Verdict;
use super::registry::{self, Id, KEYS, Key};
use super::row::Row;
use super::session::Settings;
use super::value::Value;
use crate::error::Result;

impl Settings {
    /// Every key of ours, then those of engines and the kept ones that have a value.
    pub fn rows(&self) -> Vec<Row> {
        let mut rows: Vec<_> = KEYS.iter().map(|key| self.row_of(key)).collect();
        let mut foreign = BTreeMap::new();
        for (source, layer) in self.layers().into_iter().rev() {
            foreign.extend(
                layer
                    .all_foreign()
                    .map(|(name, entry)| (name, (source, entry))),
            );
        }
        rows.extend(foreign.into_iter().map(|(name, (source, entry))| {
            Row::foreign(entry, self.foreign_default(name), source)
        }));
        rows
    }

    /// One key: of ours, of the engine, or kept.
    ///
    /// # Errors
    /// 42704 for an unknown name, with the nearest ones.
    pub fn row(&self, key: &str) -> Result<Row> {
        let target = self.resolve(key);
        if let Target::Ours(ours) = target {
            return Ok(self.row_of(ours));
        }
        let set = self
            .layers()
            .into_iter()
            .find_map(|(source, layer)| layer.foreign(key).map(|foreign| (source, foreign)));
        if let Some((source, foreign)) = set {
            return Ok(Row::foreign(foreign, self.foreign_default(key), source));
        }
        match target {
            Target::Engine(key) => Ok(Row::unset(&key)),
            _ if self.policy.verdict(key) == Verdict::Ignored => Ok(Row::ignored(key)),
            _ => Err(registry::unknown(key)),
        }
    }

    fn row_of(&self, key: &'static Key) -> Row {
        let default = self.default_of(key);
        let set = self
            .layers()
            .into_iter()
            .find_map(|(source, layer)| layer.ours(key.id).map(|value| (source, value.clone())));
        let (source, value) = match set {
            Some((source, value)) => (source, Some(self.policy.lowered(key.id, value))),
            None => (Source::Default, default.clone()),
        };
        let text = |value: Option<&Value>| value.map_or_else(String::new, ToString::to_string);
        let mut description = format!("{} Values: {}.", key.description, key.values);
        if let Some(ceiling) = self.policy.ceiling(key.id) {
            description.push_str(&format!(" The administrator's ceiling is {ceiling}."));
        }
        match self.policy.verdict_on(key) {
            Verdict::Restricted => description.push_str(" Restricted by the administrator."),
            Verdict::Ignored => description.push_str(" Changes are ignored by the administrator."),
            Verdict::Allowed => {}
        }
        Row {
            key: key.name.to_owned(),
            value: text(value.as_ref()),
            effective: value.map_or_else(String::new, |value| self.effective(&value)),
            default: text(default.as_ref()),
            source,
            description,
            is_engine: false,
        }
    }

    fn effective(&self, value: &Value) -> String {
        match value {
            Value::Codec(wish) => wish.codec().to_string(),
            Value::BatchRows(rows) if *rows <= 0 => match self.policy.ceiling(Id::BatchRows) {
                Some(ceiling) => ceiling.to_string(),
                None => "no ceiling".to_owned(),
            },
            value => value.to_string(),
        }
    }

    fn foreign_default(&self, key: &str) -> Option<&str> {
        let user = self
            .defaults
            .user(&self.user)
            .and_then(|layer| layer.foreign(key));
        let given = user.or_else(|| self.defaults.server.foreign(key));
        given.map(|foreign| foreign.value.as_str())
    }
}
