//! Nothing that a peer sends makes the reader panic, wait, or take memory that was not sent.
#![allow(clippy::unwrap_used)]

mod support;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_ipc::{MessageHeader, root_as_message};
use arrow_schema::{DataType, Field, UnionFields, UnionMode};
use bytes::Bytes;
use sluice_ipc::{Decoder, END_OF_STREAM, Encoded, Encoder, Error, Frame, Frames, Limits, Message};
use support::arrays::{Random, sliced};
use support::{ALL, CODECS, LZ4, PLAIN, ZSTD, batch, encoder, one, read, read_within, stream};

const SMALL: Limits = Limits {
    max_header: 1 << 20,
    max_body: 1 << 20,
    max_decompressed: 16 << 20,
};

fn message(encoded: &Encoded) -> Message {
    Message {
        header: encoded.header.clone(),
        body: encoded.body.clone(),
    }
}

/// Decodes `batch` after the schema of `encoder`.
fn decode(encoder: &Encoder, batch: &Message) -> Result<Option<RecordBatch>, Error> {
    let mut decoder = Decoder::new(Limits::default());
    decoder.schema(&message(&encoder.schema_message())).unwrap();
    decoder.decode(batch)
}

/// The place of each buffer in a message's body.
fn buffers(message: &Message) -> Vec<(usize, usize)> {
    let parsed = root_as_message(&message.header).unwrap();
    let buffers = parsed.header_as_record_batch().unwrap().buffers().unwrap();
    buffers
        .iter()
        .map(|buffer| (buffer.offset() as usize, buffer.length() as usize))
        .collect()
}

/// `message` with `bytes` at `place` of its body.
fn patched(message: &Message, place: usize, bytes: &[u8]) -> Message {
    let mut body = message.body.to_vec();
    body[place..place + bytes.len()].copy_from_slice(bytes);
    Message {
        body: body.into(),
        ..message.clone()
    }
}

fn texts() -> RecordBatch {
    one(Arc::new(StringArray::from_iter_values(
        (0..500).map(|row| format!("text {}", row % 7)),
    )))
}

#[test]
fn bombs_are_refused_at_once() {
    // ClickHouse#113006, arrow-rs#10959: a length that 100 bytes cannot unfold to.
    let batch = texts();
    for compression in [LZ4, ZSTD] {
        let encoder = encoder(&batch, PLAIN, compression);
        let good = message(&encoder.encode(&batch).unwrap()[0]);
        assert!(decode(&encoder, &good).is_ok());
        for length in [1_i64 << 32, 1 << 40, 1 << 62, i64::MAX, -2, i64::MIN] {
            let (place, _) = buffers(&good)[2];
            let begun = Instant::now();
            let error =
                decode(&encoder, &patched(&good, place, &length.to_le_bytes())).unwrap_err();
            assert!(
                error.to_string().contains("c0") || matches!(error, Error::TooLarge { .. }),
                "{error}"
            );
            // The goal is 10 ms; the guard is for a busy machine.
            assert!(
                begun.elapsed() < Duration::from_millis(100),
                "{:?}",
                begun.elapsed()
            );
        }
    }
}

#[test]
fn many_small_buffers_do_not_pass_the_limit_together() {
    let zeros: Vec<ArrayRef> = (0..40)
        .map(|_| Arc::new(Int64Array::from(vec![0; 65_536])) as ArrayRef)
        .collect();
    let zeros = batch(zeros, 65_536);
    for compression in [LZ4, ZSTD] {
        let stream = stream(
            &encoder(&zeros, PLAIN, compression),
            std::slice::from_ref(&zeros),
        );
        assert!(stream.len() < 1 << 20);
        assert!(matches!(
            read_within(&stream, 1 << 20, SMALL),
            Err(Error::TooLarge { .. })
        ));
        assert!(read(&stream, 1 << 20).is_ok());
    }
}

