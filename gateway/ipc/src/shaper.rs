//! Batches of the right size. Small ones are merged, since each message costs its metadata and
//! compresses alone; large ones are split, since a reader takes a message whole. Owns the target;
//! must not know time.

use std::collections::VecDeque;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, SchemaRef, UnionMode};
use arrow_select::concat::concat_batches;

use crate::error::Result;
use crate::fields::{children, has_weightless_items};
use crate::fit::{compact, label};
use crate::size::sliced_bytes;

/// What no batch may exceed. A single row is never split.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Bounds {
    /// Rows of a batch.
    pub max_rows: usize,
    /// Bytes of a batch before compression, as [`sliced_bytes`] measures.
    pub max_bytes: u64,
}

/// Buffers of a mean size between this and twice this compress best for their time.
const TARGET: u64 = 64 << 10;

/// How many batches wait before they are merged into one: rows that come one by one would
/// otherwise take a hundred times their size.
const FEW: usize = 128;

/// Memory that a batch may hold beyond its rows while it waits.
const SLACK: u64 = 1 << 20;

/// Merges and splits the batches of one result, in their order. Empty batches vanish.
#[derive(Debug)]
pub struct Shaper {
    schema: SchemaRef,
    bounds: Bounds,
    /// A batch of at least so many bytes may leave.
    enough: u64,
    /// A batch of more bytes is split; at most twice `enough`.
    most: u64,
    merges: bool,
    /// Rows that wait for company, oldest first.
    waiting: Vec<Waiting>,
    rows: usize,
    bytes: u64,
    ready: VecDeque<RecordBatch>,
    failure: Option<crate::Error>,
}

#[derive(Debug)]
struct Waiting {
    batch: RecordBatch,
    /// Whether it is made of many.
    merged: bool,
}

impl Shaper {
    /// A shaper of batches of `schema`.
    pub fn new(schema: SchemaRef, bounds: Bounds) -> Self {
        let buffers: u64 = schema
            .fields()
            .iter()
            .map(|field| data_buffers(field.data_type()))
            .sum();
        let bounds = Bounds {
            max_rows: bounds.max_rows.max(1),
            max_bytes: bounds.max_bytes.max(1),
        };
        let target = TARGET * buffers.max(1);
        let merges = schema.fields().iter().all(|field| {
            is_mergeable(field.data_type(), true) && !has_weightless_items(field.data_type())
        });
        Self {
            schema,
            bounds,
            enough: target.min(bounds.max_bytes),
            most: (2 * target).min(bounds.max_bytes),
            merges,
            waiting: Vec::new(),
            rows: 0,
            bytes: 0,
            ready: VecDeque::new(),
            failure: None,
        }
    }

    /// Adds the next batch.
    pub fn push(&mut self, batch: RecordBatch) {
        if batch.num_rows() == 0 || self.failure.is_some() {
            return;
        }
        if let Err(error) = label(batch, &self.schema).and_then(|batch| self.place(batch)) {
            self.failure = Some(error);
        }
    }

    /// A batch that is large enough, if there is one.
    pub fn pop(&mut self) -> Result<Option<RecordBatch>> {
        match self.ready.pop_front() {
            Some(batch) => Ok(Some(batch)),
            // What was placed before the failure was good.
            None => self.failure.take().map_or(Ok(None), Err),
        }
    }

    /// The next batch although it is small; nothing when no row is left.
    pub fn flush(&mut self) -> Result<Option<RecordBatch>> {
        if self.ready.is_empty() {
            self.release();
        }
        self.pop()
    }

    /// Forgets all rows.
    pub fn clear(&mut self) {
        self.waiting.clear();
        self.ready.clear();
        (self.rows, self.bytes) = (0, 0);
    }

    /// Rows that were pushed and not yet given out.
    pub fn pending_rows(&self) -> usize {
        self.rows + self.ready.iter().map(RecordBatch::num_rows).sum::<usize>()
    }

    /// Bytes of the rows that were pushed and not yet given out.
    pub fn pending_bytes(&self) -> u64 {
        self.bytes + self.ready.iter().map(sliced_bytes).sum::<u64>()
    }

    /// Cuts `rest` into pieces: the first one fills up what waits, the last one waits if it is small.
    fn place(&mut self, mut rest: RecordBatch) -> Result<()> {
        let mut left = sliced_bytes(&rest);
        while rest.num_rows() > 0 {
            let (rows, bytes) = self.piece(&rest, left);
            let piece = rest.slice(0, rows);
            rest = rest.slice(rows, rest.num_rows() - rows);
            left = left.saturating_sub(bytes);

            let fits = self.rows + rows <= self.bounds.max_rows && self.bytes + bytes <= self.most;
            if !fits || !self.merges {
                self.release();
            }
            // Merging costs a copy, and what it gains above half of the target is less.
            let alone = self.waiting.is_empty() && self.is_enough(rows, 2 * bytes);
            if alone || !self.merges {
                self.ready.push_back(piece);
                continue;
            }
            self.wait(piece, bytes)?;
            if self.is_enough(self.rows, self.bytes) {
                self.release();
            }
        }
        Ok(())
    }

    fn is_enough(&self, rows: usize, bytes: u64) -> bool {
        bytes >= self.enough || rows >= self.bounds.max_rows
    }

