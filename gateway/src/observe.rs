//! Every metric, span and audit record by name, and the log's set-up. Must not steer anything:
//! it is told what happened.
//!
//! Labels take values from short fixed lists only, never from what a client sent.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use async_trait::async_trait;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Metric, Registry, Unit};
use sluice_core::auth::{Authenticator, Credentials, Identity};
use sluice_core::delivery::Report;
use sluice_core::error::{Error, ErrorKind, Result};
use sluice_core::operation::Operation;
use sluice_core::service::Observer;
use sluice_core::session::Session;
use tracing::{debug, info, warn};
use tracing_subscriber::EnvFilter;

/// Target of records about who did what: kept when the rest of the log is filtered away.
const AUDIT: &str = "sluice::audit";

/// Media type of [`Metrics::text`].
pub const METRICS_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// How the log is written.
#[derive(Clone, Debug, PartialEq)]
pub struct LogConfig {
    /// For people or for machines.
    pub format: LogFormat,
    /// Levels by target, as `tracing-subscriber` reads them.
    pub filter: String,
}

/// The form of a log line.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[allow(missing_docs)]
pub enum LogFormat {
    Json,
    Text,
}

/// Whether `filter` can be read.
///
/// # Errors
/// What is wrong with it.
pub fn check_filter(filter: &str) -> std::result::Result<(), String> {
    EnvFilter::try_new(filter)
        .map(drop)
        .map_err(|error| error.to_string())
}

/// Writes the log to standard error from now on. Only the first call has an effect.
pub fn start_log(config: &LogConfig) {
    let filter = EnvFilter::try_new(&config.filter).unwrap_or_else(|_| EnvFilter::new("info"));
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr);
    // A second subscriber is refused, which is what a test that starts two gateways wants.
    let _ = match config.format {
        LogFormat::Json => builder
            .json()
            .flatten_event(true)
            .with_current_span(false)
            .try_init(),
        LogFormat::Text => builder
            .with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()))
            .try_init(),
    };
}

type Label<const N: usize> = [(&'static str, &'static str); N];

/// The metrics of one gateway.
pub struct Metrics {
    registry: Registry,
    sessions: Gauge,
    sessions_opened: Counter,
    operations: Gauge,
    operations_started: Counter,
    operations_ended: Family<Label<2>, Counter>,
    rows: Counter,
    batches: Family<Label<1>, Counter>,
    bytes: Family<Label<2>, Counter>,
    seconds: Family<Label<1>, Counter<f64, AtomicU64>>,
    operation_seconds: Histogram,
    first_row_seconds: Histogram,
    authentications: Family<Label<1>, Counter>,
    reloads: Family<Label<2>, Counter>,
    certificate_end: Gauge,
    connections: Gauge,
    resident: Gauge,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// All metrics at zero.
    pub fn new() -> Self {
        let mut to = Registry::with_prefix("sluice");
        let version = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
        to.register("build", "The version that runs", version);
        Self {
            sessions: add(&mut to, "sessions", "Open sessions"),
            sessions_opened: add(&mut to, "sessions_opened", "Sessions opened so far"),
            operations: add(&mut to, "operations", "Statements that run or stream"),
            operations_started: add(&mut to, "operations_started", "Statements so far"),
            operations_ended: add(&mut to, "operations_ended", "Ended, by verdict and error"),
            rows: add(&mut to, "result_rows", "Rows handed to front ends"),
            batches: add(&mut to, "result_batches", "Batches of results, by side"),
            bytes: add(
                &mut to,
                "result_bytes",
                "Bytes of results, by stage and codec",
            ),
            seconds: add(
                &mut to,
                "wait_seconds",
                "Time of statements, by what it went to",
            ),
            operation_seconds: add_seconds(&mut to, "operation", "Statements, delivery included"),
            first_row_seconds: add_seconds(&mut to, "first_row", "Until the first batch"),
            authentications: add(&mut to, "authentications", "Log-ins, by outcome"),
            reloads: add(&mut to, "reloads", "Files read again, by what and outcome"),
            certificate_end: add(
                &mut to,
                "certificate_end_timestamp_seconds",
                "Its last second",
            ),
            connections: add(&mut to, "connections", "Connections of clients"),
            resident: add(&mut to, "resident_memory_bytes", "Memory of the process"),
            registry: to,
        }
    }

