//! The REST door, spoken by hand: with a session, and in one call. The Arrow stream is read by
//! arrow-rs, and everything that the gateway promises about a complete result is checked.

use std::net::SocketAddr;

use async_trait::async_trait;
use http::Method;
use serde_json::{Value, json};

use super::{Answer, Door, Failure, Line};
use crate::gateway::TestGateway;
use crate::http::{As, Broken, Http, Reply, Version};
use crate::ipc::{self, Kind, Parts};

/// What a client sends that reads everything, and prefers nothing before it is asked.
pub const ACCEPT_ALL: &str = "application/vnd.apache.arrow.stream; codecs=\"zstd, lz4\"";

/// Open a session, execute, fetch the result.
pub(super) struct Sessions(pub(super) Version);

/// `POST /api/v1/query`.
pub(super) struct OneCall;

struct SessionLine {
    gateway: Target,
    http: Http,
    session: String,
}

struct OneCallLine {
    gateway: Target,
    http: Http,
    settings: Value,
}

/// Where to connect again when a broken result took its connection with it.
#[derive(Clone)]
struct Target {
    address: SocketAddr,
    version: Version,
    caller: As,
}

impl Target {
    async fn connect(&self) -> Result<Http, Broken> {
        Http::connect(self.address, self.version, self.caller.clone()).await
    }

    /// Why `operation` ended, as somebody learns who asks for it.
    async fn reason(&self, operation: &str) -> Option<Failure> {
        let path = format!("/api/v1/operations/{operation}/event");
        let event = self.connect().await.ok()?.get(&path).await.ok()?;
        failure_of(&event.json()["error"])
    }

    /// The answer, or the failure that is behind a broken one.
    async fn explained(
        &self,
        operation: &str,
        answer: Result<Answer, Failure>,
    ) -> Result<Answer, Failure> {
        match answer {
            Err(seen) if seen.kind.is_none() => Err(self.reason(operation).await.unwrap_or(seen)),
            answer => answer,
        }
    }
}

#[async_trait]
impl Door for Sessions {
    fn name(&self) -> &'static str {
        match self.0 {
            Version::Http1 => "REST over HTTP/1.1",
            Version::Http2 => "REST over HTTP/2",
        }
    }

    async fn connect(
        &self,
        gateway: &TestGateway,
        settings: &[(&str, &str)],
    ) -> Result<Box<dyn Line>, Failure> {
        let address = gateway.address();
        let mut http = Http::connect(address, self.0, gateway.user()).await?;
        let body = json!({"configs": object_of(settings)});
        let opened = good(http.post("/api/v1/sessions", body).await?)?.json();
        let text = |field: &str| {
            let text = opened[field].as_str().map(str::to_owned);
            text.ok_or_else(|| Failure::seen(format!("no {field}")))
        };
        let (session, caller) = (text("identifier")?, As::Token(text("token")?));
        let gateway = Target {
            address,
            version: self.0,
            caller: caller.clone(),
        };
        Ok(Box::new(SessionLine {
            gateway,
            http: http.call_as(caller),
            session,
        }))
    }
}

#[async_trait]
impl Line for SessionLine {
    async fn run(&mut self, statement: &str, max_rows: Option<u64>) -> Result<Answer, Failure> {
        let body = json!({"statement": statement, "maxRows": max_rows, "runAsync": false});
        let path = format!("/api/v1/sessions/{}/operations/statement", self.session);
        let opened = match self.http.post(&path, body.clone()).await {
            Ok(reply) => good(reply)?.json(),
            // A result that broke before may have taken the connection with it.
            Err(_) => {
                self.http = self.gateway.connect().await?;
                good(self.http.post(&path, body).await?)?.json()
            }
        };
        let operation = opened["identifier"].as_str().unwrap_or_default().to_owned();
        let path = format!("/api/v1/operations/{operation}/result");
        let headers = [("accept", ACCEPT_ALL)];
        let reply = self.http.send(Method::GET, &path, &headers, None).await;
        let answer = reply.map_err(Failure::from).and_then(answer);
        self.gateway.explained(&operation, answer).await
    }
}

