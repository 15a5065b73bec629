//! Sessions: opening, settings, statements, closing. Owns the paths of sessions and the token that
//! stands for the user. Must not know how rows are read.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::TryStreamExt;
use http::header::ACCEPT;
use http::{Method, Request};
use http_body_util::Full;
use sluice_wire::http::{
    Configs, OpenSessionRequest, OperationOpened, SessionOpened, StatementRequest,
};
use tokio_util::task::TaskTracker;

use crate::client::{Abilities, Client};
use crate::error::{Error, Result};
use crate::operation::Operation;
use crate::stream::{ResultStream, Summary};
use crate::transport::{Credentials, Transport, empty, json};

/// How long a parting word may take.
const PARTING: Duration = Duration::from_secs(10);

/// One session's way to the gateway. Closes the session when the last one who uses it is gone.
#[derive(Debug)]
pub(crate) struct Connection {
    transport: Transport,
    credentials: Credentials,
    id: String,
    closed: AtomicBool,
    runtime: tokio::runtime::Handle,
    /// What is still to be told to the gateway.
    parting: TaskTracker,
}

impl Connection {
    pub(crate) fn transport(&self) -> &Transport {
        &self.transport
    }

    pub(crate) fn request(&self, method: Method, path: &str) -> Result<http::request::Builder> {
        self.transport.request(method, path, &self.credentials)
    }

    /// Sends a request of which nobody awaits the answer.
    pub(crate) fn tell_later(&self, request: Request<Full<Bytes>>) {
        let transport = self.transport.clone();
        let told = async move {
            // Best effort: the gateway finds out by itself, only later.
            let _ = tokio::time::timeout(PARTING, transport.tell(request)).await;
        };
        self.parting.spawn_on(told, &self.runtime);
    }

    async fn close(&self) -> Result<()> {
        if self.closed.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        self.transport.tell(self.close_request()?).await
    }

    fn close_request(&self) -> Result<Request<Full<Bytes>>> {
        empty(self.request(Method::DELETE, &format!("/api/v1/sessions/{}", self.id))?)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if self.closed.load(Ordering::Relaxed) {
            return;
        }
        if let Ok(request) = self.close_request() {
            self.tell_later(request);
        }
    }
}

/// What one statement is run with, beyond the session's settings.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct QueryOptions {
    /// Rows after which the result is cut; the summary then says `truncated`.
    pub max_rows: Option<u64>,
    /// How long the statement and its result may take.
    pub timeout: Option<Duration>,
    /// Settings for this statement alone.
    pub settings: Vec<(String, String)>,
}

/// A session at the gateway. Settings belong to it; statements in it may run at the same time.
///
/// [`close`](Self::close) ends it. A session that is dropped is closed in the background, once
/// the results that are still being read are gone too.
#[derive(Debug)]
pub struct Session {
    connection: Arc<Connection>,
    abilities: Abilities,
}

impl Session {
    pub(crate) async fn open(client: &Client) -> Result<Self> {
        let asked = OpenSessionRequest {
            configs: client.settings.iter().cloned().collect(),
            catalog: client.catalog.clone(),
            schema: client.schema.clone(),
            ..OpenSessionRequest::default()
        };
        let request = client
            .transport
            .request(Method::POST, "/api/v1/sessions", &client.credentials)?
            // Declared once here, so that SHOW CLIENT and EXPLAIN DELIVERY know it too.
            .header(ACCEPT, &client.abilities.accept);
        let opened: SessionOpened = client.transport.call(json(request, &asked)?).await?;
        let connection = Connection {
            transport: client.transport.clone(),
            credentials: Credentials::bearer(&opened.token)?,
            id: handle(opened.identifier)?,
            closed: AtomicBool::new(false),
            runtime: tokio::runtime::Handle::current(),
            parting: client.parting.clone(),
        };
        Ok(Self {
            connection: Arc::new(connection),
            abilities: client.abilities.clone(),
        })
    }

    /// The gateway's name for the session.
    pub fn id(&self) -> &str {
        &self.connection.id
    }

    /// Changes a setting of the session, as SQL `SET` does.
    ///
    /// # Errors
    /// What the gateway says of the key or the value; the old value then stays.
    pub async fn set(&self, key: &str, value: &str) -> Result<()> {
        self.execute(&set_statement(key, value)?).await.map(drop)
    }