    /// Everything in the text format that Prometheus reads; `connections` are counted elsewhere.
    pub fn text(&self, connections: usize) -> String {
        self.connections
            .set(i64::try_from(connections).unwrap_or(i64::MAX));
        self.resident.set(resident_memory().unwrap_or(0));
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = encode(&mut text, &self.registry);
        text
    }

    /// A file was read again, or not.
    pub fn reloaded(&self, what: &'static str, good: bool) {
        let outcome = if good { "good" } else { "refused" };
        self.reloads
            .get_or_create(&[("what", what), ("outcome", outcome)])
            .inc();
    }

    /// A certificate is in force until then.
    pub fn certificate_ends(&self, timestamp: i64) {
        self.certificate_end.set(timestamp);
    }

    fn count_delivery(&self, report: &Report) {
        let error = report
            .error
            .as_ref()
            .map_or("", |error| error.kind().name());
        let labels = [("verdict", report.verdict.name()), ("error", error)];
        self.operations_ended.get_or_create(&labels).inc();
        self.rows.inc_by(report.rows);
        for (side, batches) in [
            ("engine", report.batches_in),
            ("client", report.batches_out),
        ] {
            self.batches
                .get_or_create(&[("side", side)])
                .inc_by(batches);
        }
        self.count_bytes(report);
        self.count_time(report);
    }

    fn count_bytes(&self, report: &Report) {
        let stages = [
            ("engine", report.bytes_engine),
            ("raw", report.bytes_raw),
            ("encoded", report.bytes_encoded),
            ("sent", report.bytes_sent),
        ];
        for (stage, bytes) in stages {
            let labels = [("stage", stage), ("codec", report.codec.name())];
            self.bytes.get_or_create(&labels).inc_by(bytes);
        }
    }

    fn count_time(&self, report: &Report) {
        let causes = [
            ("engine", report.time_engine),
            ("codec", report.time_codec),
            ("network", report.time_network),
            ("codec_cpu", report.cpu_codec),
        ];
        for (cause, time) in causes {
            let seconds = self.seconds.get_or_create(&[("cause", cause)]);
            seconds.inc_by(time.as_secs_f64());
        }
        self.operation_seconds
            .observe(report.time_total.as_secs_f64());
        if let Some(first) = report.first_row {
            self.first_row_seconds.observe(first.as_secs_f64());
        }
    }
}

/// A metric under `name`, at zero.
fn add<M: Metric + Clone + Default>(to: &mut Registry, name: &str, help: &str) -> M {
    let metric = M::default();
    to.register(name, help, metric.clone());
    metric
}

/// A histogram of seconds, from a millisecond to four minutes.
fn add_seconds(to: &mut Registry, name: &str, help: &str) -> Histogram {
    let metric = Histogram::new(exponential_buckets(0.001, 4.0, 10));
    to.register_with_unit(name, help, Unit::Seconds, metric.clone());
    metric
}

/// Resident set size in bytes, where the system tells it.
fn resident_memory() -> Option<i64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: i64 = line.trim().strip_suffix("kB")?.trim_end().parse().ok()?;
    kibibytes.checked_mul(1024)
}

impl Observer for Metrics {
    fn session_opened(&self, session: &Session) {
        self.sessions.inc();
        self.sessions_opened.inc();
        let client = &session.client().name;
        let peer = session.peer().map(tracing::field::display);
        info!(target: AUDIT, session = %session.id(), user = session.user(), peer, client, "session opened");
    }

    fn session_closed(&self, session: &Session) {
        self.sessions.dec();
        info!(target: AUDIT, session = %session.id(), user = session.user(), "session closed");
    }

    fn operation_started(&self, operation: &Operation) {
        self.operations.inc();
        self.operations_started.inc();
        // The text holds what its author knows: with secrets redacted, and on demand only.
        debug!(target: AUDIT, operation = %operation.id(), user = operation.user(), statement = operation.statement(), "statement");
    }

