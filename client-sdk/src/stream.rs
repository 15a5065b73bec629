//! The rows of a statement as they come, and the proof at their end. Owns what callers see of a
//! result. Must not know HTTP.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use futures::future::{self, BoxFuture, FutureExt};
use futures::stream::{self, BoxStream, Stream, StreamExt};
use http::header::CONTENT_TYPE;
use http::{HeaderMap, Response};
use sluice_wire::http::{DeliveryReport, media};
use tokio_util::sync::WaitForCancellationFutureOwned;

use crate::client::Abilities;
use crate::decode::{Decoding, LOOK_AHEAD};
use crate::error::{Error, ErrorKind, Result};
use crate::operation::{Canceller, Operation, Unfinished};
use crate::proof::{Claim, Totals};
use crate::reader::{Ended, Next, Reader};

/// What came of a result.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Summary {
    /// Rows given to the caller.
    pub rows: u64,
    /// Batches given to the caller.
    pub batches: u64,
    /// Bytes of the messages that were read, without framing; some of them may be ahead of `rows`.
    pub bytes: u64,
    /// Whether the gateway left rows out because of a bound on rows. Known at the end.
    pub truncated: bool,
    /// Whether the result came to its end and is proved to be all that the gateway sent.
    pub complete: bool,
}

/// The rows of one statement: its schema is there, its batches come as a [`Stream`].
///
/// The stream ends with `None` only when marker, body, counts and hash all say that nothing is
/// missing; anything else ends it with an `Err`. Batches are given as they come, so **until the
/// stream has ended with `None`, rows may be missing**.
///
/// Up to three messages are read and decoded ahead of the caller. Dropping an unfinished stream
/// stops the statement at the gateway.
#[must_use = "a result that is dropped stops its statement"]
pub struct ResultStream {
    schema: SchemaRef,
    /// Closed before the statement is stopped, since fields are dropped in their order.
    items: Option<BoxStream<'static, Result<Item>>>,
    proving: Option<Proving>,
    cancelled: Pin<Box<WaitForCancellationFutureOwned>>,
    unfinished: Unfinished,
    bytes: Arc<AtomicU64>,
    summary: Summary,
}

/// Waiting for what the gateway says it sent.
struct Proving {
    read: Totals,
    claim: BoxFuture<'static, Result<Claim>>,
}

enum Item {
    Batch(RecordBatch),
    Dictionary,
    End(Ended),
}

impl ResultStream {
    pub(crate) async fn open(operation: Operation, abilities: &Abilities) -> Result<Self> {
        let unfinished = Unfinished::new(operation);
        let operation = unfinished.operation();
        let of_operation = |error: Error| error.of_operation(operation.id());
        let response = operation
            .result(&abilities.accept)
            .await
            .map_err(of_operation)?;
        expect_arrow(&response).map_err(of_operation)?;
        let limits = abilities.limits;
        let mut reader = Reader::new(response.into_body(), limits, Arc::clone(operation));
        let Next::Message(first) = reader.next().await.map_err(of_operation)? else {
            return Err(of_operation(Error::protocol("the result has no schema")));
        };
        let (schema, decoding) = Decoding::begin(&first, &limits).map_err(of_operation)?;
        Ok(Self {
            schema,
            bytes: reader.bytes(),
            items: Some(items(reader, decoding)),
            proving: None,
            cancelled: Box::pin(operation.cancelled()),
            unfinished,
            summary: Summary::default(),
        })
    }

    /// The schema of every batch.
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    /// The gateway's name for the statement.
    pub fn operation_id(&self) -> &str {
        self.unfinished.operation().id()
    }

    /// What came so far; after the end, what came.
    pub fn summary(&self) -> Summary {
        Summary {
            bytes: self.bytes.load(Ordering::Relaxed),
            ..self.summary
        }
    }

    /// Something to stop the statement with from elsewhere, while this stream is being read.
    pub fn canceller(&self) -> Canceller {
        Canceller(Arc::clone(self.unfinished.operation()))
    }

    /// How the result travelled, in the gateway's figures. Final once the stream has ended.
    ///
    /// # Errors
    /// When the gateway is not reached, or has forgotten the statement.
    pub async fn delivery(&self) -> Result<DeliveryReport> {
        let operation = self.unfinished.operation();
        if self.summary.complete {
            operation.verdict().await
        } else {
            operation.delivery().await
        }
    }

