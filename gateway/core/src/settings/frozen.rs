//! What an operation takes of its session's settings when it starts. Later changes do not reach
//! it. Must not know the session.

use std::time::Duration;

use sluice_ipc::Codec;

use super::negotiate::{Chosen, choose};
use super::registry::Id;
use super::value::{CodecWish, ResultFormat, Value};
use crate::client::Client;

/// Settings of one operation, typed.
#[derive(Clone, Debug, PartialEq)]
pub struct Frozen {
    /// The codec that the connection or the session asked for.
    pub codec: Option<Codec>,
    /// The codec of the user's or the server's defaults.
    pub default_codec: Codec,
    /// The level of zstd: -7 to 22, not 0.
    pub level: i32,
    /// Most rows in a batch; `None`: no ceiling.
    pub max_records_per_batch: Option<usize>,
    /// Most bytes in a batch before compression.
    pub max_bytes_per_batch: u64,
    /// Most rows of a result; 0: no bound.
    pub max_rows: u64,
    /// Longest time of an operation.
    pub timeout: Option<Duration>,
    /// IANA zone or `±HH:MM`.
    pub time_zone: String,
    /// The engine's name, if the session or a default chose one.
    pub engine: Option<String>,
    /// Form of rows over HiveServer2.
    pub result_format: ResultFormat,
}

/// The registry's own defaults; a test holds the two against each other.
impl Default for Frozen {
    fn default() -> Self {
        Self {
            codec: None,
            default_codec: Codec::None,
            level: 3,
            max_records_per_batch: Some(65_536),
            max_bytes_per_batch: 8 << 20,
            max_rows: 0,
            timeout: None,
            time_zone: "UTC".to_owned(),
            engine: None,
            result_format: ResultFormat::Thrift,
        }
    }
}

impl Frozen {
    /// The codec that `client` gets under these settings.
    pub fn choose_codec(&self, client: &Client) -> Chosen {
        choose(self.codec, client, self.default_codec)
    }

    /// Takes over one value. `is_explicit`: the connection or the session asked for it.
    /// `row_ceiling` is what the administrator allows in a batch.
    pub(crate) fn take(
        &mut self,
        id: Id,
        value: Value,
        is_explicit: bool,
        row_ceiling: Option<i64>,
    ) {
        match (id, value) {
            (Id::Codec, Value::Codec(wish)) => self.take_codec(wish, is_explicit),
            (Id::Level, Value::Level(level)) => self.level = level,
            (Id::BatchRows, Value::BatchRows(rows)) => {
                let rows = if rows > 0 { Some(rows) } else { row_ceiling };
                let rows = rows.map(|rows| usize::try_from(rows).unwrap_or(usize::MAX));
                self.max_records_per_batch = rows;
            }
            (Id::BatchBytes, Value::Bytes(bytes)) => self.max_bytes_per_batch = bytes,
            (Id::MaxRows, Value::RowBound(rows)) => self.max_rows = rows,
            (Id::Format, Value::Format(format)) => self.result_format = format,
            (Id::Timeout, Value::Duration(timeout)) => {
                self.timeout = (!timeout.is_zero()).then_some(timeout);
            }
            (Id::TimeZone, Value::TimeZone(zone)) => self.time_zone = zone,
            (Id::Engine, Value::Name(engine)) => self.engine = Some(engine),
            // The registry gives every key one type, and a test sets each of them.
            (id, value) => debug_assert!(false, "{id:?} cannot be {value:?}"),
        }
    }

    fn take_codec(&mut self, wish: CodecWish, is_explicit: bool) {
        match is_explicit {
            true => self.codec = Some(wish.codec()),
            false => self.default_codec = wish.codec(),
        }
    }
}
