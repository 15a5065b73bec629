//! The configuration in force, as a table for people. Must not know what values mean.

use comfy_table::{ContentArrangement, Table, presets};
use config::Value;
use sluice_core::settings::is_secret;

use super::layers;
use super::raw::Raw;

/// One key with its value in force.
#[derive(Clone, Debug, PartialEq)]
pub struct Shown {
    /// The key with its section.
    pub key: String,
    /// The value, as it would be written in the file.
    pub value: String,
    /// Where it came from.
    pub origin: String,
}

impl Shown {
    /// `rows` as an aligned table.
    pub fn table(rows: &[Self]) -> String {
        let mut table = Table::new();
        table
            .load_preset(presets::NOTHING)
            .set_content_arrangement(ContentArrangement::Disabled);
        table.set_header(["key", "value", "source"]);
        table.add_rows(rows.iter().map(|row| [&row.key, &row.value, &row.origin]));
        table
            .lines()
            .map(|line| line.trim().to_owned() + "\n")
            .collect()
    }
}

/// Every key of `raw`, with its origin in `tree`.
pub(super) fn shown(raw: &Raw, tree: &Value) -> Vec<Shown> {
    // The raw structs are plain data: writing them down cannot fail.
    let values = serde_json::to_value(raw).unwrap_or_default();
    let mut rows = Vec::new();
    walk(&mut Vec::new(), &values, tree, &mut rows);
    rows
}

fn walk(path: &mut Vec<String>, value: &serde_json::Value, tree: &Value, rows: &mut Vec<Shown>) {
    if let serde_json::Value::Object(table) = value {
        for (key, value) in table {
            path.push(key.clone());
            walk(path, value, tree, rows);
            path.pop();
        }
        return;
    }
    let origin = layers::origin(tree, path.iter().map(String::as_str))
        .unwrap_or_else(|| "default".to_owned());
    let origin = origin
        .trim_start_matches("in ")
        .trim_start_matches("from ")
        .to_owned();
    let key = path.join(".");
    let value = if is_secret(&key) {
        "***".to_owned()
    } else {
        value.to_string()
    };
    rows.push(Shown { key, value, origin });
}
