//! Buffers to a message: compressed one by one into the place where they stay, and described by
//! metadata that is built around them. Owns alignment and the flatbuffers of batches; must not know
//! arrays.

use arrow_ipc::{
    BodyCompression, BodyCompressionArgs, BodyCompressionMethod, Buffer as FbBuffer,
    CompressionType, DictionaryBatch, DictionaryBatchArgs, FieldNode, Message as FbMessage,
    MessageArgs, MessageHeader, MetadataVersion, RecordBatch as FbRecordBatch, RecordBatchArgs,
};
use bytes::Bytes;
use flatbuffers::{FlatBufferBuilder, UnionWIPOffset, WIPOffset};

use crate::codec::{Compression, compress};
use crate::error::Result;
use crate::layout::Plain;
use crate::message::{Codec, Encoded};

/// What buffers begin at a multiple of. 64 would allow wider loads without a copy, but costs more
/// than compression gains on small batches.
const ALIGNMENT: usize = 8;

/// Writes the message of a record batch.
pub(crate) fn record_batch(plain: &Plain, compression: Compression) -> Result<Encoded> {
    message(plain, compression, None)
}

/// Writes the message of a dictionary that replaces the one before it.
pub(crate) fn dictionary(plain: &Plain, id: i64, compression: Compression) -> Result<Encoded> {
    message(plain, compression, Some(id))
}

fn message(plain: &Plain, compression: Compression, dictionary: Option<i64>) -> Result<Encoded> {
    let (body, buffers) = body(plain, compression)?;
    let mut builder =
        FlatBufferBuilder::with_capacity(256 + 16 * (plain.nodes.len() + buffers.len()));
    let batch = batch(&mut builder, plain, &buffers, compression.codec);
    let (header_type, header) = match dictionary {
        None => (MessageHeader::RecordBatch, batch.as_union_value()),
        Some(id) => (
            MessageHeader::DictionaryBatch,
            replacing(&mut builder, id, batch),
        ),
    };
    let message = FbMessage::create(
        &mut builder,
        &MessageArgs {
            version: MetadataVersion::V5,
            header_type,
            header: Some(header),
            bodyLength: body.len() as i64,
            custom_metadata: None,
        },
    );
    builder.finish(message, None);
    Ok(Encoded {
        header: padded(builder.finished_data()),
        body: body.into(),
        rows: if dictionary.is_none() {
            plain.rows as u64
        } else {
            0
        },
        codec: compression.codec,
    })
}

fn body(plain: &Plain, compression: Compression) -> Result<(Vec<u8>, Vec<FbBuffer>)> {
    let raw: usize = plain
        .buffers
        .iter()
        .map(|buffer| buffer.len().next_multiple_of(ALIGNMENT))
        .sum();
    let mut body = Vec::with_capacity(if compression.codec == Codec::None {
        raw
    } else {
        raw / 2
    });
    let mut buffers = Vec::with_capacity(plain.buffers.len());
    for buffer in &plain.buffers {
        let start = body.len();
        compress(buffer, compression, &mut body)?;
        buffers.push(FbBuffer::new(start as i64, (body.len() - start) as i64));
        body.resize(body.len().next_multiple_of(ALIGNMENT), 0);
    }
    // What was set aside for buffers that became smaller is given back.
    body.shrink_to_fit();
    Ok((body, buffers))
}

fn batch<'a>(
    builder: &mut FlatBufferBuilder<'a>,
    plain: &Plain,
    buffers: &[FbBuffer],
    codec: Codec,
) -> WIPOffset<FbRecordBatch<'a>> {
    let node = |(length, nulls): &(usize, usize)| FieldNode::new(*length as i64, *nulls as i64);
    let nodes: Vec<FieldNode> = plain.nodes.iter().map(node).collect();
    let nodes = builder.create_vector(&nodes);
    let buffers = builder.create_vector(buffers);
    let variadic = (!plain.variadic.is_empty()).then(|| {
        let counts: Vec<i64> = plain.variadic.iter().map(|count| *count as i64).collect();
        builder.create_vector(&counts)
    });
    let codec = match codec {
        Codec::None => None,
        Codec::Lz4 => Some(CompressionType::LZ4_FRAME),
        Codec::Zstd => Some(CompressionType::ZSTD),
    };
    let compression = codec.map(|codec| {
        let arguments = BodyCompressionArgs {
            codec,
            method: BodyCompressionMethod::BUFFER,
        };
        BodyCompression::create(builder, &arguments)
    });
    FbRecordBatch::create(
        builder,
        &RecordBatchArgs {
            length: plain.rows as i64,
            nodes: Some(nodes),
            buffers: Some(buffers),
            compression,
            variadicBufferCounts: variadic,
        },
    )
}

fn replacing<'a>(
    builder: &mut FlatBufferBuilder<'a>,
    id: i64,
    values: WIPOffset<FbRecordBatch<'a>>,
) -> WIPOffset<UnionWIPOffset> {
    let arguments = DictionaryBatchArgs {
        id,
        data: Some(values),
        isDelta: false,
    };
    DictionaryBatch::create(builder, &arguments).as_union_value()
}

/// A header of which length and prefix together are a multiple of 8.
pub(crate) fn padded(header: &[u8]) -> Bytes {
    let mut bytes = Vec::with_capacity(header.len().next_multiple_of(ALIGNMENT));
    bytes.extend_from_slice(header);
    bytes.resize(header.len().next_multiple_of(ALIGNMENT), 0);
    bytes.into()
}
