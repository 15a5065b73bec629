//! The first stage: whatever an engine yields becomes batches, and a panic in an engine becomes an
//! error. Must not know limits or codecs.

use std::panic::AssertUnwindSafe;

use futures::{StreamExt, future, stream};
use sluice_ipc::{Decoder, Limits};

use crate::engine::{BatchStream, Execution, MessageStream, Output};
use crate::error::{Error, ErrorKind, Fault, Result};

/// The batches of `execution`.
pub(super) fn batches(execution: Execution) -> Result<BatchStream> {
    let batches = match execution.output {
        Output::Batches(batches) => batches,
        Output::Messages(messages) => decoded(messages, execution.schema)?,
    };
    Ok(without_panics(batches))
}

fn decoded(messages: MessageStream, schema: arrow_schema::SchemaRef) -> Result<BatchStream> {
    let decoder = Decoder::with_schema(Limits::default(), schema).map_err(lie)?;
    let batches = stream::try_unfold((messages, decoder), |(mut messages, mut decoder)| async {
        while let Some(message) = messages.next().await {
            if let Some(batch) = decoder.decode(&message?).map_err(lie)? {
                return Ok(Some((batch, (messages, decoder))));
            }
        }
        Ok(None)
    });
    Ok(batches.boxed())
}

/// A message that is not what it says: the engine's fault, in the words that name the place.
fn lie(cause: sluice_ipc::Error) -> Error {
    Error::new(
        ErrorKind::Engine,
        format!("the engine sent a message that is not valid: {cause}"),
    )
    .with_sqlstate("08P01")
    .with_cause(cause)
}

fn without_panics(batches: BatchStream) -> BatchStream {
    AssertUnwindSafe(batches)
        .catch_unwind()
        .scan(false, |ended, item| {
            if *ended {
                return future::ready(None);
            }
            *ended = item.is_err();
            future::ready(Some(item.unwrap_or_else(|_| Err(panicked()))))
        })
        .boxed()
}

/// The error that stands for a panic in an engine.
pub(crate) fn panicked() -> Error {
    Error::new(
        ErrorKind::Internal,
        "the engine failed unexpectedly while it ran the statement",
    )
    .with_fault(Fault::Engine)
}