    /// How many rows of `batch`, which takes about `size` bytes, go into the next piece, and their bytes.
    fn piece(&self, batch: &RecordBatch, size: u64) -> (usize, u64) {
        let rows = batch.num_rows();
        // What waits is filled up, if that can make it large enough.
        let fill = self.bytes > 0 && self.most - self.bytes >= self.enough;
        let (row_room, byte_room) = if fill {
            (self.bounds.max_rows - self.rows, self.most - self.bytes)
        } else {
            (self.bounds.max_rows, self.most)
        };
        if rows <= row_room && size <= byte_room {
            let exact = sliced_bytes(batch);
            if exact <= byte_room {
                return (rows, exact);
            }
        }
        let wanted = if fill {
            let missing = u128::from(self.enough.saturating_sub(self.bytes));
            (rows as u128 * missing).div_ceil(u128::from(size.max(1)))
        } else {
            // Pieces of one size leave no crumbs.
            let pieces = size.div_ceil(byte_room).max(rows.div_ceil(row_room) as u64);
            (rows as u128).div_ceil(u128::from(pieces.max(1)))
        };
        let wanted = usize::try_from(wanted)
            .unwrap_or(rows)
            .clamp(1, rows.min(row_room));
        let bytes = sliced_bytes(&batch.slice(0, wanted));
        if bytes <= byte_room {
            (wanted, bytes)
        } else {
            longest(batch, wanted, byte_room)
        }
    }

    fn wait(&mut self, piece: RecordBatch, bytes: u64) -> Result<()> {
        self.rows += piece.num_rows();
        self.bytes += bytes;
        let held = piece.get_array_memory_size() as u64;
        let piece = if held > SLACK && held > 4 * bytes {
            compact(&piece)?
        } else {
            piece
        };
        self.waiting.push(Waiting {
            batch: piece,
            merged: false,
        });
        let single = self
            .waiting
            .iter()
            .rev()
            .take_while(|waiting| !waiting.merged)
            .count();
        if single >= FEW {
            let many = self.waiting.split_off(self.waiting.len() - single);
            match self.merge(&many) {
                Some(batch) => self.waiting.push(Waiting {
                    batch,
                    merged: true,
                }),
                None => self.waiting.extend(many.into_iter().map(|one| Waiting {
                    merged: true,
                    ..one
                })),
            }
        }
        Ok(())
    }

    /// Makes what waits ready, as one batch if that is possible.
    fn release(&mut self) {
        let waiting = std::mem::take(&mut self.waiting);
        (self.rows, self.bytes) = (0, 0);
        match self.merge(&waiting) {
            Some(batch) => self.ready.push_back(batch),
            None => self
                .ready
                .extend(waiting.into_iter().map(|waiting| waiting.batch)),
        }
    }

    /// One batch of many, if there are any, their dictionaries fit into one, and the whole is
    /// within the bounds: validity that few parts have is needed for all rows then.
    fn merge(&self, waiting: &[Waiting]) -> Option<RecordBatch> {
        match waiting {
            [] => None,
            [one] => Some(one.batch.clone()),
            many => {
                let parts = many.iter().map(|waiting| &waiting.batch);
                let whole = concat_batches(&self.schema, parts).ok()?;
                (sliced_bytes(&whole) <= self.bounds.max_bytes).then_some(whole)
            }
        }
    }
}

/// The longest beginning of `batch`, shorter than `known` rows, that takes at most `room` bytes, but
/// at least a row; and its bytes.
fn longest(batch: &RecordBatch, known: usize, room: u64) -> (usize, u64) {
    let bytes = |rows| sliced_bytes(&batch.slice(0, rows));
    let (mut fits, mut over) = (1, known);
    while over - fits > 1 {
        let middle = fits + (over - fits) / 2;
        if bytes(middle) <= room {
            fits = middle;
        } else {
            over = middle;
        }
    }
    (fits, bytes(fits))
}

/// How many buffers the values of a type take, apart from validity.
fn data_buffers(data_type: &DataType) -> u64 {
    use DataType::{
        Binary, BinaryView, Dictionary, FixedSizeList, LargeBinary, LargeListView, LargeUtf8,
        ListView, Null, RunEndEncoded, Struct, Union, Utf8, Utf8View,
    };
    let own = match data_type {
        Null | FixedSizeList(_, _) | Struct(_) | RunEndEncoded(_, _) => 0,
        Utf8
        | LargeUtf8
        | Binary
        | LargeBinary
        | Utf8View
        | BinaryView
        | ListView(_)
        | LargeListView(_)
        | Union(_, UnionMode::Dense) => 2,
        Dictionary(_, value) => return data_buffers(value),
        _ => 1,
    };
    own + children(data_type)
        .into_iter()
        .map(|child| data_buffers(child.data_type()))
        .sum::<u64>()
}

/// Whether arrow can put arrays of a type together, or says so when it cannot. Runs may outgrow
/// their ends, and the keys of dictionaries inside unions and the like, or of nested values, their
/// type, which arrow does not expect.
fn is_mergeable(data_type: &DataType, dictionaries: bool) -> bool {
    use DataType::{
        Binary, Dictionary, LargeBinary, LargeList, LargeUtf8, List, Map, RunEndEncoded, Struct,
        Utf8,
    };
    let inside = match data_type {
        RunEndEncoded(_, _) => return false,
        Dictionary(_, value) => {
            let flat = matches!(**value, Utf8 | LargeUtf8 | Binary | LargeBinary);
            return dictionaries && (flat || value.is_primitive());
        }
        List(_) | LargeList(_) | Map(_, _) | Struct(_) => dictionaries,
        _ => false,
    };
    children(data_type)
        .into_iter()
        .all(|child| is_mergeable(child.data_type(), inside))
}
