//! The delivery report: how a result travelled. Owns the counters of one operation and the
//! snapshot that front ends show. Must not know how a report is written down.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sluice_ipc::Codec;
use tokio::time::Instant;

use crate::error::{Error, ErrorKind};
use crate::handle::Handle;

/// Where the delivery of a result stands.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[allow(missing_docs)]
pub enum Verdict {
    /// Nobody has asked for the rows yet.
    Pending,
    Streaming,
    /// Every row was handed over.
    Complete,
    Failed,
    Cancelled,
}

impl Verdict {
    /// The verdict's stable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Streaming => "streaming",
            Self::Complete => "complete",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    fn is_final(self) -> bool {
        matches!(self, Self::Complete | Self::Failed | Self::Cancelled)
    }
}

/// How one result travelled, as far as it has got.
#[derive(Clone, Debug)]
pub struct Report {
    /// The operation that is reported on.
    pub operation: Handle,
    /// Where the delivery stands.
    pub verdict: Verdict,
    /// What ended it, when that was an error.
    pub error: Option<Error>,
    /// Rows handed to the front end.
    pub rows: u64,
    /// Batches that the engine gave.
    pub batches_in: u64,
    /// Batches handed to the front end.
    pub batches_out: u64,
    /// Bytes of the engine's batches, as Arrow holds their rows.
    pub bytes_engine: u64,
    /// Bytes of the messages before compression.
    pub bytes_raw: u64,
    /// Bytes of the messages handed over: metadata and bodies, without framing.
    pub bytes_encoded: u64,
    /// Bytes that the front end wrote to its body, framing included, TLS and HTTP excluded.
    pub bytes_sent: u64,
    /// xxh3-64 chained over metadata and body of each message, schema first.
    pub digest: u64,
    /// Whether rows were left out because of a bound on rows.
    pub truncated: bool,
    /// How buffers were compressed.
    pub codec: Codec,
    /// The level, for codecs that have one.
    pub level: Option<i32>,
    /// From the start of the statement to its end, or to now.
    pub time_total: Duration,
    /// Waiting for the engine: planning, and rows.
    pub time_engine: Duration,
    /// Waiting for compression, when the engine had already given its rows.
    pub time_codec: Duration,
    /// Waiting for the client to take what was ready.
    pub time_network: Duration,
    /// Processor time spent on encoding, over all threads.
    pub cpu_codec: Duration,
    /// From the start of the statement to the first batch that was handed over.
    pub first_row: Option<Duration>,
    /// The most bytes that were held at one time between engine and front end.
    pub peak_memory: u64,
}

/// What a pipeline waits for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Cause {
    Codec,
    Engine,
    Network,
}

/// The counters of one operation. Written by the stages of its pipeline, read by anybody.
#[derive(Debug)]
pub(crate) struct Meter {
    started: Instant,
    pub(crate) rows: Counter,
    pub(crate) batches_in: Counter,
    pub(crate) batches_out: Counter,
    pub(crate) bytes_engine: Counter,
    pub(crate) bytes_raw: Counter,
    pub(crate) bytes_encoded: Counter,
    pub(crate) bytes_sent: Counter,
    pub(crate) cpu_codec_nanos: Counter,
    held: Counter,
    peak: AtomicU64,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    verdict: Verdict,
    error: Option<Error>,
    digest: u64,
    truncated: bool,
    codec: Codec,
    level: Option<i32>,
    first_row: Option<Duration>,
    ended: Option<Instant>,
    phase: Cause,
    phase_since: Instant,
    engine: Duration,
    codec_wait: Duration,
    network: Duration,
}

impl Meter {
    /// Counters that start now, waiting for the engine.
    pub(crate) fn new() -> Self {
        let now = Instant::now();
        Self {
            started: now,
            rows: Counter::default(),
            batches_in: Counter::default(),
            batches_out: Counter::default(),
            bytes_engine: Counter::default(),
            bytes_raw: Counter::default(),
            bytes_encoded: Counter::default(),
            bytes_sent: Counter::default(),
            cpu_codec_nanos: Counter::default(),
            held: Counter::default(),
            peak: AtomicU64::new(0),
            inner: Mutex::new(Inner {
                verdict: Verdict::Pending,
                error: None,
                digest: 0,
                truncated: false,
                codec: Codec::None,
                level: None,
                first_row: None,
                ended: None,
                phase: Cause::Engine,
                phase_since: now,
                engine: Duration::ZERO,
                codec_wait: Duration::ZERO,
                network: Duration::ZERO,
            }),
        }
    }

    /// From now on the time goes to `cause`.
    pub(crate) fn wait_for(&self, cause: Cause) {
        self.lock().turn(cause, Instant::now());
    }