#[test]
fn a_frame_under_a_length_of_0_is_refused() {
    // arrow-java#1116: a batch with missing data is worse than none.
    let batch = texts();
    for compression in [LZ4, ZSTD] {
        let encoder = encoder(&batch, PLAIN, compression);
        let good = message(&encoder.encode(&batch).unwrap()[0]);
        for (place, _) in &buffers(&good)[1..] {
            let error = decode(&encoder, &patched(&good, *place, &[0; 8]))
                .unwrap_err()
                .to_string();
            assert!(
                error.contains("column c0") && error.contains("length of 0"),
                "{error}"
            );
        }
    }
}

#[test]
fn an_empty_buffer_may_have_a_prefix() {
    // arrow-java#1196, arrow#47918: 0 or -1 and nothing behind it, or nothing at all.
    let batch = one(Arc::new(StringArray::from(vec![""; 1000])));
    for compression in [LZ4, ZSTD] {
        let encoder = encoder(&batch, PLAIN, compression);
        let good = message(&encoder.encode(&batch).unwrap()[0]);
        for prefix in [0_i64, -1] {
            let mut body = good.body.to_vec();
            let place = body.len() as i64;
            body.extend_from_slice(&prefix.to_le_bytes());
            let header = with_last_buffer(&good.header, place, 8, body.len() as i64);
            let found = decode(
                &encoder,
                &Message {
                    header,
                    body: body.into(),
                },
            )
            .unwrap()
            .unwrap();
            assert_eq!(found, batch);
        }
    }
}

/// A header whose last buffer and body length are others. Both stand as numbers of 64 bits.
fn with_last_buffer(header: &[u8], offset: i64, length: i64, body: i64) -> Bytes {
    let mut header = header.to_vec();
    let (old_body, old_buffer) = {
        let parsed = root_as_message(&header).unwrap();
        let buffers = parsed.header_as_record_batch().unwrap().buffers().unwrap();
        let last = buffers.get(buffers.len() - 1);
        (
            parsed.bodyLength(),
            [last.offset().to_le_bytes(), last.length().to_le_bytes()].concat(),
        )
    };
    // Flatbuffers are written from the end: the message stands first, what it refers to later.
    let old_body = old_body.to_le_bytes();
    let places = (
        header
            .windows(8)
            .position(|window| window == old_body)
            .unwrap(),
        header
            .windows(16)
            .rposition(|window| window == old_buffer)
            .unwrap(),
    );
    header[places.0..places.0 + 8].copy_from_slice(&body.to_le_bytes());
    header[places.1..places.1 + 8].copy_from_slice(&offset.to_le_bytes());
    header[places.1 + 8..places.1 + 16].copy_from_slice(&length.to_le_bytes());
    header.into()
}

#[test]
fn buffers_outside_of_the_body_are_refused() {
    let batch = texts();
    for compression in CODECS {
        let encoder = encoder(&batch, PLAIN, compression);
        let good = message(&encoder.encode(&batch).unwrap()[0]);
        let body = good.body.len() as i64;
        for (offset, length) in [
            (body, 1),
            (0, body + 1),
            (-1, 8),
            (0, -1),
            (i64::MAX, i64::MAX),
            (8, i64::MAX),
        ] {
            let header = with_last_buffer(&good.header, offset, length, body);
            let error = decode(
                &encoder,
                &Message {
                    header,
                    ..good.clone()
                },
            )
            .unwrap_err()
            .to_string();
            assert!(
                error.contains("buffer 2") && error.contains("column c0"),
                "{error}"
            );
        }
        assert!(
            decode(
                &encoder,
                &Message {
                    body: good.body.slice(..8),
                    ..good.clone()
                }
            )
            .is_err()
        );
    }
}

#[test]
fn a_stream_is_bounded_before_it_is_held() {
    let mut frames = Frames::new(SMALL);
    frames.push(Bytes::from_static(&[0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0x7f]));
    assert!(matches!(frames.next(), Err(Error::TooLarge { .. })));

    let large = one(Arc::new(Int64Array::from(vec![7; 200_000])));
    let stream = stream(
        &encoder(&large, PLAIN, support::NONE),
        std::slice::from_ref(&large),
    );
    assert!(matches!(
        read_within(&stream, 1000, SMALL),
        Err(Error::TooLarge { .. })
    ));
}

