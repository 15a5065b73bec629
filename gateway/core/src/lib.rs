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

pub mod error;
pub mod auth;
pub mod client;
pub mod handle;
pub mod settings;
pub mod statement;
pub mod engine;
mod quota;
pub mod session;
pub mod operation;
pub mod result;
pub mod delivery;
mod answer;
mod run;
pub mod service;
