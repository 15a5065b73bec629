//! The bound on rows, as a stage between batches and batches. The last batch is sliced without a
//! copy, and the engine is dropped as soon as enough is known. Must not know where a bound comes from.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use arrow_array::RecordBatch;
use futures::{Stream, StreamExt};

use crate::delivery::Meter;
use crate::engine::BatchStream;
use crate::error::Result;

/// How many rows may pass.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RowBound {
    /// From the statement's own text: rows beyond it are not part of the result.
    pub(crate) literal: Option<u64>,
    /// From `result.max.rows` and a caller's `maxRows`: rows beyond it are left out, which is told.
    pub(crate) told: Option<u64>,
}

/// Passes at most the rows that `bound` allows, and tells `meter` when some were left out.
pub(super) fn limit(batches: BatchStream, bound: RowBound, meter: Arc<Meter>) -> BatchStream {
    let literal = bound.literal.unwrap_or(u64::MAX);
    let told = bound.told.unwrap_or(u64::MAX);
    let left = literal.min(told);
    if left == u64::MAX {
        return batches;
    }
    Limited {
        batches: Some(batches),
        left,
        tells: told < literal,
        meter,
    }
    .boxed()
}

struct Limited {
    /// Gone when nothing more is wanted of the engine.
    batches: Option<BatchStream>,
    left: u64,
    /// Whether one more row has to be looked for at a batch edge.
    tells: bool,
    meter: Arc<Meter>,
}

impl Limited {
    fn cut(&mut self, batch: RecordBatch) -> RecordBatch {
        let rows = batch.num_rows() as u64;
        if rows <= self.left {
            self.left -= rows;
            return batch;
        }
        if self.tells {
            self.meter.set_truncated();
        }
        self.batches = None;
        // `left` is less than the batch's rows here, so it fits.
        let kept = usize::try_from(self.left).unwrap_or(usize::MAX);
        self.left = 0;
        batch.slice(0, kept)
    }
}

impl Stream for Limited {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if self.left == 0 && !self.tells {
                self.batches = None;
            }
            let Some(batches) = &mut self.batches else {
                return Poll::Ready(None);
            };
            match ready!(batches.poll_next_unpin(cx)) {
                Some(Ok(batch)) if batch.num_rows() == 0 => {}
                Some(Ok(batch)) => {
                    let over = self.left == 0;
                    let batch = self.cut(batch);
                    return Poll::Ready((!over).then_some(Ok(batch)));
                }
                end => {
                    self.batches = None;
                    return Poll::Ready(end);
                }
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use arrow_array::{ArrayRef, Int32Array};
    use futures::{executor::block_on, stream};

    use super::*;

    fn batch(rows: usize) -> RecordBatch {
        let values: ArrayRef = Arc::new(Int32Array::from_iter_values(
            0..i32::try_from(rows).unwrap(),
        ));
        RecordBatch::try_from_iter([("x", values)]).unwrap()
    }

    /// Rows that pass, whether it was told, and how many batches were asked of the engine.
    fn run(sizes: &[usize], literal: Option<u64>, told: Option<u64>) -> (usize, bool, usize) {
        let asked = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&asked);
        let batches: Vec<_> = sizes.iter().map(|rows| batch(*rows)).collect();
        let source = stream::iter(batches).map(move |batch| {
            counter.fetch_add(1, Ordering::Relaxed);
            Ok(batch)
        });
        let meter = Arc::new(Meter::new());
        let limited = limit(
            source.boxed(),
            RowBound { literal, told },
            Arc::clone(&meter),
        );
        let rows = block_on(
            limited
                .map(|batch| batch.unwrap().num_rows())
                .collect::<Vec<_>>(),
        );
        (
            rows.into_iter().sum(),
            meter.truncated(),
            asked.load(Ordering::Relaxed),
        )
    }

    #[test]
    fn a_literal_limit_is_exact_and_stops_the_engine() {
        for (limit, asked) in [
            (0, 0),
            (1, 1),
            (999, 1),
            (1000, 1),
            (1001, 2),
            (2500, 3),
            (9999, 3),
        ] {
            let (rows, told, count) = run(&[1000, 1000, 1000], Some(limit), None);
            assert_eq!(
                (rows as u64, told, count),
                (limit.min(3000), false, asked),
                "LIMIT {limit}"
            );
        }
    }

    #[test]
    fn a_told_bound_is_told_only_when_a_row_is_left_out() {
        assert_eq!(run(&[10, 10], None, Some(20)), (20, false, 2));
        assert_eq!(run(&[10, 10], None, Some(10)), (10, true, 2));
        assert_eq!(run(&[10, 0, 0], None, Some(10)), (10, false, 3));
        assert_eq!(run(&[10, 0, 1], None, Some(10)), (10, true, 3));
        assert_eq!(run(&[10], None, Some(7)), (7, true, 1));
        assert_eq!(run(&[10], None, Some(0)), (0, true, 1));
        assert_eq!(run(&[10, 10], Some(5), Some(10)), (5, false, 1));
        assert_eq!(run(&[10, 10], Some(10), Some(10)), (10, false, 1));
        assert_eq!(run(&[10, 10], Some(15), Some(10)), (10, true, 2));
    }
}
