//! The REST door, spoken by hand: with a session, and in one call. The Arrow stream is read by
//! arrow-rs, and everything that the gateway promises about a complete result is checked.

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
    http: Http,
    session: String,
}

struct OneCallLine {
    http: Http,
    settings: Value,
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
        let mut http = Http::connect(gateway.address(), self.0, gateway.user()).await?;
        let reply = http
            .send(
                Method::POST,
                "/api/v1/sessions",
                &[],
                Some(json!({"configs": object_of(settings)})),
            )
            .await?;
        let opened = good(reply)?.json();
        let text = |field: &str| {
            opened[field]
                .as_str()
                .map(str::to_owned)
                .ok_or_else(|| Failure::seen(format!("no {field}")))
        };
        let (session, token) = (text("identifier")?, text("token")?);
        Ok(Box::new(SessionLine {
            http: http.call_as(As::Token(token)),
            session,
        }))
    }
}

#[async_trait]
impl Line for SessionLine {
    async fn run(&mut self, statement: &str, max_rows: Option<u64>) -> Result<Answer, Failure> {
        let body = json!({"statement": statement, "maxRows": max_rows, "runAsync": false});
        let path = format!("/api/v1/sessions/{}/operations/statement", self.session);
        let reply = good(self.http.post(&path, body).await?)?;
        let operation = reply.json()["identifier"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        let path = format!("/api/v1/operations/{operation}/result");
        let result = answer(
            self.http
                .send(Method::GET, &path, &[("accept", ACCEPT_ALL)], None)
                .await?,
        );
        match result {
            // The stream broke: the verdict says why.
            Err(failure) if failure.kind.is_none() => {
                let event = self
                    .http
                    .get(&format!("/api/v1/operations/{operation}/event"))
                    .await;
                Err(event
                    .ok()
                    .and_then(|event| failure_of(&event.json()["error"]))
                    .unwrap_or(failure))
            }
            result => result,
        }
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
        let http = Http::connect(gateway.address(), Version::Http2, gateway.user()).await?;
        Ok(Box::new(OneCallLine {
            http,
            settings: object_of(settings),
        }))
    }
}

#[async_trait]
impl Line for OneCallLine {
    async fn run(&mut self, statement: &str, max_rows: Option<u64>) -> Result<Answer, Failure> {
        let body = json!({"statement": statement, "maxRows": max_rows, "configs": self.settings});
        let reply = self
            .http
            .send(
                Method::POST,
                "/api/v1/query",
                &[("accept", ACCEPT_ALL)],
                Some(body),
            )
            .await?;
        let operation = reply.header("sluice-operation-id").to_owned();
        match answer(reply) {
            Err(failure) if failure.kind.is_none() => {
                let event = self
                    .http
                    .get(&format!("/api/v1/operations/{operation}/event"))
                    .await;
                Err(event
                    .ok()
                    .and_then(|event| failure_of(&event.json()["error"]))
                    .unwrap_or(failure))
            }
            result => result,
        }
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