    /// Runs a statement. Returns when there is a result, of which the schema is known.
    ///
    /// Dropping the future, like dropping an unfinished [`ResultStream`], stops the statement.
    ///
    /// # Errors
    /// What is wrong with the statement, or with the way to the gateway.
    pub async fn query(&self, sql: &str) -> Result<ResultStream> {
        self.query_with(sql, QueryOptions::default()).await
    }

    /// Runs a statement with options.
    ///
    /// # Errors
    /// As [`query`](Self::query).
    pub async fn query_with(&self, sql: &str, options: QueryOptions) -> Result<ResultStream> {
        let path = format!(
            "/api/v1/sessions/{}/operations/statement",
            self.connection.id
        );
        let request = json(
            self.connection.request(Method::POST, &path)?,
            &asked(sql, options),
        )?;
        // The answer comes with the result. A caller who goes away before that takes the request
        // along, and the gateway stops the statement.
        let opened: OperationOpened = self.connection.transport.call(request).await?;
        let operation = Operation::new(Arc::clone(&self.connection), handle(opened.identifier)?);
        ResultStream::open(operation, &self.abilities).await
    }

    /// Runs a statement, reads its rows to the end and throws them away.
    ///
    /// # Errors
    /// As [`query`](Self::query), and what goes wrong with the rows.
    pub async fn execute(&self, sql: &str) -> Result<Summary> {
        let mut rows = self.query(sql).await?;
        while rows.try_next().await?.is_some() {}
        Ok(rows.summary())
    }

    /// Closes the session and stops what runs in it.
    ///
    /// # Errors
    /// When the gateway is not reached, or the session was over before.
    pub async fn close(self) -> Result<()> {
        self.connection.close().await
    }
}

fn asked(sql: &str, options: QueryOptions) -> StatementRequest {
    let mut settings = options.settings;
    let mut seconds = None;
    match options.timeout {
        Some(timeout) if timeout.subsec_nanos() == 0 => {
            seconds = i64::try_from(timeout.as_secs()).ok();
        }
        // The request's own field has whole seconds only.
        Some(timeout) => {
            let milliseconds = timeout.as_millis().max(1);
            settings.push(("query.timeout".to_owned(), format!("{milliseconds}ms")));
        }
        None => {}
    }
    StatementRequest {
        statement: sql.to_owned(),
        run_async: false,
        query_timeout: seconds,
        conf_overlay: settings.into_iter().collect::<Configs>(),
        max_rows: options.max_rows,
    }
}

/// A handle goes into paths, so it must not be able to lead elsewhere.
fn handle(text: String) -> Result<String> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if text.is_empty() || !text.bytes().all(is_plain) {
        return Err(Error::protocol(format!("{text:?} is no handle")));
    }
    Ok(text)
}

fn set_statement(key: &str, value: &str) -> Result<String> {
    if key.is_empty() || key.contains('`') {
        return Err(Error::configuration(format!(
            "{key:?} is no key of a setting"
        )));
    }
    Ok(format!("SET `{key}` = '{}'", value.replace('\'', "''")))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn values_are_quoted_and_keys_cannot_break_out() {
        let set = set_statement("a.b", "it's; -- x").unwrap();
        assert_eq!(set, "SET `a.b` = 'it''s; -- x'");
        assert!(set_statement("a` = 1; drop", "x").is_err());
        assert!(set_statement("", "x").is_err());
    }

    #[test]
    fn handles_are_plain() {
        assert!(handle("0a1b-2c".to_owned()).is_ok());
        for wrong in ["", "../x", "a b", "a/b", "ä"] {
            assert!(handle(wrong.to_owned()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_timeout_is_said_in_seconds_where_it_can_be() {
        let of = |timeout| {
            asked(
                "x",
                QueryOptions {
                    timeout,
                    ..QueryOptions::default()
                },
            )
        };
        assert_eq!(of(Some(Duration::from_secs(3))).query_timeout, Some(3));
        let request = of(Some(Duration::from_millis(1500)));
        assert_eq!(request.query_timeout, None);
        let expected = [("query.timeout".to_owned(), "1500ms".to_owned())];
        assert_eq!(request.conf_overlay.0, expected);
        assert_eq!(of(None).query_timeout, None);
    }
}
