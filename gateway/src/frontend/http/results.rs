//! `GET /operations/{operation}/result`, `…/delivery` and `POST /query`: results as streams. Must
//! not know how rows are written.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::Response;
use http::header::{CONTENT_TYPE, TRAILER};
use http::{HeaderMap, HeaderName, HeaderValue};
use sluice_core::error::Error;
use sluice_core::handle::Handle;
use sluice_core::operation::Operation;
use sluice_core::service::{ExecuteOptions, OpenSession};
use sluice_ipc::Codec;
use sluice_wire::http::media::{self, Form};
use sluice_wire::http::{DeliveryReport, QueryRequest, headers};

use super::answer;
use super::caller::Caller;
use super::decode::{Decoded, Named, settings_of};
use super::error::Failure;
use super::operations::timeout;
use super::reader::{self, Asked};
use super::stream::{self, Opened};
use super::text::{self, writer::Text};
use super::{Door, Shared};

/// All rows of an operation's result, once.
pub(super) async fn result(
    State(door): State<Shared>,
    caller: Caller,
    Named(id): Named,
    asked: Asked,
) -> Result<Response, Failure> {
    let operation = door.gateway.operation(&caller.identity, &id)?;
    let mut response = answer(&door, &operation, asked).await?;
    put(&mut response, headers::SESSION_ID, operation.session());
    Ok(response)
}

/// SQL in, rows out.
pub(super) async fn query(
    State(door): State<Shared>,
    caller: Caller,
    asked: Asked,
    headers: HeaderMap,
    Decoded(request): Decoded<QueryRequest>,
) -> Result<Response, Failure> {
    let mut settings = settings_of(&headers)?;
    settings.extend(request.configs.0);
    let open = OpenSession {
        settings,
        catalog: request.catalog,
        schema: request.schema,
        client: asked.client.clone(),
        name: None,
        peer: Some(caller.peer),
    };
    let options = ExecuteOptions {
        max_rows: request.max_rows,
        timeout: timeout(request.query_timeout),
        wait: true,
        ..ExecuteOptions::default()
    };
    let operation = door
        .gateway
        .query(caller.identity, open, &request.statement, options)
        .await?;
    answer(&door, &operation, asked).await
}

/// How the operation's result travelled.
pub(super) async fn delivery(
    State(door): State<Shared>,
    caller: Caller,
    Named(id): Named,
) -> Result<Json<DeliveryReport>, Failure> {
    let operation = door.gateway.operation(&caller.identity, &id)?;
    Ok(Json(answer::delivery(&operation.delivery())))
}

/// The result in the form that is wanted. What fails before the first byte is an error of its
/// own; what fails later breaks the body.
async fn answer(
    door: &Door,
    operation: &Arc<Operation>,
    asked: Asked,
) -> Result<Response, Failure> {
    let Asked { form, client } = asked;
    let id = operation.id();
    let of_operation = |error: Error| error.of_operation(id);
    let wish = reader::wish(form, client, door.settings.max_row_bytes);
    let stream = operation.result(&wish).map_err(of_operation)?;
    let codec = stream.codec();
    let opened = Opened::begin(stream).await.map_err(of_operation)?;
    let (body, trailers) = match Text::of(form) {
        None => (stream::body(opened), headers::ARROW_TRAILERS),
        Some(text) => (
            text::body(text, opened).map_err(of_operation)?,
            headers::TEXT_TRAILERS,
        ),
    };
    let mut response = Response::new(body);
    put(&mut response, headers::OPERATION_ID, id);
    let content_type = HeaderValue::from_static(content_type(form, codec));
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
        .headers_mut()
        .insert(TRAILER, HeaderValue::from_static(trailers));
    Ok(response)
}

fn content_type(form: Form, codec: Codec) -> &'static str {
    match form {
        Form::Arrow => media::arrow_content_type(match codec {
            Codec::None => None,
            Codec::Lz4 => Some(media::Codec::Lz4),
            Codec::Zstd => Some(media::Codec::Zstd),
        }),
        Form::Json => media::JSON,
        Form::NdJson => media::NDJSON,
        Form::Csv => "text/csv; charset=utf-8; header=present",
    }
}

fn put(response: &mut Response, name: &'static str, handle: Handle) {
    // A handle is hexadecimal digits and dashes.
    if let Ok(value) = HeaderValue::try_from(handle.to_string()) {
        response
            .headers_mut()
            .insert(HeaderName::from_static(name), value);
    }
}
