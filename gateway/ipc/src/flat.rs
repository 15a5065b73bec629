//! The metadata of a message as a flatbuffer: reading it, and writing it again for a new body.
//! Must not know compression or arrays.

use arrow_ipc as format;
use arrow_ipc::{BodyCompressionMethod, CompressionType, MessageHeader, MetadataVersion};
use bytes::Bytes;
use flatbuffers::{FlatBufferBuilder, VerifierOptions};

use crate::error::{Error, Result};
use crate::message::Codec;

/// Schemas of hundreds of thousands of columns verify; the verifier's own default stops earlier.
const VERIFIER: VerifierOptions = VerifierOptions {
    max_depth: 128,
    max_tables: 16_000_000,
    max_apparent_size: 1 << 31,
    ignore_missing_null_terminator: false,
};

/// Reads and verifies the metadata of a message.
pub(crate) fn read(header: &[u8]) -> Result<format::Message<'_>> {
    let message = flatbuffers::root_with_opts::<format::Message<'_>>(&VERIFIER, header)
        .map_err(|error| Error::Message(format!("the metadata is not a valid flatbuffer: {error}")))?;
    match message.version() {
        MetadataVersion::V4 | MetadataVersion::V5 => Ok(message),
        other => Err(Error::Unsupported(format!("metadata version {other:?}; V4 and V5 are read"))),
    }
}

/// The record batch of a message, and the dictionary that it replaces or extends if it is one.
pub(crate) struct Batch<'a> {
    pub(crate) message: format::Message<'a>,
    pub(crate) batch: format::RecordBatch<'a>,
    pub(crate) dictionary: Option<format::DictionaryBatch<'a>>,
}

impl<'a> Batch<'a> {
    /// Reads the metadata of a record batch or a dictionary batch.
    pub(crate) fn read(header: &'a [u8]) -> Result<Self> {
        let message = read(header)?;
        let missing = |what: &str| Error::Message(format!("{what} is missing"));
        match message.header_type() {
            MessageHeader::RecordBatch => {
                let batch = message.header_as_record_batch().ok_or_else(|| missing("the record batch"))?;
                Ok(Self { message, batch, dictionary: None })
            }
            MessageHeader::DictionaryBatch => {
                let dictionary = message.header_as_dictionary_batch().ok_or_else(|| missing("the dictionary batch"))?;
                let batch = dictionary.data().ok_or_else(|| missing("the dictionary's data"))?;
                Ok(Self { message, batch, dictionary: Some(dictionary) })
            }
            other => Err(Error::Message(format!("{} where a batch was to come", other.variant_name().unwrap_or("an unknown kind")))),
        }
    }

    /// How its buffers are compressed.
    pub(crate) fn codec(&self) -> Result<Codec> {
        let Some(compression) = self.batch.compression() else { return Ok(Codec::None) };
        if compression.method() != BodyCompressionMethod::BUFFER {
            return Err(Error::Unsupported(format!("body compression method {:?}", compression.method())));
        }
        match compression.codec() {
            CompressionType::LZ4_FRAME => Ok(Codec::Lz4),
            CompressionType::ZSTD => Ok(Codec::Zstd),
            other => Err(Error::Unsupported(format!("body compression codec {}", other.0))),
        }
    }

    /// The same metadata for a body of `body_length` bytes with `buffers` under `codec`.
    pub(crate) fn write(&self, buffers: &[format::Buffer], body_length: usize, codec: Codec) -> Bytes {
        let mut builder = FlatBufferBuilder::with_capacity(256 + buffers.len() * 40);
        let nodes = self.batch.nodes().map(|nodes| builder.create_vector_from_iter(nodes.iter().copied()));
        let buffers = Some(builder.create_vector(buffers));
        let counts = self.batch.variadicBufferCounts().map(|counts| builder.create_vector_from_iter(counts.iter()));
        let kind = match codec {
            Codec::None => None,
            Codec::Lz4 => Some(CompressionType::LZ4_FRAME),
            Codec::Zstd => Some(CompressionType::ZSTD),
        };
        let compression = kind.map(|codec| {
            let method = BodyCompressionMethod::BUFFER;
            format::BodyCompression::create(&mut builder, &format::BodyCompressionArgs { codec, method })
        });
        let batch = format::RecordBatch::create(
            &mut builder,
            &format::RecordBatchArgs {
                length: self.batch.length(),
                nodes,
                buffers,
                compression,
                variadicBufferCounts: counts,
            },
        );
        let header = match &self.dictionary {
            None => batch.as_union_value(),
            Some(dictionary) => format::DictionaryBatch::create(
                &mut builder,
                &format::DictionaryBatchArgs { id: dictionary.id(), data: Some(batch), isDelta: dictionary.isDelta() },
            )
            .as_union_value(),
        };
        let custom_metadata = self.custom_metadata(&mut builder);
        let message = format::Message::create(
            &mut builder,
            &format::MessageArgs {
                version: self.message.version(),
                header_type: self.message.header_type(),
                header: Some(header),
                // A body is held in memory, so its length fits.
                bodyLength: i64::try_from(body_length).unwrap_or(i64::MAX),
                custom_metadata,
            },
        );
        builder.finish(message, None);
        padded(builder.finished_data())
    }

    fn custom_metadata<'b>(&self, builder: &mut FlatBufferBuilder<'b>) -> Option<CustomMetadata<'b>> {
        let pairs = self.message.custom_metadata()?;
        let pairs: Vec<_> = pairs
            .iter()
            .map(|pair| {
                let key = pair.key().map(|key| builder.create_string(key));
                let value = pair.value().map(|value| builder.create_string(value));
                format::KeyValue::create(builder, &format::KeyValueArgs { key, value })
            })
            .collect();
        Some(builder.create_vector(&pairs))
    }
}

type CustomMetadata<'b> =
    flatbuffers::WIPOffset<flatbuffers::Vector<'b, flatbuffers::ForwardsUOffset<format::KeyValue<'b>>>>;

/// A header with the padding that the stream format asks for, so that it is the same bytes
/// wherever it goes.
pub(crate) fn padded(header: &[u8]) -> Bytes {
    let mut bytes = Vec::with_capacity(header.len().next_multiple_of(8));
    bytes.extend_from_slice(header);
    bytes.resize(header.len().next_multiple_of(8), 0);
    bytes.into()
}
