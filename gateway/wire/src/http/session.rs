//! Bodies about sessions.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::configs::Configs;
use super::error::ErrorDetail;
use super::integer;

/// `POST /sessions`.
///
/// Old Kyuubi clients also send `user`, `password` and `ipAddr`. They are taken and mean nothing:
/// who is calling is proved by the `Authorization` header alone.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct OpenSessionRequest {
    /// Kyuubi's protocol version; every version gets the same here.
    #[serde(
        deserialize_with = "integer::optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub protocol_version: Option<i64>,
    /// Settings of the session.
    pub configs: Configs,
    /// A name for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Default catalog.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub catalog: Option<String>,
    /// Default schema.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    #[doc(hidden)]
    #[serde(skip_serializing)]
    pub user: serde::de::IgnoredAny,
    #[doc(hidden)]
    #[serde(skip_serializing)]
    pub password: serde::de::IgnoredAny,
    #[doc(hidden)]
    #[serde(skip_serializing)]
    pub ip_addr: serde::de::IgnoredAny,
}

/// The answer to `POST /sessions`. `Debug` shows no token.
#[derive(Clone, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionOpened {
    /// The session's handle.
    pub identifier: String,
    /// Who answered: `host:port`.
    pub kyuubi_instance: String,
    /// Bearer token that stands for the user while the session lives. A secret.
    pub token: String,
}

impl std::fmt::Debug for SessionOpened {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SessionOpened")
            .field("identifier", &self.identifier)
            .field("kyuubi_instance", &self.kyuubi_instance)
            .finish_non_exhaustive()
    }
}

/// A session in `GET /sessions`. Times are milliseconds, points in time since 1970.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionData {
    /// The session's handle.
    pub identifier: String,
    /// Whose it is.
    pub user: String,
    /// Where it was opened from.
    pub ip_addr: Option<String>,
    /// Settings that were given, secrets masked.
    pub conf: BTreeMap<String, String>,
    /// When it was opened.
    pub create_time: u64,
    /// How long it has been open.
    pub duration: u64,
    /// How long nothing has run, streamed or been asked.
    pub idle_time: u64,
    /// Always null: a session that failed to open is none.
    pub exception: Option<String>,
    /// Always `INTERACTIVE`.
    pub session_type: String,
    /// Who holds it: `host:port`.
    pub kyuubi_instance: String,
    /// The name that it was given.
    pub session_name: Option<String>,
    /// Statements that it has seen.
    pub total_operations: u64,
}

/// `GET /sessions/{session}`. Times are milliseconds since 1970.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionEvent {
    /// The session's handle.
    pub session_id: String,
    /// Always `INTERACTIVE`.
    pub session_type: String,
    /// The name that it was given.
    pub session_name: Option<String>,
    /// Whose it is.
    pub user: String,
    /// Where it was opened from.
    pub client_ip: Option<String>,
    /// Who holds it: `host:port`.
    pub server_ip: String,
    /// Settings that were given, secrets masked.
    pub conf: BTreeMap<String, String>,
    /// When this was written.
    pub event_time: u64,
    /// When it was opened.
    pub opened_time: u64,
    /// When it was asked for.
    pub start_time: u64,
    /// -1: it is open.
    pub end_time: i64,
    /// Statements that it has seen.
    pub total_operations: u64,
    /// Always null: a session that failed to open is none.
    pub exception: Option<ErrorDetail>,
}

/// `GET /sessions/count`.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Count {
    /// Sessions that are open, of all users.
    pub open_session_count: u64,
}

/// `GET /sessions/execPool/statistic`.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ExecPool {
    /// Statements that may run or stream at one time.
    pub exec_pool_size: u64,
    /// Statements that run or stream now.
    pub exec_pool_active_count: u64,
    /// Always 0: what has no place is refused at once, and never queued.
    pub exec_pool_work_queue_size: u64,
}

/// `GET /sessions/{session}/info/{type}`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct InfoValue {
    /// The name of the type, such as `CLI_DBMS_NAME`.
    pub info_type: String,
    /// The value as text.
    pub info_value: String,
}

/// `GET /version`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Version {
    /// The gateway's version.
    pub version: String,
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn what_kyuubi_clients_send_is_taken() {
        let text =
            r#"{"protocolVersion":1,"user":"a","password":"b","ipAddr":"c","configs":{"k":"v"}}"#;
        let request: OpenSessionRequest = serde_json::from_str(text).unwrap();
        assert_eq!(request.configs.0, [("k".to_owned(), "v".to_owned())]);
        assert_eq!(
            serde_json::to_string(&request).unwrap(),
            r#"{"protocolVersion":1,"configs":{"k":"v"}}"#
        );
        let request: OpenSessionRequest = serde_json::from_str(r#"{"configs":null}"#).unwrap();
        assert_eq!(request, OpenSessionRequest::default());
    }

    #[test]
    fn unknown_fields_are_refused_by_name() {
        let error = serde_json::from_str::<OpenSessionRequest>(r#"{"config":{}}"#).unwrap_err();
        assert!(
            error.to_string().contains("unknown field `config`"),
            "{error}"
        );
    }

    #[test]
    fn a_token_is_not_printed() {
        let opened = SessionOpened {
            identifier: "i".to_owned(),
            kyuubi_instance: "h:1".to_owned(),
            token: "secret".to_owned(),
        };
        assert!(!format!("{opened:?}").contains("secret"));
    }
}
