//! Whatever goes in comes out again, by our reader and by arrow-rs, for each type, slice, codec and
//! chunk of the stream.
#![allow(clippy::unwrap_used)]

mod support;

use std::sync::Arc;

use arrow_array::builder::StringDictionaryBuilder;
use arrow_array::types::Int32Type;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_ipc::CompressionType;
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::{DictionaryHandling, IpcWriteOptions, StreamWriter};
use arrow_schema::DataType;
use proptest::prelude::*;
use sluice_ipc::{Types, compact, sliced_bytes};
use support::arrays::{Random, any_type, sliced};
use support::{ALL, CODECS, NONE, PLAIN, batch, body_len, encoder, foreign, one, read, stream};

/// Batches of the same random types.
fn batches(types: &[DataType], rows: &[usize], seed: u64) -> Vec<RecordBatch> {
    let random = &mut Random::new(seed);
    let mut made = Vec::new();
    for rows in rows {
        made.push(batch(
            types
                .iter()
                .map(|data_type| sliced(data_type, *rows, random))
                .collect(),
            *rows,
        ));
    }
    made
}

/// What a value is to somebody who does not know how it is stored.
fn shown(array: &ArrayRef) -> Vec<String> {
    let options = FormatOptions::new()
        .with_null("NULL")
        .with_types_info(false);
    let formatter = ArrayFormatter::try_new(array, &options).unwrap();
    (0..array.len())
        .map(|row| formatter.value(row).to_string())
        .collect()
}

