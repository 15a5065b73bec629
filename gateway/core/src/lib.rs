//! The core of the gateway: sessions, settings, statements, operations and results.
//!
//! Front ends call [`service::Gateway`] and nothing else; engines implement [`engine::Engine`]
//! and nothing else. What a front end sees of a result is one type, [`sluice_ipc::Encoded`].
//! This package knows no socket, no protocol and no engine.
//!
//! ```text
//!   front end ──▶ service ──▶ session ──▶ statement ──▶ operation ──▶ engine (trait)
//!   front end ◀── result::stream ◀── encode ◀── shape ◀── limit ◀──────┘
//! ```

mod answer;
pub mod auth;
pub mod client;
pub mod delivery;
pub mod engine;
pub mod error;
pub mod handle;
pub mod operation;
pub mod profile;
mod quota;
pub mod result;
mod run;
pub mod service;
pub mod session;
pub mod settings;
mod shared;
pub mod statement;
