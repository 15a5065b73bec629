//! Batches to messages, for one reader. Owns what a reader is told and gets; must not know engines,
//! or how messages are framed.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_ipc::writer::{DictionaryTracker, IpcDataGenerator, IpcWriteOptions};
use arrow_schema::SchemaRef;
use bytes::Bytes;

use crate::codec::Compression;
use crate::error::Result;
use crate::fields::{Types, announced};
use crate::fit::{self, Leaves};
use crate::layout::{Dictionaries, Plain};
use crate::message::{Codec, Encoded};
use crate::recode::{self, padded};

/// Writes the messages of one result. It has no state between batches: threads may share it, and
/// each batch can be read by somebody who has the schema.
#[derive(Debug)]
pub struct Encoder {
    engine: SchemaRef,
    announced: SchemaRef,
    schema_message: Encoded,
    compression: Compression,
}

impl Encoder {
    /// An encoder of batches of `schema` for a reader of `types`.
    pub fn try_new(schema: &SchemaRef, types: Types, compression: Compression) -> Result<Self> {
        compression.check()?;
        let announced = announced(schema, types)?;
        let schema_message = schema_message(&announced);
        Ok(Self {
            engine: Arc::clone(schema),
            announced,
            schema_message,
            compression,
        })
    }

    /// The schema that the reader is told.
    pub fn schema(&self) -> &SchemaRef {
        &self.announced
    }

    /// The message that begins the stream.
    pub fn schema_message(&self) -> Encoded {
        self.schema_message.clone()
    }

    /// The messages of `batch`: its dictionaries, if the reader takes any, and the batch.
    ///
    /// The batch may differ from the engine's schema in nullability, metadata and names. Each
    /// dictionary is written anew with each batch, and replaces the one before it.
    pub fn encode(&self, batch: &RecordBatch) -> Result<Vec<Encoded>> {
        fit::check(batch, &self.engine)?;
        let columns = fit::columns(batch, &self.announced, Leaves::Shared)?;
        let mut dictionaries = Dictionaries::new();
        let plain = Plain::of(&columns, batch.num_rows(), &mut dictionaries)?;
        let mut messages = Vec::with_capacity(dictionaries.len() + 1);
        for (id, values) in (0..).zip(&dictionaries) {
            messages.push(recode::dictionary(values, id, self.compression)?);
        }
        messages.push(recode::record_batch(&plain, self.compression)?);
        Ok(messages)
    }
}

fn schema_message(schema: &SchemaRef) -> Encoded {
    let mut ids = DictionaryTracker::new(false);
    let message = IpcDataGenerator::default().schema_to_bytes_with_dictionary_tracker(
        schema,
        &mut ids,
        &IpcWriteOptions::default(),
    );
    Encoded {
        header: padded(&message.ipc_message),
        body: Bytes::new(),
        rows: 0,
        codec: Codec::None,
    }
}
