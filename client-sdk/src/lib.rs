//! The client of the Sluice result-set gateway: SQL in, Arrow record batches out, over TLS.
//!
//! ```no_run
//! use futures::TryStreamExt;
//! use sluice_client::Client;
//!
//! # async fn run() -> sluice_client::Result<()> {
//! let client = Client::builder("sluice://gateway.example:8443/lake.tpch")
//!     .user("ada")
//!     .password("secret")
//!     .setting("arrow.compression.codec", "zstd")
//!     .build()?;
//! let session = client.session().await?;
//! let mut rows = session.query("SELECT * FROM lineitem").await?;
//! while let Some(batch) = rows.try_next().await? {
//!     println!("{} rows", batch.num_rows());
//! }
//! // Only now it is known that no row is missing.
//! assert!(rows.summary().complete);
//! session.close().await
//! # }
//! ```
//!
//! - **Complete or an error.** A result ends well only when its end marker, the clean end of the
//!   body, and the gateway's own counts and hash agree with what was read. That finds accidents,
//!   not attackers; those are TLS's part.
//! - **Bounded.** Messages are read when the caller asks for rows, up to three ahead, each within
//!   [`Limits`]. A slow reader slows the gateway down.
//! - **Stopped when nobody reads.** Dropping an unfinished [`ResultStream`] stops its statement.
//!
//! [`blocking`] has the same for threads. Layers, from the outside in: `client` → `session` →
//! `stream` → `reader`, `decode`, `proof` → `operation` → `transport` → `tls`, `address`.

mod address;
pub mod blocking;
mod client;
mod decode;
mod error;
mod operation;
mod proof;
mod reader;
pub mod render;
mod reply;
pub mod report;
mod session;
mod stream;
mod tls;
mod transport;

pub use sluice_ipc::{Codec, Limits};
pub use sluice_wire::http::DeliveryReport;

pub use client::{Client, ClientBuilder};
pub use error::{Error, ErrorKind, Result};
pub use operation::Canceller;
pub use session::{QueryOptions, Session};
pub use stream::{ResultStream, Summary};
