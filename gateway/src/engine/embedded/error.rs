//! From DataFusion's errors to the core's: kind, SQLSTATE, and a text for the person who wrote the
//! statement.
//!
//! Owns the table of SQLSTATEs and the cleaning of texts. Must not know statements or tables.

use std::error::Error as StdError;
use std::io;

use arrow_schema::ArrowError;
use datafusion::common::{DataFusionError, SchemaError};
use datafusion::sql::sqlparser::parser::ParserError;
use sluice_core::error::{Error, ErrorKind, Fault};
use tokio::task::JoinError;

/// Texts for the client end here; a plan with ten thousand columns has longer ones.
const MAX_MESSAGE: usize = 4096;

/// How deep a chain of causes is followed.
const MAX_CHAIN: usize = 64;

/// The words by which DataFusion says that spilling has used up its share of the disk.
const SPILL_LIMIT: &str = "used disk space during the spilling process has exceeded";

/// What a failed statement is to the core.
pub(super) fn translate(error: DataFusionError) -> Error {
    if let Some(own) = own_error(&error) {
        return own;
    }
    if let Some(full) = disk_full(&error) {
        return full.with_cause(error);
    }
    let position = position(&error);
    let translated = match root(&error) {
        Root::DataFusion(cause) => from_datafusion(cause),
        Root::Arrow(cause) => from_arrow(cause),
        Root::ObjectStore(cause) => from_object_store(cause),
    };
    let (kind, sqlstate, mut message) = translated;
    if let Some((line, column)) = position
        && !message.contains(" at Line: ")
    {
        message.push_str(&format!(" at Line: {line}, Column: {column}"));
    }
    let fault = if kind == ErrorKind::Engine {
        Fault::Engine
    } else {
        fault_of(kind)
    };
    Error::new(kind, bounded(message))
        .with_sqlstate(sqlstate)
        .with_fault(fault)
        .with_cause(error)
}

/// What a task that did not end by itself is to the core.
pub(super) fn from_join(error: JoinError) -> Error {
    if error.is_cancelled() {
        return Error::new(ErrorKind::Cancelled, "the statement was stopped");
    }
    Error::new(
        ErrorKind::Engine,
        "the engine failed on this statement; its session stays usable",
    )
    .with_sqlstate("XX000")
    .with_cause(error)
}

/// A feature that the engine does not have, or that sessions may not use.
pub(super) fn unsupported(message: impl Into<String>) -> Error {
    Error::invalid("0A000", message)
}

/// A DataFusion error that carries one of ours through its layers, to be found again by
/// [`translate`].
pub(super) fn carry(error: Error) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

fn fault_of(kind: ErrorKind) -> Fault {
    if kind == ErrorKind::Overloaded {
        Fault::Gateway
    } else {
        Fault::Client
    }
}

/// An error of ours that travelled inside of DataFusion's, arrow's or the object store's.
fn own_error(error: &DataFusionError) -> Option<Error> {
    chain(error).find_map(|cause| cause.downcast_ref::<Error>().cloned())
}

fn disk_full(error: &DataFusionError) -> Option<Error> {
    let full = chain(error).any(|cause| {
        cause
            .downcast_ref::<io::Error>()
            .is_some_and(|io| io.kind() == io::ErrorKind::StorageFull)
    });
    let text = error.to_string();
    let message = if text.contains(SPILL_LIMIT) {
        "the statement needs more temporary disk space than the engine may use for spilling"
    } else if full || text.contains("No space left on device") {
        "the disk is full"
    } else {
        return None;
    };
    Some(Error::new(ErrorKind::Overloaded, message).with_sqlstate("53100"))
}

fn chain<'a>(error: &'a DataFusionError) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    let first: &'a (dyn StdError + 'static) = error;
    let next = |cause: &&'a (dyn StdError + 'static)| (*cause).source();
    std::iter::successors(Some(first), next).take(MAX_CHAIN)
}

/// Where in the text the mistake is, as far as the planner knows.
fn position(error: &DataFusionError) -> Option<(u64, u64)> {
    let start = error.diagnostic()?.span?.start;
    (start.line > 0).then_some((start.line, start.column))
}

