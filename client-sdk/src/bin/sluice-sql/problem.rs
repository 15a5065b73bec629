//! What can go wrong in this command, and how a person is told. Owns the words and the exit code.

use std::io::{self, Write};

use sluice_client::{Error, ErrorKind};

/// A reason not to go on.
#[derive(Debug)]
pub(crate) enum Problem {
    /// The gateway, or the way to it.
    Gateway(Error),
    /// Somebody asked for what cannot be.
    Usage(String),
    /// This machine: a file, a terminal.
    Local(io::Error),
    /// Ctrl-C.
    Interrupted,
    /// Whoever read the rows has enough of them.
    NobodyReads,
}

impl Problem {
    /// A failed write to standard output.
    pub(crate) fn of_output(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::NobodyReads,
            _ => Self::Local(error),
        }
    }

    /// What the process ends with.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Gateway(_) | Self::Interrupted | Self::Local(_) => 1,
            Self::Usage(_) => crate::USAGE,
            Self::NobodyReads => 0,
        }
    }

    /// Says it, with what may help.
    pub(crate) fn report(&self, to: &mut impl Write) {
        // Where this cannot be written there is nobody to tell.
        let _ = match self {
            Self::Gateway(error) => report_error(to, error),
            Self::Usage(text) => writeln!(to, "sluice-sql: {text}"),
            Self::Local(error) => writeln!(to, "sluice-sql: {error}"),
            Self::Interrupted => writeln!(to, "cancelled"),
            Self::NobodyReads => Ok(()),
        };
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        Self::Gateway(error)
    }
}

fn report_error(to: &mut impl Write, error: &Error) -> io::Result<()> {
    writeln!(to, "error: {}", error.message())?;
    write!(to, "  {}, SQLSTATE {}", error.kind(), error.sqlstate())?;
    match error.operation_id() {
        Some(operation) => writeln!(to, ", operation {operation}")?,
        None => writeln!(to)?,
    }
    match hint(error) {
        Some(hint) => writeln!(to, "  hint: {hint}"),
        None => Ok(()),
    }
}

fn hint(error: &Error) -> Option<&'static str> {
    Some(match error.kind() {
        ErrorKind::Unauthenticated => {
            "name a user with -u; the password comes from SLUICE_PASSWORD"
        }
        ErrorKind::Tls => {
            "--ca FILE names whom to trust, --pin SHA256 the one certificate to accept"
        }
        ErrorKind::Connect => "is the gateway up, and is --url right?",
        ErrorKind::Incomplete => "rows may be missing: do not use what was shown; run it again",
        ErrorKind::Overloaded => "try again in a moment",
        ErrorKind::RowTooLarge => "select fewer or shorter columns",
        ErrorKind::Gone => "the session or the result is over; run the statement again",
        _ if error.retryable() => "trying again may help",
        _ => return None,
    })
}
