//! Sockets: listening, accepting, TLS, stopping. Must not know which protocol a door speaks.

pub mod drain;
pub mod listener;
pub mod serve;
pub mod tls;
mod validity;
