//! The body of a result, cut into messages. Owns counting, hashing and noticing that it broke.
//! Must not know what messages hold.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use http::HeaderMap;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use sluice_ipc::{Digest, Frame, Frames, Limits, Message};

use crate::decode::unreadable;
use crate::error::{Error, Result};
use crate::operation::Operation;

/// What comes next in a body.
pub(crate) enum Next {
    Message(Message),
    End(Ended),
}

/// What is known of a body that came to its clean end.
pub(crate) struct Ended {
    pub(crate) bytes: u64,
    pub(crate) digest: u64,
    pub(crate) trailers: HeaderMap,
}

/// Reads one body.
pub(crate) struct Reader {
    body: Incoming,
    frames: Frames,
    digest: Digest,
    bytes: Arc<AtomicU64>,
    trailers: HeaderMap,
    operation: Arc<Operation>,
}

impl Reader {
    pub(crate) fn new(body: Incoming, limits: Limits, operation: Arc<Operation>) -> Self {
        Self {
            body,
            frames: Frames::new(limits),
            digest: Digest::new(),
            bytes: Arc::default(),
            trailers: HeaderMap::new(),
            operation,
        }
    }

    /// Bytes of messages so far, for others to look at.
    pub(crate) fn bytes(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.bytes)
    }

    /// The next message, or the end, which is one only when marker and body agree on it.
    pub(crate) async fn next(&mut self) -> Result<Next> {
        loop {
            // After the end marker the parser refuses whatever else comes.
            if let Some(Frame::Message(message)) = self.frames.next().map_err(unreadable)? {
                self.note(&message);
                return Ok(Next::Message(message));
            }
            match self.body.frame().await {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => self.frames.push(data),
                    Err(frame) => self
                        .trailers
                        .extend(frame.into_trailers().unwrap_or_default()),
                },
                Some(Err(error)) => {
                    let broken = Error::incomplete(format!("the result broke off: {error}"));
                    return Err(self.operation.explain(broken.with_source(error)).await);
                }
                None => match self.frames.finish() {
                    Ok(()) => return Ok(Next::End(self.ended())),
                    Err(error) => return Err(self.operation.explain(unreadable(error)).await),
                },
            }
        }
    }

    fn note(&mut self, message: &Message) {
        self.digest.update(&message.header, &message.body);
        let bytes = message.header.len() + message.body.len();
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    fn ended(&mut self) -> Ended {
        Ended {
            bytes: self.bytes.load(Ordering::Relaxed),
            digest: self.digest.value(),
            trailers: std::mem::take(&mut self.trailers),
        }
    }
}
