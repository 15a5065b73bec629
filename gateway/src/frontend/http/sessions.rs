//! `/sessions`: opening, looking at and closing sessions. Must not know statements.

use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use http::{HeaderMap, StatusCode};
use sluice_core::error::Error;
use sluice_core::service::OpenSession;
use sluice_wire::http::{
    Count, ExecPool, InfoValue, OpenSessionRequest, SessionData, SessionEvent, SessionOpened,
};

use super::Shared;
use super::answer;
use super::caller::Caller;
use super::decode::{DecodedOrDefault, Named, settings_of};
use super::error::Failure;
use super::reader;

/// Opens a session.
pub(super) async fn open(
    State(door): State<Shared>,
    caller: Caller,
    headers: HeaderMap,
    DecodedOrDefault(request): DecodedOrDefault<OpenSessionRequest>,
) -> Result<Json<SessionOpened>, Failure> {
    let mut settings = settings_of(&headers)?;
    settings.extend(request.configs.0);
    let open = OpenSession {
        settings,
        catalog: request.catalog,
        schema: request.schema,
        client: reader::declared(&headers, &door.settings.clients),
        name: request.name,
        peer: Some(caller.peer),
    };
    let session = door.gateway.open_session(caller.identity, open).await?;
    Ok(Json(SessionOpened {
        identifier: session.id().to_string(),
        kyuubi_instance: door.settings.instance.clone(),
        token: session.token(),
    }))
}

/// The caller's own sessions.
pub(super) async fn list(State(door): State<Shared>, caller: Caller) -> Json<Vec<SessionData>> {
    let sessions = door.gateway.sessions(&caller.identity);
    let instance = &door.settings.instance;
    Json(
        sessions
            .iter()
            .map(|session| answer::session_data(session, instance))
            .collect(),
    )
}

/// One session.
pub(super) async fn event(
    State(door): State<Shared>,
    caller: Caller,
    Named(id): Named,
) -> Result<Json<SessionEvent>, Failure> {
    let session = door.gateway.session(&caller.identity, &id)?;
    Ok(Json(answer::session_event(
        &session,
        &door.settings.instance,
    )))
}

/// Closes a session, and with it what runs in it.
pub(super) async fn close(
    State(door): State<Shared>,
    caller: Caller,
    Named(id): Named,
) -> Result<StatusCode, Failure> {
    door.gateway.close_session(&caller.identity, &id)?;
    Ok(StatusCode::OK)
}

/// How many sessions there are.
pub(super) async fn count(State(door): State<Shared>, _: Caller) -> Json<Count> {
    Json(Count {
        open_session_count: door.gateway.open_sessions() as u64,
    })
}

/// How many statements run.
pub(super) async fn exec_pool(State(door): State<Shared>, _: Caller) -> Json<ExecPool> {
    Json(ExecPool {
        exec_pool_size: door.settings.operations as u64,
        exec_pool_active_count: door.gateway.running_operations() as u64,
        exec_pool_work_queue_size: 0,
    })
}

/// What a driver asks of a server before it trusts it, by HiveServer2's numbers.
pub(super) async fn info(
    State(door): State<Shared>,
    caller: Caller,
    path: Result<Path<(String, String)>, PathRejection>,
) -> Result<Json<InfoValue>, Failure> {
    let not_found = || Error::not_found("session");
    let Path((id, number)) = path.map_err(|_| not_found())?;
    let id = id.parse().map_err(|_| not_found())?;
    door.gateway.session(&caller.identity, &id)?;
    let (name, value) = match number.as_str() {
        "13" => ("CLI_SERVER_NAME", "Sluice"),
        "17" => ("CLI_DBMS_NAME", "Sluice"),
        "18" => ("CLI_DBMS_VER", env!("CARGO_PKG_VERSION")),
        // No bound of the gateway's own; the engine has the last word.
        "30" => ("CLI_MAX_COLUMN_NAME_LEN", "0"),
        "32" => ("CLI_MAX_SCHEMA_NAME_LEN", "0"),
        "35" => ("CLI_MAX_TABLE_NAME_LEN", "0"),
        _ => return Err(Error::not_found("information of that type").into()),
    };
    Ok(Json(InfoValue {
        info_type: name.to_owned(),
        info_value: value.to_owned(),
    }))
}
