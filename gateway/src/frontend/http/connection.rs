//! One connection, from its first byte to its last: HTTP/1.1 or HTTP/2 by what the client speaks,
//! within bounds of time and size, and an orderly end. Must not know routes.

use std::convert::Infallible;
use std::net::IpAddr;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::time::Duration;

use async_trait::async_trait;
use axum::Router;
use axum::body::Body;
use axum::response::IntoResponse;
use futures::FutureExt;
use http::header::{CONNECTION, EXPECT};
use http::{HeaderValue, Request, Response, Version};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use sluice_core::error::{Error, ErrorKind};
use tokio::time::timeout;
use tower::ServiceExt;
use tracing::debug;

use super::activity::{Activity, Busy, BusyBody};
use super::caller::Peer;
use super::error::Failure;
use super::upload::Upload;
use super::{Http, HttpSettings};
use crate::net::drain::Drain;
use crate::net::serve::{Connection, ServeConnection};

/// Headers of a request.
const MAX_HEADERS: usize = 100;
/// What is buffered of an answer before the socket takes it, on a stream of HTTP/2.
const SEND_BUFFER: usize = 256 << 10;
/// How long broken streams have to say so, when everything has to end.
const LAST_WORDS: Duration = Duration::from_millis(500);

#[async_trait]
impl ServeConnection for Http {
    async fn serve(&self, connection: Connection, drain: Drain) {
        let Connection { io, peer } = connection;
        let activity = Activity::new();
        let service =
            service_fn(|request| answer(self.router.clone(), request, peer.ip(), activity.begin()));
        let builder = builder(&self.settings);
        let mut serving = pin!(builder.serve_connection(TokioIo::new(io), service));
        let (first, idle) = (self.settings.header_timeout, self.settings.idle_timeout);
        let mut ending = false;
        let ended = loop {
            tokio::select! {
                biased;
                ended = serving.as_mut() => break ended,
                () = drain.cancelled() => {
                    // Streams are broken by now; their ends still have to be written.
                    let _ = timeout(LAST_WORDS, serving.as_mut()).await;
                    return;
                }
                () = drain.stopping(), if !ending => {
                    ending = true;
                    serving.as_mut().graceful_shutdown();
                }
                () = activity.idle(first, idle), if !ending => {
                    ending = true;
                    serving.as_mut().graceful_shutdown();
                }
                // What does not end although nothing runs on it is cut off.
                () = activity.idle(first, first), if ending => return,
            }
        };
        if let Err(error) = ended {
            debug!(%peer, %error, "connection failed");
        }
    }
}

async fn answer(
    router: Router,
    request: Request<Incoming>,
    peer: IpAddr,
    busy: Busy,
) -> Result<Response<BusyBody>, Infallible> {
    let is_http1 = request.version() < Version::HTTP_2;
    let waits = request.headers().contains_key(EXPECT);
    let (parts, body) = request.into_parts();
    let upload = Upload::new(body);
    let mut request = Request::from_parts(parts, Body::new(upload.share()));
    request.extensions_mut().insert(Peer(peer));
    let answered = AssertUnwindSafe(router.oneshot(request))
        .catch_unwind()
        .await;
    let mut response = match answered {
        Ok(Ok(response)) => response,
        Ok(Err(never)) => match never {},
        Err(_) => Failure::from(Error::new(
            ErrorKind::Internal,
            "the request failed unexpectedly",
        ))
        .into_response(),
    };
    if !upload.drain(waits).await && is_http1 {
        response
            .headers_mut()
            .insert(CONNECTION, HeaderValue::from_static("close"));
    }
    Ok(response.map(|body| BusyBody { body, _busy: busy }))
}

fn builder(settings: &HttpSettings) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(settings.header_timeout)
        .max_headers(MAX_HEADERS)
        .max_buf_size(settings.max_head.max(8 << 10));
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(settings.max_streams)
        .max_header_list_size(u32::try_from(settings.max_head).unwrap_or(u32::MAX))
        .max_send_buf_size(SEND_BUFFER)
        .keep_alive_interval(settings.ping_interval)
        .keep_alive_timeout(settings.ping_timeout);
    builder
}