    fn fail(&mut self, error: Error) -> Poll<Option<Result<RecordBatch>>> {
        self.items = None;
        self.proving = None;
        Poll::Ready(Some(Err(error.of_operation(self.operation_id()))))
    }

    fn note(&mut self, batch: &RecordBatch) {
        self.summary.rows += batch.num_rows() as u64;
        self.summary.batches += 1;
    }

    fn begin_proof(&mut self, ended: Ended) {
        let read = Totals {
            rows: self.summary.rows,
            batches: self.summary.batches,
            bytes: ended.bytes,
            digest: ended.digest,
        };
        let operation = Arc::clone(self.unfinished.operation());
        let claim = async move { claim(&operation, &ended.trailers).await };
        self.proving = Some(Proving {
            read,
            claim: claim.boxed(),
        });
        self.items = None;
    }

    fn end(&mut self, claim: &Claim, read: &Totals) -> Poll<Option<Result<RecordBatch>>> {
        if let Err(error) = claim.check(read) {
            return self.fail(error);
        }
        self.summary.truncated = claim.truncated;
        self.summary.complete = true;
        self.unfinished.set_over();
        self.proving = None;
        Poll::Ready(None)
    }
}

impl Stream for ResultStream {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.items.is_none() && self.proving.is_none() {
            return Poll::Ready(None);
        }
        if self.cancelled.poll_unpin(cx).is_ready() {
            // What is still on its way would be read and decoded for nobody.
            let error = Error::new(ErrorKind::Cancelled, "the statement was cancelled");
            return self.fail(error);
        }
        loop {
            if let Some(proving) = &mut self.proving {
                let claim = ready!(proving.claim.poll_unpin(cx));
                let read = proving.read;
                return match claim {
                    Ok(claim) => self.end(&claim, &read),
                    Err(error) => self.fail(error),
                };
            }
            let Some(items) = &mut self.items else {
                return Poll::Ready(None);
            };
            match ready!(items.poll_next_unpin(cx)) {
                Some(Ok(Item::Batch(batch))) => {
                    self.note(&batch);
                    return Poll::Ready(Some(Ok(batch)));
                }
                Some(Ok(Item::Dictionary)) => {}
                Some(Ok(Item::End(ended))) => self.begin_proof(ended),
                Some(Err(error)) => return self.fail(error),
                None => return self.fail(Error::incomplete("the result has no end")),
            }
        }
    }
}

impl std::fmt::Debug for ResultStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ResultStream")
            .field("operation", &self.operation_id())
            .field("schema", &self.schema)
            .field("summary", &self.summary())
            .finish_non_exhaustive()
    }
}

/// Batches in their order, and the end; nothing after an error.
fn items(reader: Reader, decoding: Decoding) -> BoxStream<'static, Result<Item>> {
    let steps = stream::unfold(Some((reader, decoding)), |state| async move {
        let (mut reader, mut decoding) = state?;
        let (step, state) = match reader.next().await {
            Ok(Next::Message(message)) => {
                let step = decoding.decode(message).map(item).boxed();
                (step, Some((reader, decoding)))
            }
            Ok(Next::End(ended)) => (future::ready(Ok(Item::End(ended))).boxed(), None),
            Err(error) => (future::ready(Err(error)).boxed(), None),
        };
        Some((step, state))
    });
    steps.buffered(LOOK_AHEAD).boxed()
}

fn item(decoded: Result<Option<RecordBatch>>) -> Result<Item> {
    decoded.map(|batch| batch.map_or(Item::Dictionary, Item::Batch))
}

/// What the gateway says it sent: in the trailers, or by its verdict where those did not come.
async fn claim(operation: &Operation, trailers: &HeaderMap) -> Result<Claim> {
    if let Some(claim) = Claim::of_trailers(trailers)? {
        return Ok(claim);
    }
    let report = operation.verdict().await.map_err(|error| {
        Error::incomplete(format!("there is no proof of the result: {error}")).with_source(error)
    })?;
    Claim::of_report(&report)
}

fn expect_arrow<T>(response: &Response<T>) -> Result<()> {
    let value = response
        .headers()
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok());
    let essence = value
        .unwrap_or_default()
        .split(';')
        .next()
        .unwrap_or_default()
        .trim();
    if essence.eq_ignore_ascii_case(media::ARROW) {
        return Ok(());
    }
    Err(Error::protocol(format!(
        "the result is {essence:?} and not {}",
        media::ARROW
    )))
}
