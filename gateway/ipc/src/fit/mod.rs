//! Arrays made fit for a reader: of the type that it was told, and without bytes of rows that are
//! not theirs. Owns which buffers are cut, rewritten or shared; must not know messages.
//!
//! [`crate::layout`] cuts offsets, fixed widths and bitmaps itself. What it cannot cut is done here:
//! data behind views, dictionaries, children of list views, dense unions and runs.

mod nested;
mod values;

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, RecordBatch, RecordBatchOptions, downcast_dictionary_array, make_array,
};
use arrow_buffer::{ArrowNativeType, BooleanBuffer, Buffer, NullBuffer, ScalarBuffer};
use arrow_data::transform::MutableArrayData;
use arrow_schema::{DataType, SchemaRef};

use crate::error::{Error, Result};
use crate::fields::{children, same_values};
use crate::size::array_bytes;

/// A batch that holds only the bytes of its own rows: views, dictionaries and children are pruned,
/// and buffers of which most is unused are copied. The schema stays as it is.
pub fn compact(batch: &RecordBatch) -> Result<RecordBatch> {
    let schema = batch.schema();
    let columns = columns(batch, &schema, Leaves::Copied)?;
    assemble(&schema, columns, batch.num_rows())
}

/// `batch` under the labels of `schema`, from which it may differ in nullability, metadata and names only.
pub(crate) fn label(batch: RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    if batch.schema_ref() == schema {
        return Ok(batch);
    }
    let same = |column: &ArrayRef, told: &DataType| column.data_type() == told;
    let columns = if batch
        .columns()
        .iter()
        .zip(schema.fields())
        .all(|(c, field)| same(c, field.data_type()))
    {
        check_count(&batch, schema)?;
        batch.columns().to_vec()
    } else {
        check(&batch, schema)?;
        columns(&batch, schema, Leaves::Shared)?
    };
    assemble(schema, columns, batch.num_rows())
}

/// The columns of `batch` in the types of `announced`.
pub(crate) fn columns(
    batch: &RecordBatch,
    announced: &SchemaRef,
    leaves: Leaves,
) -> Result<Vec<ArrayRef>> {
    let fit_column = |(column, field): (&ArrayRef, &Arc<arrow_schema::Field>)| {
        let fitted = fit(column, field.data_type(), leaves).map_err(|error| match error {
            Error::Arrow(cause) => Error::column(field.name(), cause.to_string()),
            other => other,
        })?;
        if !field.is_nullable() && fitted.null_count() > 0 {
            return Err(Error::column(
                field.name(),
                "a null in a column that was announced without",
            ));
        }
        Ok(fitted)
    };
    batch
        .columns()
        .iter()
        .zip(announced.fields())
        .map(fit_column)
        .collect()
}

/// Refuses a batch whose columns are not those of `schema`.
pub(crate) fn check(batch: &RecordBatch, schema: &SchemaRef) -> Result<()> {
    check_count(batch, schema)?;
    for (column, field) in batch.columns().iter().zip(schema.fields()) {
        if !same_values(column.data_type(), field.data_type()) {
            return Err(Error::Type {
                column: field.name().clone(),
                expected: field.data_type().to_string(),
                found: column.data_type().to_string(),
            });
        }
    }
    Ok(())
}

fn check_count(batch: &RecordBatch, schema: &SchemaRef) -> Result<()> {
    let (found, expected) = (batch.num_columns(), schema.fields().len());
    if found == expected {
        return Ok(());
    }
    Err(Error::Type {
        column: "*".into(),
        expected: format!("{expected} columns"),
        found: format!("{found} columns"),
    })
}

fn assemble(schema: &SchemaRef, columns: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    Ok(RecordBatch::try_new_with_options(
        Arc::clone(schema),
        columns,
        &options,
    )?)
}

/// What happens to buffers that [`crate::layout`] could cut.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Leaves {
    /// They stay, and whatever lies behind them too.
    Shared,
    /// The rows are copied out when most of a buffer is unused.
    Copied,
}

/// Below this a copy saves nothing worth its while.
const SMALL: usize = 4096;

