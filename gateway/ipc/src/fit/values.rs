//! Views and dictionaries: rewritten as plain values, or pruned to what the rows refer to.

use std::sync::Arc;

use arrow_array::builder::GenericByteBuilder;
use arrow_array::types::{ArrowDictionaryKeyType, BinaryType, ByteViewType, Utf8Type};
use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, BinaryViewArray, DictionaryArray, GenericByteViewArray,
    PrimitiveArray, StringViewArray, UInt64Array, cast::AsArray, new_empty_array,
};
use arrow_buffer::{ArrowNativeType, BooleanBufferBuilder};
use arrow_schema::DataType;
use arrow_select::take::take;

use super::{Leaves, fit, is_sparse, own, own_nulls};
use crate::error::{Error, Result};
use crate::fields::has_weightless_items;
use crate::size::{array_bytes, long_view};

/// What a column with 32-bit offsets can hold.
const MOST: u64 = i32::MAX as u64;

/// String views as plain strings.
pub(super) fn strings(array: &StringViewArray) -> Result<ArrayRef> {
    let total = check_total(array)?;
    let mut plain = GenericByteBuilder::<Utf8Type>::with_capacity(array.len(), total);
    array.iter().for_each(|value| plain.append_option(value));
    Ok(Arc::new(plain.finish()))
}

/// Binary views as plain binaries.
pub(super) fn binaries(array: &BinaryViewArray) -> Result<ArrayRef> {
    let total = check_total(array)?;
    let mut plain = GenericByteBuilder::<BinaryType>::with_capacity(array.len(), total);
    array.iter().for_each(|value| plain.append_option(value));
    Ok(Arc::new(plain.finish()))
}

/// Bytes of all values together, within what 32-bit offsets reach.
fn check_total<T: ByteViewType + ?Sized>(array: &GenericByteViewArray<T>) -> Result<usize> {
    let length = |row: usize| {
        if array.is_valid(row) {
            u64::from(array.views()[row] as u32)
        } else {
            0
        }
    };
    let total: u64 = (0..array.len()).map(length).sum();
    match usize::try_from(total) {
        Ok(size) if total <= MOST => Ok(size),
        _ => Err(too_large(total)),
    }
}

fn too_large(size: u64) -> Error {
    Error::TooLarge {
        what: "a column of plain values",
        size,
        limit: MOST,
    }
}

/// Views whose buffers hold no more than the views refer to.
pub(super) fn dense_views<T: ByteViewType + ?Sized>(
    array: &GenericByteViewArray<T>,
    leaves: Leaves,
) -> Result<ArrayRef> {
    let is_hidden = |(row, view): (usize, &u128)| array.is_null(row) && long_view(*view) > 0;
    let nulls = own_nulls(array.nulls(), leaves);
    if array.null_count() > 0 && array.views().iter().enumerate().any(is_hidden) {
        let seen = |(row, view): (usize, &u128)| if array.is_null(row) { 0 } else { *view };
        let views: Vec<u128> = array.views().iter().enumerate().map(seen).collect();
        let buffers = array.data_buffers().to_vec();
        let seen = GenericByteViewArray::<T>::try_new(views.into(), buffers, nulls)?;
        return dense_views(&seen, leaves);
    }
    let used: u64 = array.views().iter().map(|view| long_view(*view)).sum();
    let held: usize = array.data_buffers().iter().map(|buffer| buffer.len()).sum();
    // Several views may refer to the same bytes; then the buffers as they are take less.
    if held as u64 <= used && !is_sparse(array.views().inner(), leaves) {
        return Ok(Arc::new(array.clone()));
    }
    Ok(Arc::new(array.gc()))
}

/// The values that a dictionary's keys stand for, as `to`.
pub(super) fn hydrate(array: &dyn Array, to: &DataType, leaves: Leaves) -> Result<ArrayRef> {
    if array.is_empty() {
        return Ok(new_empty_array(to));
    }
    if has_weightless_items(to) {
        return Err(Error::unsupported(format!(
            "a dictionary of {to} for a reader of plain values"
        )));
    }
    let size = array_bytes(array);
    if size > MOST {
        return Err(too_large(size));
    }
    let dictionary = array.as_any_dictionary();
    let taken = take(dictionary.values(), dictionary.keys(), None)?;
    fit(&taken, to, leaves)
}

/// A dictionary with values of type `value`, without those that no key refers to when they weigh
/// more than the rows.
pub(super) fn prune<K: ArrowDictionaryKeyType>(
    array: &DictionaryArray<K>,
    value: &DataType,
    leaves: Leaves,
) -> Result<ArrayRef> {
    let (used, count) = used_values(array);
    let values = array.values();
    let share = if values.is_empty() {
        0
    } else {
        array_bytes(values) / values.len() as u64
    };
    let unused = share * (values.len() - count) as u64;
    if unused <= (array.len() * size_of::<K::Native>()) as u64 {
        let values = fit(values, value, leaves)?;
        let keys = array.keys();
        let keys =
            PrimitiveArray::<K>::new(own(keys.values(), leaves), own_nulls(keys.nulls(), leaves));
        return Ok(Arc::new(DictionaryArray::<K>::try_new(keys, values)?));
    }
    let kept: UInt64Array = (0_u64..)
        .zip(&used)
        .filter(|(_, used)| *used)
        .map(|(index, _)| index)
        .collect();
    let values = fit(&take(values, &kept, None)?, value, leaves)?;
    let keys = renumbered(array.keys(), used.iter(), leaves);
    Ok(Arc::new(DictionaryArray::<K>::try_new(keys, values)?))
}

/// Which values a key refers to, and how many.
fn used_values<K: ArrowDictionaryKeyType>(
    array: &DictionaryArray<K>,
) -> (arrow_buffer::BooleanBuffer, usize) {
    let mut used = BooleanBufferBuilder::new(array.values().len());
    used.append_n(array.values().len(), false);
    for key in array.keys().iter().flatten() {
        used.set_bit(key.as_usize(), true);
    }
    let used = used.finish();
    let count = used.count_set_bits();
    (used, count)
}

/// `keys` after the values that are not used were taken out.
fn renumbered<K: ArrowPrimitiveType>(
    keys: &PrimitiveArray<K>,
    used: impl Iterator<Item = bool>,
    leaves: Leaves,
) -> PrimitiveArray<K> {
    let numbers: Vec<usize> = used
        .scan(0, |next, used| {
            let number = *next;
            *next += usize::from(used);
            Some(number)
        })
        .collect();
    // A key is replaced by a smaller one, so it fits; one under a null may be anything.
    let renumber = |key: K::Native| {
        let number = numbers.get(key.as_usize()).copied().unwrap_or(0);
        K::Native::from_usize(number).unwrap_or_default()
    };
    let renumbered: Vec<K::Native> = keys.values().iter().map(|key| renumber(*key)).collect();
    PrimitiveArray::new(renumbered.into(), own_nulls(keys.nulls(), leaves))
}