#[async_trait]
impl Door for OneCall {
    fn name(&self) -> &'static str {
        "REST in one call"
    }

    fn keeps_session(&self) -> bool {
        false
    }

    async fn connect(
        &self,
        gateway: &TestGateway,
        settings: &[(&str, &str)],
    ) -> Result<Box<dyn Line>, Failure> {
        let gateway = Target {
            address: gateway.address(),
            version: Version::Http2,
            caller: gateway.user(),
        };
        let http = gateway.connect().await?;
        Ok(Box::new(OneCallLine {
            gateway,
            http,
            settings: object_of(settings),
        }))
    }
}

#[async_trait]
impl Line for OneCallLine {
    async fn run(&mut self, statement: &str, max_rows: Option<u64>) -> Result<Answer, Failure> {
        let body = json!({
            "statement": statement,
            "maxRows": max_rows,
            "configs": self.settings,
        });
        let headers = [("accept", ACCEPT_ALL)];
        let reply = self
            .http
            .send(Method::POST, "/api/v1/query", &headers, Some(body))
            .await?;
        let operation = reply.header("sluice-operation-id").to_owned();
        self.gateway.explained(&operation, answer(reply)).await
    }
}

fn object_of(settings: &[(&str, &str)]) -> Value {
    settings
        .iter()
        .map(|(key, value)| ((*key).to_owned(), json!(value)))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

/// The reply, when its status is a success.
///
/// # Errors
/// What the error body says.
pub fn good(reply: Reply) -> Result<Reply, Failure> {
    if reply.status.is_success() {
        return Ok(reply);
    }
    let told = failure_of(&reply.json()["error"]);
    Err(told.unwrap_or_else(|| Failure::seen(format!("{}: {:?}", reply.status, reply.body))))
}

fn failure_of(error: &Value) -> Option<Failure> {
    Some(Failure {
        kind: Failure::kind_of(error["kind"].as_str()?),
        sqlstate: error["sqlState"].as_str()?.to_owned(),
        message: error["message"].as_str()?.to_owned(),
    })
}

/// An Arrow stream as the promises about it have it: end marker, clean end, and trailers that
/// agree with what came.
///
/// # Errors
/// What the error body says, or which promise was not kept.
pub fn answer(reply: Reply) -> Result<Answer, Failure> {
    let reply = good(reply)?;
    if let Some(broken) = &reply.broken {
        return Err(Failure::seen(format!("the body broke: {broken}")));
    }
    let parts = Parts::of(&reply.body).map_err(Failure::seen)?;
    let (schema, batches) = ipc::read(&reply.body).map_err(Failure::seen)?;
    promises(&reply, &parts).map_err(Failure::seen)?;
    Ok(Answer {
        schema,
        batches,
        codecs: parts.batches().map(|part| part.codec).collect(),
        truncated: reply.trailer("sluice-truncated").parse().ok(),
        bytes: reply.body.len() as u64,
    })
}

fn promises(reply: &Reply, parts: &Parts) -> Result<(), String> {
    let kept = |promise: &str, told: &str, found: String| match told == found {
        true => Ok(()),
        false => Err(format!("{promise}: told {told:?}, found {found:?}")),
    };
    if !parts.ended {
        return Err("no end marker".to_owned());
    }
    if parts.messages.first().map(|part| part.kind) != Some(Kind::Schema) {
        return Err("the first message is no schema".to_owned());
    }
    let batches = parts.batches().count();
    if batches > 1 && parts.batches().any(|part| part.rows == 0) {
        return Err("an empty batch in mid-stream".to_owned());
    }
    let bytes: usize = parts
        .messages
        .iter()
        .map(|part| part.header.len() + part.body.len())
        .sum();
    kept(
        "rows",
        reply.trailer("sluice-rows"),
        parts.rows().to_string(),
    )?;
    kept(
        "batches",
        reply.trailer("sluice-batches"),
        batches.to_string(),
    )?;
    kept("bytes", reply.trailer("sluice-bytes"), bytes.to_string())?;
    kept(
        "digest",
        reply.trailer("sluice-digest"),
        format!("{:016x}", parts.digest()),
    )
}

impl From<Broken> for Failure {
    fn from(broken: Broken) -> Self {
        Self::seen(broken)
    }
}
