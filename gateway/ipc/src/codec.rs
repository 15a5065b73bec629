//! One buffer in, one buffer out: the only place that calls a compressor. Owns the contexts, one of
//! each kind a thread, and the form of a compressed buffer (Arrow columnar format, "Compression"):
//! nothing for an empty one, else an int64 length and a frame, or -1 and the bytes as they are.
//! Must not know messages.

use std::cell::RefCell;
use std::io::{BufRead, Cursor, Write};

use arrow_buffer::Buffer;
use lz4_flex::frame::{BlockSize, FrameDecoder, FrameEncoder, FrameInfo};
use zstd_safe::{CCtx, CParameter, DCtx, ResetDirective};

use crate::error::{Error, Result};
use crate::message::Codec;

/// How buffers are to be compressed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Compression {
    /// The codec.
    pub codec: Codec,
    /// The level, for zstd only: -7 to 22, not 0.
    pub level: i32,
}

impl Compression {
    pub(crate) fn check(self) -> Result<()> {
        match (self.codec, self.level) {
            (Codec::Zstd, 0) => Err(Error::Level(0)),
            (Codec::Zstd, level) if !(-7..=22).contains(&level) => Err(Error::Level(level)),
            _ => Ok(()),
        }
    }
}

/// Bytes of the length that stands before a frame.
const PREFIX: usize = 8;

/// The length that says "stored, not compressed".
const STORED: i64 = -1;

/// No frame of either codec is shorter, so trying would be in vain.
const SHORTEST_FRAME: usize = 10;

/// The window is bounded for larger buffers: level 22 would take 700 MB for one buffer of 128 MiB.
const WINDOW_LOG: u32 = 22;

/// A context that has grown larger than this is not kept.
const KEPT_CONTEXT: usize = 16 << 20;

thread_local! {
    static ZSTD_ENCODER: RefCell<Option<CCtx<'static>>> = const { RefCell::new(None) };
    static ZSTD_DECODER: RefCell<Option<DCtx<'static>>> = const { RefCell::new(None) };
    static LZ4_ENCODER: RefCell<Option<FrameEncoder<Vec<u8>>>> = const { RefCell::new(None) };
}

/// Appends `raw` to `body`, compressed when that makes it smaller.
pub(crate) fn compress(raw: &[u8], compression: Compression, body: &mut Vec<u8>) -> Result<()> {
    if compression.codec == Codec::None || raw.is_empty() {
        body.extend_from_slice(raw);
        return Ok(());
    }
    let start = body.len();
    body.extend_from_slice(&(raw.len() as i64).to_le_bytes());
    let smaller = raw.len() > SHORTEST_FRAME
        && match compression.codec {
            Codec::Zstd => compress_zstd(raw, compression.level, body)?,
            Codec::Lz4 | Codec::None => compress_lz4(raw, body)?,
        };
    if !smaller {
        body.truncate(start);
        body.extend_from_slice(&STORED.to_le_bytes());
        body.extend_from_slice(raw);
    }
    Ok(())
}

/// Appends a frame to `body` and says whether it is smaller than `raw`; if not, what is appended is garbage.
fn compress_zstd(raw: &[u8], level: i32, body: &mut Vec<u8>) -> Result<bool> {
    ZSTD_ENCODER.with_borrow_mut(|kept| {
        // On any error the context is dropped with its state.
        let mut context = match kept.take() {
            Some(context) => context,
            None => CCtx::try_create().ok_or_else(|| failed("zstd", "no memory"))?,
        };
        let set = |context: &mut CCtx<'_>, parameter| {
            context
                .set_parameter(parameter)
                .map(drop)
                .map_err(zstd_failed)
        };
        set(&mut context, CParameter::CompressionLevel(level))?;
        let window = if raw.len() >> WINDOW_LOG == 0 {
            0
        } else {
            WINDOW_LOG
        };
        set(&mut context, CParameter::WindowLog(window))?;

        body.reserve(raw.len());
        let start = body.len();
        let mut place = Cursor::new(&mut *body);
        place.set_position(start as u64);
        let smaller = match context.compress2(&mut place, raw) {
            Ok(size) => size < raw.len(),
            Err(code) if zstd_safe::get_error_name(code) == TOO_SMALL => {
                context
                    .reset(ResetDirective::SessionOnly)
                    .map_err(zstd_failed)?;
                false
            }
            Err(code) => return Err(zstd_failed(code)),
        };
        if context.sizeof() <= KEPT_CONTEXT {
            *kept = Some(context);
        }
        Ok(smaller)
    })
}

/// zstd's name for "the frame does not fit", which here means "not smaller".
const TOO_SMALL: &str = "Destination buffer is too small";

