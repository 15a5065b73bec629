//! Bodies about statements and operations.

use serde::{Deserialize, Serialize};

use super::configs::Configs;
use super::integer;

/// Names of states, as Kyuubi spells them.
#[allow(missing_docs)]
pub mod state {
    pub const PENDING: &str = "PENDING";
    pub const RUNNING: &str = "RUNNING";
    /// The result can be fetched, or was.
    pub const FINISHED: &str = "FINISHED";
    pub const TIMEOUT: &str = "TIMEOUT";
    pub const CANCELED: &str = "CANCELED";
    pub const CLOSED: &str = "CLOSED";
    pub const ERROR: &str = "ERROR";
}

/// `POST /sessions/{session}/operations/statement`.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StatementRequest {
    /// The SQL text.
    pub statement: String,
    /// Whether to answer at once; otherwise the answer comes with the result, or with the error.
    #[serde(default)]
    pub run_async: bool,
    /// Seconds for the statement and its result; absent, 0 or less: the session's `query.timeout`.
    #[serde(
        default,
        deserialize_with = "integer::optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub query_timeout: Option<i64>,
    /// Settings for this statement alone.
    #[serde(default, skip_serializing_if = "Configs::is_empty")]
    pub conf_overlay: Configs,
    /// Rows after which the result is cut; absent or 0: none.
    #[serde(
        default,
        deserialize_with = "integer::optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub max_rows: Option<u64>,
}

/// `POST /query`: one call, SQL in, rows out.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct QueryRequest {
    /// The SQL text.
    pub statement: String,
    /// Settings.
    #[serde(default, skip_serializing_if = "Configs::is_empty")]
    pub configs: Configs,
    /// Rows after which the result is cut; absent or 0: none.
    #[serde(
        default,
        deserialize_with = "integer::optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub max_rows: Option<u64>,
    /// Seconds for the statement and its result; absent, 0 or less: what `query.timeout` says.
    #[serde(
        default,
        deserialize_with = "integer::optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub query_timeout: Option<i64>,
    /// Default catalog.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub catalog: Option<String>,
    /// Default schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
}

/// The answer to everything that starts an operation.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct OperationOpened {
    /// The operation's handle.
    pub identifier: String,
}

/// `PUT /operations/{operation}`.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct OperationAction {
    /// What to do.
    pub action: Action,
}

/// What can be done with an operation.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// Stop it; what is known of it stays.
    Cancel,
    /// Stop it and give up its result.
    Close,
}

/// `GET /operations/{operation}/event`: where a statement stands. Times are milliseconds since
/// 1970, and 0 for what has not happened.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OperationEvent {
    /// The operation's handle.
    pub statement_id: String,
    /// The text, secrets masked.
    pub statement: String,
    /// One of [`state`].
    pub state: String,
    /// When this was written.
    pub event_time: u64,
    /// When the statement came in.
    pub create_time: u64,
    /// When the engine got it.
    pub start_time: u64,
    /// When it was over, its rows included.
    pub complete_time: u64,
    /// What went wrong, for a person.
    pub exception: Option<String>,
    /// The same for a program.
    #[serde(default)]
    pub error: Option<super::error::ErrorDetail>,
    /// The session that it belongs to.
    pub session_id: String,
    /// Whose it is.
    pub session_user: String,
    /// Always `INTERACTIVE`.
    pub session_type: String,
    /// Who holds it: `host:port`.
    pub kyuubi_instance: String,
    /// Rows sent so far.
    #[serde(default)]
    pub rows: u64,
}

/// An operation in `GET /sessions/{session}/operations`. Times as in [`OperationEvent`], but null
/// for what has not happened.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OperationData {
    /// The operation's handle.
    pub identifier: String,
    /// The text, secrets masked.
    pub statement: String,
    /// One of [`state`].
    pub state: String,
    /// When the statement came in.
    pub create_time: Option<u64>,
    /// When the engine got it.
    pub start_time: Option<u64>,
    /// When it was over, its rows included.
    pub complete_time: Option<u64>,
    /// What went wrong, for a person.
    pub exception: Option<String>,
    /// The session that it belongs to.
    pub session_id: String,
    /// Whose it is.
    pub session_user: String,
    /// Always `INTERACTIVE`.
    pub session_type: String,
    /// Who holds it: `host:port`.
    pub kyuubi_instance: String,
}

/// `GET /operations/{operation}/resultsetmetadata`.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct ResultSetMetadata {
    /// The columns, in order.
    pub columns: Vec<Column>,
}

/// A column of a result.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Column {
    /// Its name, which need not be unique.
    pub column_name: String,
    /// HiveServer2's name of the type, such as `BIGINT_TYPE`.
    pub data_type: String,
    /// From 0.
    pub column_index: u64,
    /// Digits of a decimal, and 0 for other types.
    pub precision: i64,
    /// Digits of a decimal behind the point, and 0 for other types.
    pub scale: i64,
    /// The Arrow type, such as `Int64`: what HiveServer2's types are too coarse for.
    pub comment: String,
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_as_kyuubi_sends_it() {
        let text =
            r#"{"statement":"SELECT 1","runAsync":true,"queryTimeout":null,"confOverlay":null}"#;
        let request: StatementRequest = serde_json::from_str(text).unwrap();
        assert!(request.run_async && request.query_timeout.is_none());
        assert!(request.conf_overlay.is_empty());
        let request: StatementRequest =
            serde_json::from_str(r#"{"statement":"SELECT 1"}"#).unwrap();
        assert!(!request.run_async);
    }

    #[test]
    fn unknown_fields_and_actions_are_refused_by_name() {
        let error =
            serde_json::from_str::<QueryRequest>(r#"{"statement":"x","sql":""}"#).unwrap_err();
        assert!(error.to_string().contains("unknown field `sql`"), "{error}");
        let error = serde_json::from_str::<OperationAction>(r#"{"action":"pause"}"#).unwrap_err();
        assert!(error.to_string().contains("`cancel` or `close`"), "{error}");
    }
}