#[test]
fn a_stream_is_complete_or_an_error() {
    let batch = texts();
    let encoder = encoder(&batch, PLAIN, ZSTD);
    let whole = stream(&encoder, std::slice::from_ref(&batch));
    assert!(read(&whole, 1).is_ok());
    assert!(matches!(
        read(&whole[..whole.len() - END_OF_STREAM.len()], 1),
        Err(Error::Truncated)
    ));
    assert!(matches!(read(&[], 1), Err(Error::Truncated)));
    assert!(read(&[whole.as_slice(), b"x"].concat(), 1 << 20).is_err());
    // The end marker of the format before Arrow 0.15.
    let mut frames = Frames::new(SMALL);
    frames.push(Bytes::from_static(&[0; 4]));
    assert!(matches!(frames.next(), Ok(Some(Frame::End))));
}

#[test]
fn messages_out_of_order_are_errors() {
    let batch = texts();
    let encoder = encoder(&batch, PLAIN, ZSTD);
    let body = message(&encoder.encode(&batch).unwrap()[0]);
    assert!(Decoder::new(SMALL).decode(&body).is_err());
    assert!(Decoder::new(SMALL).schema(&body).is_err());

    let mut decoder = Decoder::with_schema(SMALL, batch.schema()).unwrap();
    assert_eq!(
        decoder.decode(&message(&encoder.schema_message())).unwrap(),
        None
    );
    assert_eq!(decoder.decode(&body).unwrap(), Some(batch));
    let other = one(Arc::new(Int64Array::from(vec![1])));
    let other = Encoder::try_new(&other.schema(), PLAIN, ZSTD)
        .unwrap()
        .schema_message();
    assert!(decoder.decode(&message(&other)).is_err());
}

#[test]
fn a_given_schema_with_dictionaries_reads_what_is_numbered_one_by_one() {
    let random = &mut Random::new(5);
    let dictionary = DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8));
    let columns = vec![
        sliced(&dictionary, 30, random),
        sliced(&dictionary, 30, random),
    ];
    let batch = batch(columns, 30);
    let mut decoder = Decoder::with_schema(SMALL, batch.schema()).unwrap();
    let mut found = None;
    for encoded in encoder(&batch, ALL, ZSTD).encode(&batch).unwrap() {
        found = decoder.decode(&message(&encoded)).unwrap();
    }
    assert_eq!(found, Some(batch));
}

/// Streams of about 2 KB, of types that have something to lie about.
fn streams() -> Vec<Vec<u8>> {
    let random = &mut Random::new(11);
    let item = |data_type| Arc::new(Field::new_list_field(data_type, true));
    let union = |mode| {
        let fields = [(1, DataType::Int32), (5, DataType::Utf8)];
        let fields = fields
            .map(|(id, data_type)| (id, Arc::new(Field::new(format!("u{id}"), data_type, true))));
        DataType::Union(fields.into_iter().collect::<UnionFields>(), mode)
    };
    let runs = DataType::RunEndEncoded(
        Arc::new(Field::new("run_ends", DataType::Int32, false)),
        Arc::new(Field::new("values", DataType::Utf8, true)),
    );
    let pair = vec![
        Field::new("keys", DataType::Utf8, false),
        Field::new("values", DataType::Int8, true),
    ];
    let map = DataType::Map(
        Arc::new(Field::new("entries", DataType::Struct(pair.into()), false)),
        false,
    );
    let dictionary = DataType::Dictionary(
        Box::new(DataType::Int16),
        Box::new(DataType::List(item(DataType::Utf8View))),
    );
    let kinds = [
        vec![DataType::Int64, DataType::Utf8, DataType::Boolean],
        vec![
            DataType::Utf8View,
            DataType::List(item(DataType::Int32)),
            DataType::Decimal128(20, 3),
        ],
        vec![
            dictionary,
            DataType::FixedSizeList(item(DataType::LargeUtf8), 2),
        ],
        vec![
            union(UnionMode::Dense),
            union(UnionMode::Sparse),
            DataType::Null,
        ],
        vec![DataType::ListView(item(DataType::Utf8)), runs, map],
    ];
    let mut streams = Vec::new();
    for types in kinds {
        let batches: Vec<_> = [12, 5]
            .into_iter()
            .map(|rows| {
                batch(
                    types
                        .iter()
                        .map(|kind| sliced(kind, rows, random))
                        .collect(),
                    rows,
                )
            })
            .collect();
        streams.extend(
            CODECS.map(|compression| stream(&encoder(&batches[0], ALL, compression), &batches)),
        );
    }
    streams
}

