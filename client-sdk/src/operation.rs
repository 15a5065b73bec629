//! A statement that the gateway knows: asking about it and stopping it. Owns the paths of
//! operations. Must not know rows.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::ACCEPT;
use http::{Method, Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use sluice_wire::http::{Action, DeliveryReport, OperationAction, verdict};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use crate::error::{Error, ErrorKind, Result};
use crate::reply;
use crate::session::Connection;
use crate::transport::{empty, expect_success, finish, json};

/// How long a gateway may take to say how a result ended.
const VERDICT: Duration = Duration::from_secs(5);

/// The same when the result broke, and the caller waits for an error.
const EXPLANATION: Duration = Duration::from_secs(2);

/// Pauses between questions while a verdict is not final.
const PAUSE: Duration = Duration::from_millis(10);
const MAX_PAUSE: Duration = Duration::from_millis(500);

/// One statement.
#[derive(Debug)]
pub(crate) struct Operation {
    connection: Arc<Connection>,
    id: String,
    /// Somebody on this side wants it to stop.
    cancelled: CancellationToken,
}

impl Operation {
    pub(crate) fn new(connection: Arc<Connection>, id: String) -> Self {
        Self {
            connection,
            id,
            cancelled: CancellationToken::new(),
        }
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// Asks for the rows, in the form that `accept` says.
    pub(crate) async fn result(&self, accept: &str) -> Result<Response<Incoming>> {
        let request = self
            .connection
            .request(Method::GET, &self.path("/result"))?;
        let request = finish(request.header(ACCEPT, accept), Bytes::new())?;
        match self.connection.transport().send(request).await {
            Ok(response) => expect_success(response).await,
            // A result that breaks at once can take the head of the answer along.
            Err(error) if error.kind() == ErrorKind::Connect => Err(self.explain(error).await),
            Err(error) => Err(error),
        }
    }

    /// How the rows travelled, as far as they have got.
    pub(crate) async fn delivery(&self) -> Result<DeliveryReport> {
        let request = self
            .connection
            .request(Method::GET, &self.path("/delivery"))?;
        let report = self.connection.transport().call(empty(request)?).await;
        report.map_err(|error: Error| error.of_operation(&self.id))
    }

    /// How the rows travelled, once that is decided.
    pub(crate) async fn verdict(&self) -> Result<DeliveryReport> {
        self.verdict_within(VERDICT).await
    }

    async fn verdict_within(&self, at_most: Duration) -> Result<DeliveryReport> {
        let decided = async {
            let mut pause = PAUSE;
            loop {
                let report = self.delivery().await?;
                if !matches!(
                    report.verdict.as_str(),
                    verdict::PENDING | verdict::STREAMING
                ) {
                    return Ok(report);
                }
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(MAX_PAUSE);
            }
        };
        let undecided = || Error::incomplete("the gateway does not say how the result ended");
        tokio::time::timeout(at_most, decided)
            .await
            .unwrap_or_else(|_| Err(undecided()))
    }

    /// Says why a result broke, if the gateway knows: its reason is better than `seen`.
    pub(crate) async fn explain(&self, seen: Error) -> Error {
        let report = self.verdict_within(EXPLANATION).await;
        let reason = report.ok().and_then(|report| report.error);
        let explained = match reason.map(|detail| reply::error_of_detail(&detail)) {
            // The gateway also calls it that when the link was cut and it saw its reader vanish.
            Some(error) if error.kind() == ErrorKind::Cancelled => seen,
            Some(error) => error,
            None => seen,
        };
        explained.of_operation(&self.id)
    }

    /// Ends when somebody on this side has cancelled the statement.
    pub(crate) fn cancelled(&self) -> WaitForCancellationFutureOwned {
        self.cancelled.clone().cancelled_owned()
    }

    /// Stops the statement, here at once. One that is over already stays as it is.
    pub(crate) async fn cancel(&self) -> Result<()> {
        self.cancelled.cancel();
        let request = self.cancel_request()?;
        let told = self.connection.transport().tell(request).await;
        told.map_err(|error| error.of_operation(&self.id))
    }

    fn cancel_request(&self) -> Result<Request<Full<Bytes>>> {
        let request = self.connection.request(Method::PUT, &self.path(""))?;
        json(
            request,
            &OperationAction {
                action: Action::Cancel,
            },
        )
    }

    fn path(&self, under: &str) -> String {
        format!("/api/v1/operations/{}{under}", self.id)
    }
}

/// Stops a statement at the gateway when it is dropped, unless that was over before.
#[derive(Debug)]
pub(crate) struct Unfinished {
    operation: Arc<Operation>,
    over: bool,
}

impl Unfinished {
    pub(crate) fn new(operation: Operation) -> Self {
        Self {
            operation: Arc::new(operation),
            over: false,
        }
    }

    pub(crate) fn operation(&self) -> &Arc<Operation> {
        &self.operation
    }

    /// Nothing is left to be stopped.
    pub(crate) fn set_over(&mut self) {
        self.over = true;
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if self.over {
            return;
        }
        // The stream is closed by now, which says the same; this also reaches the gateway when
        // something between keeps the connection open.
        if let Ok(request) = self.operation.cancel_request() {
            self.operation.connection.tell_later(request);
        }
    }
}

/// Stops one statement from anywhere. Clones stop the same one.
#[derive(Clone, Debug)]
pub struct Canceller(pub(crate) Arc<Operation>);

impl Canceller {
    /// Stops the statement at the gateway. Its stream ends at once, whatever of it is on its way,
    /// with an error of kind [`Cancelled`](crate::ErrorKind::Cancelled), unless it has ended.
    ///
    /// # Errors
    /// When the gateway is not reached or has never heard of the statement.
    pub async fn cancel(&self) -> Result<()> {
        self.0.cancel().await
    }

    /// The gateway's name for the statement.
    pub fn operation_id(&self) -> &str {
        self.0.id()
    }
}
