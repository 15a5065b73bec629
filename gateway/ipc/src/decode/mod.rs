//! Messages to batches, from a peer that nobody vouches for. Owns the schema and the dictionaries of
//! one stream; must not know where messages come from.

mod arrays;
mod schema;

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_buffer::Buffer;
use arrow_ipc::{
    BodyCompressionMethod, CompressionType, DictionaryBatch, Message as FbMessage, MessageHeader,
    RecordBatch as FbRecordBatch,
};
use arrow_schema::SchemaRef;

use self::arrays::{Means, Source};
use self::schema::{Known, check_version, same};
use crate::error::{Error, Result};
use crate::fields::is_flat;
use crate::frames::{Limits, parse};
use crate::message::{Codec, Message};
use crate::size::array_bytes;

/// Reads the messages of one stream in their order. Whatever they hold, it answers with a batch that
/// is valid in full or with an error, and takes no more memory than its limits say.
#[derive(Debug)]
pub struct Decoder {
    limits: Limits,
    known: Option<Known>,
    /// The values of each dictionary, as of the last message.
    dictionaries: HashMap<i64, ArrayRef>,
}

impl Decoder {
    /// A decoder that stands before the schema.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            known: None,
            dictionaries: HashMap::new(),
        }
    }

    /// A decoder for a stream of which `schema` came by another way.
    pub fn with_schema(limits: Limits, schema: SchemaRef) -> Result<Self> {
        Ok(Self {
            known: Some(Known::given(schema)?),
            ..Self::new(limits)
        })
    }

    /// Reads the message that begins a stream.
    pub fn schema(&mut self, message: &Message) -> Result<SchemaRef> {
        let known = Known::read(&self.parse(message)?)?;
        let schema = Arc::clone(&known.schema);
        self.known = Some(known);
        self.dictionaries.clear();
        Ok(schema)
    }

    /// Reads a message after the schema. Only a record batch gives something.
    pub fn decode(&mut self, message: &Message) -> Result<Option<RecordBatch>> {
        let parsed = self.parse(message)?;
        check_version(parsed.version())?;
        match parsed.header_type() {
            MessageHeader::RecordBatch => self.batch(&parsed, message).map(Some),
            MessageHeader::DictionaryBatch => self.dictionary(&parsed, message).map(|()| None),
            MessageHeader::Schema => self.schema_again(&parsed).map(|()| None),
            other => Err(Error::unsupported(format!("messages of type {other:?}"))),
        }
    }

    fn parse<'a>(&self, message: &'a Message) -> Result<FbMessage<'a>> {
        let (size, limit) = (message.header.len(), self.limits.max_header);
        if size > limit {
            return Err(Error::TooLarge {
                what: "metadata of a message",
                size: size as u64,
                limit: limit as u64,
            });
        }
        let (size, limit) = (message.body.len() as u64, self.limits.max_body);
        if size > limit {
            return Err(Error::TooLarge {
                what: "the body of a message",
                size,
                limit,
            });
        }
        parse(&message.header)
    }

    /// A schema in mid-stream may only repeat the first one.
    fn schema_again(&mut self, parsed: &FbMessage<'_>) -> Result<()> {
        let again = Known::read(parsed)?;
        match &self.known {
            Some(known) if same(&known.schema, &again.schema) => {}
            Some(_) => {
                return Err(Error::header(
                    "schema",
                    "it differs from the one that began the stream",
                ));
            }
            None => {}
        }
        self.known = Some(again);
        Ok(())
    }

    fn batch(&self, parsed: &FbMessage<'_>, message: &Message) -> Result<RecordBatch> {
        const MESSAGE: &str = "record batch";
        let known = self.known()?;
        let batch = parsed
            .header_as_record_batch()
            .ok_or_else(|| Error::header(MESSAGE, "it has none"))?;
        let mut source = self.source(MESSAGE, &batch, parsed, message, &known.ids)?;
        let mut columns = Vec::with_capacity(known.schema.fields().len());
        for field in known.schema.fields() {
            columns.push(source.column(field.name(), field.data_type())?);
        }
        source.finish()?;
        let rows = usize::try_from(batch.length())
            .map_err(|_| Error::header(MESSAGE, format!("it has {} rows", batch.length())))?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        Ok(RecordBatch::try_new_with_options(
            Arc::clone(&known.schema),
            columns,
            &options,
        )?)
    }

    fn dictionary(&mut self, parsed: &FbMessage<'_>, message: &Message) -> Result<()> {
        let (id, values) = self.read_dictionary(parsed, message)?;
        let others = self.dictionaries.iter().filter(|(known, _)| **known != id);
        let held: usize = others
            .map(|(_, values)| values.get_buffer_memory_size())
            .sum();
        let (size, limit) = (
            (held + values.get_buffer_memory_size()) as u64,
            self.limits.max_decompressed,
        );
        if size > limit {
            return Err(Error::TooLarge {
                what: "the dictionaries of a stream",
                size,
                limit,
            });
        }
        self.dictionaries.insert(id, values);
        Ok(())
    }

    fn read_dictionary(
        &self,
        parsed: &FbMessage<'_>,
        message: &Message,
    ) -> Result<(i64, ArrayRef)> {
        const MESSAGE: &str = "dictionary";
        let batch: DictionaryBatch<'_> = parsed
            .header_as_dictionary_batch()
            .ok_or_else(|| Error::header(MESSAGE, "it has none"))?;
        let id = batch.id();
        let known = self.known()?;
        let Some(expected) = known.values.get(&id) else {
            return Err(Error::header(
                MESSAGE,
                format!("no column has dictionary {id}"),
            ));
        };
        let data = batch
            .data()
            .ok_or_else(|| Error::header(MESSAGE, "it has no values"))?;
        let mut source = self.source(MESSAGE, &data, parsed, message, &expected.ids)?;
        let values = source.column("dictionary values", &expected.data_type)?;
        source.finish()?;
        if i64::try_from(values.len()) != Ok(data.length()) {
            return Err(Error::header(
                MESSAGE,
                format!("{} values where it says {}", values.len(), data.length()),
            ));
        }
        if !batch.isDelta() {
            return Ok((id, values));
        }
        Ok((id, self.extended(id, &values)?))
    }

    /// The values of a dictionary with more of them.
    fn extended(&self, id: i64, values: &ArrayRef) -> Result<ArrayRef> {
        let Some(before) = self.dictionaries.get(&id) else {
            let rule = format!("values are added to dictionary {id}, which is not there");
            return Err(Error::header("dictionary", rule));
        };
        // Arrow panics where lists of lists or inner dictionaries outgrow their type.
        if !is_flat(values.data_type()) {
            return Err(Error::unsupported(format!(
                "adding values to a dictionary of {}",
                values.data_type()
            )));
        }
        let (size, limit) = (array_bytes(before) + array_bytes(values), i32::MAX as u64);
        if size > limit {
            return Err(Error::TooLarge {
                what: "a dictionary with added values",
                size,
                limit,
            });
        }
        Ok(arrow_select::concat::concat(&[before, values])?)
    }

    fn source<'a>(
        &'a self,
        kind: &'static str,
        batch: &FbRecordBatch<'_>,
        parsed: &FbMessage<'_>,
        message: &Message,
        ids: &'a [i64],
    ) -> Result<Source<'a>> {
        if usize::try_from(parsed.bodyLength()) != Ok(message.body.len()) {
            let rule = format!(
                "a body of {} bytes where it says {}",
                message.body.len(),
                parsed.bodyLength()
            );
            return Err(Error::header(kind, rule));
        }
        let means = Means {
            message: kind,
            allowed: self.limits.max_decompressed,
            dictionaries: &self.dictionaries,
            ids,
        };
        Ok(Source::new(
            batch,
            Buffer::from(message.body.clone()),
            codec(kind, batch, parsed)?,
            means,
        ))
    }

    fn known(&self) -> Result<&Known> {
        self.known
            .as_ref()
            .ok_or_else(|| Error::framing("a batch comes before the schema"))
    }
}

fn codec(kind: &'static str, batch: &FbRecordBatch<'_>, parsed: &FbMessage<'_>) -> Result<Codec> {
    let Some(compression) = batch.compression() else {
        // Arrow 0.17 named its codec here, before the format had a place for it.
        let keys = parsed
            .custom_metadata()
            .into_iter()
            .flatten()
            .filter_map(|pair| pair.key());
        if keys
            .into_iter()
            .any(|key| key == "ARROW:experimental_compression")
        {
            return Err(Error::unsupported(
                "the experimental compression of Arrow 0.17",
            ));
        }
        return Ok(Codec::None);
    };
    if compression.method() != BodyCompressionMethod::BUFFER {
        return Err(Error::header(
            kind,
            "a method of compression that does not exist",
        ));
    }
    match compression.codec() {
        CompressionType::LZ4_FRAME => Ok(Codec::Lz4),
        CompressionType::ZSTD => Ok(Codec::Zstd),
        _ => Err(Error::header(kind, "a codec that does not exist")),
    }
}
