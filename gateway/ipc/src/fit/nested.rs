//! Lists, structs, maps, unions and runs: rebuilt around children that were made fit, under the
//! labels of the announced type.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int16Type, Int32Type, Int64Type, RunEndIndexType};
use arrow_array::{
    Array, ArrayRef, FixedSizeListArray, GenericListArray, GenericListViewArray, MapArray,
    OffsetSizeTrait, PrimitiveArray, RunArray, StructArray, UInt64Array, UnionArray, make_array,
};
use arrow_buffer::{ArrowNativeType, OffsetBuffer, ScalarBuffer};
use arrow_data::ArrayData;
use arrow_schema::{DataType, FieldRef, Fields, UnionFields};
use arrow_select::take::take;

use super::{Leaves, fit, own, own_nulls};
use crate::error::{Error, Result};
use crate::size::shares;

pub(super) fn list<O: OffsetSizeTrait>(
    array: &GenericListArray<O>,
    item: &FieldRef,
    leaves: Leaves,
) -> Result<ArrayRef> {
    let (offsets, values) = rebased(array.offsets(), array.values(), leaves);
    let values = fit(&values, item.data_type(), leaves)?;
    let nulls = own_nulls(array.nulls(), leaves);
    Ok(Arc::new(GenericListArray::<O>::try_new(
        Arc::clone(item),
        offsets,
        values,
        nulls,
    )?))
}

pub(super) fn map(
    array: &MapArray,
    entries: &FieldRef,
    sorted: bool,
    leaves: Leaves,
) -> Result<ArrayRef> {
    let all: ArrayRef = Arc::new(array.entries().clone());
    let (offsets, values) = rebased(array.offsets(), &all, leaves);
    let values = fit(&values, entries.data_type(), leaves)?
        .as_struct()
        .clone();
    let nulls = own_nulls(array.nulls(), leaves);
    Ok(Arc::new(MapArray::try_new(
        Arc::clone(entries),
        offsets,
        values,
        nulls,
        sorted,
    )?))
}

/// Offsets that begin at 0, and the values that they refer to.
fn rebased<O: OffsetSizeTrait>(
    offsets: &OffsetBuffer<O>,
    values: &ArrayRef,
    leaves: Leaves,
) -> (OffsetBuffer<O>, ArrayRef) {
    let (first, last) = (offsets[0], offsets[offsets.len() - 1]);
    let values = values.slice(first.as_usize(), (last - first).as_usize());
    if first == O::default() {
        return (OffsetBuffer::new(own(offsets.inner(), leaves)), values);
    }
    let rebased: Vec<O> = offsets.iter().map(|offset| *offset - first).collect();
    (OffsetBuffer::new(rebased.into()), values)
}

pub(super) fn fixed_size_list(
    array: &FixedSizeListArray,
    item: &FieldRef,
    size: i32,
    leaves: Leaves,
) -> Result<ArrayRef> {
    let values = fit(array.values(), item.data_type(), leaves)?;
    let nulls = own_nulls(array.nulls(), leaves);
    let made = FixedSizeListArray::try_new_with_length(
        Arc::clone(item),
        size,
        values,
        nulls,
        array.len(),
    )?;
    Ok(Arc::new(made))
}

pub(super) fn structure(array: &StructArray, fields: &Fields, leaves: Leaves) -> Result<ArrayRef> {
    let children = array
        .columns()
        .iter()
        .zip(fields)
        .map(|(child, field)| fit(child, field.data_type(), leaves));
    let children = children.collect::<Result<Vec<_>>>()?;
    let nulls = own_nulls(array.nulls(), leaves);
    Ok(Arc::new(StructArray::try_new_with_length(
        fields.clone(),
        children,
        nulls,
        array.len(),
    )?))
}

pub(super) fn list_view<O: OffsetSizeTrait>(
    array: &GenericListViewArray<O>,
    item: &FieldRef,
    leaves: Leaves,
) -> Result<ArrayRef> {
    let (offsets, sizes, values) = dense_list_view(array, leaves)?;
    let values = fit(&values, item.data_type(), leaves)?;
    let nulls = own_nulls(array.nulls(), leaves);
    Ok(Arc::new(GenericListViewArray::<O>::try_new(
        Arc::clone(item),
        offsets,
        sizes,
        values,
        nulls,
    )?))
}