enum Root<'a> {
    DataFusion(&'a DataFusionError),
    Arrow(&'a ArrowError),
    ObjectStore(&'a object_store::Error),
}

/// The innermost error that says more than "something below failed".
fn root(error: &DataFusionError) -> Root<'_> {
    match error.find_root() {
        DataFusionError::ArrowError(cause, _) => Root::Arrow(cause),
        DataFusionError::ObjectStore(cause) => Root::ObjectStore(cause),
        cause @ DataFusionError::External(inner) => {
            if let Some(cause) = inner.downcast_ref::<ArrowError>() {
                Root::Arrow(cause)
            } else if let Some(cause) = inner.downcast_ref::<object_store::Error>() {
                Root::ObjectStore(cause)
            } else {
                Root::DataFusion(cause)
            }
        }
        cause => Root::DataFusion(cause),
    }
}

type Translated = (ErrorKind, &'static str, String);

fn from_datafusion(error: &DataFusionError) -> Translated {
    let message = text(error);
    match error {
        DataFusionError::SQL(cause, _) => (ErrorKind::Invalid, "42601", parser_text(cause)),
        DataFusionError::SchemaError(cause, _) => {
            (ErrorKind::Invalid, schema_sqlstate(cause), message)
        }
        DataFusionError::Plan(_) => (ErrorKind::Invalid, plan_sqlstate(&message), message),
        DataFusionError::Execution(_) => {
            (ErrorKind::Invalid, execution_sqlstate(&message), message)
        }
        DataFusionError::NotImplemented(_) => (ErrorKind::Invalid, "0A000", message),
        DataFusionError::Configuration(_) => (ErrorKind::Invalid, "22023", message),
        DataFusionError::ResourcesExhausted(_) => {
            let message = format!("the statement needs more memory than it may use: {message}");
            (ErrorKind::Overloaded, "53200", message)
        }
        DataFusionError::ParquetError(_) | DataFusionError::IoError(_) => {
            (ErrorKind::Engine, "58030", message)
        }
        // DataFusion takes types that do not fit for a fault of its own in some places.
        DataFusionError::Internal(_) if message.contains("coerce types") => {
            (ErrorKind::Invalid, "42804", message)
        }
        _ => (ErrorKind::Engine, "XX000", message),
    }
}

fn from_arrow(error: &ArrowError) -> Translated {
    let message = error.to_string();
    let (kind, sqlstate) = match error {
        ArrowError::DivideByZero => (ErrorKind::Invalid, "22012"),
        ArrowError::ArithmeticOverflow(_) => (ErrorKind::Invalid, "22003"),
        ArrowError::CastError(text) => (ErrorKind::Invalid, cast_sqlstate(text)),
        ArrowError::ParseError(_) => (ErrorKind::Invalid, "22018"),
        ArrowError::InvalidArgumentError(text) if text.contains(" to store in ") => {
            (ErrorKind::Invalid, "22003")
        }
        ArrowError::InvalidArgumentError(_) => (ErrorKind::Invalid, "22023"),
        ArrowError::ComputeError(text) => (ErrorKind::Invalid, execution_sqlstate(text)),
        ArrowError::SchemaError(_) => (ErrorKind::Invalid, "42804"),
        ArrowError::NotYetImplemented(_) => (ErrorKind::Invalid, "0A000"),
        ArrowError::MemoryError(_) => (ErrorKind::Overloaded, "53200"),
        ArrowError::CsvError(_)
        | ArrowError::JsonError(_)
        | ArrowError::ParquetError(_)
        | ArrowError::IpcError(_)
        | ArrowError::AvroError(_)
        | ArrowError::IoError(_, _) => (ErrorKind::Engine, "58030"),
        _ => (ErrorKind::Engine, "XX000"),
    };
    (kind, sqlstate, message)
}

fn from_object_store(error: &object_store::Error) -> Translated {
    let (kind, sqlstate) = match error {
        object_store::Error::NotFound { .. } => (ErrorKind::Invalid, "58P01"),
        object_store::Error::AlreadyExists { .. } => (ErrorKind::Invalid, "58P02"),
        object_store::Error::InvalidPath { .. } => (ErrorKind::Invalid, "22023"),
        object_store::Error::NotSupported { .. } | object_store::Error::NotImplemented { .. } => {
            (ErrorKind::Invalid, "0A000")
        }
        _ => (ErrorKind::Engine, "58030"),
    };
    (kind, sqlstate, error.to_string())
}

fn schema_sqlstate(error: &SchemaError) -> &'static str {
    match error {
        SchemaError::FieldNotFound { .. } => "42703",
        SchemaError::AmbiguousReference { .. } => "42702",
        SchemaError::DuplicateQualifiedField { .. }
        | SchemaError::DuplicateUnqualifiedField { .. } => "42701",
    }
}

/// DataFusion tells planning errors apart by their words alone; what no phrase fits is 42000.
fn plan_sqlstate(message: &str) -> &'static str {
    const PHRASES: [(&str, &str); 19] = [
        ("Invalid function", "42883"),
        ("No function matches", "42883"),
        ("There is no UDF", "42883"),
        ("table function", "42883"),
        ("failed to resolve schema", "3F000"),
        ("failed to resolve catalog", "3F000"),
        ("already exists", "42P07"),
        ("must be in GROUP BY", "42803"),
        ("must appear in the GROUP BY", "42803"),
        ("could not be resolved from available columns", "42803"),
        ("No field named", "42703"),
        ("oerce", "42804"),
        ("Cannot infer common argument type", "42804"),
        ("Cannot cast", "42804"),
        ("Cannot automatically convert", "42804"),
        ("types", "42804"),
        ("data type", "42804"),
        ("Unsupported", "0A000"),
        ("not supported", "0A000"),
    ];
    if message.starts_with("table '") && message.contains("not found") {
        return "42P01";
    }
    PHRASES
        .iter()
        .find(|(phrase, _)| message.contains(phrase))
        .map_or("42000", |(_, code)| code)
}

