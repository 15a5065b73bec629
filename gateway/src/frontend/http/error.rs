//! The one table from the core's kinds of errors to HTTP, and the answer that an error becomes.
//! Must not know what was asked.

use axum::Json;
use axum::response::{IntoResponse, Response};
use http::header::{RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderValue, StatusCode};
use sluice_core::error::{Error, ErrorKind};
use sluice_wire::http::{ErrorBody, ErrorDetail, kind};
use tracing::error;

/// SQLSTATE of a request that does not follow the protocol.
const PROTOCOL_VIOLATION: &str = "08P01";
/// SQLSTATEs of limits that a caller reaches alone: too many of something at a time (53300), too
/// many wrong passwords (28000).
const CALLERS_OWN: [&str; 2] = ["53300", "28000"];

/// Seconds after which a refused caller may try again.
const RETRY_SECONDS: HeaderValue = HeaderValue::from_static("1");

/// Longer texts are cut: an engine may answer with a plan of a megabyte.
const MAX_MESSAGE: usize = 16 << 10;

/// Status and name on the wire, for each kind. Without a `_` arm: a new kind is a compile error.
pub(crate) fn row(kind: ErrorKind) -> (StatusCode, &'static str) {
    match kind {
        ErrorKind::Cancelled => (StatusCode::CONFLICT, kind::CANCELLED),
        ErrorKind::Conflict => (StatusCode::CONFLICT, kind::CONFLICT),
        ErrorKind::Engine => (StatusCode::BAD_GATEWAY, kind::ENGINE),
        ErrorKind::Forbidden => (StatusCode::FORBIDDEN, kind::FORBIDDEN),
        ErrorKind::Gone => (StatusCode::GONE, kind::GONE),
        ErrorKind::Internal => (StatusCode::INTERNAL_SERVER_ERROR, kind::INTERNAL),
        ErrorKind::Invalid => (StatusCode::BAD_REQUEST, kind::INVALID),
        ErrorKind::NotFound => (StatusCode::NOT_FOUND, kind::NOT_FOUND),
        ErrorKind::Overloaded => (StatusCode::SERVICE_UNAVAILABLE, kind::OVERLOADED),
        ErrorKind::RowTooLarge => (StatusCode::UNPROCESSABLE_ENTITY, kind::ROW_TOO_LARGE),
        ErrorKind::Timeout => (StatusCode::GATEWAY_TIMEOUT, kind::TIMEOUT),
        ErrorKind::Unauthenticated => (StatusCode::UNAUTHORIZED, kind::UNAUTHENTICATED),
    }
}

/// An error on its way out.
#[derive(Debug)]
pub(super) struct Failure {
    status: StatusCode,
    error: Error,
}

impl Failure {
    /// A request that HTTP has a more precise status for than its kind.
    pub(super) fn request(status: StatusCode, message: impl Into<String>) -> Self {
        Self {
            status,
            error: Error::invalid(PROTOCOL_VIOLATION, message),
        }
    }

    /// A request that is wrong in itself.
    pub(super) fn bad(message: impl Into<String>) -> Self {
        Self::request(StatusCode::BAD_REQUEST, message)
    }

    #[cfg(test)]
    pub(super) fn status(&self) -> StatusCode {
        self.status
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let status = match row(error.kind()).0 {
            // Of limits it matters to the caller whether it is the one who has to hold back.
            StatusCode::SERVICE_UNAVAILABLE if CALLERS_OWN.contains(&error.sqlstate()) => {
                StatusCode::TOO_MANY_REQUESTS
            }
            status => status,
        };
        Self { status, error }
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let Self { status, error } = self;
        if error.kind() == ErrorKind::Internal {
            let cause = std::error::Error::source(&error).map(ToString::to_string);
            error!(%error, cause, "request failed");
        }
        let mut response = (
            status,
            Json(ErrorBody {
                error: detail(&error),
            }),
        )
            .into_response();
        let headers = response.headers_mut();
        match status {
            StatusCode::UNAUTHORIZED => {
                let basic = "Basic realm=\"sluice\", charset=\"UTF-8\"";
                headers.append(WWW_AUTHENTICATE, HeaderValue::from_static(basic));
                let bearer = "Bearer realm=\"sluice\"";
                headers.append(WWW_AUTHENTICATE, HeaderValue::from_static(bearer));
            }
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
                headers.insert(RETRY_AFTER, RETRY_SECONDS);
            }
            _ => {}
        }
        response
    }
}

/// An error as it is spelled on the wire.
pub(super) fn detail(error: &Error) -> ErrorDetail {
    let end = error.message().floor_char_boundary(MAX_MESSAGE);
    ErrorDetail {
        kind: row(error.kind()).1.to_owned(),
        sql_state: error.sqlstate().to_owned(),
        message: error.message()[..end].to_owned(),
        retryable: error.retryable(),
        operation_id: error.operation().map(|id| id.to_string()),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_an_error_under_its_own_name() {
        for kind in ErrorKind::ALL {
            let (status, name) = row(kind);
            assert!(
                status.is_client_error() || status.is_server_error(),
                "{kind}"
            );
            assert_eq!(name, kind.name());
        }
    }

    #[test]
    fn callers_are_told_how_to_go_on() {
        let response = |error: Error| Failure::from(error).into_response();
        let refused = response(Error::new(ErrorKind::Unauthenticated, "who?"));
        assert_eq!(
            refused.headers().get_all(WWW_AUTHENTICATE).iter().count(),
            2
        );
        let full = response(Error::new(ErrorKind::Overloaded, "disk is full"));
        assert_eq!(full.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert!(full.headers().contains_key(RETRY_AFTER));
        let own = response(Error::new(ErrorKind::Overloaded, "too many").with_sqlstate("53300"));
        assert_eq!(own.status(), StatusCode::TOO_MANY_REQUESTS);
        assert!(own.headers().contains_key(RETRY_AFTER));
    }

    #[test]
    fn long_messages_are_cut_between_characters() {
        let error = Error::new(ErrorKind::Engine, "é".repeat(MAX_MESSAGE));
        assert_eq!(detail(&error).message.len(), MAX_MESSAGE);
    }
}
