//! Batches of any size become batches of the right size, and no row is lost or moved.
#![allow(clippy::unwrap_used)]

mod support;

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray, StringViewArray};
use arrow_select::concat::concat_batches;
use proptest::prelude::*;
use sluice_ipc::{Bounds, Shaper, sliced_bytes};
use support::arrays::{Random, any_type, sliced};
use support::{batch, one};

const WIDE: Bounds = Bounds {
    max_rows: 65_536,
    max_bytes: 8 << 20,
};

fn shape(
    schema: &RecordBatch,
    bounds: Bounds,
    batches: impl IntoIterator<Item = RecordBatch>,
) -> Vec<RecordBatch> {
    let mut shaper = Shaper::new(schema.schema(), bounds);
    let mut shaped = Vec::new();
    for batch in batches {
        shaper.push(batch);
        while let Some(batch) = shaper.pop().unwrap() {
            shaped.push(batch);
        }
    }
    while let Some(batch) = shaper.flush().unwrap() {
        shaped.push(batch);
    }
    assert_eq!((shaper.pending_rows(), shaper.pending_bytes()), (0, 0));
    shaped
}

fn numbers(first: i64, rows: i64) -> RecordBatch {
    one(Arc::new(Int64Array::from_iter_values(first..first + rows)))
}

fn rows(batches: &[RecordBatch]) -> Vec<usize> {
    batches.iter().map(RecordBatch::num_rows).collect()
}

#[test]
fn rows_that_come_one_by_one_leave_in_company() {
    // ClickHouse#119815
    let shaped = shape(
        &numbers(0, 1),
        WIDE,
        (0..1_000_000).map(|row| numbers(row, 1)),
    );
    assert!(shaped.len() <= 200, "{} batches", shaped.len());
    assert_eq!(
        concat_batches(&shaped[0].schema(), &shaped).unwrap(),
        numbers(0, 1_000_000)
    );
}

#[test]
fn a_large_batch_is_split_without_crumbs() {
    let shaped = shape(&numbers(0, 1), WIDE, [numbers(0, 1_000_000)]);
    // 128 KiB of int64 are 16384 rows.
    assert!(
        shaped
            .iter()
            .all(|batch| (8_192..=16_384).contains(&batch.num_rows())),
        "{:?}",
        rows(&shaped)
    );
    let whole = shape(
        &numbers(0, 1),
        WIDE,
        [numbers(0, 8_192), numbers(8_192, 8_192)],
    );
    assert_eq!(rows(&whole), [8_192, 8_192]);
}

#[test]
fn a_huge_row_travels_alone() {
    let text = |row: usize| "x".repeat(if row == 500 { 30 << 20 } else { 100 });
    let all = one(Arc::new(StringArray::from_iter_values((0..1000).map(text))));
    let shaped = shape(
        &all,
        Bounds {
            max_bytes: 4 << 20,
            ..WIDE
        },
        [all.clone()],
    );
    let large: Vec<_> = shaped
        .iter()
        .filter(|batch| sliced_bytes(batch) > 4 << 20)
        .collect();
    assert_eq!((large.len(), large[0].num_rows()), (1, 1));
    assert!(shaped.len() <= 4, "{:?}", rows(&shaped));
    assert_eq!(concat_batches(&all.schema(), &shaped).unwrap(), all);
}

#[test]
fn empty_batches_vanish() {
    let shaped = shape(
        &numbers(0, 1),
        WIDE,
        [numbers(0, 0), numbers(0, 1), numbers(1, 0), numbers(1, 1)],
    );
    assert_eq!(shaped, [numbers(0, 2)]);
    assert!(shape(&numbers(0, 1), WIDE, [numbers(0, 0)]).is_empty());
}

#[test]
fn rows_without_columns_are_bounded_too() {
    let shaped = shape(
        &batch(vec![], 0),
        WIDE,
        [batch(vec![], 100_000), batch(vec![], 1)],
    );
    assert_eq!(rows(&shaped).iter().sum::<usize>(), 100_001);
    assert!(rows(&shaped).iter().all(|rows| *rows <= 65_536));
}

#[test]
fn a_batch_that_waits_does_not_hold_what_it_was_cut_from() {
    let text = |row: usize| format!("a string of more than twelve bytes, number {row}");
    let large: ArrayRef = Arc::new(StringViewArray::from_iter_values((0..100_000).map(text)));
    let large = one(large);
    let mut shaper = Shaper::new(large.schema(), WIDE);
    shaper.push(large.slice(7, 3));
    let few = shaper.flush().unwrap().unwrap();
    assert_eq!(few, large.slice(7, 3));
    assert!(
        few.get_array_memory_size() < 10_000,
        "{}",
        few.get_array_memory_size()
    );
}

#[test]
fn a_batch_of_another_type_is_an_error_after_the_good_rows() {
    let mut shaper = Shaper::new(
        numbers(0, 1).schema(),
        Bounds {
            max_rows: 2,
            ..WIDE
        },
    );
    shaper.push(numbers(0, 2));
    shaper.push(one(Arc::new(StringArray::from(vec!["x"]))));
    assert_eq!(shaper.pop().unwrap(), Some(numbers(0, 2)));
    assert!(shaper.pop().is_err());
    assert_eq!(shaper.pop().unwrap(), None);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_row_is_lost_or_moved(
        types in prop::collection::vec(any_type(), 1..3),
        sizes in prop::collection::vec(0..300_usize, 0..12),
        max_rows in 1..400_usize,
        max_bytes in prop::sample::select(vec![1_u64, 1000, 20_000, 1 << 20]),
        seed in any::<u64>(),
    ) {
        let random = &mut Random::new(seed);
        let mut batches = Vec::new();
        for rows in sizes {
            batches.push(batch(types.iter().map(|data_type| sliced(data_type, rows, random)).collect(), rows));
        }
        let Some(first) = batches.first().cloned() else { return Ok(()) };
        let bounds = Bounds { max_rows, max_bytes };
        let shaped = shape(&first, bounds, batches.iter().cloned());
        for piece in &shaped {
            prop_assert!(piece.num_rows() > 0 && piece.num_rows() <= max_rows);
            prop_assert!(piece.num_rows() == 1 || sliced_bytes(piece) <= max_bytes);
        }
        let (mut given, mut found) = (one_by_one(&batches), one_by_one(&shaped));
        loop {
            match (given.next(), found.next()) {
                (None, None) => break,
                (given, found) => prop_assert_eq!(given, found),
            }
        }
    }
}

fn one_by_one(batches: &[RecordBatch]) -> impl Iterator<Item = RecordBatch> {
    batches
        .iter()
        .flat_map(|batch| (0..batch.num_rows()).map(|row| batch.slice(row, 1)))
}
