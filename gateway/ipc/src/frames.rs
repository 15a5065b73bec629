//! The IPC stream format, read as its bytes come: which bytes are a message. Owns framing and its
//! bounds; must not know what a message says beyond the length of its body.

use std::collections::VecDeque;

use arrow_ipc::Message as FbMessage;
use bytes::{Buf, Bytes, BytesMut};
use flatbuffers::VerifierOptions;

use crate::error::{Error, Result};
use crate::message::Message;

/// Bounds on what a peer may make a reader hold.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Limits {
    /// Bytes of one message's metadata.
    pub max_header: usize,
    /// Bytes of one message's body.
    pub max_body: u64,
    /// Bytes of one message's buffers after decompression, and of all dictionaries together.
    pub max_decompressed: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_header: 64 << 20,
            max_body: 2 << 30,
            max_decompressed: 4 << 30,
        }
    }
}

/// What stands next in a stream.
#[derive(Clone, Debug)]
pub enum Frame {
    /// A message, of which only the length is checked.
    Message(Message),
    /// The end marker: the stream is complete.
    End,
}

/// Cuts a stream of bytes into messages. A message that lies in one chunk is not copied.
#[derive(Debug)]
pub struct Frames {
    limits: Limits,
    /// Pushed and not looked at.
    chunks: VecDeque<Bytes>,
    /// Bytes of a part that goes on in a chunk to come.
    partial: BytesMut,
    state: State,
}

#[derive(Clone, Debug)]
enum State {
    /// Before a message: a continuation marker, or in the format before Arrow 0.15 its length.
    Marker,
    Length,
    Header(usize),
    Body(Bytes, usize),
    Ended,
}

/// What stands before a length since Arrow 0.15.
const CONTINUATION: u32 = u32::MAX;

/// How much is allocated for a part before its bytes have come.
const AHEAD: usize = 64 << 10;

impl Frames {
    /// A parser that stands before the first byte.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            chunks: VecDeque::new(),
            partial: BytesMut::new(),
            state: State::Marker,
        }
    }

    /// Adds what came next. Call [`Frames::next`] after each push until it gives nothing.
    pub fn push(&mut self, bytes: Bytes) {
        if !bytes.is_empty() {
            self.chunks.push_back(bytes);
        }
    }

    /// The next frame, if all its bytes are there.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<Frame>> {
        loop {
            let state = match &self.state {
                State::Marker => match self.take_u32() {
                    None => return Ok(None),
                    Some(CONTINUATION) => State::Length,
                    Some(length) => self.after_length(length)?,
                },
                State::Length => match self.take_u32() {
                    None => return Ok(None),
                    Some(length) => self.after_length(length)?,
                },
                State::Header(length) => match self.take(*length) {
                    None => return Ok(None),
                    Some(header) => {
                        let length = self.body_length(&header)?;
                        State::Body(header, length)
                    }
                },
                State::Body(header, length) => {
                    let (header, length) = (header.clone(), *length);
                    let Some(body) = self.take(length) else {
                        return Ok(None);
                    };
                    self.state = State::Marker;
                    return Ok(Some(Frame::Message(Message { header, body })));
                }
                State::Ended if self.chunks.is_empty() => return Ok(None),
                State::Ended => return Err(Error::framing("bytes follow the end marker")),
            };
            let ended = matches!(state, State::Ended);
            self.state = state;
            if ended {
                return Ok(Some(Frame::End));
            }
        }
    }

    /// Says whether the stream was complete when its bytes ended.
    pub fn finish(&self) -> Result<()> {
        match self.state {
            State::Ended if self.chunks.is_empty() => Ok(()),
            State::Ended => Err(Error::framing("bytes follow the end marker")),
            _ => Err(Error::Truncated),
        }
    }

    fn after_length(&self, length: u32) -> Result<State> {
        if length == 0 {
            return Ok(State::Ended);
        }
        let size = length as usize;
        if size > self.limits.max_header {
            return Err(Error::TooLarge {
                what: "metadata of a message",
                size: u64::from(length),
                limit: self.limits.max_header as u64,
            });
        }
        Ok(State::Header(size))
    }

    fn body_length(&self, header: &[u8]) -> Result<usize> {
        let length = parse(header)?.bodyLength();
        let Ok(size) = u64::try_from(length) else {
            return Err(Error::framing(format!("a body has a length of {length}")));
        };
        let limit = self.limits.max_body;
        match usize::try_from(size) {
            Ok(length) if size <= limit => Ok(length),
            _ => Err(Error::TooLarge {
                what: "the body of a message",
                size,
                limit,
            }),
        }
    }

    fn take_u32(&mut self) -> Option<u32> {
        self.take(4).map(|mut bytes| bytes.get_u32_le())
    }

    /// The next `length` bytes, if they are there.
    fn take(&mut self, length: usize) -> Option<Bytes> {
        if self.partial.is_empty() {
            match self.chunks.front_mut() {
                Some(first) if first.len() > length => return Some(first.split_to(length)),
                Some(first) if first.len() == length => return self.chunks.pop_front(),
                _ => {}
            }
            if length == 0 {
                return Some(Bytes::new());
            }
        }
        while self.partial.len() < length {
            let mut chunk = self.chunks.pop_front()?;
            let missing = length - self.partial.len();
            let part = chunk.split_to(missing.min(chunk.len()));
            if !chunk.is_empty() {
                self.chunks.push_front(chunk);
            }
            // Memory follows what has come, not what a length promises.
            let ahead = AHEAD.max(self.partial.len());
            self.partial.reserve(missing.min(part.len().max(ahead)));
            self.partial.extend_from_slice(&part);
        }
        Some(std::mem::take(&mut self.partial).freeze())
    }
}

/// Reads a message's metadata. The tables and bytes that it may unfold to are bounded by its own
/// size, so that parts which refer to the same place many times cannot make it grow.
pub(crate) fn parse(header: &[u8]) -> Result<FbMessage<'_>> {
    let options = VerifierOptions {
        // Twice what `MAX_NESTING` needs: a bound for the verifier's own recursion.
        max_depth: 128,
        // No table takes less than 4 bytes.
        max_tables: header.len() / 4,
        max_apparent_size: header.len() * 16 + 1024,
        ignore_missing_null_terminator: true,
    };
    arrow_ipc::root_as_message_with_opts(&options, header)
        .map_err(|error| Error::framing(format!("the metadata of a message: {error}")))
}
