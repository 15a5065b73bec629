//! Faults that other writers and readers of Arrow are known for, each by the report that names it.
#![allow(clippy::unwrap_used)]

mod support;

use std::sync::Arc;

use arrow_array::builder::StringDictionaryBuilder;
use arrow_array::types::Int32Type;
use arrow_array::{
    Array, ArrayRef, BooleanArray, DictionaryArray, GenericListViewArray, Int64Array, ListArray,
    RecordBatch, StringArray, StringViewArray, UInt32Array, UnionArray,
};
use arrow_buffer::{OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field, Schema, UnionFields, UnionMode};
use sluice_ipc::{Codec, Compression, Encoder, Types, compact, sliced_bytes};
use support::arrays::Random;
use support::{
    ALL, CODECS, NONE, PLAIN, ZSTD, batch, body_len, encoder, foreign, one, read, stream,
};

const MILLION: usize = 1_000_000;

fn item(data_type: DataType) -> Arc<Field> {
    Arc::new(Field::new_list_field(data_type, true))
}

/// Ten rows out of the middle of a million, sent to a reader that takes everything as it is.
fn ten_of_a_million(column: ArrayRef) {
    let all = one(column);
    let ten = all.slice(500_000, 10);
    for compression in CODECS {
        for types in [PLAIN, ALL] {
            let encoder = encoder(&all, types, compression);
            let messages = encoder.encode(&ten).unwrap();
            assert!(
                body_len(&messages) < 4096,
                "{} bytes of {}",
                body_len(&messages),
                ten.column(0).data_type()
            );
            let stream = stream(&encoder, std::slice::from_ref(&ten));
            let (_, found) = read(&stream, 1 << 20).unwrap();
            assert_eq!(found[0].num_rows(), 10);
            assert_eq!(foreign(&stream).1, found);
            if types == ALL {
                assert_eq!(found[0], ten);
            }
        }
    }
    let held = compact(&ten).unwrap().get_array_memory_size();
    assert!(
        held < 10_000,
        "{held} bytes held by ten rows of {}",
        ten.column(0).data_type()
    );
    assert!(sliced_bytes(&ten) < 1000);
}

#[test]
fn ten_views_do_not_bring_a_million() {
    // arrow-rs#7185, #10800, openobserve#9525
    let text = |row: usize| format!("a string of more than twelve bytes, number {row}");
    ten_of_a_million(Arc::new(StringViewArray::from_iter_values(
        (0..MILLION).map(text),
    )));
}

#[test]
fn ten_keys_do_not_bring_their_dictionary() {
    let values =
        StringArray::from_iter_values((0..100_000).map(|value| format!("value number {value}")));
    let keys = (0..MILLION as i32)
        .map(|row| row % 100_000)
        .collect::<Vec<i32>>();
    ten_of_a_million(Arc::new(DictionaryArray::<Int32Type>::new(
        keys.into(),
        Arc::new(values),
    )));
}

#[test]
fn ten_list_views_do_not_bring_their_child() {
    let values: ArrayRef = Arc::new(Int64Array::from_iter_values(0..MILLION as i64));
    let offsets: ScalarBuffer<i32> = (0..MILLION as i32).rev().collect();
    let sizes: ScalarBuffer<i32> = (0..MILLION).map(|_| 1).collect();
    ten_of_a_million(Arc::new(GenericListViewArray::<i32>::new(
        item(DataType::Int64),
        offsets,
        sizes,
        values,
        None,
    )));
}

#[test]
fn ten_of_a_dense_union_do_not_bring_its_children() {
    let half = MILLION / 2;
    let fields: UnionFields = [
        (0, Arc::new(Field::new("number", DataType::Int64, true))),
        (1, Arc::new(Field::new("text", DataType::Utf8, true))),
    ]
    .into_iter()
    .collect();
    let types: ScalarBuffer<i8> = (0..MILLION).map(|row| (row % 2) as i8).collect();
    let offsets: ScalarBuffer<i32> = (0..MILLION).map(|row| (row / 2) as i32).collect();
    let children: Vec<ArrayRef> = vec![
        Arc::new(Int64Array::from_iter_values(0..half as i64)),
        Arc::new(StringArray::from_iter_values(
            (0..half).map(|row| format!("text {row}")),
        )),
    ];
    let union = UnionArray::try_new(fields, types, Some(offsets), children).unwrap();
    assert!(matches!(
        union.data_type(),
        DataType::Union(_, UnionMode::Dense)
    ));
    ten_of_a_million(Arc::new(union));
}

