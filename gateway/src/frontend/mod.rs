//! The doors: each decodes a protocol, calls the core and encodes the answer. No door knows
//! another, reads SQL text, or knows an engine.

pub mod admin;
pub mod http;

use sluice_core::error::ErrorKind;

/// What each door makes of an error of `kind`, under the door's name: for the test that walks all
/// kinds over all doors.
pub fn error_table(kind: ErrorKind) -> Vec<(&'static str, String)> {
    let (status, name) = http::error_row(kind);
    vec![("http", format!("{} {name}", status.as_u16()))]
}
