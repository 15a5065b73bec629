//! The gateway's own answers as rows: settings, the delivery report, the client. They travel the
//! same way as an engine's rows. Must not know who asked.

use std::sync::Arc;
use std::time::Duration;

use arrow_array::{ArrayRef, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use futures::{StreamExt, stream};

use crate::client::Client;
use crate::delivery::Report;
use crate::engine::{Execution, Output};
use crate::error::{Error, ErrorKind, Result};
use crate::settings::{Chosen, Reset, Row};

/// `SET`, `SHOW` and `RESET` answer with these rows; `verbose` adds where a value comes from.
pub(crate) fn settings(rows: &[Row], verbose: bool) -> Result<Execution> {
    let column = |name, text: fn(&Row) -> &str| (name, rows.iter().map(text).collect::<Vec<_>>());
    let mut columns = vec![
        column("key", |row| &row.key),
        column("value", |row| &row.value),
    ];
    if verbose {
        columns.push(column("effective", |row| &row.effective));
        columns.push(column("default", |row| &row.default));
        columns.push(column("source", |row| row.source.name()));
        columns.push(column("description", |row| &row.description));
    }
    table(columns)
}

/// What `RESET` skipped, as rows; none when it skipped nothing.
pub(crate) fn reset(reset: &Reset) -> Result<Execution> {
    let keys = reset.skipped.iter().map(String::as_str).collect();
    let notes = reset
        .skipped
        .iter()
        .map(|_| "restricted by the administrator: kept as it is")
        .collect();
    table(vec![("key", keys), ("value", notes)])
}

/// Names and values.
pub(crate) fn pairs(pairs: &[(&str, String)]) -> Result<Execution> {
    let keys = pairs.iter().map(|(key, _)| *key).collect();
    table(vec![
        ("key", keys),
        (
            "value",
            pairs.iter().map(|(_, value)| value.as_str()).collect(),
        ),
    ])
}

/// The delivery report, a row a figure. Times in milliseconds, sizes in bytes.
pub(crate) fn delivery(report: &Report) -> Result<Execution> {
    let ratio = match report.bytes_encoded {
        0 => "".to_owned(),
        encoded => format!("{:.2}", report.bytes_raw as f64 / encoded as f64),
    };
    pairs(&[
        ("operation", report.operation.to_string()),
        ("verdict", report.verdict.name().to_owned()),
        (
            "error",
            report
                .error
                .as_ref()
                .map_or_else(String::new, ToString::to_string),
        ),
        ("codec", report.codec.to_string()),
        (
            "level",
            report
                .level
                .map_or_else(String::new, |level| level.to_string()),
        ),
        ("rows", report.rows.to_string()),
        ("truncated", report.truncated.to_string()),
        ("batches from engine", report.batches_in.to_string()),
        ("batches sent", report.batches_out.to_string()),
        ("bytes from engine", report.bytes_engine.to_string()),
        ("bytes before encoding", report.bytes_raw.to_string()),
        ("bytes after encoding", report.bytes_encoded.to_string()),
        ("bytes sent", report.bytes_sent.to_string()),
        ("ratio", ratio),
        ("time total ms", milliseconds(report.time_total)),
        ("time engine ms", milliseconds(report.time_engine)),
        ("time codec ms", milliseconds(report.time_codec)),
        ("time network ms", milliseconds(report.time_network)),
        ("cpu codec ms", milliseconds(report.cpu_codec)),
        (
            "first row ms",
            report.first_row.map_or_else(String::new, milliseconds),
        ),
        ("peak memory bytes", report.peak_memory.to_string()),
        ("digest", format!("{:016x}", report.digest)),
    ])
}

/// What was recognised of the client, and what it gets.
pub(crate) fn client(client: &Client, chosen: &Chosen) -> Result<Execution> {
    pairs(&[
        ("name", client.name.clone()),
        ("reads lz4", client.lz4.name().to_owned()),
        ("reads zstd", client.zstd.name().to_owned()),
        ("reads dictionaries", client.dictionaries.name().to_owned()),
        ("reads views", client.views.name().to_owned()),
        (
            "prefers codec",
            client
                .preferred
                .map_or_else(String::new, |codec| codec.to_string()),
        ),
        ("gets codec", chosen.codec.to_string()),
        ("because", chosen.why.to_string()),
    ])
}

fn milliseconds(time: Duration) -> String {
    format!("{:.3}", time.as_secs_f64() * 1e3)
}

fn table(columns: Vec<(&str, Vec<&str>)>) -> Result<Execution> {
    let fields: Vec<_> = columns
        .iter()
        .map(|(name, _)| Field::new(*name, DataType::Utf8, false))
        .collect();
    let schema = Arc::new(Schema::new(fields));
    let arrays = columns
        .into_iter()
        .map(|(_, texts)| Arc::new(StringArray::from(texts)) as ArrayRef)
        .collect();
    let batch = RecordBatch::try_new(Arc::clone(&schema), arrays).map_err(|cause| {
        Error::new(ErrorKind::Internal, "the answer could not be put together").with_cause(cause)
    })?;
    Ok(Execution {
        schema,
        output: Output::Batches(stream::iter([Ok(batch)]).boxed()),
    })
}
