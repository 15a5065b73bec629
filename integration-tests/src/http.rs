//! A bare HTTP client over TLS, in HTTP/1.1 or HTTP/2, for what an SDK would hide: statuses,
//! headers, trailers, and how a body ends. Owns one connection. Must not know the API.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::{Bytes, BytesMut};
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST, TE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::tls;

/// Which HTTP is spoken.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[allow(missing_docs)]
pub enum Version {
    Http1,
    Http2,
}

/// Who is asking.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum As {
    Nobody,
    User { name: String, password: String },
    Token(String),
}

impl As {
    /// A user with a password.
    pub fn user(name: &str, password: &str) -> Self {
        Self::User {
            name: name.to_owned(),
            password: password.to_owned(),
        }
    }

    fn header(&self) -> Option<String> {
        match self {
            Self::Nobody => None,
            Self::User { name, password } => Some(format!(
                "Basic {}",
                STANDARD.encode(format!("{name}:{password}"))
            )),
            Self::Token(token) => Some(format!("Bearer {token}")),
        }
    }
}

/// A connection did not do what it should. The text is for the test's report.
#[derive(Clone, Debug)]
pub struct Broken(pub String);

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Broken {}

fn broken(error: impl std::error::Error) -> Broken {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        text = format!("{text}: {inner}");
        source = inner.source();
    }
    Broken(text)
}

/// One connection.
pub struct Http {
    sender: Sender,
    authority: String,
    caller: As,
    driving: JoinHandle<()>,
}

enum Sender {
    Http1(http1::SendRequest<Full<Bytes>>),
    Http2(http2::SendRequest<Full<Bytes>>),
}

/// A whole answer, as far as it came.
#[derive(Clone, Debug)]
pub struct Reply {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The bytes that came.
    pub body: Bytes,
    /// What came after the body.
    pub trailers: HeaderMap,
    /// What broke the body, if it did not end cleanly.
    pub broken: Option<String>,
}

impl Reply {
    /// The body as JSON; null when it is none.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// A header as text; empty when it is not there.
    pub fn header(&self, name: &str) -> &str {
        text_of(&self.headers, name)
    }

    /// A trailer as text; empty when it is not there.
    pub fn trailer(&self, name: &str) -> &str {
        text_of(&self.trailers, name)
    }

    /// Reads the rest of `response`.
    pub async fn of(response: Response<Incoming>) -> Self {
        let (head, mut body) = response.into_parts();
        let (mut bytes, mut trailers, mut broken) = (BytesMut::new(), HeaderMap::new(), None);
        while let Some(frame) = body.frame().await {
            match frame.map(hyper::body::Frame::into_data) {
                Ok(Ok(data)) => bytes.extend_from_slice(&data),
                Ok(Err(frame)) => trailers.extend(frame.into_trailers().unwrap_or_default()),
                Err(error) => {
                    broken = Some(self::broken(error).0);
                    break;
                }
            }
        }
        Self {
            status: head.status,
            headers: head.headers,
            body: bytes.freeze(),
            trailers,
            broken,
        }
    }
}

fn text_of<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers
        .get(name)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default()
}

impl Http {
    /// Connects to `address`, where a certificate of [`tls`] is shown.
    ///
    /// # Errors
    /// What TCP, TLS or HTTP says.
    pub async fn connect(
        address: SocketAddr,
        version: Version,
        caller: As,
    ) -> Result<Self, Broken> {
        let protocol: &[u8] = match version {
            Version::Http1 => b"http/1.1",
            Version::Http2 => b"h2",
        };
        let io = TokioIo::new(secured(address, &[protocol]).await?);
        let (sender, driving) = match version {
            Version::Http1 => {
                let (sender, connection) = http1::handshake(io).await.map_err(broken)?;
                (
                    Sender::Http1(sender),
                    tokio::spawn(async move { drop(connection.await) }),
                )
            }
            Version::Http2 => {
                let (sender, connection) = http2::handshake(TokioExecutor::new(), io)
                    .await
                    .map_err(broken)?;
                (
                    Sender::Http2(sender),
                    tokio::spawn(async move { drop(connection.await) }),
                )
            }
        };
        Ok(Self {
            sender,
            authority: format!("localhost:{}", address.port()),
            caller,
            driving,
        })
    }