/// A list view whose child holds no more than its rows refer to.
#[allow(clippy::type_complexity)]
fn dense_list_view<O: OffsetSizeTrait>(
    array: &GenericListViewArray<O>,
    leaves: Leaves,
) -> Result<(ScalarBuffer<O>, ScalarBuffer<O>, ArrayRef)> {
    let size = |row: usize| {
        if array.is_valid(row) {
            array.sizes()[row].as_usize()
        } else {
            0
        }
    };
    let used: usize = (0..array.len()).map(size).sum();
    if shares(array.values(), used) {
        return Ok((
            own(array.offsets(), leaves),
            own(array.sizes(), leaves),
            Arc::clone(array.values()),
        ));
    }
    let mut offsets = Vec::with_capacity(array.len());
    let mut sizes = Vec::with_capacity(array.len());
    let mut taken: Vec<u64> = Vec::with_capacity(used);
    for row in 0..array.len() {
        // What is taken is less than the child, whose length has offsets of this width.
        offsets.push(O::usize_as(taken.len()));
        sizes.push(O::usize_as(size(row)));
        let first = array.offsets()[row].as_usize() as u64;
        taken.extend(first..first + size(row) as u64);
    }
    let values = take(array.values(), &UInt64Array::from(taken), None)?;
    Ok((offsets.into(), sizes.into(), values))
}

pub(super) fn union(array: &UnionArray, fields: &UnionFields, leaves: Leaves) -> Result<ArrayRef> {
    let (offsets, children) = match array.offsets() {
        None => (
            None,
            fields
                .iter()
                .map(|(id, _)| Arc::clone(array.child(id)))
                .collect(),
        ),
        Some(offsets) => {
            let (offsets, children) = dense_union(array, offsets, fields)?;
            (Some(offsets), children)
        }
    };
    let children = fields
        .iter()
        .zip(&children)
        .map(|((_, field), child)| fit(child, field.data_type(), leaves));
    let children = children.collect::<Result<Vec<_>>>()?;
    Ok(Arc::new(UnionArray::try_new(
        fields.clone(),
        own(array.type_ids(), leaves),
        offsets,
        children,
    )?))
}

/// Offsets and children of a dense union, each child without what no row refers to.
fn dense_union(
    array: &UnionArray,
    offsets: &ScalarBuffer<i32>,
    fields: &UnionFields,
) -> Result<(ScalarBuffer<i32>, Vec<ArrayRef>)> {
    let mut taken = offsets.to_vec();
    let mut children = Vec::with_capacity(fields.len());
    for (id, _) in fields.iter() {
        let child = array.child(id);
        let rows: Vec<usize> = (0..array.len())
            .filter(|row| array.type_id(*row) == id)
            .collect();
        if shares(child, rows.len()) {
            children.push(Arc::clone(child));
            continue;
        }
        let used: UInt64Array = rows
            .iter()
            .map(|row| u64::from(offsets[*row].unsigned_abs()))
            .collect();
        children.push(take(child, &used, None)?);
        for (offset, row) in (0..).zip(&rows) {
            taken[*row] = offset;
        }
    }
    Ok((taken.into(), children))
}

pub(super) fn runs(array: &dyn Array, to: &DataType, leaves: Leaves) -> Result<ArrayRef> {
    match to {
        DataType::RunEndEncoded(ends, _) if *ends.data_type() == DataType::Int16 => {
            trimmed(array.as_run::<Int16Type>(), to, leaves)
        }
        DataType::RunEndEncoded(ends, _) if *ends.data_type() == DataType::Int32 => {
            trimmed(array.as_run::<Int32Type>(), to, leaves)
        }
        DataType::RunEndEncoded(ends, _) if *ends.data_type() == DataType::Int64 => {
            trimmed(array.as_run::<Int64Type>(), to, leaves)
        }
        other => Err(Error::unsupported(format!("runs of type {other}"))),
    }
}

/// The runs of the rows alone, the first and the last cut.
fn trimmed<R: RunEndIndexType>(
    array: &RunArray<R>,
    to: &DataType,
    leaves: Leaves,
) -> Result<ArrayRef> {
    let DataType::RunEndEncoded(_, values_field) = to else {
        return Err(Error::unsupported(format!("runs of type {to}")));
    };
    let ends = array.run_ends();
    let (first, count) = if array.is_empty() {
        (0, 0)
    } else {
        let first = ends.get_start_physical_index();
        (first, ends.get_end_physical_index() + 1 - first)
    };
    let cut = |end: &R::Native| {
        // An end is within the array after the cut, and was a `R::Native` before it.
        R::Native::usize_as((end.as_usize() - ends.offset()).min(array.len()))
    };
    let run_ends: Vec<R::Native> = ends.values()[first..first + count]
        .iter()
        .map(cut)
        .collect();
    let run_ends = PrimitiveArray::<R>::new(run_ends.into(), None);
    let values = fit(
        &array.values().slice(first, count),
        values_field.data_type(),
        leaves,
    )?;
    let data = ArrayData::builder(to.clone())
        .len(array.len())
        .add_child_data(run_ends.into_data())
        .add_child_data(values.into_data())
        .build()?;
    Ok(make_array(data))
}
