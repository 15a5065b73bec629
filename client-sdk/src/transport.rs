//! Requests and answers over pooled TLS connections, HTTP/2 where the gateway has it. Owns
//! connections, the credentials on a request and the reading of small bodies. Must not know what a
//! request is for.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, TE, USER_AGENT};
use http::uri::{Authority, Scheme};
use http::{HeaderValue, Method, Request, Response, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::ClientConfig;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tower::Service;

use crate::error::{Error, ErrorKind, Result};
use crate::reply;

/// The largest JSON answer that is read: a delivery report or an error is a few KiB.
const MAX_JSON: usize = 4 << 20;
/// Bytes that a gateway may send ahead on one HTTP/2 stream; with it, memory is bounded.
const STREAM_WINDOW: u32 = 4 << 20;
/// Wide open, since streams bound themselves: results that nobody reads at the moment must not
/// keep the answer to a cancellation from arriving.
const CONNECTION_WINDOW: u32 = 1 << 30;
/// A link on which nothing comes back for so long is asked whether it is alive, and given up
/// after `PING_TIMEOUT` more.
const PING_INTERVAL: Duration = Duration::from_secs(20);
const PING_TIMEOUT: Duration = Duration::from_secs(20);

/// Which versions of HTTP may be spoken.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum HttpVersions {
    #[default]
    Any,
    Http1,
    Http2,
}

/// Who is asking.
#[derive(Clone, Debug)]
pub(crate) struct Credentials(Option<HeaderValue>);

impl Credentials {
    /// Nobody: the gateway may allow it.
    pub(crate) fn none() -> Self {
        Self(None)
    }

    /// A user's name and password (RFC 7617).
    pub(crate) fn basic(user: &str, password: &str) -> Result<Self> {
        if user.contains(':') {
            return Err(Error::configuration("a user name cannot contain a colon"));
        }
        Self::header(&format!(
            "Basic {}",
            STANDARD.encode(format!("{user}:{password}"))
        ))
    }

    /// A session's token (RFC 6750).
    pub(crate) fn bearer(token: &str) -> Result<Self> {
        Self::header(&format!("Bearer {token}"))
    }

    fn header(text: &str) -> Result<Self> {
        let mut value = HeaderValue::from_str(text)
            .map_err(|_| Error::protocol("credentials hold characters that no header can carry"))?;
        // Keeps it out of debug output and out of HTTP/2's shared compression table.
        value.set_sensitive(true);
        Ok(Self(Some(value)))
    }
}

/// Connections to one gateway. A cheap handle: clones share the connections.
#[derive(Clone, Debug)]
pub(crate) struct Transport {
    http: legacy::Client<Deadlined, Full<Bytes>>,
    authority: Authority,
}

impl Transport {
    /// Nothing is connected before the first request.
    pub(crate) fn new(
        authority: Authority,
        tls: ClientConfig,
        versions: HttpVersions,
        connect_timeout: Duration,
    ) -> Self {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_keepalive(Some(PING_INTERVAL));
        let https = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_only();
        let https = match versions {
            HttpVersions::Any => https.enable_all_versions().wrap_connector(tcp),
            HttpVersions::Http1 => https.enable_http1().wrap_connector(tcp),
            HttpVersions::Http2 => https.enable_http2().wrap_connector(tcp),
        };
        let http = legacy::Client::builder(TokioExecutor::new())
            .http2_only(versions == HttpVersions::Http2)
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .http2_initial_stream_window_size(STREAM_WINDOW)
            .http2_initial_connection_window_size(CONNECTION_WINDOW)
            .http2_keep_alive_interval(PING_INTERVAL)
            .http2_keep_alive_timeout(PING_TIMEOUT)
            .build(Deadlined {
                https,
                after: connect_timeout,
            });
        Self { http, authority }
    }

    /// Sends a request and takes any answer's head.
    pub(crate) async fn send(&self, request: Request<Full<Bytes>>) -> Result<Response<Incoming>> {
        self.http
            .request(request)
            .await
            .map_err(|error| connection_error(&error))
    }

    /// Sends a request and reads a JSON answer; an answer that is an error becomes one.
    pub(crate) async fn call<T: DeserializeOwned>(
        &self,
        request: Request<Full<Bytes>>,
    ) -> Result<T> {
        let response = self.send(request).await?;
        let status = response.status();
        let body = small_body(response.into_body()).await?;
        if !status.is_success() {
            return Err(reply::error_of(status, &body));
        }
        serde_json::from_slice(&body).map_err(|error| {
            Error::protocol(format!("the gateway's answer is not understood: {error}"))
        })
    }

    /// Sends a request whose answer says no more than that it worked.
    pub(crate) async fn tell(&self, request: Request<Full<Bytes>>) -> Result<()> {
        expect_success(self.send(request).await?).await.map(drop)
    }