    fn operation_ended(&self, operation: &Operation, report: &Report) {
        self.operations.dec();
        self.count_delivery(report);
        let error = report.error.as_ref().map(Error::kind);
        info!(
            target: AUDIT,
            operation = %operation.id(),
            session = %operation.session(),
            user = operation.user(),
            verdict = report.verdict.name(),
            error = error.map(ErrorKind::name),
            rows = report.rows,
            batches = report.batches_out,
            bytes_raw = report.bytes_raw,
            bytes_encoded = report.bytes_encoded,
            codec = report.codec.name(),
            level = report.level,
            total_ms = milliseconds(report.time_total),
            engine_ms = milliseconds(report.time_engine),
            codec_ms = milliseconds(report.time_codec),
            network_ms = milliseconds(report.time_network),
            peak_memory = report.peak_memory,
            "statement over"
        );
        if let Some(error) = report.error.as_ref().filter(|error| is_ours(error)) {
            let cause = std::error::Error::source(error).map(ToString::to_string);
            warn!(operation = %operation.id(), kind = error.kind().name(), %error, cause, "statement failed");
        }
    }
}

/// Whether an error is worth a line for who runs the gateway, not just for who sent the statement.
fn is_ours(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::Engine | ErrorKind::Internal | ErrorKind::Overloaded
    )
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// An authenticator whose outcomes are counted and written down.
pub struct Watched {
    inner: Arc<dyn Authenticator>,
    metrics: Arc<Metrics>,
}

impl Watched {
    /// Watches `inner`.
    pub fn new(inner: Arc<dyn Authenticator>, metrics: Arc<Metrics>) -> Self {
        Self { inner, metrics }
    }
}

#[async_trait]
impl Authenticator for Watched {
    async fn authenticate(&self, credentials: &Credentials, peer: IpAddr) -> Result<Identity> {
        let outcome = self.inner.authenticate(credentials, peer).await;
        let word = match outcome.as_ref().map_err(Error::kind) {
            Ok(_) => "good",
            Err(ErrorKind::Unauthenticated) => "refused",
            Err(ErrorKind::Overloaded) => "overloaded",
            Err(_) => "failed",
        };
        self.metrics
            .authentications
            .get_or_create(&[("outcome", word)])
            .inc();
        if let (Err(error), Credentials::Password { user, .. }) = (&outcome, credentials) {
            let user = &user[..user.floor_char_boundary(256)];
            match error.kind() {
                // As many as somebody cares to send: these cost no check, so no line either.
                ErrorKind::Overloaded => {
                    debug!(target: AUDIT, user, %peer, %error, "log-in put off")
                }
                _ => warn!(target: AUDIT, user, %peer, %error, "log-in refused"),
            }
        }
        outcome
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    struct Refuses;

    #[async_trait]
    impl Authenticator for Refuses {
        async fn authenticate(&self, _: &Credentials, _: IpAddr) -> Result<Identity> {
            Err(Error::new(ErrorKind::Unauthenticated, "no"))
        }
    }

    #[tokio::test]
    async fn outcomes_are_counted_without_what_was_sent() {
        let metrics = Arc::new(Metrics::new());
        let watched = Watched::new(Arc::new(Refuses), Arc::clone(&metrics));
        let credentials = Credentials::Password {
            user: "é".repeat(10_000),
            password: "s3cret".to_owned(),
        };
        watched
            .authenticate(&credentials, Ipv4Addr::LOCALHOST.into())
            .await
            .unwrap_err();
        let text = metrics.text(7);
        assert!(
            text.contains("sluice_authentications_total{outcome=\"refused\"} 1\n"),
            "{text}"
        );
        assert!(text.contains("sluice_connections 7\n"), "{text}");
        assert!(!text.contains('é') && !text.contains("s3cret"));
        assert!(text.ends_with("# EOF\n"));
    }

    #[test]
    fn a_filter_is_checked() {
        check_filter("warn,sluice=debug").unwrap();
        assert!(check_filter("sluice=loud").is_err());
    }
}
