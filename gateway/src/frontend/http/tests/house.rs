//! A gateway with an engine that does as its statement says, and clients over sockets in memory.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use arrow_array::types::{Int8Type, Int32Type};
use arrow_array::{
    ArrayRef, DictionaryArray, Int64Array, ListArray, NullArray, RecordBatch, StringArray,
    StringViewArray,
};
use arrow_schema::SchemaRef;
use async_trait::async_trait;
use bytes::Bytes;
use futures::{StreamExt, stream};
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, TE};
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::{Value, json};
use sluice_core::auth::{Authenticator, Credentials, Identity};
use sluice_core::delivery::Report;
use sluice_core::engine::{
    BatchStream, Dialect, Engine, EngineSession, EngineSetting, Execution, MetadataRequest, Output,
    Query, SessionOptions,
};
use sluice_core::error::{Error, ErrorKind, Result};
use sluice_core::operation::Operation;
use sluice_core::service::{Gateway, GatewayParts, Limits, Observer};
use sluice_core::session::Session;
use sluice_core::settings::{Defaults, Policy};
use sluice_ipc::Pool;
use sluice_wire::http::DeliveryReport;

use super::super::{Http, HttpSettings};
use crate::net::drain::Drain;
use crate::net::serve::{Connection, ServeConnection, Stream};

/// Does what the statement says: `rows N`, `types`, `fail`, `fail first`, `fail after N`,
/// `wait`.
struct Puppet;

fn batch(first: i64, rows: i64) -> RecordBatch {
    let numbers = Arc::new(Int64Array::from_iter_values(first..first + rows)) as ArrayRef;
    let texts = (first..first + rows).map(|row| (row % 3 > 0).then(|| "x".repeat(200)));
    let texts = Arc::new(texts.collect::<StringArray>()) as ArrayRef;
    RecordBatch::try_from_iter_with_nullable([("n", numbers, false), ("t", texts, true)]).unwrap()
}

fn schema() -> SchemaRef {
    batch(0, 0).schema()
}

fn counted(rows: i64) -> BatchStream {
    let starts = (0..rows).step_by(1000);
    stream::iter(starts.map(move |first| Ok(batch(first, (rows - first).min(1000))))).boxed()
}

/// Types that not every reader has.
fn types() -> Execution {
    let dictionary: DictionaryArray<Int8Type> = vec![Some("x"), None].into_iter().collect();
    let list = ListArray::from_iter_primitive::<Int32Type, _, _>([None, Some([Some(1), None])]);
    let columns: [(&str, ArrayRef); 4] = [
        ("d", Arc::new(dictionary)),
        (
            "v",
            Arc::new(StringViewArray::from(vec![
                Some("a view of some length"),
                None,
            ])),
        ),
        ("l", Arc::new(list)),
        ("z", Arc::new(NullArray::new(2))),
    ];
    let columns = columns.map(|(name, array)| (name, array, true));
    let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    Execution {
        schema: batch.schema(),
        output: Output::Batches(stream::iter([Ok(batch)]).boxed()),
    }
}

fn broken() -> Error {
    Error::new(ErrorKind::Engine, "the puppet broke")
}

#[async_trait]
impl Engine for Puppet {
    fn dialect(&self) -> Dialect {
        Dialect::DataFusion
    }

    fn setting_prefixes(&self) -> &'static [&'static str] {
        &["puppet."]
    }

    async fn open(&self, _: SessionOptions) -> Result<Arc<dyn EngineSession>> {
        Ok(Arc::new(Self))
    }

    async fn probe(&self) -> Result<()> {
        Ok(())
    }
}

#[async_trait]
impl EngineSession for Puppet {
    async fn execute(&self, query: Query) -> Result<Execution> {
        let words: Vec<_> = query.text.split(' ').collect();
        let batches = match words.as_slice() {
            ["rows", rows] => counted(rows.parse().unwrap()),
            ["fail"] => return Err(Error::invalid("42601", "the puppet does not understand")),
            ["fail", "first"] => stream::iter([Err(broken())]).boxed(),
            ["fail", "after", rows] => {
                let pause = stream::once(async {
                    tokio::time::sleep(Duration::from_millis(400)).await;
                    Err(broken())
                });
                counted(rows.parse().unwrap()).chain(pause).boxed()
            }
            ["types"] => return Ok(types()),
            ["wait"] => stream::pending().boxed(),
            _ => return Err(Error::invalid("42601", "no such trick")),
        };
        Ok(Execution {
            schema: schema(),
            output: Output::Batches(batches),
        })
    }

    async fn set(&self, _: &str, _: &str) -> Result<()> {
        Ok(())
    }

    async fn reset(&self, _: &str) -> Result<()> {
        Ok(())
    }

    async fn settings(&self) -> Result<Vec<EngineSetting>> {
        Ok(vec![])
    }

    async fn set_time_zone(&self, _: &str) -> Result<()> {
        Ok(())
    }

    async fn use_schema(&self, _: Option<&str>, _: Option<&str>) -> Result<()> {
        Ok(())
    }

    async fn current_schema(&self) -> Result<(String, String)> {
        Ok(("c".to_owned(), "s".to_owned()))
    }

    async fn metadata(&self, _: MetadataRequest) -> Result<Execution> {
        Ok(Execution {
            schema: schema(),
            output: Output::Batches(counted(2)),
        })
    }
}

/// Every user's password is the name twice.
struct Twice;

