//! The same client for threads that may block. Owns the runtime that does the work behind it.
//! Must not know more of the gateway than the async client does.
//!
//! Not for use within async code, where a call that blocks stops other tasks: calls there panic,
//! as Tokio's `block_on` does.

use std::sync::Arc;
use std::time::Duration;

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use futures::StreamExt;
use sluice_wire::http::DeliveryReport;
use tokio::runtime::Runtime;
use tokio_util::task::TaskTracker;

use crate::client::ClientBuilder;
use crate::error::{Error, Result};
use crate::session::QueryOptions;
use crate::stream::Summary;

/// How long the last one out waits for parting words to reach the gateway.
const PARTING: Duration = Duration::from_secs(2);

/// What runs the async client. One thread of its own, so that bytes keep coming while the caller
/// works on a batch.
#[derive(Debug)]
struct Engine {
    /// Taken when it is dropped.
    runtime: Option<Runtime>,
    parting: TaskTracker,
}

impl Engine {
    fn block_on<T>(&self, work: impl Future<Output = T>) -> Result<T> {
        let runtime = self.runtime.as_ref();
        let runtime = runtime.ok_or_else(|| Error::configuration("the client is closed"))?;
        Ok(runtime.block_on(work))
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        let Some(runtime) = self.runtime.take() else {
            return;
        };
        self.parting.close();
        // Within another runtime nothing may block, not even for this.
        if !self.parting.is_empty() && tokio::runtime::Handle::try_current().is_err() {
            let parting = async {
                // What has not been said by then stays unsaid.
                let _ = tokio::time::timeout(PARTING, self.parting.wait()).await;
            };
            runtime.block_on(parting);
        }
        runtime.shutdown_background();
    }
}

/// A gateway that sessions can be opened at. See [`crate::Client`].
#[derive(Clone, Debug)]
pub struct Client {
    inner: crate::Client,
    engine: Arc<Engine>,
}

impl Client {
    /// Begins a client; [`ClientBuilder::build_blocking`] ends it.
    pub fn builder(url: impl Into<String>) -> ClientBuilder {
        crate::Client::builder(url)
    }

    pub(crate) fn new(inner: crate::Client) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("sluice-client")
            .enable_all()
            .build()
            .map_err(|error| {
                Error::configuration(format!("no runtime can be started: {error}"))
                    .with_source(error)
            })?;
        let parting = inner.parting.clone();
        Ok(Self {
            inner,
            engine: Arc::new(Engine {
                runtime: Some(runtime),
                parting,
            }),
        })
    }

    /// Opens a session.
    ///
    /// # Errors
    /// As [`crate::Client::session`].
    pub fn session(&self) -> Result<Session> {
        let inner = self.engine.block_on(self.inner.session())??;
        Ok(Session {
            inner,
            engine: Arc::clone(&self.engine),
        })
    }
}

/// A session at the gateway. See [`crate::Session`].
#[derive(Debug)]
pub struct Session {
    inner: crate::Session,
    engine: Arc<Engine>,
}

impl Session {
    /// The gateway's name for the session.
    pub fn id(&self) -> &str {
        self.inner.id()
    }

    /// Changes a setting of the session.
    ///
    /// # Errors
    /// As [`crate::Session::set`].
    pub fn set(&self, key: &str, value: &str) -> Result<()> {
        self.engine.block_on(self.inner.set(key, value))?
    }

    /// Runs a statement. Returns when there is a result, of which the schema is known.
    ///
    /// # Errors
    /// As [`crate::Session::query`].
    pub fn query(&self, sql: &str) -> Result<ResultStream> {
        self.query_with(sql, QueryOptions::default())
    }

    /// Runs a statement with options.
    ///
    /// # Errors
    /// As [`crate::Session::query`].
    pub fn query_with(&self, sql: &str, options: QueryOptions) -> Result<ResultStream> {
        let inner = self
            .engine
            .block_on(self.inner.query_with(sql, options))??;
        Ok(ResultStream {
            inner,
            engine: Arc::clone(&self.engine),
        })
    }

    /// Runs a statement, reads its rows to the end and throws them away.
    ///
    /// # Errors
    /// As [`crate::Session::execute`].
    pub fn execute(&self, sql: &str) -> Result<Summary> {
        self.engine.block_on(self.inner.execute(sql))?
    }

    /// Closes the session and stops what runs in it.
    ///
    /// # Errors
    /// As [`crate::Session::close`].
    pub fn close(self) -> Result<()> {
        self.engine.block_on(self.inner.close())?
    }
}

/// The rows of one statement, as an iterator of batches and as a [`RecordBatchReader`]. See
/// [`crate::ResultStream`]: only an iteration that ends without an `Err` had all rows.
#[derive(Debug)]
#[must_use = "a result that is dropped stops its statement"]
pub struct ResultStream {
    inner: crate::ResultStream,
    engine: Arc<Engine>,
}

impl ResultStream {
    /// The schema of every batch.
    pub fn schema(&self) -> SchemaRef {
        self.inner.schema()
    }

    /// The gateway's name for the statement.
    pub fn operation_id(&self) -> &str {
        self.inner.operation_id()
    }

    /// What came so far; after the end, what came.
    pub fn summary(&self) -> Summary {
        self.inner.summary()
    }

    /// Something to stop the statement with from another thread.
    pub fn canceller(&self) -> Canceller {
        Canceller {
            inner: self.inner.canceller(),
            engine: Arc::clone(&self.engine),
        }
    }

    /// How the result travelled, in the gateway's figures. Final once the rows have ended.
    ///
    /// # Errors
    /// As [`crate::ResultStream::delivery`].
    pub fn delivery(&self) -> Result<DeliveryReport> {
        self.engine.block_on(self.inner.delivery())?
    }

    /// The next batch, with this package's error.
    ///
    /// # Errors
    /// What went wrong; nothing follows.
    pub fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        self.engine.block_on(self.inner.next())?.transpose()
    }
}

impl Iterator for ResultStream {
    type Item = std::result::Result<RecordBatch, ArrowError>;

    /// The next batch; an error of this package is wrapped as [`ArrowError::ExternalError`].
    fn next(&mut self) -> Option<Self::Item> {
        let external = |error| ArrowError::ExternalError(Box::new(error));
        self.next_batch().map_err(external).transpose()
    }
}

impl RecordBatchReader for ResultStream {
    fn schema(&self) -> SchemaRef {
        self.inner.schema()
    }
}

/// Stops one statement from another thread. Clones stop the same one.
#[derive(Clone, Debug)]
pub struct Canceller {
    inner: crate::Canceller,
    engine: Arc<Engine>,
}

impl Canceller {
    /// Stops the statement at the gateway.
    ///
    /// # Errors
    /// As [`crate::Canceller::cancel`].
    pub fn cancel(&self) -> Result<()> {
        self.engine.block_on(self.inner.cancel())?
    }
}
