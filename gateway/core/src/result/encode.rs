//! Encoding on the processor pool, in order, with a bounded look-ahead: while one batch is on the
//! wire the next ones are compressed and the one after is asked of the engine.
//! Must not know how messages are framed.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use futures::future::{self, BoxFuture};
use futures::stream::FuturesOrdered;
use futures::{FutureExt, Stream, StreamExt};
use sluice_ipc::{Encoded, Encoder, Pool};

use super::shape::{Shape, Shaped};
use crate::delivery::Meter;
use crate::error::{Error, ErrorKind, Result};

/// A batch up to this size is encoded on the spot: handing it over would cost more.
const INLINE_BYTES: u64 = 32 * 1024;

/// What encoding needs besides the batches.
pub(super) struct Means {
    pub(super) encoder: Arc<Encoder>,
    pub(super) pool: Arc<Pool>,
    /// Whose work it is, for the pool's fairness.
    pub(super) tenant: u64,
    /// Bytes that may be held at one time, before and after encoding.
    pub(super) budget: u64,
    pub(super) meter: Arc<Meter>,
}

/// The stage that encodes.
pub(crate) struct Encode {
    /// Gone after the last batch.
    batches: Option<Shape>,
    means: Means,
    /// Raw bytes of the batches that wait or are being encoded.
    held: u64,
    jobs: FuturesOrdered<BoxFuture<'static, Result<Done>>>,
    ready: VecDeque<Encoded>,
    /// An error that comes after the batches that are being encoded.
    failure: Option<Error>,
}

struct Done {
    messages: Vec<Encoded>,
    bytes: u64,
}

impl Encode {
    pub(super) fn new(batches: Shape, means: Means) -> Self {
        Self {
            batches: Some(batches),
            means,
            held: 0,
            jobs: FuturesOrdered::new(),
            ready: VecDeque::new(),
            failure: None,
        }
    }

    /// Whether encoding, and not the engine, is what a caller waits for.
    pub(super) fn is_busy(&self) -> bool {
        !self.jobs.is_empty()
    }

    /// Whether the engine has given its last batch.
    pub(super) fn engine_is_done(&self) -> bool {
        self.batches.is_none()
    }

    fn fill(&mut self, cx: &mut Context<'_>) {
        // One job a thread, and one more that waits, keep all threads busy.
        let most = self.means.pool.threads() + 1;
        while self.jobs.len() < most && (self.jobs.is_empty() || self.held < self.means.budget) {
            let Some(batches) = &mut self.batches else {
                return;
            };
            match batches.poll_next_unpin(cx) {
                Poll::Ready(Some(Ok(shaped))) => self.start(shaped),
                Poll::Ready(Some(Err(error))) => {
                    self.failure = Some(error);
                    self.batches = None;
                }
                Poll::Ready(None) => self.batches = None,
                Poll::Pending => return,
            }
        }
    }

    fn start(&mut self, shaped: Shaped) {
        let bytes = shaped.bytes;
        self.held += bytes;
        self.means.meter.hold(bytes);
        self.means.meter.bytes_raw.add(bytes);
        let encoder = Arc::clone(&self.means.encoder);
        let meter = Arc::clone(&self.means.meter);
        let job = move || {
            let begun = Instant::now();
            let messages = encoder.encode(&shaped.batch).map_err(unencodable);
            meter
                .cpu_codec_nanos
                .add(u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX));
            messages.map(|messages| Done { messages, bytes })
        };
        self.jobs.push_back(if bytes <= INLINE_BYTES {
            future::ready(job()).boxed()
        } else {
            self.means
                .pool
                .run(self.means.tenant, job)
                .map(|ran| ran.unwrap_or_else(|_| Err(broken())))
                .boxed()
        });
    }
}

impl Stream for Encode {
    type Item = Result<Encoded>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        loop {
            if let Some(message) = this.ready.pop_front() {
                return Poll::Ready(Some(Ok(message)));
            }
            this.fill(cx);
            match this.jobs.poll_next_unpin(cx) {
                Poll::Ready(Some(done)) => match done {
                    Ok(done) => {
                        this.held -= done.bytes;
                        this.means.meter.release(done.bytes);
                        this.ready.extend(done.messages);
                    }
                    Err(error) => {
                        this.batches = None;
                        this.jobs = FuturesOrdered::new();
                        return Poll::Ready(Some(Err(error)));
                    }
                },
                Poll::Ready(None) => match this.failure.take() {
                    Some(error) => return Poll::Ready(Some(Err(error))),
                    None if this.batches.is_none() => return Poll::Ready(None),
                    None => return Poll::Pending,
                },
                Poll::Pending => return Poll::Pending,
            }
        }
    }
}

fn unencodable(cause: sluice_ipc::Error) -> Error {
    Error::new(
        ErrorKind::Engine,
        format!("a batch cannot be encoded: {cause}"),
    )
    .with_cause(cause)
}

fn broken() -> Error {
    Error::new(ErrorKind::Internal, "encoding a batch failed unexpectedly")
}
