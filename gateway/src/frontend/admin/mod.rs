//! The administrator's door: health, readiness, metrics. Plain HTTP on a listener of its own.
//! Must not know how anything is measured, nor show what a user did.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use sluice_core::error::ErrorKind;
use sluice_core::service::Gateway;
use tokio::time::timeout;
use tracing::debug;

use crate::net::drain::Drain;
use crate::net::serve::{Connection, ServeConnection};

/// A request's head may be so large and take so long.
const MAX_HEAD: usize = 16 << 10;
const HEAD_TIMEOUT: Duration = Duration::from_secs(5);

/// A connection, which is for one request, may stay so long.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(30);

/// An engine may take so long to say that it is ready.
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);

/// The metrics as text, with their media type.
pub type Exposition = Box<dyn Fn() -> (String, &'static str) + Send + Sync>;

/// The door.
#[derive(Clone)]
pub struct Admin {
    shared: Arc<Shared>,
}

struct Shared {
    gateway: Gateway,
    metrics: Exposition,
}

impl Admin {
    /// A door to `gateway` that shows what `metrics` gives.
    pub fn new(gateway: Gateway, metrics: Exposition) -> Self {
        Self {
            shared: Arc::new(Shared { gateway, metrics }),
        }
    }

    async fn answer(&self, method: &Method, path: &str) -> Response<Full<Bytes>> {
        if !matches!(*method, Method::GET | Method::HEAD) {
            let mut refused = plain(
                StatusCode::METHOD_NOT_ALLOWED,
                "method not allowed\n".to_owned(),
            );
            refused
                .headers_mut()
                .insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            return refused;
        }
        match path {
            "/healthz" => plain(StatusCode::OK, "ok\n".to_owned()),
            "/readyz" => self.readiness().await,
            "/metrics" => {
                let (text, media_type) = (self.shared.metrics)();
                let mut response = plain(StatusCode::OK, text);
                response
                    .headers_mut()
                    .insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
                response
            }
            _ => plain(
                StatusCode::NOT_FOUND,
                "not found; there are /healthz, /readyz and /metrics\n".to_owned(),
            ),
        }
    }

    /// Ready is: not stopping, and every engine would take a statement.
    async fn readiness(&self) -> Response<Full<Bytes>> {
        if self.shared.gateway.is_draining() {
            return plain(StatusCode::SERVICE_UNAVAILABLE, "stopping\n".to_owned());
        }
        let Ok(probes) = timeout(PROBE_TIMEOUT, self.shared.gateway.probe()).await else {
            return plain(
                StatusCode::SERVICE_UNAVAILABLE,
                "an engine does not answer\n".to_owned(),
            );
        };
        let mut lines = String::new();
        let mut status = StatusCode::OK;
        for (engine, probe) in probes {
            let word = match probe.as_ref().map_err(sluice_core::error::Error::kind) {
                Ok(()) => "ready",
                Err(kind) => {
                    status = StatusCode::SERVICE_UNAVAILABLE;
                    debug!(engine, %kind, "engine is not ready");
                    ErrorKind::name(kind)
                }
            };
            lines += &format!("{engine}: {word}\n");
        }
        plain(status, lines)
    }
}

#[async_trait]
impl ServeConnection for Admin {
    async fn serve(&self, connection: Connection, drain: Drain) {
        let service = service_fn(|request: Request<Incoming>| async move {
            Ok::<_, Infallible>(self.answer(request.method(), request.uri().path()).await)
        });
        let serving = http1::Builder::new()
            .timer(TokioTimer::new())
            .keep_alive(false)
            .header_read_timeout(HEAD_TIMEOUT)
            .max_buf_size(MAX_HEAD)
            .serve_connection(TokioIo::new(connection.io), service);
        let ended = tokio::select! {
            ended = timeout(CONNECTION_TIMEOUT, serving) => ended,
            () = drain.cancelled() => return,
        };
        if let Ok(Err(error)) = ended {
            debug!(peer = %connection.peer, %error, "administrator's connection failed");
        }
    }
}

fn plain(status: StatusCode, text: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(
        CONTENT_TYPE,
        HeaderValue::from_static("text/plain; charset=utf-8"),
    );
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::collections::HashMap;

    use sluice_core::delivery::Report;
    use sluice_core::engine::{Dialect, Engine, EngineSession, SessionOptions};
    use sluice_core::error::{Error, Result};
    use sluice_core::operation::Operation;
    use sluice_core::service::{GatewayParts, Limits, Observer};
    use sluice_core::session::Session;
    use sluice_core::settings::{Defaults, Policy};
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

    use super::*;
    use crate::net::serve::Stream;

    /// An engine that is ready or not.
    struct Probed(bool);

    #[async_trait]
    impl Engine for Probed {
        fn dialect(&self) -> Dialect {
            Dialect::DataFusion
        }

        fn setting_prefixes(&self) -> &'static [&'static str] {
            &[]
        }

        async fn open(&self, _: SessionOptions) -> Result<Arc<dyn EngineSession>> {
            Err(Error::not_found("session"))
        }

        async fn probe(&self) -> Result<()> {
            if self.0 {
                Ok(())
            } else {
                Err(Error::new(ErrorKind::Engine, "the password is x"))
            }
        }
    }

    /// Takes no notice of anything.
    struct Deaf;

    impl Observer for Deaf {
        fn session_opened(&self, _: &Session) {}
        fn session_closed(&self, _: &Session) {}
        fn operation_started(&self, _: &Operation) {}
        fn operation_ended(&self, _: &Operation, _: &Report) {}
    }

    fn gateway(ready: bool) -> Gateway {
        let engine: Arc<dyn Engine> = Arc::new(Probed(ready));
        let hour = Duration::from_secs(3600);
        Gateway::new(GatewayParts {
            engines: HashMap::from([("one".to_owned(), engine)]),
            default_engine: "one".to_owned(),
            defaults: Defaults::default(),
            policy: Policy::default(),
            limits: Limits {
                sessions: 1,
                sessions_per_user: 1,
                operations: 1,
                operations_per_user: 1,
                session_idle: hour,
                result_idle: hour,
                operation_retention: hour,
                operation_memory: 1 << 20,
            },
            pool: Arc::new(sluice_ipc::Pool::new(1)),
            observer: Arc::new(Deaf),
        })
    }

    fn connect(gateway: &Gateway) -> DuplexStream {
        let door = Admin::new(gateway.clone(), Box::new(|| ("x 1\n".to_owned(), "text/x")));
        let (near, far) = tokio::io::duplex(64 << 10);
        let connection = Connection {
            io: Stream::new(far),
            peer: ([127, 0, 0, 1], 1).into(),
        };
        tokio::spawn(async move { door.serve(connection, Drain::new()).await });
        near
    }

    async fn answer(gateway: &Gateway, request: &str) -> String {
        let mut near = connect(gateway);
        near.write_all(request.as_bytes()).await.unwrap();
        let mut text = String::new();
        near.read_to_string(&mut text).await.unwrap();
        text
    }

    #[tokio::test]
    async fn health_readiness_and_metrics_are_shown() {
        let ready = gateway(true);
        let of = async |path: &str| {
            answer(&ready, &format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n")).await
        };
        assert!(of("/healthz").await.starts_with("HTTP/1.1 200 "));
        assert!(of("/readyz").await.ends_with("\r\n\r\none: ready\n"));
        let metrics = of("/metrics").await;
        assert!(metrics.contains("content-type: text/x\r\n") && metrics.ends_with("x 1\n"));
        assert!(of("/api/v1/sessions").await.starts_with("HTTP/1.1 404 "));
        let posted = answer(&ready, "POST /healthz HTTP/1.1\r\nhost: x\r\n\r\n").await;
        assert!(posted.starts_with("HTTP/1.1 405 "), "{posted}");
    }

    #[tokio::test]
    async fn not_ready_is_said_without_the_cause() {
        let request = "GET /readyz HTTP/1.1\r\nhost: x\r\n\r\n";
        let broken = answer(&gateway(false), request).await;
        assert!(broken.starts_with("HTTP/1.1 503 ") && broken.ends_with("one: Engine\n"));
        let stopping = gateway(true);
        stopping.begin_drain();
        assert!(answer(&stopping, request).await.ends_with("stopping\n"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_or_endless_head_ends_the_connection() {
        let gateway = gateway(true);
        let mut slow = connect(&gateway);
        slow.write_all(b"GET /healthz HT").await.unwrap();
        let mut text = String::new();
        slow.read_to_string(&mut text).await.unwrap();
        assert!(!text.contains("200 OK"), "{text}");

        let mut endless = connect(&gateway);
        let mut sent = 0_usize;
        while endless.write_all(&[b'a'; 4096]).await.is_ok() {
            sent += 4096;
            assert!(sent < 1 << 20, "taken without end");
        }
    }
}
