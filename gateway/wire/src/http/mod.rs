//! The REST API under `/api/v1`: the bodies of requests and answers, the names of headers and
//! trailers, media types and credentials. Must not know how a request is served.
//!
//! Paths, names and shapes are those of Apache Kyuubi's REST API v1 where that has them. Requests
//! refuse fields that they do not know, by name; answers are read leniently, so that an older
//! client understands a newer gateway.

mod accept;
mod configs;
pub mod credentials;
mod delivery;
mod error;
pub mod headers;
mod integer;
pub mod media;
mod metadata;
mod openapi;
mod operation;
mod rows;
mod session;

pub use configs::Configs;
pub use delivery::{DeliveryReport, verdict};
pub use error::{ErrorBody, ErrorDetail, kind};
pub use metadata::{ColumnsRequest, FunctionsRequest, SchemasRequest, TablesRequest};
pub use openapi::OPENAPI;
pub use operation::{
    Action, Column, OperationAction, OperationData, OperationEvent, OperationOpened, QueryRequest,
    ResultSetMetadata, StatementRequest, state,
};
pub use rows::{Field, LogRowSet, Row, RowSet, field};
pub use session::{
    Count, ExecPool, InfoValue, OpenSessionRequest, SessionData, SessionEvent, SessionOpened,
    Version,
};
