//! The layers of a configuration, merged into one tree in which every value knows its origin.
//! Must not know which keys there are, save that some tables hold keys of SQL settings.

use std::path::Path;

use config::{Config, ConfigError, Map, Source, Value, ValueKind};
use sluice_core::settings::KEYS;

use super::mistake::Mistakes;
use super::{ENVIRONMENT_PREFIX, Sources};

/// One layer: sections by name.
#[derive(Clone, Debug, Default)]
struct Layer(Map<String, Value>);

impl Source for Layer {
    fn clone_into_box(&self) -> Box<dyn Source + Send + Sync> {
        Box::new(self.clone())
    }

    fn collect(&self) -> Result<Map<String, Value>, ConfigError> {
        Ok(self.0.clone())
    }
}

/// File, environment and arguments in one tree, the last one winning key by key, and what is
/// wrong with the text of each.
pub(super) fn merge(sources: &Sources) -> (Value, Mistakes) {
    let mut mistakes = Mistakes::default();
    let mut layers = Vec::new();
    if let Some(file) = &sources.file {
        layers.extend(of_file(file, &mut mistakes));
    }
    for (name, value) in &sources.environment {
        layers.extend(of_variable(name, value, &mut mistakes));
    }
    for assignment in &sources.set {
        layers.extend(of_assignment(assignment, &mut mistakes));
    }
    let builder = layers
        .into_iter()
        .fold(Config::builder(), |builder, layer| {
            builder.add_source(layer)
        });
    match builder.build() {
        Ok(config) => (config.cache, mistakes),
        Err(error) => {
            mistakes.add("configuration", error.to_string());
            (Map::<String, Value>::new().into(), mistakes)
        }
    }
}

fn of_file(path: &Path, mistakes: &mut Mistakes) -> Option<Layer> {
    let origin = format!("in {}", path.display());
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) => {
            mistakes.add(
                "--config",
                format!("cannot read {}: {error}", path.display()),
            );
            return None;
        }
    };
    match toml::from_str::<toml::Table>(&text) {
        Ok(table) => Some(layer(table, &origin, mistakes)),
        Err(error) => {
            mistakes.add(
                path.display().to_string(),
                format!("not TOML: {}", error.to_string().trim_end()),
            );
            None
        }
    }
}

fn of_variable(name: &str, value: &str, mistakes: &mut Mistakes) -> Option<Layer> {
    let key = name
        .strip_prefix(ENVIRONMENT_PREFIX)?
        .to_lowercase()
        .replace("__", ".");
    let Some(table) = assignment(&key, value) else {
        mistakes.add(
            name,
            "names no key; allowed: SLUICE__SECTION__KEY, such as SLUICE__SERVER__LISTEN",
        );
        return None;
    };
    Some(layer(table, &format!("from {name}"), mistakes))
}

fn of_assignment(text: &str, mistakes: &mut Mistakes) -> Option<Layer> {
    let split = text
        .split_once('=')
        .map(|(key, value)| (key.trim(), value.trim()));
    let table = split.and_then(|(key, value)| assignment(key, value));
    let Some(table) = table else {
        mistakes.add(format!("--set {text}"), "not of the form section.key=value");
        return None;
    };
    Some(layer(table, "from --set", mistakes))
}

/// `key = value` as TOML; a value that is no TOML is a string, so that nobody has to quote twice.
fn assignment(key: &str, value: &str) -> Option<toml::Table> {
    let bare = || toml::from_str(&format!("{key} = {value}")).ok();
    let quoted = || toml::from_str(&format!("{key} = {}", toml::Value::from(value))).ok();
    let is_line = !value.contains(['\n', '\r', '#']);
    is_line
        .then(bare)
        .flatten()
        .or_else(quoted)
        .filter(|table: &toml::Table| !table.is_empty())
}

fn layer(table: toml::Table, origin: &str, mistakes: &mut Mistakes) -> Layer {
    let sections = table
        .into_iter()
        .map(|(name, value)| (name, convert(value, origin)));
    let mut layer = Layer(sections.collect());
    layer.flatten_settings(mistakes);
    layer
}

