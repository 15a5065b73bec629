//! What the tests of this package share: arrays of any type, and streams read by two readers.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used)] // Each test uses its part.

pub mod arrays;

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_ipc::reader::StreamReader;
use arrow_schema::{Field, Schema, SchemaRef};
use bytes::Bytes;
use sluice_ipc::{
    Codec, Compression, Decoder, END_OF_STREAM, Encoded, Encoder, Error, Frame, Frames, Limits,
    Types,
};

pub const NONE: Compression = Compression {
    codec: Codec::None,
    level: 3,
};
pub const LZ4: Compression = Compression {
    codec: Codec::Lz4,
    level: 3,
};
pub const ZSTD: Compression = Compression {
    codec: Codec::Zstd,
    level: 3,
};
pub const CODECS: [Compression; 3] = [NONE, LZ4, ZSTD];

pub const PLAIN: Types = Types {
    dictionaries: false,
    views: false,
};
pub const ALL: Types = Types {
    dictionaries: true,
    views: true,
};

pub fn batch(columns: Vec<ArrayRef>, rows: usize) -> RecordBatch {
    let field = |(place, column): (usize, &ArrayRef)| {
        Field::new(format!("c{place}"), column.data_type().clone(), true)
    };
    let fields: Vec<Field> = columns.iter().enumerate().map(field).collect();
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options).unwrap()
}

pub fn one(column: ArrayRef) -> RecordBatch {
    let rows = column.len();
    batch(vec![column], rows)
}

pub fn encoder(batch: &RecordBatch, types: Types, compression: Compression) -> Encoder {
    Encoder::try_new(&batch.schema(), types, compression).unwrap()
}

pub fn body_len(messages: &[Encoded]) -> usize {
    messages
        .iter()
        .map(|message| message.framed_len() as usize)
        .sum()
}

/// A whole stream of `batches`.
pub fn stream(encoder: &Encoder, batches: &[RecordBatch]) -> Vec<u8> {
    let mut out = Vec::new();
    append(&mut out, &encoder.schema_message());
    for batch in batches {
        encoder
            .encode(batch)
            .unwrap()
            .iter()
            .for_each(|message| append(&mut out, message));
    }
    out.extend_from_slice(&END_OF_STREAM);
    out
}

pub fn append(out: &mut Vec<u8>, message: &Encoded) {
    assert_eq!(message.header.len() % 8, 0);
    assert_eq!(message.body.len() % 8, 0);
    out.extend_from_slice(&message.prefix());
    out.extend_from_slice(&message.header);
    out.extend_from_slice(&message.body);
}

/// Reads a stream that comes in chunks of `chunk` bytes.
pub fn read(stream: &[u8], chunk: usize) -> Result<(SchemaRef, Vec<RecordBatch>), Error> {
    read_within(stream, chunk, Limits::default())
}

pub fn read_within(
    stream: &[u8],
    chunk: usize,
    limits: Limits,
) -> Result<(SchemaRef, Vec<RecordBatch>), Error> {
    let mut frames = Frames::new(limits);
    let mut decoder = Decoder::new(limits);
    let (mut schema, mut batches) = (None, Vec::new());
    for chunk in stream.chunks(chunk) {
        frames.push(Bytes::copy_from_slice(chunk));
        while let Some(frame) = frames.next()? {
            let Frame::Message(message) = frame else {
                continue;
            };
            match schema {
                None => schema = Some(decoder.schema(&message)?),
                Some(_) => batches.extend(decoder.decode(&message)?),
            }
        }
    }
    frames.finish()?;
    Ok((schema.unwrap_or_else(|| Arc::new(Schema::empty())), batches))
}

/// Reads a stream with arrow-rs.
pub fn foreign(stream: &[u8]) -> (SchemaRef, Vec<RecordBatch>) {
    let reader = StreamReader::try_new(stream, None).unwrap();
    let schema = reader.schema();
    (schema, reader.map(Result::unwrap).collect())
}
