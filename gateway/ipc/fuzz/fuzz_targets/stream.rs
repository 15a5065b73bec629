//! Any bytes as a stream: an error or valid batches, in bounded memory.
#![no_main]

use bytes::Bytes;
use sluice_ipc::{Decoder, Frame, Frames, Limits};

const LIMITS: Limits = Limits {
    max_header: 1 << 20,
    max_body: 1 << 20,
    max_decompressed: 16 << 20,
};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let (mut frames, mut decoder, mut known) = (Frames::new(LIMITS), Decoder::new(LIMITS), false);
    frames.push(Bytes::copy_from_slice(bytes));
    while let Ok(Some(Frame::Message(message))) = frames.next() {
        let read = if known {
            decoder.decode(&message).map(drop)
        } else {
            decoder.schema(&message).map(drop)
        };
        known |= read.is_ok();
    }
});
