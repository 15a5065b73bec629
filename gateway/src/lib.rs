//! The Sluice gateway: SQL in, compressed Arrow out, over TLS.
//!
//! `app` wires everything and is where to begin; the way of a request is net → frontend → core →
//! engine and back. This package must not hold anything that the core could: it knows sockets,
//! protocols, engines and the process.

pub mod app;
pub mod auth;
pub mod config;
pub mod demo;
pub mod engine;
pub mod frontend;
pub mod net;
pub mod observe;