#[test]
fn bits_are_right_from_any_row_on() {
    // arrow-rs#3496, #3498
    let bits: Vec<Option<bool>> = (0..100)
        .map(|row| (row % 7 != 3).then_some(row % 3 == 0))
        .collect();
    let all = one(Arc::new(BooleanArray::from(bits.clone())));
    for first in 1..=9 {
        for rows in [0, 1, 7, 8, 9, 64] {
            let cut = all.slice(first, rows);
            for compression in CODECS {
                let stream = stream(
                    &encoder(&all, PLAIN, compression),
                    std::slice::from_ref(&cut),
                );
                let found: BooleanArray =
                    read(&stream, 64).unwrap().1[0].column(0).to_data().into();
                assert_eq!(
                    found.iter().collect::<Vec<_>>(),
                    bits[first..first + rows],
                    "row {first}"
                );
                assert_eq!(foreign(&stream).1[0].column(0).to_data(), found.to_data());
            }
        }
    }
}

#[test]
fn lists_of_lists_are_right_from_any_row_on() {
    // arrow-rs#3748, #6803, arrow#35621: offsets that do not begin at 0, also after empty lists.
    let rows = 10_000;
    let numbers: ArrayRef = Arc::new(UInt32Array::from_iter_values(0..3 * rows));
    let inner = OffsetBuffer::from_lengths((0..rows).map(|row| (row % 4) as usize));
    let inner: ArrayRef = Arc::new(ListArray::new(item(DataType::UInt32), inner, numbers, None));
    let outer = OffsetBuffer::from_lengths((0..rows).map(|row| if row < 100 { 0 } else { 1 }));
    let outer: ArrayRef = Arc::new(ListArray::new(
        item(inner.data_type().clone()),
        outer,
        inner,
        None,
    ));
    let all = one(outer);
    for (first, count) in [(0, 1), (1, 1), (99, 2), (9_999, 1), (5_000, 5)] {
        let cut = all.slice(first, count);
        for compression in CODECS {
            let encoder = encoder(&all, PLAIN, compression);
            assert!(body_len(&encoder.encode(&cut).unwrap()) < 1000);
            let stream = stream(&encoder, std::slice::from_ref(&cut));
            assert_eq!(read(&stream, 1 << 20).unwrap().1[0], cut);
            assert_eq!(foreign(&stream).1[0], cut);
        }
    }
}

fn words(rows: usize) -> RecordBatch {
    let random = &mut Random::new(7);
    let names = [
        "customer", "order", "lineitem", "nation", "region", "supplier", "part",
    ];
    let line = |_| {
        (0..6)
            .map(|_| names[random.below(7)])
            .collect::<Vec<_>>()
            .join(" ")
    };
    one(Arc::new(StringArray::from_iter_values((0..rows).map(line))))
}

#[test]
fn a_level_counts_and_a_new_one_counts_at_once() {
    // SPARK-57383, and the context of arrow-rs, which keeps the first level that it sees.
    let all = words(10_000);
    let size = |level| {
        let compression = Compression {
            codec: Codec::Zstd,
            level,
        };
        body_len(&encoder(&all, PLAIN, compression).encode(&all).unwrap())
    };
    let sizes = [1, 19, 1, 19].map(size);
    assert!(sizes[1] * 10 < sizes[0] * 9, "{sizes:?}");
    assert_eq!((sizes[0], sizes[1]), (sizes[2], sizes[3]));
    for level in [0, 23, -8] {
        assert!(
            Encoder::try_new(
                &all.schema(),
                PLAIN,
                Compression {
                    codec: Codec::Zstd,
                    level
                }
            )
            .is_err()
        );
    }
}

