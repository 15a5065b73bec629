//! From the core's values to the bodies of answers. Must not know requests.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sluice_core::delivery::{Report, Verdict};
use sluice_core::operation::{Operation, State};
use sluice_core::session::Session;
use sluice_core::settings::Source;
use sluice_wire::http::{
    DeliveryReport, OperationData, OperationEvent, SessionData, SessionEvent, state, verdict,
};

use super::error::detail;

/// The only kind of session that there is.
const INTERACTIVE: &str = "INTERACTIVE";

/// Milliseconds since 1970.
pub(super) fn since_epoch(time: SystemTime) -> u64 {
    milliseconds(time.duration_since(UNIX_EPOCH).unwrap_or_default())
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn fractional(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// A session in a list.
pub(super) fn session_data(session: &Session, instance: &str) -> SessionData {
    SessionData {
        identifier: session.id().to_string(),
        user: session.user().to_owned(),
        ip_addr: session.peer().map(|peer| peer.to_string()),
        conf: given(session),
        create_time: since_epoch(session.created()),
        duration: milliseconds(session.created().elapsed().unwrap_or_default()),
        idle_time: milliseconds(session.idle()),
        exception: None,
        session_type: INTERACTIVE.to_owned(),
        kyuubi_instance: instance.to_owned(),
        session_name: session.name().map(str::to_owned),
        total_operations: session.operations_seen(),
    }
}

/// A session by itself.
pub(super) fn session_event(session: &Session, instance: &str) -> SessionEvent {
    let created = since_epoch(session.created());
    SessionEvent {
        session_id: session.id().to_string(),
        session_type: INTERACTIVE.to_owned(),
        session_name: session.name().map(str::to_owned),
        user: session.user().to_owned(),
        client_ip: session.peer().map(|peer| peer.to_string()),
        server_ip: instance.to_owned(),
        conf: given(session),
        event_time: since_epoch(SystemTime::now()),
        opened_time: created,
        start_time: created,
        end_time: -1,
        total_operations: session.operations_seen(),
        exception: None,
    }
}

/// What connection and statements set, secrets masked.
fn given(session: &Session) -> BTreeMap<String, String> {
    let rows = session.settings_rows().into_iter();
    let given = rows.filter(|row| matches!(row.source, Source::Connection | Source::Session));
    given.map(|row| (row.key, row.value)).collect()
}

/// Where an operation stands.
pub(super) fn operation_event(operation: &Operation, instance: &str) -> OperationEvent {
    let status = operation.status();
    OperationEvent {
        statement_id: operation.id().to_string(),
        statement: operation.statement().to_owned(),
        state: state_name(status.state).to_owned(),
        event_time: since_epoch(SystemTime::now()),
        create_time: since_epoch(status.created),
        start_time: status.started.map_or(0, since_epoch),
        complete_time: status.completed.map_or(0, since_epoch),
        exception: status.error.as_ref().map(ToString::to_string),
        error: status.error.as_ref().map(detail),
        session_id: operation.session().to_string(),
        session_user: operation.user().to_owned(),
        session_type: INTERACTIVE.to_owned(),
        kyuubi_instance: instance.to_owned(),
        rows: status.rows,
    }
}

/// An operation in a list.
pub(super) fn operation_data(operation: &Operation, instance: &str) -> OperationData {
    let status = operation.status();
    OperationData {
        identifier: operation.id().to_string(),
        statement: operation.statement().to_owned(),
        state: state_name(status.state).to_owned(),
        create_time: Some(since_epoch(status.created)),
        start_time: status.started.map(since_epoch),
        complete_time: status.completed.map(since_epoch),
        exception: status.error.as_ref().map(ToString::to_string),
        session_id: operation.session().to_string(),
        session_user: operation.user().to_owned(),
        session_type: INTERACTIVE.to_owned(),
        kyuubi_instance: instance.to_owned(),
    }
}

fn state_name(state: State) -> &'static str {
    match state {
        State::Pending => state::PENDING,
        State::Running => state::RUNNING,
        State::Finished => state::FINISHED,
        State::Timeout => state::TIMEOUT,
        State::Cancelled => state::CANCELED,
        State::Closed => state::CLOSED,
        State::Error => state::ERROR,
    }
}

/// How a result travelled.
pub(super) fn delivery(report: &Report) -> DeliveryReport {
    let ratio = report.bytes_raw as f64 / report.bytes_encoded as f64;
    DeliveryReport {
        operation_id: report.operation.to_string(),
        verdict: verdict_name(report.verdict).to_owned(),
        error: report.error.as_ref().map(detail),
        rows: report.rows,
        batches_in: report.batches_in,
        batches_out: report.batches_out,
        bytes_engine: report.bytes_engine,
        bytes_raw: report.bytes_raw,
        bytes_encoded: report.bytes_encoded,
        bytes_sent: report.bytes_sent,
        ratio: (report.bytes_encoded > 0).then_some(ratio),
        digest: format!("{:016x}", report.digest),
        truncated: report.truncated,
        codec: report.codec.name().to_owned(),
        level: report.level,
        time_total: fractional(report.time_total),
        time_engine: fractional(report.time_engine),
        time_codec: fractional(report.time_codec),
        time_network: fractional(report.time_network),
        cpu_codec: fractional(report.cpu_codec),
        first_row: report.first_row.map(fractional),
        peak_memory: report.peak_memory,
    }
}

fn verdict_name(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pending => verdict::PENDING,
        Verdict::Streaming => verdict::STREAMING,
        Verdict::Complete => verdict::COMPLETE,
        Verdict::Failed => verdict::FAILED,
        Verdict::Cancelled => verdict::CANCELLED,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_are_called_as_the_core_calls_them() {
        for verdict in [
            Verdict::Pending,
            Verdict::Streaming,
            Verdict::Complete,
            Verdict::Failed,
            Verdict::Cancelled,
        ] {
            assert_eq!(verdict_name(verdict), verdict.name());
        }
    }

    #[test]
    fn times_are_milliseconds() {
        assert_eq!(
            since_epoch(UNIX_EPOCH + Duration::from_micros(1_234_567)),
            1234
        );
        assert_eq!(since_epoch(UNIX_EPOCH - Duration::from_secs(1)), 0);
        assert!((fractional(Duration::from_micros(1500)) - 1.5).abs() < f64::EPSILON);
    }
}