/// `array` as `to`, which it is but for labels, views and dictionaries.
pub(crate) fn fit(array: &ArrayRef, to: &DataType, leaves: Leaves) -> Result<ArrayRef> {
    use DataType::{
        Binary, BinaryView, Dictionary, FixedSizeList, LargeList, LargeListView, List, ListView,
        Map, RunEndEncoded, Struct, Union, Utf8, Utf8View,
    };
    if array.data_type() == to && leaves == Leaves::Shared && !has_hidden_bytes(to) {
        return Ok(Arc::clone(array));
    }
    match (array.data_type(), to) {
        (Dictionary(_, _), Dictionary(_, value)) => downcast_dictionary_array!(
            array => values::prune(array, value, leaves),
            other => Err(Error::unsupported(format!("a dictionary of type {other}")))
        ),
        (Dictionary(_, _), _) => values::hydrate(array, to, leaves),
        (Utf8View, Utf8) => values::strings(array.as_string_view()),
        (BinaryView, Binary) => values::binaries(array.as_binary_view()),
        (Utf8View, Utf8View) => values::dense_views(array.as_string_view(), leaves),
        (BinaryView, BinaryView) => values::dense_views(array.as_binary_view(), leaves),
        (List(_), List(item)) => nested::list(array.as_list::<i32>(), item, leaves),
        (LargeList(_), LargeList(item)) => nested::list(array.as_list::<i64>(), item, leaves),
        (ListView(_), ListView(item)) => {
            nested::list_view(array.as_list_view::<i32>(), item, leaves)
        }
        (LargeListView(_), LargeListView(item)) => {
            nested::list_view(array.as_list_view::<i64>(), item, leaves)
        }
        (FixedSizeList(_, _), FixedSizeList(item, size)) => {
            nested::fixed_size_list(array.as_fixed_size_list(), item, *size, leaves)
        }
        (Map(_, _), Map(entries, sorted)) => nested::map(array.as_map(), entries, *sorted, leaves),
        (Struct(_), Struct(fields)) => nested::structure(array.as_struct(), fields, leaves),
        (Union(_, _), Union(fields, _)) => nested::union(array.as_union(), fields, leaves),
        (RunEndEncoded(_, _), RunEndEncoded(_, _)) => nested::runs(array, to, leaves),
        (from, to) if from != to => Err(Error::Type {
            column: "*".into(),
            expected: to.to_string(),
            found: from.to_string(),
        }),
        _ => leaf(array, leaves),
    }
}

/// Whether values of a type may have bytes behind them that a cut by rows does not find.
fn has_hidden_bytes(data_type: &DataType) -> bool {
    use DataType::{
        BinaryView, Dictionary, LargeListView, ListView, RunEndEncoded, Union, Utf8View,
    };
    matches!(
        data_type,
        Utf8View
            | BinaryView
            | Dictionary(_, _)
            | ListView(_)
            | LargeListView(_)
            | RunEndEncoded(_, _)
            | Union(_, _)
    ) || children(data_type)
        .into_iter()
        .any(|child| has_hidden_bytes(child.data_type()))
}

fn leaf(array: &ArrayRef, leaves: Leaves) -> Result<ArrayRef> {
    let behind = array.get_buffer_memory_size();
    if leaves == Leaves::Shared || behind < SMALL || behind as u64 <= 2 * array_bytes(array) {
        return Ok(Arc::clone(array));
    }
    let data = array.to_data();
    let mut copy = MutableArrayData::new(vec![&data], false, array.len());
    copy.try_extend(0, 0, array.len())?;
    Ok(make_array(copy.freeze()))
}

/// Whether most of what lies behind a buffer is unused and not wanted.
fn is_sparse(buffer: &Buffer, leaves: Leaves) -> bool {
    leaves == Leaves::Copied && buffer.capacity() > 2 * buffer.len() + SMALL
}

/// The offsets, keys or type ids of an array.
fn own<T: ArrowNativeType>(values: &ScalarBuffer<T>, leaves: Leaves) -> ScalarBuffer<T> {
    if is_sparse(values.inner(), leaves) {
        values.to_vec().into()
    } else {
        values.clone()
    }
}

/// The nulls of an array.
fn own_nulls(nulls: Option<&NullBuffer>, leaves: Leaves) -> Option<NullBuffer> {
    nulls.map(|nulls| {
        let held = nulls.buffer().capacity();
        if leaves == Leaves::Shared || held <= SMALL.max(nulls.len() / 4) {
            return nulls.clone();
        }
        let bits = Buffer::from_slice_ref(nulls.inner().sliced().as_slice());
        NullBuffer::new(BooleanBuffer::new(bits, 0, nulls.len()))
    })
}