fn execution_sqlstate(message: &str) -> &'static str {
    let lower = message.to_ascii_lowercase();
    if lower.contains("divide by zero") || lower.contains("division by zero") {
        "22012"
    } else if lower.contains("overflow") {
        "22003"
    } else if lower.contains("cast") || lower.contains("parse") || lower.contains("parsing") {
        "22018"
    } else if lower.contains("already exists") {
        if lower.starts_with("schema") {
            "42P06"
        } else {
            "42P07"
        }
    } else if lower.contains("doesn't exist") {
        if lower.starts_with("schema") {
            "3F000"
        } else {
            "42P01"
        }
    } else {
        "22000"
    }
}

fn cast_sqlstate(message: &str) -> &'static str {
    if message.contains("out of range") || message.contains("Can't cast value") {
        "22003"
    } else {
        "22018"
    }
}

fn parser_text(error: &ParserError) -> String {
    match error {
        ParserError::TokenizerError(text) | ParserError::ParserError(text) => text.clone(),
        ParserError::RecursionLimitExceeded => "the statement is nested too deeply".to_owned(),
    }
}

/// DataFusion's words without its advice to file a bug and without a backtrace.
fn text(error: &DataFusionError) -> String {
    let message = match error {
        DataFusionError::Internal(text) => text.clone(),
        other => other.message().into_owned(),
    };
    let end = message
        .find(DataFusionError::BACK_TRACE_SEP)
        .unwrap_or(message.len());
    let message = &message[..end];
    let end = message
        .find("\nThis issue was likely caused by a bug")
        .unwrap_or(message.len());
    message[..end].trim_end().to_owned()
}

fn bounded(mut message: String) -> String {
    if message.len() > MAX_MESSAGE {
        let end = message.floor_char_boundary(MAX_MESSAGE - '…'.len_utf8());
        message.truncate(end);
        message.push('…');
    }
    message
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_ours_is_found_below_any_layer() {
        let own = Error::new(ErrorKind::Forbidden, "no");
        let store = object_store::Error::PermissionDenied {
            path: "x".to_owned(),
            source: Box::new(own),
        };
        let arrow = ArrowError::from_external_error(Box::new(DataFusionError::from(store)));
        let error = translate(DataFusionError::from(arrow).context("reading"));
        assert_eq!(
            (error.kind(), error.message()),
            (ErrorKind::Forbidden, "no")
        );
        assert_eq!(error.sqlstate(), "42501");
    }

    #[test]
    fn texts_are_clean_and_bounded() {
        let error = translate(DataFusionError::Internal("x".repeat(10_000)));
        assert_eq!(error.message().len(), MAX_MESSAGE);
        assert_eq!(
            (error.kind(), error.sqlstate()),
            (ErrorKind::Engine, "XX000")
        );
        let error = translate(DataFusionError::Internal("odd".to_owned()));
        assert_eq!(error.message(), "odd");
        let text = "Failed to coerce types Boolean and Int64 in BETWEEN expression";
        let error = translate(DataFusionError::Internal(text.to_owned()));
        assert_eq!(
            (error.kind(), error.sqlstate()),
            (ErrorKind::Invalid, "42804")
        );
    }

    #[test]
    fn a_full_disk_is_told_from_memory() {
        let io = io::Error::new(io::ErrorKind::StorageFull, "full");
        let error = translate(DataFusionError::IoError(io));
        assert_eq!((error.sqlstate(), error.retryable()), ("53100", true));
        let limit = io::Error::other(format!("The {SPILL_LIMIT} the allowable limit of 1 B"));
        let error = translate(DataFusionError::ArrowError(
            Box::new(ArrowError::IoError(limit.to_string(), limit)),
            None,
        ));
        assert_eq!(
            (error.kind(), error.sqlstate()),
            (ErrorKind::Overloaded, "53100")
        );
        let error = translate(DataFusionError::ResourcesExhausted("more".to_owned()));
        assert_eq!(
            (error.kind(), error.sqlstate()),
            (ErrorKind::Overloaded, "53200")
        );
    }

    #[test]
    fn arithmetic_has_its_classes() {
        for (error, expected) in [
            (ArrowError::DivideByZero, "22012"),
            (ArrowError::ArithmeticOverflow("x".into()), "22003"),
            (
                ArrowError::CastError("Cannot cast string 'x'".into()),
                "22018",
            ),
        ] {
            assert_eq!(translate(error.into()).sqlstate(), expected);
        }
    }
}
