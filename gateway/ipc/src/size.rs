//! How many bytes rows take, whatever buffers lie behind them. Owns the measure by which batches
//! are bounded; must not know codecs.

use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowDictionaryKeyType, RunEndIndexType};
use arrow_array::{
    Array, DictionaryArray, GenericByteArray, GenericByteViewArray, GenericListViewArray,
    OffsetSizeTrait, RecordBatch, RunArray, UnionArray, downcast_dictionary_array,
    downcast_run_array, types,
};
use arrow_buffer::{ArrowNativeType, OffsetBuffer};
use arrow_data::MAX_INLINE_VIEW_LEN;
use arrow_schema::DataType;

/// The exact bytes of the rows of `batch` before compression: offset ranges, lengths of views,
/// children; not of the buffers behind them, and without padding.
///
/// A validity bitmap counts where there is a null. Dictionaries count as the values that they stand
/// for, which is what most readers are sent; views as views, each with its own bytes. Where rows of
/// list views or unions share values that share values in turn, it is an estimate.
pub fn sliced_bytes(batch: &RecordBatch) -> u64 {
    batch
        .columns()
        .iter()
        .map(|column| array_bytes(column))
        .sum()
}

/// [`sliced_bytes`] of one array.
pub(crate) fn array_bytes(array: &dyn Array) -> u64 {
    let all = 0..array.len();
    bytes(
        array,
        &Rows {
            ranges: std::slice::from_ref(&all),
            count: array.len(),
        },
    )
}

/// Rows of an array, in an order that does not matter.
#[derive(Clone, Copy)]
struct Rows<'a> {
    ranges: &'a [Range<usize>],
    /// How many rows are meant: those in `ranges`, and nulls that stand nowhere.
    count: usize,
}

impl<'a> Rows<'a> {
    fn of(ranges: &'a [Range<usize>]) -> Self {
        Self {
            ranges,
            count: ranges.iter().map(ExactSizeIterator::len).sum(),
        }
    }

    /// Whether they are neighbours, which are cut out and not taken one by one.
    fn is_slice(&self) -> bool {
        matches!(self.ranges, [range] if range.len() == self.count)
    }

    fn each(&self) -> impl Iterator<Item = usize> + use<'a> {
        self.ranges.iter().flat_map(Clone::clone)
    }

    /// Ranges of a child that `child` maps these rows to.
    fn map(&self, child: impl Fn(&Range<usize>) -> Range<usize>) -> Vec<Range<usize>> {
        self.ranges
            .iter()
            .filter(|rows| !rows.is_empty())
            .map(child)
            .collect()
    }
}

fn bytes(array: &dyn Array, rows: &Rows<'_>) -> u64 {
    use DataType::{
        Binary, BinaryView, Boolean, FixedSizeList, LargeBinary, LargeList, LargeListView,
        LargeUtf8, List, ListView, Map, Null, RunEndEncoded, Struct, Union, Utf8, Utf8View,
    };
    let validity = validity(array, rows);
    validity
        + match array.data_type() {
            Null => 0,
            Boolean => bitmap(rows.count),
            Utf8 => byte_bytes(array.as_bytes::<types::Utf8Type>(), rows),
            LargeUtf8 => byte_bytes(array.as_bytes::<types::LargeUtf8Type>(), rows),
            Binary => byte_bytes(array.as_bytes::<types::BinaryType>(), rows),
            LargeBinary => byte_bytes(array.as_bytes::<types::LargeBinaryType>(), rows),
            Utf8View => view_bytes(array.as_byte_view::<types::StringViewType>(), rows),
            BinaryView => view_bytes(array.as_byte_view::<types::BinaryViewType>(), rows),
            List(_) => list_bytes(
                array.as_list::<i32>().offsets(),
                array.as_list::<i32>().values(),
                rows,
            ),
            LargeList(_) => list_bytes(
                array.as_list::<i64>().offsets(),
                array.as_list::<i64>().values(),
                rows,
            ),
            Map(_, _) => list_bytes(array.as_map().offsets(), array.as_map().entries(), rows),
            ListView(_) => list_view_bytes(array.as_list_view::<i32>(), rows),
            LargeListView(_) => list_view_bytes(array.as_list_view::<i64>(), rows),
            FixedSizeList(_, size) => {
                let size = usize::try_from(*size).unwrap_or(0);
                let ranges = rows.map(|range| range.start * size..range.end * size);
                let rows = Rows {
                    ranges: &ranges,
                    count: rows.count * size,
                };
                bytes(array.as_fixed_size_list().values(), &rows)
            }
            Struct(_) => array
                .as_struct()
                .columns()
                .iter()
                .map(|child| bytes(child, rows))
                .sum(),
            Union(_, _) => union_bytes(array.as_union(), rows),
            RunEndEncoded(_, _) => downcast_run_array!(
                array => run_bytes(array, rows),
                _ => 0
            ),
            DataType::Dictionary(_, _) => downcast_dictionary_array!(
                array => dictionary_bytes(array, rows),
                _ => 0
            ),
            fixed => (width(fixed) * rows.count) as u64,
        }
}

/// Bytes of a value of a type of fixed width; 0 for others.
pub(crate) fn width(data_type: &DataType) -> usize {
    match data_type {
        DataType::FixedSizeBinary(width) => usize::try_from(*width).unwrap_or(0),
        other => other.primitive_width().unwrap_or(0),
    }
}

fn bitmap(rows: usize) -> u64 {
    rows.div_ceil(8) as u64
}

