//! Results: from what an engine yields to messages that a front end frames.
//!
//! A result is pulled, never pushed: each stage is a stream over the one before, in the order
//! `source` → `limit` → `shape` → `encode` → [`ResultStream`]. Nothing is collected.

mod encode;
mod limit;
mod shape;
pub(crate) mod source;

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use arrow_schema::SchemaRef;
use futures::{FutureExt, Stream, StreamExt};
use sluice_ipc::{Bounds, Codec, Compression, Digest, Encoded, Encoder, Types};
use tokio::time::{Sleep, sleep_until};
use tokio_util::sync::WaitForCancellationFutureOwned;

pub(crate) use self::encode::Encode;
use self::encode::Means;
pub(crate) use self::limit::RowBound;
use self::shape::Shape;
use crate::client::{Ability, Client};
use crate::delivery::Cause;
use crate::engine::Execution;
use crate::error::{Error, ErrorKind, Result};
use crate::operation::Operation;

/// What a front end asks of a result.
#[derive(Clone, Debug)]
pub struct Form {
    /// A codec that the front end needs whatever the session says, as when it renders text itself.
    pub codec: Option<Codec>,
    /// What the reader at the other end takes.
    pub client: Client,
    /// Bytes of a batch before compression, as this way out bounds them.
    pub max_batch_bytes: u64,
    /// Bytes of a single row above which this way out cannot carry it.
    pub max_row_bytes: u64,
}

/// What was handed over, to be proved by the reader.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Totals {
    /// Rows.
    pub rows: u64,
    /// Record batches.
    pub batches: u64,
    /// Bytes of metadata and bodies, framing excluded.
    pub bytes: u64,
    /// The chained xxh3-64.
    pub digest: u64,
    /// Whether rows were left out because of a bound on rows.
    pub truncated: bool,
}

/// The stages of a result that is being read. The operation holds them too and takes them away
/// when it ends: a cancelled query stops although its reader does not poll.
pub(crate) type Pipeline = Arc<Mutex<Option<Encode>>>;

/// The messages of one result: the schema first, then batches, each preceded by its dictionaries
/// if it has any. After an error nothing follows, and the front end must break its own stream.
/// Dropping it before its end cancels the operation.
pub struct ResultStream {
    schema: SchemaRef,
    codec: Codec,
    /// The schema message, until it is handed over.
    first: Option<Encoded>,
    pipeline: Pipeline,
    digest: Digest,
    operation: Arc<Operation>,
    cancelled: Pin<Box<WaitForCancellationFutureOwned>>,
    deadline: Option<Pin<Box<Sleep>>>,
    ended: bool,
}

impl ResultStream {
    /// Puts the stages together for `operation`, whose engine gave `execution`.
    pub(crate) fn open(
        operation: Arc<Operation>,
        execution: Execution,
        form: &Form,
    ) -> Result<Self> {
        let settings = operation.settings();
        let codec = form
            .codec
            .unwrap_or_else(|| settings.choose_codec(&form.client).codec);
        let compression = Compression {
            codec,
            level: settings.level,
        };
        let types = Types {
            dictionaries: form.client.dictionaries == Ability::Able,
            views: form.client.views == Ability::Able,
        };
        let engine_schema = Arc::clone(&execution.schema);
        let encoder = Encoder::try_new(&engine_schema, types, compression).map_err(|cause| {
            Error::new(
                ErrorKind::Engine,
                format!("the result's schema cannot be sent: {cause}"),
            )
            .with_cause(cause)
        })?;

        let meter = Arc::clone(operation.meter());
        let batches = limit::limit(
            source::batches(execution)?,
            operation.row_bound(),
            Arc::clone(&meter),
        );
        let bounds = Bounds {
            max_rows: settings.max_records_per_batch.unwrap_or(usize::MAX),
            max_bytes: settings.max_bytes_per_batch.min(form.max_batch_bytes),
        };
        let shape = Shape::new(
            batches,
            engine_schema,
            bounds,
            form.max_row_bytes,
            Arc::clone(&meter),
        );
        meter.begin_streaming(codec, (codec == Codec::Zstd).then_some(settings.level));

        let schema = Arc::clone(encoder.schema());
        let first = Some(encoder.schema_message());
        let means = Means {
            encoder: Arc::new(encoder),
            pool: Arc::clone(operation.pool()),
            tenant: operation.tenant(),
            budget: operation.memory(),
            meter,
        };
        let pipeline = Arc::new(Mutex::new(Some(Encode::new(shape, means))));
        operation.attach(&pipeline);
        Ok(Self {
            schema,
            codec,
            first,
            pipeline,
            digest: Digest::new(),
            cancelled: Box::pin(operation.cancellation().cancelled_owned()),
            deadline: operation.deadline().map(|at| Box::pin(sleep_until(at))),
            operation,
            ended: false,
        })
    }

