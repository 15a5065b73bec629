//! A result as text: batches are decoded as they come and rendered in pieces. Must not know
//! headers or statuses.

pub(super) mod cells;
mod intervals;
mod nested;
pub(super) mod writer;

use arrow_array::RecordBatch;
use axum::body::Body;
use bytes::Bytes;
use http_body::Frame;
use sluice_core::error::{Error, ErrorKind, Result};
use sluice_ipc::{Decoder, Encoded, Limits, Message};

use self::writer::{Text, Writer};
use super::stream::{Frames, Opened, body_of, text_trailers, unprintable};

/// The result as the body of an answer. The result must come without compression.
///
/// # Errors
/// A schema that cannot be read back.
pub(super) fn body(text: Text, opened: Opened) -> Result<Body> {
    let batches = Batches::new(&opened)?;
    let (writer, head) = Writer::new(text, opened.stream().schema());
    Ok(body_of(TextFrames {
        opened,
        batches,
        writer,
        step: Step::Head(head),
    }))
}

/// Messages of one result, back to batches.
pub(super) struct Batches {
    decoder: Decoder,
    /// Whether the schema message, which comes first, is still to come.
    at_start: bool,
}

impl Batches {
    /// For the messages of `opened`.
    ///
    /// # Errors
    /// A schema that cannot be read back.
    pub(super) fn new(opened: &Opened) -> Result<Self> {
        let schema = opened.stream().schema().clone();
        let decoder = Decoder::with_schema(Limits::default(), schema).map_err(unreadable)?;
        Ok(Self {
            decoder,
            at_start: true,
        })
    }

    /// The next batch; `None` at the end.
    pub(super) async fn next(&mut self, opened: &mut Opened) -> Result<Option<RecordBatch>> {
        while let Some(message) = opened.next().await.transpose()? {
            if let Some(batch) = self.decode(message)? {
                return Ok(Some(batch));
            }
        }
        Ok(None)
    }

    fn decode(&mut self, message: Encoded) -> Result<Option<RecordBatch>> {
        if std::mem::take(&mut self.at_start) {
            return Ok(None);
        }
        let Encoded { header, body, .. } = message;
        self.decoder
            .decode(&Message { header, body })
            .map_err(unreadable)
    }
}

fn unreadable(cause: sluice_ipc::Error) -> Error {
    Error::new(ErrorKind::Internal, "the gateway cannot read its own batch").with_cause(cause)
}

struct TextFrames {
    opened: Opened,
    batches: Batches,
    writer: Writer,
    step: Step,
}

enum Step {
    Head(String),
    /// The rows of a batch from one on.
    Rows(RecordBatch, usize),
    NextBatch,
    Trailers,
    Over,
}

impl Frames for TextFrames {
    async fn next(&mut self) -> Result<Option<Frame<Bytes>>> {
        loop {
            let text = match std::mem::replace(&mut self.step, Step::NextBatch) {
                Step::Head(head) => head,
                Step::Rows(batch, row) => self.piece(batch, row)?,
                Step::NextBatch => match self.batches.next(&mut self.opened).await? {
                    Some(batch) => {
                        self.step = Step::Rows(batch, 0);
                        continue;
                    }
                    None => {
                        self.step = Step::Trailers;
                        self.writer.tail(self.opened.stream().totals().truncated)
                    }
                },
                Step::Trailers => {
                    self.step = Step::Over;
                    let trailers = text_trailers(&self.opened.stream().totals());
                    return Ok(Some(Frame::trailers(trailers)));
                }
                Step::Over => return Ok(None),
            };
            if !text.is_empty() {
                self.opened.stream().sent(text.len() as u64);
                return Ok(Some(Frame::data(Bytes::from(text))));
            }
        }
    }
}

impl TextFrames {
    fn piece(&mut self, batch: RecordBatch, row: usize) -> Result<String> {
        let (text, next) = self
            .writer
            .piece(&batch, row)
            .map_err(|reason| self.opened.fail(unprintable(&reason.0)))?;
        if next < batch.num_rows() {
            self.step = Step::Rows(batch, next);
        }
        Ok(text)
    }
}