fn compress_lz4(raw: &[u8], body: &mut Vec<u8>) -> Result<bool> {
    LZ4_ENCODER.with_borrow_mut(|kept| {
        let mut encoder = kept.take().unwrap_or_else(|| {
            let info = FrameInfo::new().block_size(BlockSize::Max256KB);
            FrameEncoder::with_frame_info(info, Vec::new())
        });
        let start = body.len();
        std::mem::swap(encoder.get_mut(), body);
        let written = encoder
            .write_all(raw)
            .map_err(lz4_failed)
            .and_then(|()| encoder.try_finish().map_err(lz4_failed));
        std::mem::swap(encoder.get_mut(), body);
        written?;
        *kept = Some(encoder);
        Ok(body.len() - start < raw.len())
    })
}

/// Undoes [`compress`] for a buffer that somebody else wrote. `allowed` is what its length may be
/// at most, and is reduced by it.
pub(crate) fn decompress(
    stored: &Buffer,
    codec: Codec,
    allowed: &mut u64,
) -> Result<Buffer, Broken> {
    if codec == Codec::None || stored.is_empty() {
        return Ok(stored.clone());
    }
    let Some((prefix, frame)) = stored.split_first_chunk::<PREFIX>() else {
        return Err(Broken::rule(
            "a compressed buffer begins with a length of 8 bytes",
        ));
    };
    let length = i64::from_le_bytes(*prefix);
    let raw = stored.slice(PREFIX);
    match length {
        STORED => return Ok(raw),
        // Arrow Java wrote a length of 0 for empty buffers; no other writer has a use for it.
        0 if frame.is_empty() => return Ok(raw),
        0 => {
            return Err(Broken::rule(
                "a length of 0 stands before a frame that is not empty",
            ));
        }
        ..STORED => return Err(Broken::rule("a length is negative")),
        1.. => {}
    }
    let length = length as u64;
    if length > *allowed {
        let (size, limit) = (length, *allowed);
        return Err(Broken::TooLarge { size, limit });
    }
    *allowed -= length;
    unfold(frame, codec, length)
}

/// Decompresses a frame that is to give `length` bytes, for which memory is taken only if it can.
fn unfold(frame: &[u8], codec: Codec, length: u64) -> Result<Buffer, Broken> {
    let most = match codec {
        Codec::Zstd => most_of_zstd(frame),
        Codec::Lz4 | Codec::None => most_of_lz4(frame),
    };
    if length > most {
        return Err(Broken::rule(
            "a frame is too short for the length before it",
        ));
    }
    // The length is within the limit, which is for this machine's memory.
    let length =
        usize::try_from(length).map_err(|_| Broken::rule("a length is over the address space"))?;
    let mut out = Vec::new();
    out.try_reserve_exact(length)
        .map_err(|_| Broken::rule("no memory for the length of a buffer"))?;
    match codec {
        Codec::Zstd => decompress_zstd(frame, length, &mut out)?,
        Codec::Lz4 | Codec::None => decompress_lz4(frame, length, &mut out)?,
    }
    if out.len() != length {
        return Err(Broken::rule(
            "a frame holds fewer bytes than the length before it",
        ));
    }
    Ok(Buffer::from_vec(out))
}

/// Why a buffer cannot be decompressed.
#[derive(Debug)]
pub(crate) enum Broken {
    Rule(String),
    TooLarge { size: u64, limit: u64 },
}

impl Broken {
    fn rule(rule: impl Into<String>) -> Self {
        Self::Rule(rule.into())
    }
}

/// A zstd frame is made of blocks of at least 3 bytes, each of which gives at most 128 KiB.
fn most_of_zstd(frame: &[u8]) -> u64 {
    (frame.len() as u64 / 3 + 1) * (128 << 10)
}

/// A byte of an lz4 block adds at most 255 bytes.
fn most_of_lz4(frame: &[u8]) -> u64 {
    frame.len() as u64 * 256
}

/// What a zstd frame begins with; older formats are not part of Arrow.
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

fn decompress_zstd(frame: &[u8], length: usize, out: &mut Vec<u8>) -> Result<(), Broken> {
    if !frame.starts_with(&ZSTD_MAGIC) {
        return Err(Broken::rule("not a zstd frame"));
    }
    let stated = zstd_safe::get_frame_content_size(frame).ok().flatten();
    if stated.is_some_and(|size| size != length as u64) {
        return Err(Broken::rule(
            "a zstd frame states another size than the length before it",
        ));
    }
    ZSTD_DECODER.with_borrow_mut(|kept| {
        let mut context = match kept.take() {
            Some(context) => context,
            None => DCtx::try_create().ok_or_else(|| Broken::rule("no memory for zstd"))?,
        };
        let done = context.decompress(out, frame);
        done.map_err(|code| Broken::rule(format!("zstd: {}", zstd_safe::get_error_name(code))))?;
        *kept = Some(context);
        Ok(())
    })
}

fn decompress_lz4(frame: &[u8], length: usize, out: &mut Vec<u8>) -> Result<(), Broken> {
    let mut decoder = FrameDecoder::new(frame);
    loop {
        let chunk = decoder
            .fill_buf()
            .map_err(|error| Broken::rule(format!("lz4: {error}")))?;
        if chunk.is_empty() {
            return Ok(());
        }
        if chunk.len() > length - out.len() {
            return Err(Broken::rule(
                "a frame holds more bytes than the length before it",
            ));
        }
        out.extend_from_slice(chunk);
        let taken = chunk.len();
        decoder.consume(taken);
    }
}

