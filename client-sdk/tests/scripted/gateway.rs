//! A gateway that does what a script says. Owns its TLS, its answers and what it was asked.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use arrow_array::{Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use bytes::Bytes;
use futures::stream;
use http::header::{CONTENT_TYPE, TRAILER};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, Version};
use http_body::Frame as BodyFrame;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use sluice_ipc::{Codec, Compression, Digest, END_OF_STREAM, Encoded, Encoder, Types};
use sluice_wire::http::{DeliveryReport, ErrorBody, ErrorDetail, headers, media};
use tokio::net::TcpListener;
use tokio::sync::{Notify, watch};
use tokio_rustls::TlsAcceptor;

use sluice_client::{Client, ClientBuilder};

pub(crate) const SESSION: &str = "5e55-10";
pub(crate) const OPERATION: &str = "0be7-a7";
pub(crate) const TOKEN: &str = "session-token";

/// What a body does next.
#[derive(Clone)]
pub(crate) enum Step {
    Data(Bytes),
    Trailers(HeaderMap),
    /// Waits until the client has the head of the answer.
    Gate,
    /// The stream breaks: a reset on HTTP/2, a closed connection on HTTP/1.1.
    Break,
    /// The connection is gone, without a word.
    Cut,
    /// Nothing more comes until the statement is cancelled; then the stream breaks.
    Stall,
}

/// What the gateway does.
#[derive(Clone, Default)]
pub(crate) struct Script {
    /// Answer to a statement instead of a handle.
    pub(crate) refusal: Option<(u16, ErrorDetail)>,
    /// The statement takes forever.
    pub(crate) never_ready: bool,
    pub(crate) steps: Vec<Step>,
    pub(crate) content_type: Option<&'static str>,
    /// Answers to questions about the delivery, one after the other; the last one stays.
    pub(crate) deliveries: VecDeque<DeliveryReport>,
}

/// What the gateway was asked.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) version: Version,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

/// Certificates of a gateway, and the key that it really has.
pub(crate) struct Keys {
    pub(crate) pem: String,
    certificate: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
}

impl Keys {
    pub(crate) fn generate() -> Self {
        let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
        let made = rcgen::generate_simple_self_signed(names).unwrap();
        let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
        Self {
            pem: made.cert.pem(),
            certificate: made.cert.der().clone(),
            key: key.into(),
        }
    }

    /// This certificate with the key of `other`: what a thief of certificates has.
    pub(crate) fn with_key_of(self, other: Self) -> Self {
        Self {
            key: other.key,
            ..self
        }
    }

    pub(crate) fn sha256(&self) -> String {
        let suite = ring::cipher_suite::TLS13_AES_128_GCM_SHA256
            .tls13()
            .unwrap();
        let hash = suite.common.hash_provider.hash(&self.certificate);
        hash.as_ref()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect()
    }

    fn server_config(&self) -> ServerConfig {
        let signing = ring::sign::any_supported_type(&self.key).unwrap();
        let certified = CertifiedKey::new(vec![self.certificate.clone()], signing);
        let provider = Arc::new(ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider);
        let mut config = builder
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(Always(Arc::new(certified))));
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        config
    }
}

/// Unlike rustls's own, gives a certificate that does not fit its key.
#[derive(Debug)]
struct Always(Arc<CertifiedKey>);

impl ResolvesServerCert for Always {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0))
    }
}

/// A gateway that runs until it is dropped.
pub(crate) struct Gateway {
    pub(crate) address: SocketAddr,
    pub(crate) keys: Keys,
    shared: Arc<Shared>,
    accepting: tokio::task::AbortHandle,
}

