//! What can be wrong with a message, and where. Owns the error type of the package; must not know
//! who is told about it.

use std::borrow::Cow;

use arrow_schema::ArrowError;

/// Why something cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The bytes between messages are not the IPC stream format.
    #[error("not an Arrow IPC stream: {rule}")]
    Framing {
        /// What was expected.
        rule: Cow<'static, str>,
    },
    /// The stream stopped before its end marker.
    #[error("the stream ended without its end marker")]
    Truncated,
    /// The metadata of a message is not valid.
    #[error("the metadata of a {message} message is not valid: {rule}")]
    Header {
        /// Which kind of message.
        message: &'static str,
        /// What it breaks.
        rule: Cow<'static, str>,
    },
    /// A buffer of a message is not what the metadata says.
    #[error("buffer {buffer} of a {message} message (column {column}) is not valid: {rule}")]
    Buffer {
        /// Which kind of message.
        message: &'static str,
        /// Name of the column.
        column: String,
        /// Position of the buffer in the message.
        buffer: usize,
        /// What it breaks.
        rule: Cow<'static, str>,
    },
    /// The values of a column break the rules of its type.
    #[error("column {column} is not valid: {rule}")]
    Column {
        /// Name of the column.
        column: String,
        /// What it breaks.
        rule: Cow<'static, str>,
    },
    /// A column has another type than the schema says.
    #[error("column {column} has type {found}, but {expected} was announced")]
    Type {
        /// Name of the column.
        column: String,
        /// The type that the schema names.
        expected: String,
        /// The type that came.
        found: String,
    },
    /// A length is over its bound.
    #[error("{what} of {size} bytes is over the limit of {limit} bytes")]
    TooLarge {
        /// What is too large.
        what: &'static str,
        /// Its size in bytes.
        size: u64,
        /// What is allowed.
        limit: u64,
    },
    /// Something that is valid Arrow, but not supported here or not possible in IPC.
    #[error("not supported: {what}")]
    Unsupported {
        /// What it is.
        what: Cow<'static, str>,
    },
    /// A compression level outside of its range.
    #[error("{0} is not a zstd level; allowed values: -7 to -1 and 1 to 22")]
    Level(i32),
    /// Compressing or decompressing failed.
    #[error("{codec} failed: {cause}")]
    Codec {
        /// The codec's name.
        codec: &'static str,
        /// What the library says.
        cause: String,
    },
    /// An Arrow kernel refused.
    #[error(transparent)]
    Arrow(#[from] ArrowError),
}

/// The result of this package's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    pub(crate) fn framing(rule: impl Into<Cow<'static, str>>) -> Self {
        Self::Framing { rule: rule.into() }
    }

    pub(crate) fn header(message: &'static str, rule: impl Into<Cow<'static, str>>) -> Self {
        Self::Header {
            message,
            rule: rule.into(),
        }
    }

    pub(crate) fn column(column: impl Into<String>, rule: impl Into<Cow<'static, str>>) -> Self {
        Self::Column {
            column: column.into(),
            rule: rule.into(),
        }
    }

    pub(crate) fn unsupported(what: impl Into<Cow<'static, str>>) -> Self {
        Self::Unsupported { what: what.into() }
    }
}
