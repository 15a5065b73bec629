//! Names of the headers and trailers that the gateway sends, in the lower case of HTTP/2.

/// The operation whose result it is. Known before the first byte.
pub const OPERATION_ID: &str = "sluice-operation-id";
/// The session that the operation belongs to. Known before the first byte.
pub const SESSION_ID: &str = "sluice-session-id";
/// Trailer: rows that were sent, decimal.
pub const ROWS: &str = "sluice-rows";
/// Trailer: record batches that were sent, decimal.
pub const BATCHES: &str = "sluice-batches";
/// Trailer: bytes of message metadata and bodies, framing and end marker excluded, decimal.
pub const BYTES: &str = "sluice-bytes";
/// Trailer: xxh3-64 over each message's metadata and body, schema first, chained: the seed of a
/// message is the value of the one before, and 0 for the first. 16 hexadecimal digits.
pub const DIGEST: &str = "sluice-digest";
/// Trailer: `true` when rows were left out because of `result.max.rows` or `maxRows`.
pub const TRUNCATED: &str = "sluice-truncated";

/// What `Trailer` announces for an Arrow stream.
pub const ARROW_TRAILERS: &str =
    "sluice-rows, sluice-batches, sluice-bytes, sluice-digest, sluice-truncated";
/// What `Trailer` announces for text forms, whose bytes are not those of the messages.
pub const TEXT_TRAILERS: &str = "sluice-rows, sluice-truncated";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_announced_trailers_are_the_ones_there_are() {
        assert_eq!(
            [ROWS, BATCHES, BYTES, DIGEST, TRUNCATED].join(", "),
            ARROW_TRAILERS
        );
        assert_eq!([ROWS, TRUNCATED].join(", "), TEXT_TRAILERS);
    }
}
