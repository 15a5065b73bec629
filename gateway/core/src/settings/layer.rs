//! One layer of values: of the server, a user, a connection or a session. Must not know which.

use std::collections::BTreeMap;

use super::registry::{Id, KEYS};
use super::value::Value;

/// Values by key. Later layers hide earlier ones.
#[derive(Clone, Debug, Default)]
pub(crate) struct Layer {
    ours: [Option<Value>; KEYS.len()],
    /// Keys that are not ours, by name in lower case.
    foreign: BTreeMap<String, Foreign>,
}

/// A value of a key that is not ours.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Foreign {
    /// The name as it was written.
    pub(crate) key: String,
    pub(crate) value: String,
    /// Whether an engine took it. Otherwise it is kept for show and has no effect.
    pub(crate) is_engine: bool,
}

impl Layer {
    pub(crate) fn ours(&self, id: Id) -> Option<&Value> {
        self.ours[id as usize].as_ref()
    }

    pub(crate) fn put_ours(&mut self, id: Id, value: Option<Value>) {
        self.ours[id as usize] = value;
    }

    pub(crate) fn foreign(&self, key: &str) -> Option<&Foreign> {
        self.foreign.get(&key.to_ascii_lowercase())
    }

    pub(crate) fn put_foreign(&mut self, foreign: Foreign) {
        self.foreign
            .insert(foreign.key.to_ascii_lowercase(), foreign);
    }

    pub(crate) fn take_foreign(&mut self, key: &str) -> Option<Foreign> {
        self.foreign.remove(&key.to_ascii_lowercase())
    }

    /// All that is not ours, by name.
    pub(crate) fn all_foreign(&self) -> impl Iterator<Item = (&String, &Foreign)> {
        self.foreign.iter()
    }

    /// How many keys are not ours.
    pub(crate) fn foreign_count(&self) -> usize {
        self.foreign.len()
    }
}