#[async_trait]
impl Authenticator for Twice {
    async fn authenticate(&self, credentials: &Credentials, _: IpAddr) -> Result<Identity> {
        match credentials {
            Credentials::Password { user, password } if *password == user.repeat(2) => {
                Ok(Identity::new(user.as_str()))
            }
            _ => Err(Error::new(
                ErrorKind::Unauthenticated,
                "wrong name or password",
            )),
        }
    }
}

struct Nobody;

impl Observer for Nobody {
    fn session_opened(&self, _: &Session) {}
    fn session_closed(&self, _: &Session) {}
    fn operation_started(&self, _: &Operation) {}
    fn operation_ended(&self, _: &Operation, _: &Report) {}
}

pub(super) struct House {
    pub(super) gateway: Gateway,
    door: Arc<Http>,
    pub(super) drain: Drain,
}

impl House {
    pub(super) fn new() -> Self {
        Self::with(HttpSettings {
            max_body: 1000,
            ..HttpSettings::default()
        })
    }

    fn with(settings: HttpSettings) -> Self {
        let hour = Duration::from_secs(3600);
        let gateway = Gateway::new(GatewayParts {
            engines: HashMap::from([("puppet".to_owned(), Arc::new(Puppet) as Arc<dyn Engine>)]),
            default_engine: "puppet".to_owned(),
            defaults: Defaults::default(),
            policy: Policy::default(),
            limits: Limits {
                sessions: 100,
                sessions_per_user: 5,
                operations: 100,
                operations_per_user: 100,
                session_idle: hour,
                result_idle: hour,
                operation_retention: hour,
                operation_memory: 32 << 20,
            },
            pool: Arc::new(Pool::new(1)),
            observer: Arc::new(Nobody),
        });
        let door = Arc::new(Http::new(gateway.clone(), Arc::new(Twice), settings));
        Self {
            gateway,
            door,
            drain: Drain::new(),
        }
    }

    pub(super) fn connect(&self) -> TokioIo<tokio::io::DuplexStream> {
        let (near, far) = tokio::io::duplex(64 << 10);
        let (door, drain) = (Arc::clone(&self.door), self.drain.clone());
        let connection = Connection {
            io: Stream::new(far),
            peer: ([127, 0, 0, 1], 9).into(),
        };
        tokio::spawn(async move { door.serve(connection, drain).await });
        TokioIo::new(near)
    }

    /// Sends one request over HTTP/1.1 on a connection of its own.
    pub(super) async fn send(&self, request: Request<Full<Bytes>>) -> http::Response<Incoming> {
        let (mut sender, connection) = conn::http1::handshake(self.connect()).await.unwrap();
        tokio::spawn(connection);
        sender.send_request(request).await.unwrap()
    }

    pub(super) async fn send_h2(&self, request: Request<Full<Bytes>>) -> http::Response<Incoming> {
        let executor = TokioExecutor::new();
        let (mut sender, connection) = conn::http2::handshake(executor, self.connect())
            .await
            .unwrap();
        tokio::spawn(connection);
        let (mut parts, body) = request.into_parts();
        parts.uri = format!("http://door{}", parts.uri).parse().unwrap();
        sender
            .send_request(Request::from_parts(parts, body))
            .await
            .unwrap()
    }

    /// The status and the JSON of the answer; null when there is none.
    pub(super) async fn ask(&self, request: Request<Full<Bytes>>) -> (StatusCode, Value) {
        let response = self.send(request).await;
        let status = response.status();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (status, serde_json::from_slice(&body).unwrap_or_default())
    }

    pub(super) async fn get(&self, path: &str) -> (StatusCode, Value) {
        self.ask(request(Method::GET, path, None)).await
    }

    pub(super) async fn post(&self, path: &str, body: Value) -> (StatusCode, Value) {
        self.ask(request(Method::POST, path, Some(body))).await
    }

    pub(super) async fn open_session(&self) -> String {
        let (status, session) = self.post("/api/v1/sessions", json!({})).await;
        assert_eq!(status, StatusCode::OK, "{session}");
        session["identifier"].as_str().unwrap().to_owned()
    }

    pub(super) async fn execute(&self, statement: &str) -> String {
        let session = self.open_session().await;
        let path = format!("/api/v1/sessions/{session}/operations/statement");
        let (status, operation) = self.post(&path, json!({ "statement": statement })).await;
        assert_eq!(status, StatusCode::OK, "{operation}");
        operation["identifier"].as_str().unwrap().to_owned()
    }

    pub(super) async fn delivery(&self, operation: &str) -> DeliveryReport {
        let (_, report) = self
            .get(&format!("/api/v1/operations/{operation}/delivery"))
            .await;
        serde_json::from_value(report).unwrap()
    }
}

/// A request of user `a`.
pub(super) fn request(method: Method, path: &str, body: Option<Value>) -> Request<Full<Bytes>> {
    let builder = Request::builder()
        .method(method)
        .uri(path)
        .header("host", "door");
    let builder = builder
        .header(AUTHORIZATION, "Basic YTphYQ==")
        .header(TE, "trailers");
    match body {
        None => builder.body(Full::default()).unwrap(),
        Some(body) => {
            let builder = builder.header(CONTENT_TYPE, "application/json");
            builder.body(Full::from(body.to_string())).unwrap()
        }
    }
}

pub(super) fn query(statement: &str, accept: &'static str) -> Request<Full<Bytes>> {
    let body = json!({ "statement": statement });
    let mut request = request(Method::POST, "/api/v1/query", Some(body));
    request
        .headers_mut()
        .insert(ACCEPT, accept.parse().unwrap());
    request
}
