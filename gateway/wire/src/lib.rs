//! What goes over the wire, as bytes and values: HTTP bodies, media types, credentials, headers.
//!
//! Front ends and the client SDK share this package, so that both sides spell a thing the same
//! way. Bytes to values and back: no sockets, no runtime, no Arrow arrays, and nothing of the
//! gateway's core, which front ends map to these types.

pub mod http;
