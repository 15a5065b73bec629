//! Statements as values: what a text says, before anybody acts on it. What is the session's own
//! (`SET`, `RESET`, `SHOW`, `USE`, `EXPLAIN DELIVERY`) is parsed here, whole or not at all; every
//! other text is a [`Query`] and goes to the engine as it is.
//!
//! Must not know sessions, engines or keys of settings (that of `TIME ZONE` apart): a name is a name.

mod cursor;
mod lexer;
mod limit;
mod parse;
mod redact;

pub use limit::literal_limit;
pub use parse::parse;
pub use redact::redact;

/// One statement.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Statement {
    /// `SET key = value`, `SET key TO value`.
    Set(Set),
    /// `SET TIME ZONE zone`, apart because it names no key.
    SetTimeZone(SetTimeZone),
    /// `RESET`, `RESET key`, and `SET TIME ZONE LOCAL`, which means the default zone.
    Reset(Reset),
    /// `SHOW key`, `SET key`, each also verbose.
    Show(Show),
    /// `SHOW ALL`, `SET`, `SET -v`.
    ShowAll(ShowAll),
    /// `SHOW DELIVERY`.
    ShowDelivery,
    /// `SHOW CLIENT`.
    ShowClient,
    /// `USE schema`, `USE catalog.schema`, `USE CATALOG catalog`.
    Use(Use),
    /// `EXPLAIN DELIVERY statement`.
    ExplainDelivery(ExplainDelivery),
    /// Everything else.
    Query(Query),
}

/// Sets a value.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Set {
    /// The key as it was written, without its quotes.
    pub key: String,
    /// The value, unquoted or trimmed.
    pub value: String,
}

/// Sets the session's time zone.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SetTimeZone {
    /// The zone as it was written.
    pub zone: String,
}

/// Takes values back.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Reset {
    /// The one key; all of them when absent.
    pub key: Option<String>,
}

/// Shows one setting.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Show {
    /// The key as it was written, without its quotes.
    pub key: String,
    /// With default, source and description.
    pub verbose: bool,
}

/// Shows all settings.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ShowAll {
    /// With default, source and description.
    pub verbose: bool,
}

/// Makes a catalog, a schema or both the default.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Use {
    /// The catalog, if it is to change. Names without quotes are in lower case.
    pub catalog: Option<String>,
    /// The schema, if it is to change. Names without quotes are in lower case.
    pub schema: Option<String>,
}

/// Runs a statement for its delivery report.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ExplainDelivery {
    /// The statement's text.
    pub statement: String,
}

/// A text for the engine.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Query {
    /// The text, unchanged.
    pub text: String,
}
