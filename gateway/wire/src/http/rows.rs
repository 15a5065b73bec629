//! Rows in pieces, as Kyuubi's clients fetch them, and lines of a log.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Names of a field's type, as HiveServer2 calls its values.
#[allow(missing_docs)]
pub mod field {
    pub const BOOL: &str = "BOOL_VAL";
    pub const BYTE: &str = "BYTE_VAL";
    pub const I16: &str = "I16_VAL";
    pub const I32: &str = "I32_VAL";
    pub const I64: &str = "I64_VAL";
    pub const DOUBLE: &str = "DOUBLE_VAL";
    /// Base64.
    pub const BINARY: &str = "BINARY_VAL";
    /// Everything else, as text.
    pub const STRING: &str = "STRING_VAL";
}

/// `GET /operations/{operation}/rowset`. No rows means the end.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RowSet {
    /// At most as many as asked for; fewer is not the end.
    pub rows: Vec<Row>,
    /// How many they are.
    pub row_count: u64,
}

/// One row.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Row {
    /// Its values, in the order of the columns.
    pub fields: Vec<Field>,
}

/// One value.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Field {
    /// One of [`field`].
    pub data_type: String,
    /// The value; null is SQL's NULL.
    pub value: Value,
}

/// `GET /operations/{operation}/log`.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LogRowSet {
    /// Lines.
    pub log_row_set: Vec<String>,
    /// How many they are.
    pub row_count: u64,
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_spelled_as_kyuubi_spells_them() {
        let field = Field {
            data_type: field::I32.to_owned(),
            value: Value::from(1),
        };
        let rows = RowSet {
            rows: vec![Row {
                fields: vec![field],
            }],
            row_count: 1,
        };
        assert_eq!(
            serde_json::to_string(&rows).unwrap(),
            r#"{"rows":[{"fields":[{"dataType":"I32_VAL","value":1}]}],"rowCount":1}"#
        );
        let log = LogRowSet {
            log_row_set: vec!["a".to_owned()],
            row_count: 1,
        };
        assert_eq!(
            serde_json::to_string(&log).unwrap(),
            r#"{"logRowSet":["a"],"rowCount":1}"#
        );
    }
}