#[test]
fn what_does_not_compress_is_stored() {
    // arrow-rs#8386 and the recipe for incompressible data: raw bytes, a prefix and padding.
    let random = &mut Random::new(3);
    let noise = Int64Array::from_iter_values(
        (0..131_072).map(|_| (random.next() ^ (random.next() << 32)) as i64),
    );
    let noise = one(Arc::new(noise));
    for compression in CODECS {
        let messages = encoder(&noise, PLAIN, compression).encode(&noise).unwrap();
        assert!(
            messages[0].body.len() <= (1 << 20) + 8 + 8,
            "{}",
            messages[0].body.len()
        );
        if compression.codec != Codec::None {
            assert_eq!(messages[0].body[..8], (-1_i64).to_le_bytes());
        }
    }
}

#[test]
fn empty_buffers_have_no_prefix() {
    // arrow-java#1196: a prefix of 0 for 1000 empty strings is what Arrow C++ cannot read.
    let empty = one(Arc::new(StringArray::from(vec![""; 1000])));
    for compression in CODECS {
        let messages = encoder(&empty, PLAIN, compression).encode(&empty).unwrap();
        let header = arrow_ipc::root_as_message(&messages[0].header).unwrap();
        let buffers = header.header_as_record_batch().unwrap().buffers().unwrap();
        let lengths: Vec<i64> = buffers.iter().map(|buffer| buffer.length()).collect();
        assert_eq!((lengths[0], lengths[2]), (0, 0), "{lengths:?}");
        assert!(lengths[1] > 0);
    }
}

#[test]
fn each_batch_brings_its_own_dictionary() {
    // ClickHouse#55490, arrow#14636, arrow#47115: dictionaries that replace each other.
    let batch_of = |values: &[&str]| {
        let mut builder = StringDictionaryBuilder::<Int32Type>::new();
        values.iter().for_each(|value| builder.append_value(value));
        one(Arc::new(builder.finish()))
    };
    let batches = [
        batch_of(&["foo", "foo"]),
        batch_of(&["foo", "bar"]),
        batch_of(&["bar", "qux", "bar"]),
    ];
    for compression in CODECS {
        let encoder = encoder(&batches[0], ALL, compression);
        assert_eq!(encoder.encode(&batches[1]).unwrap().len(), 2);
        let stream = stream(&encoder, &batches);
        assert_eq!(read(&stream, 1 << 20).unwrap().1, batches);
        assert_eq!(foreign(&stream).1, batches);
    }
    // arrow-java#172: for other readers there is no dictionary message at all.
    assert_eq!(
        encoder(&batches[0], PLAIN, ZSTD)
            .encode(&batches[1])
            .unwrap()
            .len(),
        1
    );
}

#[test]
fn labels_may_differ_and_types_may_not() {
    let told = Schema::new(vec![
        Field::new("id", DataType::Int64, true).with_metadata([("k".into(), "v".into())].into()),
        Field::new(
            "tags",
            DataType::List(Arc::new(Field::new("element", DataType::Utf8, false))),
            true,
        ),
    ]);
    let encoder = Encoder::try_new(&Arc::new(told), PLAIN, NONE).unwrap();
    let tags = ListArray::new(
        item(DataType::Utf8),
        OffsetBuffer::from_lengths([1, 0]),
        Arc::new(StringArray::from(vec!["x"])),
        None,
    );
    let given = batch(
        vec![
            Arc::new(Int64Array::from(vec![1, 2])),
            Arc::new(tags.clone()),
        ],
        2,
    );
    let (schema, found) = read(&stream(&encoder, &[given]), 1 << 20).unwrap();
    assert_eq!(&schema, encoder.schema());
    assert_eq!(found[0].num_rows(), 2);

    let narrow = batch(
        vec![Arc::new(UInt32Array::from(vec![1, 2])), Arc::new(tags)],
        2,
    );
    let error = encoder.encode(&narrow).unwrap_err().to_string();
    assert!(
        error.contains("id") && error.contains("UInt32") && error.contains("Int64"),
        "{error}"
    );
    assert!(encoder.encode(&batch(vec![], 2)).is_err());
}

#[test]
fn a_null_where_none_was_announced_is_an_error() {
    let told = Arc::new(Schema::new(vec![Field::new("id", DataType::Int64, false)]));
    let encoder = Encoder::try_new(&told, Types::default(), NONE).unwrap();
    let error = encoder
        .encode(&one(Arc::new(Int64Array::from(vec![Some(1), None]))))
        .unwrap_err();
    assert!(error.to_string().contains("id"), "{error}");
}
