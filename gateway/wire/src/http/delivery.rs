//! The delivery report: how a result travelled.

use serde::{Deserialize, Serialize};

use super::error::ErrorDetail;

/// Names of verdicts.
#[allow(missing_docs)]
pub mod verdict {
    /// Nobody has asked for the rows yet.
    pub const PENDING: &str = "pending";
    pub const STREAMING: &str = "streaming";
    /// Every row was handed over.
    pub const COMPLETE: &str = "complete";
    pub const FAILED: &str = "failed";
    pub const CANCELLED: &str = "cancelled";
}

/// `GET /operations/{operation}/delivery`. Sizes are bytes, times milliseconds.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DeliveryReport {
    /// The operation that is reported on.
    pub operation_id: String,
    /// One of [`verdict`].
    pub verdict: String,
    /// What ended it, when that was an error.
    #[serde(default)]
    pub error: Option<ErrorDetail>,
    /// Rows handed over.
    pub rows: u64,
    /// Batches that the engine gave.
    pub batches_in: u64,
    /// Batches handed over.
    pub batches_out: u64,
    /// Bytes of the engine's batches, as Arrow holds their rows.
    pub bytes_engine: u64,
    /// Bytes of the messages before compression.
    pub bytes_raw: u64,
    /// Bytes of the messages handed over: metadata and bodies, without framing.
    pub bytes_encoded: u64,
    /// Bytes written to the body, framing included, TLS and HTTP excluded.
    pub bytes_sent: u64,
    /// `bytesRaw` by `bytesEncoded`; null when nothing was encoded.
    pub ratio: Option<f64>,
    /// The chained xxh3-64 of [`super::headers::DIGEST`], 16 hexadecimal digits.
    pub digest: String,
    /// Whether rows were left out because of a bound on rows.
    pub truncated: bool,
    /// `none`, `lz4` or `zstd`.
    pub codec: String,
    /// The level, for codecs that have one.
    pub level: Option<i32>,
    /// From the start of the statement to its end, or to now.
    pub time_total: f64,
    /// Waiting for the engine.
    pub time_engine: f64,
    /// Waiting for compression.
    pub time_codec: f64,
    /// Waiting for the client.
    pub time_network: f64,
    /// Processor time spent on encoding, over all threads.
    pub cpu_codec: f64,
    /// From the start of the statement to the first batch.
    pub first_row: Option<f64>,
    /// The most bytes that were held at one time between engine and front end.
    pub peak_memory: u64,
}
