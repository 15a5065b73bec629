//! The traits that an engine implements, and what passes through them.
//!
//! Engines decide *what* the rows are. They get a text and settings, and give a schema and a
//! stream of batches, or of Arrow IPC messages where they have those already. They must not know
//! who asked, and they apply no limit of ours.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use async_trait::async_trait;
use futures::stream::BoxStream;
use sluice_ipc::Message;

use crate::error::Result;

/// Batches as an engine produces them. Dropping the stream stops the query.
pub type BatchStream = BoxStream<'static, Result<RecordBatch>>;

/// Arrow IPC messages as an engine sends them: dictionary and record batches, schema excluded.
pub type MessageStream = BoxStream<'static, Result<Message>>;

/// One engine as configured under `[engines.NAME]`.
#[async_trait]
pub trait Engine: Send + Sync {
    /// How the engine reads SQL, for finding a literal `LIMIT`.
    fn dialect(&self) -> Dialect;

    /// Prefixes of settings that are the engine's own, such as `datafusion.`, in lower case.
    fn setting_prefixes(&self) -> &'static [&'static str];

    /// Opens a session of the engine for one session of the gateway.
    async fn open(&self, options: SessionOptions) -> Result<Arc<dyn EngineSession>>;

    /// Whether the engine would take a statement now; for readiness.
    async fn probe(&self) -> Result<()>;
}

/// What a new engine session starts with.
#[derive(Clone, Debug, Default)]
pub struct SessionOptions {
    /// Default catalog, the engine's own when absent.
    pub catalog: Option<String>,
    /// Default schema, the engine's own when absent.
    pub schema: Option<String>,
    /// IANA zone or offset for timestamps with time zone.
    pub time_zone: String,
}

/// The SQL dialect in which a text is looked at (and never rewritten).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[allow(missing_docs)]
pub enum Dialect {
    DataFusion,
    Hive,
}

/// One session of an engine. Calls may come at the same time from several operations.
#[async_trait]
pub trait EngineSession: Send + Sync {
    /// Plans `query` and starts it as far as its schema. Dropping the returned future, or later
    /// the stream, stops the query within a second.
    ///
    /// # Errors
    /// `Invalid` with SQLSTATE class 42 or 22 for what is wrong with the statement, with the
    /// engine's own message and position; `Forbidden` for what the user may not touch;
    /// `Overloaded` with class 53 when memory or disk is out; `Engine` for failures of its own.
    async fn execute(&self, query: Query) -> Result<Execution>;

    /// Sets one of the engine's own settings, which is checked at once.
    ///
    /// # Errors
    /// `Invalid` (22023) naming the allowed values, or (42704) with the nearest names.
    async fn set(&self, key: &str, value: &str) -> Result<()>;

    /// Puts one of the engine's own settings back to its default.
    async fn reset(&self, key: &str) -> Result<()>;

    /// The engine's own settings with their present values, by key.
    async fn settings(&self) -> Result<Vec<EngineSetting>>;

    /// The zone for timestamps with time zone, already checked by the gateway.
    async fn set_time_zone(&self, zone: &str) -> Result<()>;

    /// Makes a catalog, a schema or both the default; `None` keeps what is in force.
    ///
    /// # Errors
    /// `Invalid` (3F000) when there is none of that name, with the names there are.
    async fn use_schema(&self, catalog: Option<&str>, schema: Option<&str>) -> Result<()>;

    /// The default catalog and schema in force.
    async fn current_schema(&self) -> Result<(String, String)>;

    /// Answers a question about catalogs, schemas, tables or columns, with the column names of
    /// JDBC's `DatabaseMetaData`.
    async fn metadata(&self, request: MetadataRequest) -> Result<Execution>;
}

/// A statement for an engine: the user's text, unchanged.
#[derive(Clone, Debug)]
pub struct Query {
    /// The text, just as it came.
    pub text: Arc<str>,
    /// Rows after which the gateway will stop reading; an engine may use it, none needs to.
    pub row_hint: Option<u64>,
}

/// A query that has started.
pub struct Execution {
    /// The schema that all of `output` has.
    pub schema: SchemaRef,
    /// The rows.
    pub output: Output,
}

/// The rows of a query, in whichever form costs the engine least.
pub enum Output {
    /// Record batches.
    Batches(BatchStream),
    /// Encoded Arrow IPC messages, which are checked before anything trusts them.
    Messages(MessageStream),
}

/// One of an engine's own settings.
#[derive(Clone, Debug, PartialEq)]
pub struct EngineSetting {
    /// The whole key with its prefix.
    pub key: String,
    /// The value in force, as text.
    pub value: String,
    /// What it does, in the engine's words.
    pub description: String,
}

/// Questions about what an engine holds. Patterns are SQL `LIKE` patterns with `\` as escape;
/// `None` means any.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum MetadataRequest {
    Catalogs,
    Schemas {
        catalog: Option<String>,
        schema: Option<String>,
    },
    Tables {
        catalog: Option<String>,
        schema: Option<String>,
        table: Option<String>,
        types: Vec<String>,
    },
    TableTypes,
    Columns {
        catalog: Option<String>,
        schema: Option<String>,
        table: Option<String>,
        column: Option<String>,
    },
    Functions {
        name: Option<String>,
    },
    TypeInfo,
}

impl MetadataRequest {
    /// What is asked, in one word, for logs and records.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Catalogs => "catalogs",
            Self::Schemas { .. } => "schemas",
            Self::Tables { .. } => "tables",
            Self::TableTypes => "tableTypes",
            Self::Columns { .. } => "columns",
            Self::Functions { .. } => "functions",
            Self::TypeInfo => "typeInfo",
        }
    }
}
