//! The doors of the gateway as the battery sees them: log in, run a statement, get rows or an
//! error. A new door is one file beside this one and one line in [`all`]. Must not know engines.

pub mod rest;
mod sdk;

use std::fmt;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use async_trait::async_trait;
use sluice_core::error::ErrorKind;
use sluice_ipc::Codec;

use crate::gateway::TestGateway;
use crate::http::Version;

/// All doors.
pub fn all() -> Vec<Box<dyn Door>> {
    vec![
        Box::new(rest::Sessions(Version::Http1)),
        Box::new(rest::Sessions(Version::Http2)),
        Box::new(rest::OneCall),
        Box::new(sdk::Sdk),
    ]
}

/// One way in.
#[async_trait]
pub trait Door: Send + Sync {
    /// The door's name, for reports.
    fn name(&self) -> &'static str;

    /// Whether a bound on rows can be given beside the statement, and `truncated` comes back.
    fn tells_truncation(&self) -> bool {
        true
    }

    /// Whether settings that a statement makes are in force for the next one.
    fn keeps_session(&self) -> bool {
        true
    }

    /// Whether a statement that was cancelled in mid-stream is told from a link that was cut.
    fn tells_cancelled_from_cut(&self) -> bool {
        true
    }

    /// Logs in as the gateway's first user, with `settings`, as a client that reads everything.
    ///
    /// # Errors
    /// Why there is no session.
    async fn connect(
        &self,
        gateway: &TestGateway,
        settings: &[(&str, &str)],
    ) -> Result<Box<dyn Line>, Failure>;
}

/// A logged-in client.
#[async_trait]
pub trait Line: Send {
    /// Runs `statement` and reads its rows to the end.
    ///
    /// # Errors
    /// What the client is told, before or after the first row.
    async fn run(&mut self, statement: &str, max_rows: Option<u64>) -> Result<Answer, Failure>;
}

/// A result that came whole.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The schema that was announced.
    pub schema: SchemaRef,
    /// The rows.
    pub batches: Vec<RecordBatch>,
    /// How each message with rows was compressed, where the door shows that.
    pub codecs: Vec<Codec>,
    /// Whether rows were left out, where the door says so.
    pub truncated: Option<bool>,
    /// Bytes of messages as they travelled.
    pub bytes: u64,
}

impl Answer {
    /// Rows of all batches.
    pub fn rows(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }
}

/// What a client is told when something went wrong.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The kind, where the client is told one.
    pub kind: Option<ErrorKind>,
    /// SQLSTATE, where there is one.
    pub sqlstate: String,
    /// The text for a person.
    pub message: String,
}

impl Failure {
    /// A failure that the client saw by itself.
    pub fn seen(message: impl fmt::Display) -> Self {
        Self {
            kind: None,
            sqlstate: String::new(),
            message: message.to_string(),
        }
    }

    /// The kind of that name.
    pub(crate) fn kind_of(name: &str) -> Option<ErrorKind> {
        ErrorKind::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = self.kind.map_or("seen by the client", ErrorKind::name);
        write!(f, "{kind} ({}): {}", self.sqlstate, self.message)
    }
}

impl std::error::Error for Failure {}
