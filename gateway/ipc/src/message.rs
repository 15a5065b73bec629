//! The two forms of an Arrow IPC message: as it came, and as it leaves. Owns the framing of the
//! IPC stream format; must not know what carries the bytes.

use std::fmt;
use std::str::FromStr;

use bytes::Bytes;

/// How the buffers of a message are compressed (Arrow columnar format, `BodyCompression`).
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[allow(missing_docs)]
pub enum Codec {
    #[default]
    None,
    /// LZ4 frame format.
    Lz4,
    /// Zstandard.
    Zstd,
}

impl Codec {
    /// The name that settings and media types use.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Lz4 => "lz4",
            Self::Zstd => "zstd",
        }
    }
}

impl fmt::Display for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Codec {
    type Err = UnknownCodec;

    /// Reads a codec's name in any case.
    fn from_str(text: &str) -> Result<Self, UnknownCodec> {
        [Self::None, Self::Lz4, Self::Zstd]
            .into_iter()
            .find(|codec| codec.name().eq_ignore_ascii_case(text))
            .ok_or(UnknownCodec)
    }
}

/// A name that is no codec's.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("not a codec; allowed values: none, lz4, zstd")]
pub struct UnknownCodec;

/// A message as somebody sent it: nothing about it is checked yet.
#[derive(Clone, Debug)]
pub struct Message {
    /// The flatbuffer `Message` (format/Message.fbs), without continuation marker and length.
    pub header: Bytes,
    /// The body that `header` describes; empty for a schema.
    pub body: Bytes,
}

/// A message as it leaves, written by this package: all that a front end sees of a result.
#[derive(Clone, Debug)]
pub struct Encoded {
    /// The flatbuffer `Message`, zero-padded so that prefix and header together fill a multiple of 8 bytes.
    pub header: Bytes,
    /// The body, padded to a multiple of 8 bytes; empty for a schema.
    pub body: Bytes,
    /// Rows that the message brings: 0 for a schema or a dictionary.
    pub rows: u64,
    /// How the buffers are compressed.
    pub codec: Codec,
}

impl Encoded {
    /// What stands before the header in the IPC stream format: the continuation marker and the
    /// header's length, little endian.
    pub fn prefix(&self) -> [u8; PREFIX_LEN] {
        // A header is metadata of one batch; `Encoder` refuses schemas whose metadata nears 2 GiB.
        let length = u32::try_from(self.header.len()).unwrap_or(u32::MAX);
        let mut prefix = [0xff; PREFIX_LEN];
        prefix[4..].copy_from_slice(&length.to_le_bytes());
        prefix
    }

    /// Bytes that the message takes in the IPC stream format: prefix, header and body.
    pub fn framed_len(&self) -> u64 {
        (PREFIX_LEN + self.header.len() + self.body.len()) as u64
    }
}

/// Bytes before a header: continuation marker and length.
pub const PREFIX_LEN: usize = 8;

/// What ends a complete IPC stream: a continuation marker and a length of 0.
pub const END_OF_STREAM: [u8; PREFIX_LEN] = [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0];
