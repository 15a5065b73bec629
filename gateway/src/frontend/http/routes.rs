//! The table of routes, and answers to requests that have none. Must not know what handlers do.

use axum::extract::Request;
use axum::middleware::map_response;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post, put};
use axum::{Json, Router};
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderValue, Method, StatusCode};
use sluice_core::error::Error;
use sluice_wire::http::{OPENAPI, Version, media};

use super::error::Failure;
use super::{Shared, metadata, operations, results, rows, sessions};

/// All routes.
pub(super) fn router(door: Shared) -> Router {
    Router::new()
        .route("/api/openapi.json", get(openapi))
        .route("/api/v1/ping", get(async || "pong"))
        .route("/api/v1/version", get(version))
        .route("/api/v1/query", post(results::query))
        .merge(session_routes())
        .merge(operation_routes())
        .fallback(no_such_path)
        .method_not_allowed_fallback(no_such_method)
        .layer(map_response(for_this_caller_alone))
        .with_state(door)
}

fn session_routes() -> Router<Shared> {
    const OPERATIONS: &str = "/api/v1/sessions/{session}/operations";
    let under = |name: &str| format!("{OPERATIONS}/{name}");
    Router::new()
        .route("/api/v1/sessions", get(sessions::list).post(sessions::open))
        .route("/api/v1/sessions/count", get(sessions::count))
        .route(
            "/api/v1/sessions/execPool/statistic",
            get(sessions::exec_pool),
        )
        .route(
            "/api/v1/sessions/{session}",
            get(sessions::event).delete(sessions::close),
        )
        .route(
            "/api/v1/sessions/{session}/info/{type}",
            get(sessions::info),
        )
        .route(OPERATIONS, get(operations::list))
        .route(&under("statement"), post(operations::execute))
        .route(&under("catalogs"), post(metadata::catalogs))
        .route(&under("schemas"), post(metadata::schemas))
        .route(&under("tables"), post(metadata::tables))
        .route(&under("columns"), post(metadata::columns))
        .route(&under("functions"), post(metadata::functions))
        .route(&under("tableTypes"), post(metadata::table_types))
        .route(&under("typeInfo"), post(metadata::type_info))
}

fn operation_routes() -> Router<Shared> {
    const OPERATION: &str = "/api/v1/operations/{operation}";
    let under = |name: &str| format!("{OPERATION}/{name}");
    Router::new()
        .route(OPERATION, put(operations::act))
        .route(&under("event"), get(operations::event))
        .route(&under("resultsetmetadata"), get(rows::metadata))
        .route(&under("log"), get(rows::log).head(no_head))
        .route(&under("rowset"), get(rows::rowset).head(no_head))
        .route(&under("result"), get(results::result).head(no_head))
        .route(&under("delivery"), get(results::delivery))
}

async fn version() -> Json<Version> {
    Json(Version {
        version: env!("CARGO_PKG_VERSION").to_owned(),
    })
}

async fn openapi() -> Response {
    ([(CONTENT_TYPE, media::JSON)], OPENAPI).into_response()
}

async fn no_such_path() -> Failure {
    Error::not_found("path").into()
}

/// What a GET takes away cannot be looked at first.
async fn no_head() -> Response {
    let message = "reading takes the rows away, so there is no HEAD";
    let failure = Failure::request(StatusCode::METHOD_NOT_ALLOWED, message);
    ([(ALLOW, "GET")], failure).into_response()
}

/// The router adds `Allow`, which is also the answer to OPTIONS.
async fn no_such_method(request: Request) -> Response {
    if request.method() == Method::OPTIONS {
        return StatusCode::NO_CONTENT.into_response();
    }
    let message = "the path does not have this method; the Allow header lists those that it has";
    Failure::request(StatusCode::METHOD_NOT_ALLOWED, message).into_response()
}

/// Answers hold one user's data: no cache keeps them, and no browser guesses what they are.
async fn for_this_caller_alone(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}
