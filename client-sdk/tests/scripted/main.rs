//! The client against a scripted gateway over real TLS: good results, results that lie, break and
//! stall, strangers, and what the gateway is told.
#![allow(clippy::unwrap_used)]

mod blocking;
mod command;
mod gateway;
mod lifetime;
mod results;
mod trust;
