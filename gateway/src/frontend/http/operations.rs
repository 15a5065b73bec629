//! Statements of a session, and what can be asked of and done with operations. Must not know how
//! rows travel.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use http::StatusCode;
use sluice_core::service::ExecuteOptions;
use sluice_wire::http::{
    Action, OperationAction, OperationData, OperationEvent, OperationOpened, StatementRequest,
};

use super::Shared;
use super::answer;
use super::caller::Caller;
use super::decode::{Decoded, Named};
use super::error::Failure;

/// Executes a statement. Settings in headers are the session's and were read when it was opened.
pub(super) async fn execute(
    State(door): State<Shared>,
    caller: Caller,
    Named(id): Named,
    Decoded(request): Decoded<StatementRequest>,
) -> Result<Json<OperationOpened>, Failure> {
    let session = door.gateway.session(&caller.identity, &id)?;
    let options = ExecuteOptions {
        max_rows: request.max_rows,
        settings: request.conf_overlay.0,
        timeout: timeout(request.query_timeout),
        wait: !request.run_async,
        client: None,
    };
    let operation = door
        .gateway
        .execute(&session, &request.statement, options)
        .await?;
    Ok(Json(OperationOpened {
        identifier: operation.id().to_string(),
    }))
}

/// A time-out in seconds; 0 and less is none, as in JDBC.
pub(super) fn timeout(seconds: Option<i64>) -> Option<Duration> {
    let seconds = u64::try_from(seconds?)
        .ok()
        .filter(|seconds| *seconds > 0)?;
    Some(Duration::from_secs(seconds))
}

/// The operations of a session.
pub(super) async fn list(
    State(door): State<Shared>,
    caller: Caller,
    Named(id): Named,
) -> Result<Json<Vec<OperationData>>, Failure> {
    let session = door.gateway.session(&caller.identity, &id)?;
    let operations = door.gateway.operations(&session);
    let instance = &door.settings.instance;
    let data = operations
        .iter()
        .map(|operation| answer::operation_data(operation, instance));
    Ok(Json(data.collect()))
}

/// Where an operation stands.
pub(super) async fn event(
    State(door): State<Shared>,
    caller: Caller,
    Named(id): Named,
) -> Result<Json<OperationEvent>, Failure> {
    let operation = door.gateway.operation(&caller.identity, &id)?;
    Ok(Json(answer::operation_event(
        &operation,
        &door.settings.instance,
    )))
}

/// Cancels or closes an operation.
pub(super) async fn act(
    State(door): State<Shared>,
    caller: Caller,
    Named(id): Named,
    Decoded(request): Decoded<OperationAction>,
) -> Result<StatusCode, Failure> {
    let operation = door.gateway.operation(&caller.identity, &id)?;
    match request.action {
        Action::Cancel => operation.cancel(),
        Action::Close => operation.close(),
    }
    door.cursors.close(&id);
    Ok(StatusCode::OK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_is_a_positive_number_of_seconds() {
        assert_eq!(timeout(Some(3)), Some(Duration::from_secs(3)));
        for none in [None, Some(0), Some(-1), Some(i64::MIN)] {
            assert_eq!(timeout(none), None);
        }
    }
}
