//! The body of every error answer, and the kinds of errors as they are spelled on the wire.

use serde::{Deserialize, Serialize};

/// Names of kinds. A kind says what failed in one word that never changes its meaning; a client
/// that meets one it does not know goes by the status.
#[allow(missing_docs)]
pub mod kind {
    pub const CANCELLED: &str = "Cancelled";
    pub const CONFLICT: &str = "Conflict";
    pub const ENGINE: &str = "Engine";
    pub const FORBIDDEN: &str = "Forbidden";
    pub const GONE: &str = "Gone";
    pub const INTERNAL: &str = "Internal";
    pub const INVALID: &str = "Invalid";
    pub const NOT_FOUND: &str = "NotFound";
    pub const OVERLOADED: &str = "Overloaded";
    pub const ROW_TOO_LARGE: &str = "RowTooLarge";
    pub const TIMEOUT: &str = "Timeout";
    pub const UNAUTHENTICATED: &str = "Unauthenticated";

    /// All of them.
    pub const ALL: [&str; 12] = [
        CANCELLED,
        CONFLICT,
        ENGINE,
        FORBIDDEN,
        GONE,
        INTERNAL,
        INVALID,
        NOT_FOUND,
        OVERLOADED,
        ROW_TOO_LARGE,
        TIMEOUT,
        UNAUTHENTICATED,
    ];
}

/// `{"error": {…}}`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct ErrorBody {
    /// What went wrong.
    pub error: ErrorDetail,
}

/// What went wrong, for a program and for a person.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ErrorDetail {
    /// One of [`kind`], or one that a newer gateway has.
    pub kind: String,
    /// Five characters of ISO/IEC 9075 SQLSTATE.
    pub sql_state: String,
    /// For a person.
    pub message: String,
    /// Whether the same request may succeed later.
    #[serde(default)]
    pub retryable: bool,
    /// The operation that it happened in, if there was one.
    #[serde(default)]
    pub operation_id: Option<String>,
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_spelled_as_documented() {
        let body = ErrorBody {
            error: ErrorDetail {
                kind: kind::INVALID.to_owned(),
                sql_state: "42601".to_owned(),
                message: "no".to_owned(),
                retryable: false,
                operation_id: None,
            },
        };
        let text = r#"{"error":{"kind":"Invalid","sqlState":"42601","message":"no","retryable":false,"operationId":null}}"#;
        assert_eq!(serde_json::to_string(&body).unwrap(), text);
        assert_eq!(serde_json::from_str::<ErrorBody>(text).unwrap(), body);
    }
}
