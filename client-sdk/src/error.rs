//! The one error of this package: what went wrong, whether a retry helps, and in which operation
//! it happened. Owns the kinds. Must not know how a gateway spells them in JSON beyond their names.

use std::fmt;
use std::sync::Arc;

/// What every fallible call of this package returns.
pub type Result<T> = std::result::Result<T, Error>;

/// What kind of failure it is: the gateway's own kinds, then those that only a client can see.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The statement was stopped, by this client or by somebody who may.
    Cancelled,
    /// The thing exists but its state does not allow the call.
    Conflict,
    /// The engine failed, died or sent something that cannot be true.
    Engine,
    /// The user is known and may not do this.
    Forbidden,
    /// It existed and is over.
    Gone,
    /// A fault in the gateway itself.
    Internal,
    /// The request or the statement is wrong; the same text will fail again.
    Invalid,
    /// No such thing, or one of another user.
    NotFound,
    /// A limit of the gateway is reached; a retry may help.
    Overloaded,
    /// One row is larger than the gateway can send.
    RowTooLarge,
    /// A deadline passed.
    Timeout,
    /// Who is calling is not known, or not proved.
    Unauthenticated,
    /// A kind that a newer gateway has and this client does not know.
    Other,

    /// The client is configured with something that cannot be: a URL, a file, a fingerprint.
    Configuration,
    /// The gateway was not reached.
    Connect,
    /// The gateway was reached, but it is not proved to be the right one, or TLS failed.
    Tls,
    /// Rows may be missing: the stream broke, or what came is not what the gateway says it sent.
    Incomplete,
    /// The answer is not what this protocol allows.
    Protocol,
}

impl ErrorKind {
    /// The kinds that come from the gateway, under the names that they have on the wire.
    pub(crate) const OF_GATEWAY: [Self; 12] = [
        Self::Cancelled,
        Self::Conflict,
        Self::Engine,
        Self::Forbidden,
        Self::Gone,
        Self::Internal,
        Self::Invalid,
        Self::NotFound,
        Self::Overloaded,
        Self::RowTooLarge,
        Self::Timeout,
        Self::Unauthenticated,
    ];

    /// The kind's stable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cancelled => "Cancelled",
            Self::Conflict => "Conflict",
            Self::Engine => "Engine",
            Self::Forbidden => "Forbidden",
            Self::Gone => "Gone",
            Self::Internal => "Internal",
            Self::Invalid => "Invalid",
            Self::NotFound => "NotFound",
            Self::Overloaded => "Overloaded",
            Self::RowTooLarge => "RowTooLarge",
            Self::Timeout => "Timeout",
            Self::Unauthenticated => "Unauthenticated",
            Self::Other => "Other",
            Self::Configuration => "Configuration",
            Self::Connect => "Connect",
            Self::Tls => "Tls",
            Self::Incomplete => "Incomplete",
            Self::Protocol => "Protocol",
        }
    }

    /// The kind that a gateway means by `name`.
    pub(crate) fn of_gateway(name: &str) -> Self {
        Self::OF_GATEWAY
            .into_iter()
            .find(|kind| kind.name() == name)
            .unwrap_or(Self::Other)
    }

    /// The SQLSTATE of failures that only the client sees (class 08: connection exception).
    fn default_sqlstate(self) -> &'static str {
        match self {
            Self::Connect | Self::Tls => "08001",
            Self::Incomplete => "08006",
            Self::Protocol => "08P01",
            Self::Cancelled => "57014",
            _ => "HY000",
        }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An error of the gateway or of the way to it. Cheap to clone.
#[derive(Clone)]
pub struct Error(Box<Inner>);

#[derive(Clone)]
struct Inner {
    kind: ErrorKind,
    sqlstate: String,
    message: String,
    retryable: bool,
    operation: Option<String>,
    source: Option<Arc<dyn std::error::Error + Send + Sync>>,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Inner {
            kind,
            sqlstate: kind.default_sqlstate().to_owned(),
            message: message.into(),
            retryable: matches!(kind, ErrorKind::Connect | ErrorKind::Incomplete),
            operation: None,
            source: None,
        }))
    }

    pub(crate) fn configuration(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Configuration, message)
    }

    pub(crate) fn protocol(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Protocol, message)
    }

    pub(crate) fn incomplete(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Incomplete, message)
    }

    pub(crate) fn with_sqlstate(mut self, sqlstate: impl Into<String>) -> Self {
        self.0.sqlstate = sqlstate.into();
        self
    }

    pub(crate) fn with_retryable(mut self, retryable: bool) -> Self {
        self.0.retryable = retryable;
        self
    }

    pub(crate) fn with_source(
        mut self,
        source: impl std::error::Error + Send + Sync + 'static,
    ) -> Self {
        self.0.source = Some(Arc::new(source));
        self
    }

    /// Says which operation it happened in, unless that is known already.
    pub(crate) fn of_operation(mut self, operation: &str) -> Self {
        self.0.operation.get_or_insert_with(|| operation.to_owned());
        self
    }

    /// What kind of failure it is.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Five characters of ISO/IEC 9075 SQLSTATE.
    pub fn sqlstate(&self) -> &str {
        &self.0.sqlstate
    }

    /// What went wrong, for a person.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Whether the same call may succeed later.
    pub fn retryable(&self) -> bool {
        self.0.retryable
    }

    /// The gateway's name for the statement that it happened in.
    pub fn operation_id(&self) -> Option<&str> {
        self.0.operation.as_deref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Error")
            .field("kind", &self.0.kind)
            .field("sqlstate", &self.0.sqlstate)
            .field("message", &self.0.message)
            .field("retryable", &self.0.retryable)
            .field("operation", &self.0.operation)
            .field("source", &self.0.source)
            .finish()
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_deref().map(|source| source as _)
    }
}