fn zstd_failed(code: usize) -> Error {
    failed("zstd", zstd_safe::get_error_name(code))
}

fn lz4_failed(cause: impl ToString) -> Error {
    failed("lz4", cause.to_string())
}

fn failed(codec: &'static str, cause: impl Into<String>) -> Error {
    Error::Codec {
        codec,
        cause: cause.into(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const LIMIT: u64 = 4 << 30;

    fn with(codec: Codec, level: i32) -> Compression {
        Compression { codec, level }
    }

    fn compressed(raw: &[u8], compression: Compression) -> Vec<u8> {
        let mut body = Vec::new();
        compress(raw, compression, &mut body).unwrap();
        body
    }

    fn opened(stored: Vec<u8>, codec: Codec) -> Result<Vec<u8>, Broken> {
        decompress(&Buffer::from(stored), codec, &mut LIMIT.clone()).map(|raw| raw.to_vec())
    }

    /// Bytes without a pattern.
    fn noise(len: usize) -> Vec<u8> {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 32) as u8
        };
        (0..len).map(|_| next()).collect()
    }

    fn text(len: usize) -> Vec<u8> {
        let words = [
            &b"customer "[..],
            b"order ",
            b"lineitem ",
            b"nation ",
            b"region ",
        ];
        noise(len)
            .iter()
            .flat_map(|byte| words[usize::from(*byte) % 5])
            .copied()
            .take(len)
            .collect()
    }

    #[test]
    fn what_is_compressed_comes_back() {
        for codec in [Codec::Lz4, Codec::Zstd] {
            for raw in [
                text(1),
                text(9),
                text(300),
                text(70_000),
                text(5_000_000),
                noise(4096),
                vec![0; 1 << 20],
            ] {
                let stored = compressed(&raw, with(codec, 1));
                assert!(
                    stored.len() <= raw.len() + PREFIX,
                    "{codec}, {} bytes",
                    raw.len()
                );
                assert_eq!(opened(stored, codec).unwrap(), raw, "{codec}");
            }
        }
    }

    #[test]
    fn empty_buffers_take_nothing_and_noise_is_stored() {
        for codec in [Codec::Lz4, Codec::Zstd] {
            assert!(compressed(&[], with(codec, 3)).is_empty());
            let raw = noise(1 << 20);
            let stored = compressed(&raw, with(codec, 3));
            assert_eq!(stored.len(), raw.len() + PREFIX);
            assert_eq!(stored[..PREFIX], STORED.to_le_bytes());
        }
    }

    #[test]
    fn a_level_counts_from_the_buffer_on_for_which_it_is_set() {
        let raw = text(100_000);
        let sizes =
            [1, 19, 1, -7, 19].map(|level| compressed(&raw, with(Codec::Zstd, level)).len());
        assert!(sizes[1] < sizes[0], "{sizes:?}");
        assert_eq!((sizes[0], sizes[1]), (sizes[2], sizes[4]));
        assert!(sizes[3] > sizes[0], "{sizes:?}");
        assert!(with(Codec::Zstd, 0).check().is_err() && with(Codec::Zstd, 23).check().is_err());
        assert!(with(Codec::Zstd, -7).check().is_ok() && with(Codec::Lz4, 0).check().is_ok());
    }

    #[test]
    fn foreign_forms_of_an_empty_buffer_are_read() {
        for codec in [Codec::Lz4, Codec::Zstd] {
            assert!(opened(vec![], codec).unwrap().is_empty());
            assert!(opened(vec![0; 8], codec).unwrap().is_empty());
            assert!(opened(vec![0xff; 8], codec).unwrap().is_empty());
        }
    }

    #[test]
    fn lies_about_lengths_are_refused_at_once() {
        for codec in [Codec::Lz4, Codec::Zstd] {
            let good = compressed(&text(5000), with(codec, 3));
            for length in [0, 1, 4999, 5001, 1 << 40, 1 << 62, -2, i64::MIN] {
                let mut bad = good.clone();
                bad[..PREFIX].copy_from_slice(&i64::to_le_bytes(length));
                assert!(opened(bad, codec).is_err(), "{codec} with {length}");
            }
            assert!(opened(good[..7].to_vec(), codec).is_err());
            assert!(opened(good[..good.len() / 2].to_vec(), codec).is_err());
            let mut allowed = 4999;
            let refused = decompress(&Buffer::from(good), codec, &mut allowed);
            assert!(matches!(
                refused,
                Err(Broken::TooLarge {
                    size: 5000,
                    limit: 4999
                })
            ));
        }
    }

    #[test]
    fn a_frame_may_not_hold_more_than_it_says() {
        let mut bomb = compressed(&vec![0; 1 << 20], with(Codec::Lz4, 1));
        bomb[..PREFIX].copy_from_slice(&64_i64.to_le_bytes());
        assert!(opened(bomb, Codec::Lz4).is_err());
    }
}
