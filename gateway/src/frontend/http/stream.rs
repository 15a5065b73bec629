//! A result as an Arrow IPC stream: the body, its end marker and its trailers. Pulled frame by
//! frame; a failure breaks the body. Must not know how messages are encoded.

use std::collections::VecDeque;
use std::time::Duration;

use axum::body::Body;
use bytes::{BufMut, Bytes, BytesMut};
use futures::{Stream, StreamExt, stream};
use http::{HeaderMap, HeaderName, HeaderValue};
use http_body::Frame;
use http_body_util::StreamBody;
use sluice_core::error::{Error, Result};
use sluice_core::result::{ResultStream, Totals};
use sluice_ipc::{END_OF_STREAM, Encoded, PREFIX_LEN};
use sluice_wire::http::{headers, media};

/// How long an answer waits for the first batch: what fails by then has a status of its own.
const FIRST_BATCH: Duration = Duration::from_millis(250);

/// What stands before a break has so long to reach the socket. A break throws away what hyper has
/// not written yet, and with the head of the answer the operation's name would be lost, by which
/// the client asks for the reason.
const BEFORE_A_BREAK: Duration = Duration::from_millis(20);

/// A header up to this size is copied behind its prefix, which saves a frame of its own.
const SMALL_HEADER: usize = 16 << 10;

/// A result of which the first messages are here already.
pub(super) struct Opened {
    stream: ResultStream,
    ahead: VecDeque<Encoded>,
}

impl Opened {
    /// Takes the schema, and the first batch if that comes soon.
    ///
    /// # Errors
    /// What failed before the first byte was sent.
    pub(super) async fn begin(mut stream: ResultStream) -> Result<Self> {
        let mut ahead = VecDeque::new();
        ahead.extend(stream.next().await.transpose()?);
        let soon = tokio::time::timeout(FIRST_BATCH, stream.next()).await;
        // After a time-out nothing is lost, and after the end nothing follows.
        if let Ok(Some(message)) = soon {
            ahead.push_back(message?);
        }
        Ok(Self { stream, ahead })
    }

    /// The result itself.
    pub(super) fn stream(&self) -> &ResultStream {
        &self.stream
    }

    /// Ends the result because the door cannot write it, and gives the error that breaks the body.
    pub(super) fn fail(&mut self, error: Error) -> Error {
        self.stream.fail(error.clone());
        error
    }

    /// The next message; `None` at the end.
    pub(super) async fn next(&mut self) -> Option<Result<Encoded>> {
        match self.ahead.pop_front() {
            Some(message) => Some(Ok(message)),
            None => self.stream.next().await,
        }
    }
}

/// The result as the body of an answer.
pub(super) fn body(opened: Opened) -> Body {
    body_of(ArrowFrames {
        opened,
        ready: VecDeque::new(),
        step: Step::Messages,
    })
}

/// What a body pulls its frames from.
pub(super) trait Frames: Send + 'static {
    /// The next frame; `None` at the end.
    fn next(&mut self) -> impl Future<Output = Result<Option<Frame<Bytes>>>> + Send;
}

/// A body that pulls `frames`, and breaks at an error.
pub(super) fn body_of(frames: impl Frames) -> Body {
    Body::new(StreamBody::new(stream_of(frames)))
}

fn stream_of(frames: impl Frames) -> impl Stream<Item = Result<Frame<Bytes>>> + Send {
    stream::try_unfold(frames, |mut frames| async move {
        let next = frames.next().await;
        if next.is_err() {
            tokio::time::sleep(BEFORE_A_BREAK).await;
        }
        Ok(next?.map(|frame| (frame, frames)))
    })
}

struct ArrowFrames {
    opened: Opened,
    ready: VecDeque<Bytes>,
    step: Step,
}

enum Step {
    Messages,
    Trailers,
    Over,
}

impl Frames for ArrowFrames {
    async fn next(&mut self) -> Result<Option<Frame<Bytes>>> {
        loop {
            if let Some(bytes) = self.ready.pop_front() {
                self.opened.stream.sent(bytes.len() as u64);
                return Ok(Some(Frame::data(bytes)));
            }
            match self.step {
                Step::Messages => match self.opened.next().await.transpose()? {
                    Some(message) => frame(message, &mut self.ready),
                    None => {
                        self.ready.push_back(Bytes::from_static(&END_OF_STREAM));
                        self.step = Step::Trailers;
                    }
                },
                Step::Trailers => {
                    self.step = Step::Over;
                    return Ok(Some(Frame::trailers(trailers(
                        &self.opened.stream.totals(),
                    ))));
                }
                Step::Over => return Ok(None),
            }
        }
    }
}