    /// A request for `path`, which must begin with a slash.
    pub(crate) fn request(
        &self,
        method: Method,
        path: &str,
        credentials: &Credentials,
    ) -> Result<http::request::Builder> {
        let uri = Uri::builder()
            .scheme(Scheme::HTTPS)
            .authority(self.authority.clone())
            .path_and_query(path)
            .build()
            .map_err(|error| Error::protocol(format!("{path:?} is no path: {error}")))?;
        let mut builder = Request::builder()
            .method(method)
            .uri(uri)
            .header(
                USER_AGENT,
                concat!("sluice-client/", env!("CARGO_PKG_VERSION")),
            )
            .header(TE, "trailers");
        if let Some(value) = &credentials.0 {
            builder = builder.header(AUTHORIZATION, value.clone());
        }
        Ok(builder)
    }
}

/// Finishes a request without a body.
pub(crate) fn empty(builder: http::request::Builder) -> Result<Request<Full<Bytes>>> {
    finish(builder.header(ACCEPT, "application/json"), Bytes::new())
}

/// Finishes a request with a JSON body.
pub(crate) fn json(
    builder: http::request::Builder,
    value: &impl Serialize,
) -> Result<Request<Full<Bytes>>> {
    let body = serde_json::to_vec(value)
        .map_err(|error| Error::protocol(format!("the request is no JSON: {error}")))?;
    let builder = builder.header(ACCEPT, "application/json");
    finish(
        builder.header(CONTENT_TYPE, "application/json"),
        Bytes::from(body),
    )
}

/// Finishes a request that names what it accepts by itself.
pub(crate) fn finish(builder: http::request::Builder, body: Bytes) -> Result<Request<Full<Bytes>>> {
    builder
        .body(Full::new(body))
        .map_err(|error| Error::protocol(format!("the request cannot be sent: {error}")))
}

/// Passes a success on; reads the body of anything else and makes an error of it.
pub(crate) async fn expect_success(response: Response<Incoming>) -> Result<Response<Incoming>> {
    let status = response.status();
    if status.is_success() {
        return Ok(response);
    }
    let body = small_body(response.into_body()).await?;
    Err(reply::error_of(status, &body))
}

async fn small_body(body: Incoming) -> Result<Bytes> {
    let collected = Limited::new(body, MAX_JSON).collect().await;
    collected
        .map(http_body_util::Collected::to_bytes)
        .map_err(|error| Error::new(ErrorKind::Connect, format!("the answer broke off: {error}")))
}

/// Says in one sentence why no answer came.
fn connection_error(error: &legacy::Error) -> Error {
    let (tls, reason) = root_cause(error);
    if tls {
        return Error::new(
            ErrorKind::Tls,
            format!("TLS to the gateway failed: {reason}"),
        );
    }
    let message = if error.is_connect() {
        format!("the gateway cannot be reached: {reason}")
    } else {
        format!("the connection to the gateway broke: {reason}")
    };
    Error::new(ErrorKind::Connect, message)
}

/// The innermost reason, and whether TLS gave it. An `io::Error` hides what it wraps from
/// `source()`, so those are opened by hand.
fn root_cause(error: &(dyn std::error::Error + 'static)) -> (bool, String) {
    let mut current = error;
    loop {
        if let Some(tls) = current.downcast_ref::<rustls::Error>() {
            return (true, tls.to_string());
        }
        let wrapped = current
            .downcast_ref::<io::Error>()
            .and_then(io::Error::get_ref);
        let next = match wrapped {
            Some(inner) => Some(inner as &(dyn std::error::Error + 'static)),
            None => current.source(),
        };
        match next {
            Some(next) => current = next,
            None => return (false, current.to_string()),
        }
    }
}

/// A connector that gives up after a while: on names, TCP and TLS together.
#[derive(Clone, Debug)]
struct Deadlined {
    https: HttpsConnector<HttpConnector>,
    after: Duration,
}

type Connected = <HttpsConnector<HttpConnector> as Service<Uri>>::Response;
type BoxError = Box<dyn std::error::Error + Send + Sync>;

impl Service<Uri> for Deadlined {
    type Response = Connected;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = std::result::Result<Connected, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<std::result::Result<(), BoxError>> {
        self.https.poll_ready(cx)
    }

    fn call(&mut self, target: Uri) -> Self::Future {
        let (connecting, after) = (self.https.call(target), self.after);
        Box::pin(async move {
            match tokio::time::timeout(after, connecting).await {
                Ok(connected) => connected,
                Err(_) => Err(Box::new(io::Error::new(
                    io::ErrorKind::TimedOut,
                    format!("no connection within {after:?}"),
                )) as BoxError),
            }
        })
    }
}