    /// The schema that the client is told.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// How buffers are compressed.
    pub fn codec(&self) -> Codec {
        self.codec
    }

    /// The operation whose result this is.
    pub fn operation(&self) -> &Arc<Operation> {
        &self.operation
    }

    /// What was handed over so far; after the end, all of it.
    pub fn totals(&self) -> Totals {
        let meter = self.operation.meter();
        Totals {
            rows: meter.rows.get(),
            batches: meter.batches_out.get(),
            bytes: meter.bytes_encoded.get(),
            digest: self.digest.value(),
            truncated: meter.truncated(),
        }
    }

    /// Tells the delivery report that the front end wrote `bytes` to its body.
    pub fn sent(&self, bytes: u64) {
        self.operation.meter().bytes_sent.add(bytes);
    }

    /// Ends the result with an error of the front end's own, when it cannot pass on what it got.
    pub fn fail(&mut self, error: Error) {
        if !self.ended {
            self.end(Some(error));
        }
    }

    fn count(&mut self, message: &Encoded) {
        let meter = self.operation.meter();
        self.digest.update(&message.header, &message.body);
        meter.set_digest(self.digest.value());
        meter
            .bytes_encoded
            .add((message.header.len() + message.body.len()) as u64);
        if message.rows > 0 {
            meter.note_row();
            meter.rows.add(message.rows);
            meter.batches_out.add(1);
        }
    }

    fn end(&mut self, error: Option<Error>) {
        self.ended = true;
        self.operation.finish(error);
    }

    /// Whether somebody stopped the operation, or its time is over while the engine still works.
    fn stopped(&mut self, cx: &mut Context<'_>) -> Option<Error> {
        if self.cancelled.poll_unpin(cx).is_ready() {
            return Some(self.operation.cancel_reason());
        }
        let deadline = self.deadline.as_mut()?;
        if deadline.poll_unpin(cx).is_pending() {
            return None;
        }
        let works = pipeline_of(&self.pipeline)
            .as_ref()
            .is_some_and(|encode| !encode.engine_is_done());
        works.then(|| self.operation.timed_out())
    }

    /// Polls the stages, and notes what the caller waits for from now on.
    fn poll_pipeline(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Encoded>>> {
        let mut pipeline = pipeline_of(&self.pipeline);
        let Some(encode) = pipeline.as_mut() else {
            return Poll::Ready(Some(Err(self.operation.cancel_reason())));
        };
        let next = encode.poll_next_unpin(cx);
        self.operation.meter().wait_for(match &next {
            Poll::Ready(_) => Cause::Network,
            Poll::Pending if encode.is_busy() => Cause::Codec,
            Poll::Pending => Cause::Engine,
        });
        next
    }
}

impl Stream for ResultStream {
    type Item = Result<Encoded>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        if this.ended {
            return Poll::Ready(None);
        }
        if let Some(error) = this.stopped(cx) {
            this.end(Some(error.clone()));
            return Poll::Ready(Some(Err(error)));
        }
        if let Some(schema) = this.first.take() {
            this.count(&schema);
            return Poll::Ready(Some(Ok(schema)));
        }
        let next = this.poll_pipeline(cx);
        match &next {
            Poll::Ready(Some(Ok(message))) => this.count(message),
            Poll::Ready(Some(Err(error))) => this.end(Some(error.clone())),
            Poll::Ready(None) => this.end(None),
            Poll::Pending => {}
        }
        next
    }
}

pub(crate) fn pipeline_of(pipeline: &Pipeline) -> MutexGuard<'_, Option<Encode>> {
    // A panic while it was polled ended the result; what is left is only dropped.
    pipeline.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for ResultStream {
    fn drop(&mut self) {
        if !self.ended {
            self.end(Some(Error::new(
                ErrorKind::Cancelled,
                "the client stopped reading",
            )));
        }
    }
}