/// Reads a stream and, where that works, uses what came out. An error is as good as a batch.
fn survive(stream: &[u8], name: impl Fn() -> String) {
    let used = catch_unwind(AssertUnwindSafe(|| {
        let Ok((schema, batches)) = read_within(stream, 1 << 20, SMALL) else {
            return false;
        };
        let Ok(encoder) = Encoder::try_new(&schema, PLAIN, ZSTD) else {
            return true;
        };
        batches.iter().for_each(|batch| drop(encoder.encode(batch)));
        true
    }));
    assert!(used.is_ok(), "a panic with {}", name());
}

#[test]
fn no_flipped_byte_makes_a_panic() {
    // arrow-rs#541, #7124, #8931, #10437, #3215, ClickHouse#106395, nanoarrow#290
    // Each kind of stream under another codec; all of them are mutated below.
    for (which, stream) in streams().iter().enumerate().step_by(4) {
        for place in 0..stream.len() {
            let mut flipped = stream.clone();
            for mask in [0x01, 0x80, 0xff] {
                flipped[place] = stream[place] ^ mask;
                survive(&flipped, || {
                    format!("byte {place} of stream {which} under mask {mask:#x}")
                });
            }
        }
    }
}

/// Numbers that programs get wrong.
const NUMBERS: [i64; 12] = [
    0,
    1,
    -1,
    -2,
    7,
    63,
    0x7f,
    i32::MAX as i64,
    i32::MIN as i64,
    1 << 40,
    i64::MAX,
    i64::MIN,
];

fn mutate(stream: &[u8], other: &[u8], random: &mut Random) -> Vec<u8> {
    let mut mutated = stream.to_vec();
    for _ in 0..=random.below(3) {
        let place = random.below(mutated.len());
        let number = NUMBERS[random.below(NUMBERS.len())].to_le_bytes();
        match random.below(6) {
            0 => mutated[place] = random.next() as u8,
            1 => {
                let width = [1, 2, 4, 8][random.below(4)].min(mutated.len() - place);
                mutated[place..place + width].copy_from_slice(&number[..width]);
            }
            2 => {
                let place = (place & !7).min(mutated.len() - 8);
                mutated[place..place + 8].copy_from_slice(&number);
            }
            3 => {
                let end = (place + 1 + random.below(64)).min(mutated.len());
                mutated.drain(place..end);
            }
            4 => {
                let from = random.below(other.len());
                let part = other[from..(from + 64).min(other.len())].to_vec();
                mutated.splice(place..place, part);
            }
            _ => {
                let (from, to) = (
                    random.below(mutated.len() / 4) * 4,
                    random.below(mutated.len() / 4) * 4,
                );
                let number = mutated[from..from + 4].to_vec();
                mutated[to..to + 4].copy_from_slice(&number);
            }
        }
        if mutated.len() < 8 {
            break;
        }
    }
    mutated
}

#[test]
fn no_mutation_makes_a_panic() {
    let streams = streams();
    for seed in 0..20_000 {
        let random = &mut Random::new(seed);
        let (one, other) = (random.below(streams.len()), random.below(streams.len()));
        let mutated = mutate(&streams[one], &streams[other], random);
        survive(&mutated, || format!("mutation {seed}"));
    }
}

#[test]
fn the_streams_of_these_tests_are_valid() {
    for stream in streams() {
        let (_, batches) = read_within(&stream, 1 << 20, SMALL).unwrap();
        assert_eq!(batches.len(), 2);
        let first = Bytes::from(stream);
        let mut frames = Frames::new(SMALL);
        frames.push(first);
        let Ok(Some(Frame::Message(schema))) = frames.next() else {
            panic!("no message")
        };
        assert_eq!(
            root_as_message(&schema.header).unwrap().header_type(),
            MessageHeader::Schema
        );
    }
}
