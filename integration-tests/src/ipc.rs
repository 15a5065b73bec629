//! What is in the bytes of an Arrow IPC stream, message by message, as a reader finds it that
//! shares no code with the gateway. Owns the walk over the framing and the checks on a whole
//! result. Must not know how the bytes came.

use std::io::Cursor;

use arrow_array::RecordBatch;
use arrow_ipc::reader::StreamReader;
use arrow_ipc::{CompressionType, MessageHeader, root_as_message};
use arrow_schema::SchemaRef;
use bytes::Bytes;
use sluice_ipc::Codec;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// What a message is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[allow(missing_docs)]
pub enum Kind {
    Schema,
    Dictionary,
    Batch,
}

/// One message.
#[derive(Clone, Debug)]
pub struct Part {
    /// What it is.
    pub kind: Kind,
    /// The flatbuffer.
    pub header: Bytes,
    /// What it describes.
    pub body: Bytes,
    /// Rows of a batch, 0 otherwise.
    pub rows: u64,
    /// How its buffers are compressed.
    pub codec: Codec,
}

/// A stream in its messages.
#[derive(Clone, Debug)]
pub struct Parts {
    /// In their order.
    pub messages: Vec<Part>,
    /// Whether the end marker came, with nothing after it.
    pub ended: bool,
}

impl Parts {
    /// Takes `bytes` apart.
    ///
    /// # Errors
    /// What is wrong, also for a message that is cut off.
    pub fn of(bytes: &Bytes) -> Result<Self, String> {
        let (mut at, mut parts) = (
            0,
            Self {
                messages: Vec::new(),
                ended: false,
            },
        );
        while at < bytes.len() {
            let word = |from: usize| {
                bytes
                    .get(from..from + 4)
                    .and_then(|word| <[u8; 4]>::try_from(word).ok())
            };
            if word(at) != Some([0xff; 4]) {
                return Err(format!("no continuation marker at {at} of {}", bytes.len()));
            }
            let length = u32::from_le_bytes(word(at + 4).ok_or("cut off in a length")?) as usize;
            at += 8;
            if length == 0 {
                parts.ended = at == bytes.len();
                return if parts.ended {
                    Ok(parts)
                } else {
                    Err("bytes after the end marker".to_owned())
                };
            }
            if at + length > bytes.len() {
                return Err("cut off in a header".to_owned());
            }
            let header = bytes.slice(at..at + length);
            at += length;
            let body = body_length(&header)?;
            if at + body > bytes.len() {
                return Err("cut off in a body".to_owned());
            }
            parts
                .messages
                .push(part(header, bytes.slice(at..at + body))?);
            at += body;
        }
        Ok(parts)
    }

    /// Rows of all batches.
    pub fn rows(&self) -> u64 {
        self.messages.iter().map(|part| part.rows).sum()
    }

    /// The messages that bring rows.
    pub fn batches(&self) -> impl Iterator<Item = &Part> {
        self.messages.iter().filter(|part| part.kind == Kind::Batch)
    }

    /// The hash that the gateway announces: xxh3-64 over header and body, chained by the seed.
    pub fn digest(&self) -> u64 {
        self.messages.iter().fold(0, |seed, part| {
            xxh3_64_with_seed(&[&part.header[..], &part.body[..]].concat(), seed)
        })
    }
}

fn body_length(header: &[u8]) -> Result<usize, String> {
    let message =
        root_as_message(header).map_err(|wrong| format!("a header is no flatbuffer: {wrong}"))?;
    usize::try_from(message.bodyLength()).map_err(|_| "a body length is negative".to_owned())
}

fn part(header: Bytes, body: Bytes) -> Result<Part, String> {
    let message = root_as_message(&header).map_err(|wrong| wrong.to_string())?;
    let (kind, batch) = match message.header_type() {
        MessageHeader::Schema => (Kind::Schema, None),
        MessageHeader::DictionaryBatch => (
            Kind::Dictionary,
            message
                .header_as_dictionary_batch()
                .and_then(|dictionary| dictionary.data()),
        ),
        MessageHeader::RecordBatch => (Kind::Batch, message.header_as_record_batch()),
        other => return Err(format!("a message of type {other:?}")),
    };
    let codec = match batch
        .and_then(|batch| batch.compression())
        .map(|compression| compression.codec())
    {
        None => Codec::None,
        Some(CompressionType::ZSTD) => Codec::Zstd,
        Some(_) => Codec::Lz4,
    };
    let rows = batch
        .filter(|_| kind == Kind::Batch)
        .map_or(0, |batch| batch.length());
    let rows = u64::try_from(rows).map_err(|_| "a row count is negative")?;
    Ok(Part {
        kind,
        header: header.clone(),
        body,
        rows,
        codec,
    })
}

/// Reads a whole stream with arrow-rs's reader.
///
/// # Errors
/// What the reader says.
pub fn read(bytes: &[u8]) -> Result<(SchemaRef, Vec<RecordBatch>), String> {
    let reader =
        StreamReader::try_new(Cursor::new(bytes), None).map_err(|wrong| wrong.to_string())?;
    let schema = reader.schema();
    let batches = reader
        .collect::<Result<Vec<_>, _>>()
        .map_err(|wrong| wrong.to_string())?;
    Ok((schema, batches))
}
