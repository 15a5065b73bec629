//! Batches of the right size: small ones are merged, large ones split, and nobody waits for the
//! first row because a batch is not full. Must not know codecs.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use futures::{FutureExt, Stream, StreamExt};
use sluice_ipc::{Bounds, Shaper, sliced_bytes};
use tokio::time::{Sleep, sleep};

use crate::delivery::Meter;
use crate::engine::BatchStream;
use crate::error::{Error, ErrorKind, Result};

/// How long rows may wait for company.
const PARTIAL_AFTER: Duration = Duration::from_millis(100);

/// A batch within the bounds, and the bytes of its rows.
pub(super) struct Shaped {
    pub(super) batch: RecordBatch,
    pub(super) bytes: u64,
}

/// The stage that merges and splits.
pub(super) struct Shape {
    /// Gone after the engine's last batch.
    batches: Option<BatchStream>,
    shaper: Shaper,
    /// Runs while rows wait for company.
    partial: Option<Pin<Box<Sleep>>>,
    max_row_bytes: u64,
    meter: Arc<Meter>,
}

impl Shape {
    /// Shapes `batches` of `schema` to `bounds`; one row of more than `max_row_bytes` is an error.
    pub(super) fn new(
        batches: BatchStream,
        schema: SchemaRef,
        bounds: Bounds,
        max_row_bytes: u64,
        meter: Arc<Meter>,
    ) -> Self {
        Self {
            batches: Some(batches),
            shaper: Shaper::new(schema, bounds),
            partial: None,
            max_row_bytes,
            meter,
        }
    }

    fn take(&mut self, batch: RecordBatch) {
        self.meter.batches_in.add(1);
        let bytes = sliced_bytes(&batch);
        self.meter.bytes_engine.add(bytes);
        self.shaper.push(batch);
        if self.partial.is_none() && self.shaper.pending_rows() > 0 {
            self.partial = Some(Box::pin(sleep(PARTIAL_AFTER)));
        }
    }

    fn give(&mut self, batch: RecordBatch) -> Result<Shaped> {
        self.partial = None;
        let bytes = sliced_bytes(&batch);
        if batch.num_rows() == 1 && bytes > self.max_row_bytes {
            return Err(Error::new(
                ErrorKind::RowTooLarge,
                format!(
                    "a row of {bytes} bytes is larger than this way out carries ({} bytes); select fewer or shorter columns",
                    self.max_row_bytes
                ),
            ));
        }
        Ok(Shaped { batch, bytes })
    }

    fn fail(&mut self, error: Error) -> Poll<Option<Result<Shaped>>> {
        self.batches = None;
        self.shaper.clear();
        Poll::Ready(Some(Err(error)))
    }
}

impl Stream for Shape {
    type Item = Result<Shaped>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        loop {
            match this.shaper.pop() {
                Ok(Some(batch)) => return Poll::Ready(Some(this.give(batch))),
                Ok(None) => {}
                Err(error) => return this.fail(unshapeable(error)),
            }
            let waited = match &mut this.batches {
                None => true,
                Some(batches) => match batches.poll_next_unpin(cx) {
                    Poll::Ready(Some(Ok(batch))) => {
                        this.take(batch);
                        continue;
                    }
                    Poll::Ready(Some(Err(error))) => return this.fail(error),
                    Poll::Ready(None) => {
                        this.batches = None;
                        continue;
                    }
                    Poll::Pending => match &mut this.partial {
                        None if this.shaper.pending_rows() == 0 => false,
                        None => {
                            this.partial = Some(Box::pin(sleep(PARTIAL_AFTER)));
                            continue;
                        }
                        Some(timer) => timer.poll_unpin(cx).is_ready(),
                    },
                },
            };
            if !waited {
                return Poll::Pending;
            }
            return match this.shaper.flush() {
                Ok(Some(batch)) => Poll::Ready(Some(this.give(batch))),
                Ok(None) => Poll::Ready(None),
                Err(error) => this.fail(unshapeable(error)),
            };
        }
    }
}

fn unshapeable(cause: sluice_ipc::Error) -> Error {
    Error::new(
        ErrorKind::Engine,
        format!("the engine's batches cannot be put together: {cause}"),
    )
    .with_cause(cause)
}