/// Prefix, header and body of a message; the body is never copied.
fn frame(message: Encoded, out: &mut VecDeque<Bytes>) {
    let prefix = message.prefix();
    if message.header.len() <= SMALL_HEADER {
        let mut start = BytesMut::with_capacity(PREFIX_LEN + message.header.len());
        start.put_slice(&prefix);
        start.put_slice(&message.header);
        out.push_back(start.freeze());
    } else {
        out.push_back(Bytes::copy_from_slice(&prefix));
        out.push_back(message.header);
    }
    if !message.body.is_empty() {
        out.push_back(message.body);
    }
}

fn trailers(totals: &Totals) -> HeaderMap {
    let mut trailers = text_trailers(totals);
    let mut put = |name, value: String| put(&mut trailers, name, value);
    put(headers::BATCHES, totals.batches.to_string());
    put(headers::BYTES, totals.bytes.to_string());
    put(headers::DIGEST, format!("{:016x}", totals.digest));
    trailers
}

/// What is true of the rows in any form.
pub(super) fn text_trailers(totals: &Totals) -> HeaderMap {
    let mut trailers = HeaderMap::new();
    put(&mut trailers, headers::ROWS, totals.rows.to_string());
    put(
        &mut trailers,
        headers::TRUNCATED,
        totals.truncated.to_string(),
    );
    trailers
}

fn put(map: &mut HeaderMap, name: &'static str, value: String) {
    // Digits and words are always a header's value.
    if let Ok(value) = HeaderValue::try_from(value) {
        map.insert(HeaderName::from_static(name), value);
    }
}

/// The error that breaks a body when a value has no text.
pub(super) fn unprintable(reason: &str) -> Error {
    let message = format!(
        "a value cannot be written as text: {reason}; ask for {}",
        media::ARROW
    );
    Error::invalid("22000", message)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use http_body_util::BodyExt;
    use sluice_core::error::ErrorKind;
    use sluice_ipc::Codec;

    use super::*;

    fn message(header: usize, body: usize) -> Encoded {
        Encoded {
            header: Bytes::from(vec![1; header]),
            body: Bytes::from(vec![2; body]),
            rows: 1,
            codec: Codec::None,
        }
    }

    #[test]
    fn a_message_is_framed_without_copying_its_body() {
        for header in [8, SMALL_HEADER + 8] {
            let message = message(header, 64);
            let (framed, place) = (message.framed_len(), message.body.as_ptr());
            let mut out = VecDeque::new();
            frame(message, &mut out);
            assert_eq!(
                out.iter().map(|bytes| bytes.len() as u64).sum::<u64>(),
                framed
            );
            assert_eq!(out.back().unwrap().as_ptr(), place);
            let start: Vec<u8> = out.iter().flatten().copied().take(PREFIX_LEN).collect();
            assert_eq!(start[..4], [0xff; 4]);
            assert_eq!(start[4..], u32::try_from(header).unwrap().to_le_bytes());
        }
        let mut out = VecDeque::new();
        frame(message(8, 0), &mut out);
        assert_eq!(out.len(), 1, "an empty body is no frame");
    }

    #[test]
    fn trailers_are_those_that_are_announced() {
        let totals = Totals {
            rows: 3,
            batches: 2,
            bytes: 9,
            digest: 0xab,
            truncated: true,
        };
        let trailers = trailers(&totals);
        for name in headers::ARROW_TRAILERS.split(", ") {
            assert!(trailers.contains_key(name), "{name}");
        }
        assert_eq!(trailers[headers::DIGEST], "00000000000000ab");
        let trailers = text_trailers(&totals);
        assert_eq!(trailers.len(), headers::TEXT_TRAILERS.split(", ").count());
        assert_eq!(trailers[headers::TRUNCATED], "true");
    }

    struct Broken(bool);

    impl Frames for Broken {
        async fn next(&mut self) -> Result<Option<Frame<Bytes>>> {
            if std::mem::replace(&mut self.0, true) {
                return Err(Error::new(ErrorKind::Engine, "gone"));
            }
            Ok(Some(Frame::data(Bytes::from_static(b"x"))))
        }
    }

    #[tokio::test]
    async fn an_error_breaks_the_body() {
        let mut body = body_of(Broken(false));
        assert!(body.frame().await.unwrap().is_ok());
        assert!(body.frame().await.unwrap().is_err());
    }
}