impl Layer {
    /// Writes nested and differently spelled keys of settings in one way, so that a later layer
    /// replaces what an earlier one said.
    fn flatten_settings(&mut self, mistakes: &mut Mistakes) {
        if let Some(settings) = self.0.get_mut("settings") {
            flatten("settings", settings, mistakes);
        }
        if let Some(max) = self
            .0
            .get_mut("policy")
            .and_then(|policy| entry(policy, "max"))
        {
            flatten("policy.max", max, mistakes);
        }
        let Some(ValueKind::Table(users)) = self.0.get_mut("users").map(|users| &mut users.kind)
        else {
            return;
        };
        for (name, user) in users {
            if let Some(defaults) = entry(user, "defaults") {
                flatten(&format!("users.{name}.defaults"), defaults, mistakes);
            }
        }
    }
}

fn entry<'a>(value: &'a mut Value, key: &str) -> Option<&'a mut Value> {
    match &mut value.kind {
        ValueKind::Table(table) => table.get_mut(key),
        _ => None,
    }
}

fn flatten(place: &str, value: &mut Value, mistakes: &mut Mistakes) {
    let ValueKind::Table(table) = &mut value.kind else {
        return;
    };
    let mut flat = Map::new();
    let mut open: Vec<_> = table.drain().collect();
    while let Some((key, value)) = open.pop() {
        match value.kind {
            ValueKind::Table(inner) => {
                open.extend(
                    inner
                        .into_iter()
                        .map(|(name, value)| (format!("{key}.{name}"), value)),
                );
            }
            _ => {
                let key = spelling(&key);
                let origin = value.origin().map(str::to_owned);
                if flat.insert(key.clone(), value).is_some() {
                    mistakes.add_from(format!("{place}.{key}"), "given twice", origin);
                }
            }
        }
    }
    *table = flat;
}

/// The registry's own spelling of a key, which is written in any case.
fn spelling(key: &str) -> String {
    let names = KEYS
        .iter()
        .flat_map(|known| std::iter::once(&known.name).chain(known.synonyms));
    names
        .copied()
        .find(|name| name.eq_ignore_ascii_case(key))
        .unwrap_or(key)
        .to_owned()
}

fn convert(value: toml::Value, origin: &str) -> Value {
    let kind = match value {
        toml::Value::Array(items) => ValueKind::Array(
            items
                .into_iter()
                .map(|item| convert(item, origin))
                .collect(),
        ),
        toml::Value::Boolean(flag) => ValueKind::Boolean(flag),
        toml::Value::Datetime(time) => ValueKind::String(time.to_string()),
        toml::Value::Float(number) => ValueKind::Float(number),
        toml::Value::Integer(number) => ValueKind::I64(number),
        toml::Value::String(text) => ValueKind::String(text),
        toml::Value::Table(table) => ValueKind::Table(
            table
                .into_iter()
                .map(|(name, value)| (name, convert(value, origin)))
                .collect(),
        ),
    };
    Value::new(Some(&origin.to_owned()), kind)
}

/// Where the value at `path` came from: its own origin, or that of the nearest table above it.
pub(super) fn origin<'a>(
    tree: &'a Value,
    path: impl IntoIterator<Item = &'a str>,
) -> Option<String> {
    let mut at = tree;
    for step in path {
        let next = match &at.kind {
            ValueKind::Table(table) => table.get(step),
            ValueKind::Array(items) => step
                .parse::<usize>()
                .ok()
                .and_then(|index| items.get(index)),
            _ => None,
        };
        match next {
            Some(next) => at = next,
            None => return None,
        }
    }
    at.origin().map(str::to_owned)
}

/// Where the value of `key` came from; the key's parts may hold dots themselves.
pub(super) fn origin_of_key(tree: &Value, key: &str) -> Option<String> {
    let ValueKind::Table(table) = &tree.kind else {
        return None;
    };
    table.iter().find_map(|(name, value)| {
        let rest = key.strip_prefix(name.as_str())?;
        match rest.strip_prefix('.') {
            Some(rest) => origin_of_key(value, rest),
            None => rest
                .is_empty()
                .then(|| value.origin().map(str::to_owned))
                .flatten(),
        }
    })
}
