//! Bodies of questions about catalogs, schemas, tables, columns and functions. Names are SQL
//! `LIKE` patterns, as in JDBC's `DatabaseMetaData`; an absent one means any.

use serde::{Deserialize, Serialize};

/// `POST /sessions/{session}/operations/schemas`.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct SchemasRequest {
    /// The catalog.
    pub catalog_name: Option<String>,
    /// Pattern of schemas.
    pub schema_name: Option<String>,
}

/// `POST /sessions/{session}/operations/tables`.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct TablesRequest {
    /// The catalog.
    pub catalog_name: Option<String>,
    /// Pattern of schemas.
    pub schema_name: Option<String>,
    /// Pattern of tables.
    pub table_name: Option<String>,
    /// Types such as `TABLE` and `VIEW`; null or none means all.
    pub table_types: Option<Vec<String>>,
}

/// `POST /sessions/{session}/operations/columns`.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ColumnsRequest {
    /// The catalog.
    pub catalog_name: Option<String>,
    /// Pattern of schemas.
    pub schema_name: Option<String>,
    /// Pattern of tables.
    pub table_name: Option<String>,
    /// Pattern of columns.
    pub column_name: Option<String>,
}

/// `POST /sessions/{session}/operations/functions`. Functions belong to no catalog or schema
/// here: those two are taken because clients send them, and narrow nothing.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct FunctionsRequest {
    /// The catalog.
    pub catalog_name: Option<String>,
    /// Pattern of schemas.
    pub schema_name: Option<String>,
    /// Pattern of functions.
    pub function_name: Option<String>,
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn everything_may_be_absent_or_null() {
        let text = r#"{"catalogName":"","schemaName":"t%","tableTypes":null}"#;
        let request: TablesRequest = serde_json::from_str(text).unwrap();
        assert_eq!(request.schema_name.as_deref(), Some("t%"));
        assert_eq!(
            serde_json::from_str::<ColumnsRequest>("{}").unwrap(),
            ColumnsRequest::default()
        );
        assert!(serde_json::from_str::<SchemasRequest>(r#"{"schema":"x"}"#).is_err());
    }
}