fn validity(array: &dyn Array, rows: &Rows<'_>) -> u64 {
    // The nulls of a dictionary or of runs are looked at with their values.
    if matches!(
        array.data_type(),
        DataType::Dictionary(_, _) | DataType::RunEndEncoded(_, _) | DataType::Union(_, _)
    ) {
        return 0;
    }
    let given: usize = rows.ranges.iter().map(ExactSizeIterator::len).sum();
    let nowhere = given < rows.count && !matches!(array.data_type(), DataType::Null);
    let null = nowhere
        || array.nulls().is_some_and(|nulls| {
            rows.ranges
                .iter()
                .any(|rows| nulls.inner().slice(rows.start, rows.len()).has_false())
        });
    if null { bitmap(rows.count) } else { 0 }
}

fn byte_bytes<T: types::ByteArrayType>(array: &GenericByteArray<T>, rows: &Rows<'_>) -> u64 {
    let offsets = array.offsets();
    let values: usize = rows
        .ranges
        .iter()
        .map(|rows| offsets[rows.end].as_usize() - offsets[rows.start].as_usize())
        .sum();
    ((rows.count + 1) * size_of::<T::Offset>() + values) as u64
}

fn view_bytes<T: types::ByteViewType + ?Sized>(
    array: &GenericByteViewArray<T>,
    rows: &Rows<'_>,
) -> u64 {
    let views = array.views();
    let long: u64 = rows
        .each()
        .filter(|row| array.is_valid(*row))
        .map(|row| long_view(views[row]))
        .sum();
    (rows.count * size_of::<u128>()) as u64 + long
}

/// Bytes of a view's value that do not fit into the view itself.
pub(crate) fn long_view(view: u128) -> u64 {
    // The length stands in the lowest 32 bits.
    let length = view as u32;
    if length > MAX_INLINE_VIEW_LEN {
        u64::from(length)
    } else {
        0
    }
}

fn list_bytes<O: OffsetSizeTrait>(
    offsets: &OffsetBuffer<O>,
    values: &dyn Array,
    rows: &Rows<'_>,
) -> u64 {
    let ranges = rows.map(|rows| offsets[rows.start].as_usize()..offsets[rows.end].as_usize());
    ((rows.count + 1) * size_of::<O>()) as u64 + bytes(values, &Rows::of(&ranges))
}

fn list_view_bytes<O: OffsetSizeTrait>(array: &GenericListViewArray<O>, rows: &Rows<'_>) -> u64 {
    let (offsets, sizes) = (array.offsets(), array.sizes());
    let ranges: Vec<_> = rows
        .each()
        .filter(|row| array.is_valid(*row))
        .map(|row| offsets[row].as_usize()..offsets[row].as_usize() + sizes[row].as_usize())
        .collect();
    (rows.count * 2 * size_of::<O>()) as u64 + child_bytes(array.values(), &Rows::of(&ranges))
}

/// Bytes of the `used` rows of a child, or of the whole child if rows share their values. The whole
/// also bounds the work: list views of list views could refer to more rows than can be counted.
fn child_bytes(child: &dyn Array, used: &Rows<'_>) -> u64 {
    if shares(child, used.count) {
        array_bytes(child)
    } else {
        bytes(child, used)
    }
}

/// Whether a child of which `used` rows are referred to, some more than once, is sent as it is.
pub(crate) fn shares(child: &dyn Array, used: usize) -> bool {
    child.len() <= used
}

fn union_bytes(array: &UnionArray, rows: &Rows<'_>) -> u64 {
    let DataType::Union(fields, _) = array.data_type() else {
        return 0;
    };
    if array.offsets().is_none() {
        let children = fields.iter().map(|(id, _)| bytes(array.child(id), rows));
        return rows.count as u64 + children.sum::<u64>();
    }
    let children = fields.iter().map(|(id, _)| {
        let of_child = rows.each().filter(|row| array.type_id(*row) == id);
        let ranges = merged(of_child.map(|row| array.value_offset(row)));
        let used = Rows::of(&ranges);
        // What is taken out of a union one by one is taken out of its children too.
        if rows.is_slice() {
            child_bytes(array.child(id), &used)
        } else {
            bytes(array.child(id), &used)
        }
    });
    (rows.count * (1 + size_of::<i32>())) as u64 + children.sum::<u64>()
}

fn run_bytes<R: RunEndIndexType>(array: &RunArray<R>, rows: &Rows<'_>) -> u64 {
    let runs = merged_ranges(
        rows.ranges
            .iter()
            .filter(|rows| !rows.is_empty())
            .map(|rows| {
                let ends = array.run_ends();
                ends.get_physical_index(rows.start)..ends.get_physical_index(rows.end - 1) + 1
            }),
    );
    let runs = Rows::of(&runs);
    (runs.count * size_of::<R::Native>()) as u64 + bytes(array.values(), &runs)
}

fn dictionary_bytes<K: ArrowDictionaryKeyType>(array: &DictionaryArray<K>, rows: &Rows<'_>) -> u64 {
    let keys = array.keys();
    let used = rows
        .each()
        .filter(|row| keys.is_valid(*row))
        .map(|row| keys.value(row).as_usize());
    let ranges = merged(used);
    bytes(
        array.values(),
        &Rows {
            ranges: &ranges,
            count: rows.count,
        },
    )
}

/// Ranges of neighbours in a row of indexes.
fn merged(indexes: impl Iterator<Item = usize>) -> Vec<Range<usize>> {
    merged_ranges(indexes.map(|index| index..index + 1))
}

/// Ranges of which each begins where the one before ended, made one.
fn merged_ranges(ranges: impl Iterator<Item = Range<usize>>) -> Vec<Range<usize>> {
    let mut merged: Vec<Range<usize>> = Vec::new();
    for range in ranges {
        match merged.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => merged.push(range),
        }
    }
    merged
}
