//! The HTTP door: the REST API under `/api/v1`, over HTTP/1.1 and HTTP/2. Decodes requests, calls
//! the core, encodes answers. Owns the bounds of a connection; must not know SQL or engines.
//!
//! ```text
//!   mod (connections) ─▶ routes ─▶ caller, decode ─▶ sessions, operations, metadata, results, rows
//!                                                        │ core::service::Gateway
//!                        socket ◀─ stream | text ◀───────┘ core::result::ResultStream
//! ```

mod activity;
mod answer;
mod caller;
mod connection;
mod cursor;
mod decode;
mod error;
mod metadata;
mod operations;
mod reader;
mod results;
mod routes;
mod rows;
mod sessions;
mod stream;
mod text;
mod upload;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use sluice_core::auth::Authenticator;
use sluice_core::profile::ClientProfiles;
use sluice_core::service::Gateway;

use self::cursor::Cursors;
pub(crate) use self::error::row as error_row;

/// The bounds of the door, and what it says of itself.
#[derive(Clone, Debug)]
pub struct HttpSettings {
    /// What answers call this gateway: `host:port`.
    pub instance: String,
    /// What programs are known to read.
    pub clients: ClientProfiles,
    /// Statements that may run at one time, as the statistic of them says.
    pub operations: usize,
    /// Bytes of a request's body.
    pub max_body: u64,
    /// Bytes of a request's head.
    pub max_head: usize,
    /// The head of a request, and the first one on a connection, may take so long.
    pub header_timeout: Duration,
    /// The body of a request may take so long.
    pub body_timeout: Duration,
    /// A connection on which nothing is asked or answered for so long is closed.
    pub idle_timeout: Duration,
    /// Requests at one time on a connection of HTTP/2.
    pub max_streams: u32,
    /// A peer on HTTP/2 is asked so often whether it is there.
    pub ping_interval: Duration,
    /// It has so long to answer.
    pub ping_timeout: Duration,
    /// A single larger row is an error.
    pub max_row_bytes: u64,
    /// Rows in one answer to a fetch.
    pub max_fetch_rows: u64,
    /// Rows that are fetched in pieces are given up when nobody asks for the next for so long.
    pub fetch_idle: Duration,
}

impl Default for HttpSettings {
    fn default() -> Self {
        Self {
            instance: "localhost".to_owned(),
            clients: ClientProfiles::default(),
            operations: 0,
            max_body: 1 << 20,
            max_head: 64 << 10,
            header_timeout: Duration::from_secs(30),
            body_timeout: Duration::from_secs(30),
            idle_timeout: Duration::from_secs(300),
            max_streams: 128,
            ping_interval: Duration::from_secs(20),
            ping_timeout: Duration::from_secs(20),
            max_row_bytes: 1 << 30,
            max_fetch_rows: 10_000,
            fetch_idle: Duration::from_secs(600),
        }
    }
}

/// The door.
pub struct Http {
    router: Router,
    settings: HttpSettings,
}

impl Http {
    /// A door to `gateway` for those whom `authenticator` knows.
    pub fn new(
        gateway: Gateway,
        authenticator: Arc<dyn Authenticator>,
        settings: HttpSettings,
    ) -> Self {
        let cursors = Cursors::new(settings.fetch_idle);
        let door = Door {
            gateway,
            authenticator,
            settings: settings.clone(),
            cursors,
        };
        Self {
            router: routes::router(Arc::new(door)),
            settings,
        }
    }
}

/// What handlers share.
struct Door {
    gateway: Gateway,
    authenticator: Arc<dyn Authenticator>,
    settings: HttpSettings,
    cursors: Arc<Cursors>,
}

type Shared = Arc<Door>;