fn assert_same_values(found: &RecordBatch, expected: &RecordBatch) {
    assert_eq!(found.num_rows(), expected.num_rows());
    for (found, expected) in found.columns().iter().zip(expected.columns()) {
        assert_eq!(shown(found), shown(expected), "{}", expected.data_type());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_batch_comes_back(
        types in prop::collection::vec(any_type(), 0..4),
        rows in prop::collection::vec(0..40_usize, 0..4),
        seed in any::<u64>(),
        dictionaries in any::<bool>(),
        views in any::<bool>(),
        codec in 0..3_usize,
        chunk in prop::sample::select(vec![1, 7, 100, 1 << 20]),
    ) {
        let batches = batches(&types, &rows, seed);
        let first = batches.first().cloned().unwrap_or_else(|| batch(vec![], 0));
        let encoder = encoder(&first, Types { dictionaries, views }, CODECS[codec]);
        let stream = stream(&encoder, &batches);

        let (schema, found) = read(&stream, chunk).unwrap();
        prop_assert_eq!(&schema, encoder.schema());
        prop_assert_eq!(found.len(), batches.len());
        for (found, expected) in found.iter().zip(&batches) {
            assert_same_values(found, expected);
        }

        let (schema, by_arrow) = foreign(&stream);
        prop_assert_eq!(&schema, encoder.schema());
        prop_assert_eq!(by_arrow, found);
    }

    #[test]
    fn what_arrow_writes_is_read(
        types in prop::collection::vec(any_type(), 1..3),
        rows in prop::collection::vec(0..40_usize, 1..3),
        seed in any::<u64>(),
        codec in prop::sample::select(vec![None, Some(CompressionType::LZ4_FRAME), Some(CompressionType::ZSTD)]),
    ) {
        let batches = batches(&types, &rows, seed);
        let options = IpcWriteOptions::default().try_with_compression(codec).unwrap();
        let stream = by_arrow(&batches, options);
        // arrow-rs 59 does not read all that it writes: sliced runs and unions in lists, for two.
        if let Ok(expected) = StreamReader::try_new(&stream[..], None).unwrap().collect::<Result<Vec<_>, _>>() {
            prop_assert_eq!(read(&stream, 1 << 20).unwrap().1, expected);
        }
    }

    #[test]
    fn kept_types_are_equal(
        types in prop::collection::vec(any_type(), 1..3),
        rows in 0..40_usize,
        seed in any::<u64>(),
    ) {
        let batches = batches(&types, &[rows], seed);
        let (_, found) = read(&stream(&encoder(&batches[0], ALL, CODECS[2]), &batches), 1 << 20).unwrap();
        if encoder(&batches[0], ALL, NONE).schema() == &batches[0].schema() {
            prop_assert_eq!(&found[0], &batches[0]);
        }
        let compacted = compact(&batches[0]).unwrap();
        prop_assert_eq!(&compacted, &batches[0]);
    }

    #[test]
    fn sizes_are_exact(data_type in any_type(), rows in 0..60_usize, seed in any::<u64>()) {
        let batches = batches(&[data_type], &[rows], seed);
        // Views keep their form here, and dictionaries are measured as their values.
        let encoder = encoder(&batches[0], Types { dictionaries: false, views: true }, NONE);
        let (_, plain) = read(&stream(&encoder, &batches), 1 << 20).unwrap();
        let buffers: usize = plain[0].columns().iter().map(|column| exact(&column.to_data())).sum();
        let name = batches[0].column(0).data_type().to_string();
        let measured = sliced_bytes(&batches[0]);
        let count = |kinds: &[&str]| kinds.iter().map(|kind| name.matches(kind).count()).sum::<usize>();
        match (count(&["Dictionary", "ListView", "Union"]), count(&["RunEndEncoded"])) {
            (0, _) => prop_assert_eq!(measured, buffers as u64),
            // Values that are taken one by one leave out those that stand under a null list.
            (1, 0) => prop_assert!(measured >= buffers as u64),
            // Rows that share values which share values, or are parts of runs, are estimated.
            _ => {}
        }
    }

    #[test]
    fn the_same_batch_gives_the_same_bytes(data_type in any_type(), seed in any::<u64>()) {
        let batches = batches(&[data_type], &[30], seed);
        for compression in CODECS {
            let encoder = encoder(&batches[0], ALL, compression);
            prop_assert_eq!(stream(&encoder, &batches), stream(&encoder, &batches));
            let (once, twice) = (encoder.encode(&batches[0]).unwrap(), encoder.encode(&batches[0]).unwrap());
            prop_assert_eq!(body_len(&once), body_len(&twice));
        }
    }
}

/// Bytes of the buffers of an array that begins at 0 and has nothing to spare.
fn exact(data: &arrow_data::ArrayData) -> usize {
    let own: usize = data.buffers().iter().map(|buffer| buffer.len()).sum();
    let validity = data.nulls().map_or(0, |nulls| nulls.len().div_ceil(8));
    own + validity + data.child_data().iter().map(exact).sum::<usize>()
}

fn by_arrow(batches: &[RecordBatch], options: IpcWriteOptions) -> Vec<u8> {
    let mut writer =
        StreamWriter::try_new_with_options(Vec::new(), &batches[0].schema(), options).unwrap();
    batches
        .iter()
        .for_each(|batch| writer.write(batch).unwrap());
    writer.into_inner().unwrap()
}

#[test]
fn dictionaries_may_grow() {
    let of = |values: &[&str]| {
        let mut builder = StringDictionaryBuilder::<Int32Type>::new();
        // The values of a later batch begin with those of an earlier one.
        ["foo", "bar", "qux"]
            .iter()
            .take(values.len())
            .for_each(|value| builder.append_value(value));
        values.iter().for_each(|value| builder.append_value(value));
        one(Arc::new(builder.finish()))
    };
    let batches = [
        of(&["foo"]),
        of(&["bar", "foo"]),
        of(&["qux", "bar", "foo"]),
    ];
    let options = IpcWriteOptions::default().with_dictionary_handling(DictionaryHandling::Delta);
    assert_eq!(
        read(&by_arrow(&batches, options), 1 << 20).unwrap().1,
        batches
    );
}

#[test]
fn rows_without_columns_are_counted() {
    for compression in CODECS {
        let batches = [batch(vec![], 5), batch(vec![], 0)];
        let stream = stream(&encoder(&batches[0], PLAIN, compression), &batches);
        let rows =
            |found: &[RecordBatch]| found.iter().map(RecordBatch::num_rows).collect::<Vec<_>>();
        assert_eq!(rows(&read(&stream, 64).unwrap().1), [5, 0]);
        assert_eq!(rows(&foreign(&stream).1), [5, 0]);
    }
}

#[test]
fn ten_thousand_columns_come_back() {
    let random = &mut Random::new(1);
    let kinds = [DataType::Int64, DataType::Utf8View, DataType::Boolean];
    let columns = (0..10_000)
        .map(|place| sliced(&kinds[place % 3], 3, random))
        .collect();
    let batches = [batch(columns, 3)];
    let stream = stream(&encoder(&batches[0], PLAIN, CODECS[2]), &batches);
    let (_, found) = read(&stream, 1 << 16).unwrap();
    assert_same_values(&found[0], &batches[0]);
    assert_eq!(foreign(&stream).1, found);
}
