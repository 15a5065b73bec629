//! From the gateway's words to this package's error. Owns that translation. Must not know what
//! was asked.

use http::StatusCode;
use sluice_wire::http::{ErrorBody, ErrorDetail};

use crate::error::{Error, ErrorKind};

/// Letters of an answer that is not understood which are shown.
const SHOWN: usize = 200;

/// The error that an answer with `status` and `body` is.
pub(crate) fn error_of(status: StatusCode, body: &[u8]) -> Error {
    if let Ok(ErrorBody { error }) = serde_json::from_slice(body) {
        return error_of_detail(&error);
    }
    // A proxy in between does not speak the gateway's language.
    let text = String::from_utf8_lossy(body);
    let text: String = text
        .chars()
        .filter(|c| !c.is_control())
        .take(SHOWN)
        .collect();
    let kind = kind_of_status(status);
    let message = format!("the gateway answered {status} {text}");
    Error::new(kind, message.trim_end()).with_retryable(kind == ErrorKind::Overloaded)
}

/// An error as the gateway describes it.
pub(crate) fn error_of_detail(detail: &ErrorDetail) -> Error {
    let error = Error::new(ErrorKind::of_gateway(&detail.kind), &detail.message)
        .with_sqlstate(&detail.sql_state)
        .with_retryable(detail.retryable);
    match &detail.operation_id {
        Some(operation) => error.of_operation(operation),
        None => error,
    }
}

fn kind_of_status(status: StatusCode) -> ErrorKind {
    match status {
        StatusCode::UNAUTHORIZED => ErrorKind::Unauthenticated,
        StatusCode::FORBIDDEN => ErrorKind::Forbidden,
        StatusCode::NOT_FOUND => ErrorKind::NotFound,
        StatusCode::CONFLICT => ErrorKind::Conflict,
        StatusCode::GONE => ErrorKind::Gone,
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => ErrorKind::Overloaded,
        StatusCode::GATEWAY_TIMEOUT | StatusCode::REQUEST_TIMEOUT => ErrorKind::Timeout,
        status if status.is_client_error() => ErrorKind::Invalid,
        _ => ErrorKind::Protocol,
    }
}

#[cfg(test)]
mod tests {
    use sluice_wire::http::kind;

    use super::*;

    #[test]
    fn every_kind_on_the_wire_is_known() {
        for name in kind::ALL {
            assert_eq!(ErrorKind::of_gateway(name).name(), name);
        }
        assert_eq!(ErrorKind::of_gateway("Newer"), ErrorKind::Other);
        assert_eq!(ErrorKind::of_gateway("Incomplete"), ErrorKind::Other);
    }

    #[test]
    fn the_gateways_words_are_kept() {
        let body = br#"{"error":{"kind":"Invalid","sqlState":"42601","message":"no","retryable":true,"operationId":"7"}}"#;
        let error = error_of(StatusCode::BAD_REQUEST, body);
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert_eq!(error.sqlstate(), "42601");
        assert_eq!(error.message(), "no");
        assert!(error.retryable());
        assert_eq!(error.operation_id(), Some("7"));
    }

    #[test]
    fn a_proxys_page_is_shown_in_one_line() {
        let error = error_of(StatusCode::BAD_GATEWAY, b"<h1>\n\x1b[2JBad");
        assert_eq!(error.kind(), ErrorKind::Protocol);
        assert_eq!(
            error.message(),
            "the gateway answered 502 Bad Gateway <h1>[2JBad"
        );
        assert_eq!(
            error_of(StatusCode::SERVICE_UNAVAILABLE, b"").kind(),
            ErrorKind::Overloaded
        );
    }
}
