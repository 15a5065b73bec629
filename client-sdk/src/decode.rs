//! Messages to batches, several at a time, in the order in which they came. Owns the decoders and
//! which thread they run on. Must not know where messages come from.

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Schema, SchemaRef};
use futures::future::BoxFuture;
use sluice_ipc::{Decoder, Limits, Message};
use tokio::sync::oneshot;

use crate::error::{Error, Result};

/// Messages that are decoded at the same time; also how far a result is read ahead.
pub(crate) const LOOK_AHEAD: usize = 3;

/// A body up to this size is decoded on the spot: it takes less than handing it over.
const INLINE: usize = 64 << 10;

/// The decoders of one result. Each is used by one message at a time and passed on to the next
/// that needs it.
#[derive(Debug)]
pub(crate) struct Decoding {
    slots: Vec<oneshot::Receiver<Decoder>>,
    turn: usize,
}

impl Decoding {
    /// Reads the schema that every result begins with.
    pub(crate) fn begin(message: &Message, limits: &Limits) -> Result<(SchemaRef, Self)> {
        let (schema, first) = decoder(message, limits)?;
        // A dictionary counts for all messages after it, so there one decoder sees them all.
        let more = if has_dictionary(&schema) {
            0
        } else {
            LOOK_AHEAD - 1
        };
        let mut slots = vec![filled(first)];
        for _ in 0..more {
            slots.push(filled(decoder(message, limits)?.1));
        }
        Ok((schema, Self { slots, turn: 0 }))
    }

    /// Begins with the next message. Nothing happens before the answer is polled; polled in any
    /// order, answers are those of one decoder that gets the messages one after the other. A
    /// dictionary has no batch.
    pub(crate) fn decode(
        &mut self,
        message: Message,
    ) -> BoxFuture<'static, Result<Option<RecordBatch>>> {
        let (hand_on, next) = oneshot::channel();
        let slot = std::mem::replace(&mut self.slots[self.turn], next);
        self.turn = (self.turn + 1) % self.slots.len();
        Box::pin(decode_in_turn(message, slot, hand_on))
    }
}

async fn decode_in_turn(
    message: Message,
    slot: oneshot::Receiver<Decoder>,
    hand_on: oneshot::Sender<Decoder>,
) -> Result<Option<RecordBatch>> {
    // An error before this one has been reported already and ended the result.
    let mut decoder = slot
        .await
        .map_err(|_| Error::protocol("decoding has ended"))?;
    let decoded = if message.body.len() <= INLINE {
        decoder.decode(&message)
    } else {
        let work = move || {
            let decoded = decoder.decode(&message);
            (decoder, decoded)
        };
        let done = tokio::task::spawn_blocking(work).await;
        let decoded;
        (decoder, decoded) =
            done.map_err(|error| Error::protocol("decoding a message failed").with_source(error))?;
        decoded
    };
    // When nobody waits for it, this was the last message.
    let _ = hand_on.send(decoder);
    decoded.map_err(unreadable)
}

/// A message that cannot be what the gateway wrote.
pub(crate) fn unreadable(error: sluice_ipc::Error) -> Error {
    Error::incomplete(format!("the result is damaged: {error}")).with_source(error)
}

fn decoder(message: &Message, limits: &Limits) -> Result<(SchemaRef, Decoder)> {
    let mut decoder = Decoder::new(*limits);
    let schema = decoder.schema(message).map_err(unreadable)?;
    Ok((schema, decoder))
}

fn filled(decoder: Decoder) -> oneshot::Receiver<Decoder> {
    let (sender, receiver) = oneshot::channel();
    // The receiver is right here.
    let _ = sender.send(decoder);
    receiver
}

fn has_dictionary(schema: &Schema) -> bool {
    schema
        .fields()
        .iter()
        .any(|field| holds_dictionary(field.data_type()))
}

fn holds_dictionary(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(..) => true,
        DataType::Struct(fields) => fields
            .iter()
            .any(|field| holds_dictionary(field.data_type())),
        DataType::Union(fields, _) => fields
            .iter()
            .any(|(_, field)| holds_dictionary(field.data_type())),
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::ListView(field)
        | DataType::LargeListView(field)
        | DataType::FixedSizeList(field, _)
        | DataType::Map(field, _)
        | DataType::RunEndEncoded(_, field) => holds_dictionary(field.data_type()),
        _ => false,
    }
}