    /// The same connection for another caller.
    #[must_use]
    pub fn call_as(mut self, caller: As) -> Self {
        self.caller = caller;
        self
    }

    /// Sends a request and reads the whole answer.
    ///
    /// # Errors
    /// When there is no answer at all.
    pub async fn send(
        &mut self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<Value>,
    ) -> Result<Reply, Broken> {
        Ok(Reply::of(self.open(method, path, headers, body).await?).await)
    }

    /// `GET`.
    ///
    /// # Errors
    /// When there is no answer at all.
    pub async fn get(&mut self, path: &str) -> Result<Reply, Broken> {
        self.send(Method::GET, path, &[], None).await
    }

    /// `POST` of JSON.
    ///
    /// # Errors
    /// When there is no answer at all.
    pub async fn post(&mut self, path: &str, body: Value) -> Result<Reply, Broken> {
        self.send(Method::POST, path, &[], Some(body)).await
    }

    /// Sends a request and returns when the head of the answer is there.
    ///
    /// # Errors
    /// When there is no answer at all.
    pub async fn open(
        &mut self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<Value>,
    ) -> Result<Response<Incoming>, Broken> {
        let request = self.request(method, path, headers, body)?;
        match &mut self.sender {
            Sender::Http1(sender) => {
                sender.ready().await.map_err(broken)?;
                sender.send_request(request).await.map_err(broken)
            }
            Sender::Http2(sender) => {
                sender.ready().await.map_err(broken)?;
                sender.send_request(request).await.map_err(broken)
            }
        }
    }

    fn request(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<Value>,
    ) -> Result<Request<Full<Bytes>>, Broken> {
        let mut request = Request::builder().method(method);
        request = match &self.sender {
            Sender::Http1(_) => request.uri(path).header(HOST, &self.authority),
            Sender::Http2(_) => {
                let uri: Uri = format!("https://{}{path}", self.authority)
                    .parse()
                    .map_err(broken)?;
                request.uri(uri)
            }
        };
        // Whoever wants trailers says so (RFC 9110, section 6.5.1).
        request = request.header(TE, "trailers");
        if let Some(credentials) = self.caller.header() {
            request = request.header(AUTHORIZATION, credentials);
        }
        let bytes = body.map(|body| Bytes::from(body.to_string()));
        if bytes.is_some() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        let mut request = request
            .body(Full::new(bytes.unwrap_or_default()))
            .map_err(broken)?;
        for (name, value) in headers {
            let name: HeaderName = name.parse().map_err(broken)?;
            request
                .headers_mut()
                .insert(name, HeaderValue::from_str(value).map_err(broken)?);
        }
        Ok(request)
    }
}

impl Drop for Http {
    fn drop(&mut self) {
        // The socket closes at once, as when a client's process ends.
        self.driving.abort();
    }
}

/// A TLS connection that trusts the test's certificate alone.
///
/// # Errors
/// What TCP or TLS says.
pub async fn secured(
    address: SocketAddr,
    protocols: &[&[u8]],
) -> Result<TlsStream<TcpStream>, Broken> {
    let mut roots = RootCertStore::empty();
    roots.add(tls::certificate().der.clone()).map_err(broken)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(broken)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    let socket = TcpStream::connect(address).await.map_err(broken)?;
    socket.set_nodelay(true).map_err(broken)?;
    let name = ServerName::try_from("localhost").map_err(broken)?;
    TlsConnector::from(Arc::new(config))
        .connect(name, socket)
        .await
        .map_err(broken)
}
