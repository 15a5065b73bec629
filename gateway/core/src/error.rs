//! The one error of the core: what went wrong, whose fault it is, whether a retry helps.
//!
//! Owns the twelve kinds. Must not know how a protocol spells them: each front end has one
//! exhaustive table from [`ErrorKind`] to its own status numbers.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use crate::handle::Handle;

/// What every fallible call of the core returns.
pub type Result<T> = std::result::Result<T, Error>;

/// What kind of failure it is. Front ends map this exhaustively, so a new kind is a compile error
/// in each of them.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[allow(missing_docs)]
pub enum ErrorKind {
    /// The client stopped the statement, or went away.
    Cancelled,
    /// The thing exists but its state does not allow the call, as for a second read of a result.
    Conflict,
    /// The engine failed, died or sent something that cannot be true.
    Engine,
    /// The user is known and may not do this.
    Forbidden,
    /// It existed and is over: a result read to its end, an operation closed.
    Gone,
    /// A fault in the gateway itself.
    Internal,
    /// The request or the statement is wrong; the same text will fail again.
    Invalid,
    /// No such thing, or one of another user.
    NotFound,
    /// A limit of memory, disk, sessions, statements or queues is reached.
    Overloaded,
    /// One row is larger than the way out can carry.
    RowTooLarge,
    /// A deadline passed.
    Timeout,
    /// Who is calling is not known, or not proved.
    Unauthenticated,
}

impl ErrorKind {
    /// All kinds, for the tests that walk every front end's table.
    pub const ALL: [Self; 12] = [
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

    /// The kind's stable name, as metrics and logs spell it.
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
        }
    }

    /// The SQLSTATE that stands where nobody knows a more precise one (ISO/IEC 9075-2, table 38,
    /// and PostgreSQL's classes 53, 57 and 58).
    fn default_sqlstate(self) -> &'static str {
        match self {
            Self::Cancelled => "57014",
            Self::Conflict | Self::Gone => "24000",
            Self::Engine => "58000",
            Self::Forbidden => "42501",
            Self::Internal => "XX000",
            Self::Invalid => "42000",
            Self::NotFound => "42704",
            Self::Overloaded => "53000",
            Self::RowTooLarge => "54000",
            Self::Timeout => "57014",
            Self::Unauthenticated => "28000",
        }
    }

    fn default_fault(self) -> Fault {
        match self {
            Self::Engine => Fault::Engine,
            Self::Internal | Self::Overloaded => Fault::Gateway,
            _ => Fault::Client,
        }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Whose fault an error is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[allow(missing_docs)]
pub enum Fault {
    Client,
    Engine,
    Gateway,
}

/// An error that may be shown to the client: `message` is written for the person who sent the
/// request, `cause` is for the log alone.
#[derive(Clone, Debug)]
pub struct Error {
    kind: ErrorKind,
    fault: Fault,
    sqlstate: Cow<'static, str>,
    message: String,
    retryable: bool,
    operation: Option<Handle>,
    cause: Option<Arc<dyn std::error::Error + Send + Sync>>,
}

impl Error {
    /// An error of `kind` with a text that is safe for the client. SQLSTATE, fault and whether a
    /// retry helps start from the kind and can be made more precise.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            fault: kind.default_fault(),
            sqlstate: Cow::Borrowed(kind.default_sqlstate()),
            message: message.into(),
            retryable: kind == ErrorKind::Overloaded,
            operation: None,
            cause: None,
        }
    }

    /// A wrong request or statement, with the SQLSTATE that says how.
    pub fn invalid(sqlstate: &'static str, message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, message).with_sqlstate(sqlstate)
    }

    /// "Not found": the same words for what never was and for what is another user's.
    pub fn not_found(what: &str) -> Self {
        Self::new(ErrorKind::NotFound, format!("{what} not found"))
    }

    /// Replaces the SQLSTATE.
    #[must_use]
    pub fn with_sqlstate(mut self, sqlstate: impl Into<Cow<'static, str>>) -> Self {
        self.sqlstate = sqlstate.into();
        self
    }

    /// Replaces whose fault it is.
    #[must_use]
    pub fn with_fault(mut self, fault: Fault) -> Self {
        self.fault = fault;
        self
    }

    /// Says whether the same call may succeed later.
    #[must_use]
    pub fn with_retryable(mut self, retryable: bool) -> Self {
        self.retryable = retryable;
        self
    }

    /// Attaches the cause, which the log gets and the client never does.
    #[must_use]
    pub fn with_cause(mut self, cause: impl std::error::Error + Send + Sync + 'static) -> Self {
        self.cause = Some(Arc::new(cause));
        self
    }

    /// Says which operation it happened in.
    #[must_use]
    pub fn of_operation(mut self, operation: Handle) -> Self {
        self.operation = Some(operation);
        self
    }

    /// What kind of failure it is.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Whose fault it is.
    pub fn fault(&self) -> Fault {
        self.fault
    }

    /// Five characters of ISO/IEC 9075 SQLSTATE.
    pub fn sqlstate(&self) -> &str {
        &self.sqlstate
    }

    /// The text for the client.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Whether the same call may succeed later.
    pub fn retryable(&self) -> bool {
        self.retryable
    }

    /// The operation that it happened in, if there was one.
    pub fn operation(&self) -> Option<Handle> {
        self.operation
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.cause.as_deref().map(|cause| cause as _)
    }
}