struct Shared {
    script: Mutex<Script>,
    asked: watch::Sender<Vec<Asked>>,
    /// Requests whose handler was dropped before it answered.
    abandoned: watch::Sender<usize>,
    cut: Notify,
    cancelled: watch::Sender<bool>,
    opened: watch::Sender<bool>,
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Gateway {
    pub(crate) async fn start(script: Script) -> Self {
        Self::start_with(script, Keys::generate()).await
    }

    pub(crate) async fn start_with(script: Script, keys: Keys) -> Self {
        let shared = Arc::new(Shared {
            script: Mutex::new(script),
            asked: watch::Sender::default(),
            abandoned: watch::Sender::default(),
            cut: Notify::new(),
            cancelled: watch::Sender::default(),
            opened: watch::Sender::default(),
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(keys.server_config()));
        let accepting = tokio::spawn(accept(listener, acceptor, Arc::clone(&shared)));
        Self {
            address,
            keys,
            shared,
            accepting: accepting.abort_handle(),
        }
    }

    /// A client that trusts this gateway.
    pub(crate) fn client(&self) -> ClientBuilder {
        Client::builder(self.url()).ca_pem(self.keys.pem.clone())
    }

    pub(crate) fn url(&self) -> String {
        format!("sluice://{}", self.address)
    }

    /// Opens the gate.
    pub(crate) fn open_gate(&self) {
        self.shared.opened.send_replace(true);
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.shared.asked.borrow().clone()
    }

    /// Waits until somebody asked for that.
    pub(crate) async fn asked_for(&self, method: Method, path: &str) -> Asked {
        let mut asked = self.shared.asked.subscribe();
        let is_it = |asked: &Asked| asked.method == method && asked.path == path;
        let found = asked.wait_for(|all| all.iter().any(is_it));
        let found = tokio::time::timeout(Duration::from_secs(20), found).await;
        let found = found
            .unwrap_or_else(|_| panic!("nobody asked for {method} {path}"))
            .unwrap();
        found.iter().find(|asked| is_it(asked)).unwrap().clone()
    }

    /// Waits until a request was given up by its sender.
    pub(crate) async fn abandoned(&self) {
        let mut abandoned = self.shared.abandoned.subscribe();
        let waiting = abandoned.wait_for(|count| *count > 0);
        tokio::time::timeout(Duration::from_secs(20), waiting)
            .await
            .unwrap()
            .unwrap();
    }
}

async fn accept(listener: TcpListener, acceptor: TlsAcceptor, shared: Arc<Shared>) {
    loop {
        let (socket, _) = listener.accept().await.unwrap();
        let (acceptor, shared) = (acceptor.clone(), Arc::clone(&shared));
        tokio::spawn(async move {
            let Ok(socket) = acceptor.accept(socket).await else {
                return;
            };
            let answering = Arc::clone(&shared);
            let service = service_fn(move |request| answer(request, Arc::clone(&answering)));
            let server = auto::Builder::new(TokioExecutor::new());
            tokio::select! {
                _ = server.serve_connection(TokioIo::new(socket), service) => {}
                () = shared.cut.notified() => {}
            }
        });
    }
}

type Body = BoxBody<Bytes, std::io::Error>;

/// Notes when a handler is dropped before its answer.
struct Abandoned(Arc<Shared>, bool);

impl Drop for Abandoned {
    fn drop(&mut self) {
        if self.1 {
            self.0.abandoned.send_modify(|count| *count += 1);
        }
    }
}

async fn answer(
    request: Request<Incoming>,
    shared: Arc<Shared>,
) -> Result<Response<Body>, Infallible> {
    let mut abandoned = Abandoned(Arc::clone(&shared), true);
    let (head, body) = request.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let asked = Asked {
        method: head.method,
        path: head.uri.path().to_owned(),
        version: head.version,
        headers: head.headers,
        body: String::from_utf8(body.to_vec()).unwrap(),
    };
    shared.asked.send_modify(|all| all.push(asked.clone()));
    let response = answer_to(&asked, &shared).await;
    abandoned.1 = false;
    Ok(response)
}

async fn answer_to(asked: &Asked, shared: &Arc<Shared>) -> Response<Body> {
    let script = shared.script.lock().unwrap().clone();
    let operation = format!("/api/v1/operations/{OPERATION}");
    match (asked.method.as_str(), asked.path.as_str()) {
        ("POST", "/api/v1/sessions") => json(
            200,
            format!(r#"{{"identifier":"{SESSION}","kyuubiInstance":"x:1","token":"{TOKEN}"}}"#),
        ),
        ("POST", _) if script.never_ready => std::future::pending().await,
        ("POST", _) => match script.refusal {
            Some((status, error)) => {
                json(status, serde_json::to_string(&ErrorBody { error }).unwrap())
            }
            None => json(200, format!(r#"{{"identifier":"{OPERATION}"}}"#)),
        },
        ("DELETE", _) => json(200, String::new()),
        ("PUT", path) if path == operation => {
            shared.cancelled.send_replace(true);
            json(200, String::new())
        }
        ("GET", path) if path.ends_with("/delivery") => delivery(shared),
        _ => result(script, shared),
    }
}

fn delivery(shared: &Shared) -> Response<Body> {
    let mut script = shared.script.lock().unwrap();
    let last = script.deliveries.len() <= 1;
    let report = match last {
        true => script.deliveries.front().cloned(),
        false => script.deliveries.pop_front(),
    };
    match report {
        Some(report) => json(200, serde_json::to_string(&report).unwrap()),
        None => json(
            404,
            serde_json::to_string(&error("NotFound", "operation not found")).unwrap(),
        ),
    }
}

fn result(script: Script, shared: &Arc<Shared>) -> Response<Body> {
    let state = (script.steps.into_iter(), Arc::clone(shared));
    let frames = stream::unfold(state, |(mut steps, shared)| async move {
        let frame = match steps.next()? {
            Step::Data(data) => Ok(BodyFrame::data(data)),
            Step::Trailers(trailers) => Ok(BodyFrame::trailers(trailers)),
            Step::Gate => {
                let _ = shared.opened.subscribe().wait_for(|opened| *opened).await;
                Ok(BodyFrame::data(Bytes::new()))
            }
            Step::Break => Err(std::io::Error::other("scripted")),
            Step::Cut => {
                shared.cut.notify_waiters();
                std::future::pending().await
            }
            Step::Stall => {
                let _ = shared
                    .cancelled
                    .subscribe()
                    .wait_for(|cancelled| *cancelled)
                    .await;
                Err(std::io::Error::other("cancelled"))
            }
        };
        Some((frame, (steps, shared)))
    });
    Response::builder()
        .header(CONTENT_TYPE, script.content_type.unwrap_or(media::ARROW))
        .header(TRAILER, headers::ARROW_TRAILERS)
        .body(BoxBody::new(StreamBody::new(Box::pin(SyncStream(
            Mutex::new(Box::pin(frames)),
        )))))
        .unwrap()
}

type Frames =
    std::pin::Pin<Box<dyn futures::Stream<Item = Result<BodyFrame<Bytes>, std::io::Error>> + Send>>;

/// `BoxBody` wants `Sync`, which futures that wait are not.
struct SyncStream(Mutex<Frames>);

impl futures::Stream for SyncStream {
    type Item = Result<BodyFrame<Bytes>, std::io::Error>;

    fn poll_next(
        self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Self::Item>> {
        self.0.lock().unwrap().as_mut().poll_next(cx)
    }
}

fn json(status: u16, text: String) -> Response<Body> {
    let body = Full::new(Bytes::from(text))
        .map_err(|never| match never {})
        .boxed();
    Response::builder()
        .status(status)
        .header(CONTENT_TYPE, "application/json")
        .body(body)
        .unwrap()
}

pub(crate) fn error(kind: &str, message: &str) -> ErrorBody {
    ErrorBody {
        error: detail(kind, message),
    }
}

pub(crate) fn detail(kind: &str, message: &str) -> ErrorDetail {
    ErrorDetail {
        kind: kind.to_owned(),
        sql_state: "58000".to_owned(),
        message: message.to_owned(),
        retryable: false,
        operation_id: None,
    }
}

/// A result as the gateway would send it.
pub(crate) struct Sent {
    pub(crate) messages: Vec<Encoded>,
    pub(crate) rows: u64,
    pub(crate) batches: u64,
    pub(crate) bytes: u64,
    pub(crate) digest: u64,
}

impl Sent {
    pub(crate) fn of(batches: &[RecordBatch], codec: Codec) -> Self {
        let types = Types {
            dictionaries: true,
            views: true,
        };
        let compression = Compression { codec, level: 3 };
        let encoder = Encoder::try_new(&batches[0].schema(), types, compression).unwrap();
        let mut messages = vec![encoder.schema_message()];
        for batch in batches {
            messages.extend(encoder.encode(batch).unwrap());
        }
        Self::of_messages(messages, batches.len() as u64)
    }

    pub(crate) fn of_messages(messages: Vec<Encoded>, batches: u64) -> Self {
        let mut digest = Digest::new();
        let mut sent = Self {
            rows: 0,
            batches,
            bytes: 0,
            digest: 0,
            messages,
        };
        for message in &sent.messages {
            digest.update(&message.header, &message.body);
            sent.rows += message.rows;
            sent.bytes += (message.header.len() + message.body.len()) as u64;
        }
        sent.digest = digest.value();
        sent
    }

    /// The messages, in pieces that do not respect their borders.
    pub(crate) fn data(&self) -> Vec<Step> {
        let mut all = Vec::new();
        for message in &self.messages {
            all.extend_from_slice(&message.prefix());
            all.extend_from_slice(&message.header);
            all.extend_from_slice(&message.body);
        }
        all.chunks(10_007)
            .map(|part| Step::Data(Bytes::copy_from_slice(part)))
            .collect()
    }

    pub(crate) fn end(&self) -> Step {
        Step::Data(Bytes::from_static(&END_OF_STREAM))
    }

    pub(crate) fn trailers(&self) -> Step {
        let mut trailers = HeaderMap::new();
        let values = [
            (headers::ROWS, self.rows.to_string()),
            (headers::BATCHES, self.batches.to_string()),
            (headers::BYTES, self.bytes.to_string()),
            (headers::DIGEST, format!("{:016x}", self.digest)),
            (headers::TRUNCATED, "false".to_owned()),
        ];
        for (name, value) in values {
            let value = HeaderValue::try_from(value).unwrap();
            trailers.insert(HeaderName::from_static(name), value);
        }
        Step::Trailers(trailers)
    }

    /// Everything in its order.
    pub(crate) fn whole(&self) -> Script {
        self.script([self.data(), vec![self.end(), self.trailers()]].concat())
    }

    pub(crate) fn script(&self, steps: Vec<Step>) -> Script {
        let deliveries = VecDeque::from([self.report("complete")]);
        Script {
            steps,
            deliveries,
            ..Script::default()
        }
    }

    pub(crate) fn report(&self, verdict: &str) -> DeliveryReport {
        DeliveryReport {
            operation_id: OPERATION.to_owned(),
            verdict: verdict.to_owned(),
            rows: self.rows,
            batches_out: self.batches,
            bytes_encoded: self.bytes,
            digest: format!("{:016x}", self.digest),
            error: None,
            batches_in: 150,
            bytes_engine: 100_000_000,
            bytes_raw: 99_000_000,
            bytes_sent: 24_750_168,
            ratio: Some(4.0),
            truncated: false,
            codec: "zstd".to_owned(),
            level: Some(3),
            time_total: 812.34,
            time_engine: 400.0,
            time_codec: 300.0,
            time_network: 112.34,
            cpu_codec: 900.0,
            first_row: Some(12.5),
            peak_memory: 33_554_432,
        }
    }
}

/// Batches of consecutive numbers.
pub(crate) fn numbers(batches: usize, rows: usize) -> Vec<RecordBatch> {
    let schema = Arc::new(Schema::new(vec![Field::new("n", DataType::Int64, true)]));
    let batch = |index: usize| {
        let from = (index * rows) as i64;
        let column = Int64Array::from_iter_values(from..from + rows as i64);
        RecordBatch::try_new(Arc::clone(&schema), vec![Arc::new(column)]).unwrap()
    };
    (0..batches).map(batch).collect()
}