    /// Says how the rows travel, once that is decided.
    pub(crate) fn begin_streaming(&self, codec: Codec, level: Option<i32>) {
        let mut inner = self.lock();
        inner.verdict = Verdict::Streaming;
        inner.codec = codec;
        inner.level = level;
    }

    /// Notes the hash so far.
    pub(crate) fn set_digest(&self, digest: u64) {
        self.lock().digest = digest;
    }

    /// Notes the moment of the first batch.
    pub(crate) fn note_row(&self) {
        let mut inner = self.lock();
        if inner.first_row.is_none() {
            inner.first_row = Some(self.started.elapsed());
        }
    }

    /// Notes that rows were left out.
    pub(crate) fn set_truncated(&self) {
        self.lock().truncated = true;
    }

    /// Whether rows were left out so far.
    pub(crate) fn truncated(&self) -> bool {
        self.lock().truncated
    }

    /// Ends the report. The first end counts: a drop after an error is not a cancellation.
    pub(crate) fn finish(&self, error: Option<Error>) {
        let now = Instant::now();
        let mut inner = self.lock();
        if inner.verdict.is_final() {
            return;
        }
        inner.turn(Cause::Engine, now);
        inner.ended = Some(now);
        inner.verdict = match &error {
            None => Verdict::Complete,
            Some(error) if error.kind() == ErrorKind::Cancelled => Verdict::Cancelled,
            Some(_) => Verdict::Failed,
        };
        inner.error = error;
    }

    /// Counts bytes that the pipeline holds from now on.
    pub(crate) fn hold(&self, bytes: u64) {
        let held = self.held.add(bytes);
        self.peak.fetch_max(held, Relaxed);
    }

    /// Counts bytes that the pipeline no longer holds.
    pub(crate) fn release(&self, bytes: u64) {
        self.held.0.fetch_sub(bytes, Relaxed);
    }

    /// A snapshot for `operation`.
    pub(crate) fn report(&self, operation: Handle) -> Report {
        let inner = self.lock();
        let now = inner.ended.unwrap_or_else(Instant::now);
        let running = |cause| match inner.ended {
            None if inner.phase == cause => now.duration_since(inner.phase_since),
            _ => Duration::ZERO,
        };
        Report {
            operation,
            verdict: inner.verdict,
            error: inner.error.clone(),
            rows: self.rows.get(),
            batches_in: self.batches_in.get(),
            batches_out: self.batches_out.get(),
            bytes_engine: self.bytes_engine.get(),
            bytes_raw: self.bytes_raw.get(),
            bytes_encoded: self.bytes_encoded.get(),
            bytes_sent: self.bytes_sent.get(),
            digest: inner.digest,
            truncated: inner.truncated,
            codec: inner.codec,
            level: inner.level,
            time_total: now.duration_since(self.started),
            time_engine: inner.engine + running(Cause::Engine),
            time_codec: inner.codec_wait + running(Cause::Codec),
            time_network: inner.network + running(Cause::Network),
            cpu_codec: Duration::from_nanos(self.cpu_codec_nanos.get()),
            first_row: inner.first_row,
            peak_memory: self.peak.load(Relaxed),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Every write leaves the fields consistent, so a panic elsewhere spoils nothing.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn turn(&mut self, cause: Cause, now: Instant) {
        let spent = now.duration_since(self.phase_since);
        match self.phase {
            Cause::Codec => self.codec_wait += spent,
            Cause::Engine => self.engine += spent,
            Cause::Network => self.network += spent,
        }
        self.phase = cause;
        self.phase_since = now;
    }
}

/// A number that only grows, or goes back by what was added.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    /// Adds and returns the new value.
    pub(crate) fn add(&self, amount: u64) -> u64 {
        self.0.fetch_add(amount, Relaxed).wrapping_add(amount)
    }

    /// The value now.
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_three_waits_add_up_to_the_total() {
        let meter = Meter::new();
        tokio::time::advance(Duration::from_millis(30)).await;
        meter.wait_for(Cause::Codec);
        tokio::time::advance(Duration::from_millis(20)).await;
        meter.wait_for(Cause::Network);
        tokio::time::advance(Duration::from_millis(50)).await;
        meter.finish(None);
        tokio::time::advance(Duration::from_secs(9)).await;
        let report = meter.report(Handle::random().unwrap());
        assert_eq!(report.time_engine, Duration::from_millis(30));
        assert_eq!(report.time_codec, Duration::from_millis(20));
        assert_eq!(report.time_network, Duration::from_millis(50));
        assert_eq!(report.time_total, Duration::from_millis(100));
    }

    #[tokio::test]
    async fn the_first_end_counts() {
        let meter = Meter::new();
        meter.finish(Some(Error::new(ErrorKind::Engine, "gone")));
        meter.finish(Some(Error::new(ErrorKind::Cancelled, "dropped")));
        assert_eq!(
            meter.report(Handle::random().unwrap()).verdict,
            Verdict::Failed
        );
    }
}
