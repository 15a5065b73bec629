//! Buffers to arrays: each buffer is bounded and decompressed, each array is validated in full, so
//! that nothing a peer sends can be undefined or panic later. Owns the order in which nodes and
//! buffers are taken; must not know how messages are framed.

use std::collections::HashMap;

use arrow_array::{Array, ArrayRef, make_array};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow_data::{ArrayData, ArrayDataBuilder};
use arrow_ipc::{Buffer as FbBuffer, FieldNode, RecordBatch as FbRecordBatch};
use arrow_schema::{ArrowError, DataType, UnionMode};

use crate::codec::{Broken, decompress};
use crate::error::{Error, Result};
use crate::message::Codec;

/// Rows that an array may have at most, as the format advises. It makes sums and products of
/// lengths fit.
const MOST_ROWS: i64 = i32::MAX as i64;

/// The buffers of a message that were not yet taken.
pub(super) struct Source<'a> {
    message: &'static str,
    column: &'a str,
    body: Buffer,
    codec: Codec,
    /// Bytes that buffers may still unfold to.
    allowed: u64,
    dictionaries: &'a HashMap<i64, ArrayRef>,
    /// The ids of dictionary fields that were not yet come to.
    ids: std::slice::Iter<'a, i64>,
    nodes: std::vec::IntoIter<FieldNode>,
    buffers: std::iter::Enumerate<std::vec::IntoIter<FbBuffer>>,
    variadic: std::vec::IntoIter<i64>,
}

/// What a source needs besides the message.
pub(super) struct Means<'a> {
    pub(super) message: &'static str,
    pub(super) allowed: u64,
    pub(super) dictionaries: &'a HashMap<i64, ArrayRef>,
    pub(super) ids: &'a [i64],
}

impl<'a> Source<'a> {
    pub(super) fn new(
        batch: &FbRecordBatch<'_>,
        body: Buffer,
        codec: Codec,
        means: Means<'a>,
    ) -> Self {
        let nodes: Vec<_> = batch.nodes().iter().flatten().copied().collect();
        let buffers: Vec<_> = batch.buffers().iter().flatten().copied().collect();
        let variadic: Vec<_> = batch.variadicBufferCounts().iter().flatten().collect();
        Self {
            message: means.message,
            column: "",
            body,
            codec,
            allowed: means.allowed,
            dictionaries: means.dictionaries,
            ids: means.ids.iter(),
            nodes: nodes.into_iter(),
            buffers: buffers.into_iter().enumerate(),
            variadic: variadic.into_iter(),
        }
    }

    /// The next column.
    pub(super) fn column(&mut self, name: &'a str, data_type: &DataType) -> Result<ArrayRef> {
        self.column = name;
        Ok(make_array(self.array(data_type)?))
    }

    /// Refuses what no column has taken.
    pub(super) fn finish(self) -> Result<()> {
        let left = [
            ("field nodes", self.nodes.len()),
            ("buffers", self.buffers.len()),
            ("counts of variadic buffers", self.variadic.len()),
        ];
        match left.into_iter().find(|(_, left)| *left > 0) {
            Some((what, left)) => Err(self.bad(format!("{left} more {what} than the schema has"))),
            None => Ok(()),
        }
    }

    fn array(&mut self, data_type: &DataType) -> Result<ArrayData> {
        use DataType::{
            Binary, BinaryView, Dictionary, FixedSizeList, LargeBinary, LargeList, LargeListView,
            LargeUtf8, List, ListView, Map, Null, RunEndEncoded, Struct, Union, Utf8, Utf8View,
        };
        let (length, nulls) = self.node()?;
        let mut builder = ArrayData::builder(data_type.clone()).len(length);
        if !matches!(data_type, Null | Union(_, _) | RunEndEncoded(_, _)) {
            builder = builder.nulls(self.validity(length, nulls)?);
        }
        match data_type {
            Null => {}
            Utf8 | Binary | LargeUtf8 | LargeBinary => builder = builder.buffers(self.take(2)?),
            Utf8View | BinaryView => {
                let count = self.variadic()?;
                builder = builder.buffers(self.take(1 + count)?);
            }
            List(item) | LargeList(item) | Map(item, _) => {
                builder = builder
                    .buffers(self.take(1)?)
                    .add_child_data(self.array(item.data_type())?);
            }
            ListView(item) | LargeListView(item) => {
                builder = builder
                    .buffers(self.take(2)?)
                    .add_child_data(self.array(item.data_type())?);
            }
            FixedSizeList(item, _) => {
                builder = builder.add_child_data(self.array(item.data_type())?)
            }
            Struct(fields) => {
                for field in fields {
                    builder = builder.add_child_data(self.array(field.data_type())?);
                }
            }
            Union(fields, mode) => {
                builder =
                    builder.buffers(self.take(if *mode == UnionMode::Dense { 2 } else { 1 })?);
                for (_, field) in fields.iter() {
                    builder = builder.add_child_data(self.array(field.data_type())?);
                }
            }
            RunEndEncoded(ends, values) => {
                builder = builder.add_child_data(self.array(ends.data_type())?);
                builder = builder.add_child_data(self.array(values.data_type())?);
            }
            Dictionary(_, value) => {
                builder = builder
                    .buffers(self.take(1)?)
                    .add_child_data(self.dictionary(value)?);
            }
            _ => builder = builder.buffers(self.take(1)?),
        }
        self.build(builder)
    }

    /// Validates an array in full: lengths, offsets, keys, UTF-8, nulls of children.
    fn build(&self, builder: ArrayDataBuilder) -> Result<ArrayData> {
        builder
            .align_buffers(true)
            .build()
            .map_err(|error| match error {
                ArrowError::InvalidArgumentError(rule) => Error::column(self.column, rule),
                other => Error::column(self.column, other.to_string()),
            })
    }

    /// The next field's length and null count.
    fn node(&mut self) -> Result<(usize, usize)> {
        let node = self
            .nodes
            .next()
            .ok_or_else(|| self.bad("fewer field nodes than the schema has"))?;
        let (length, nulls) = (node.length(), node.null_count());
        if !(0..=MOST_ROWS).contains(&length) {
            return Err(self.bad(format!("an array of {length} rows")));
        }
        if !(0..=length).contains(&nulls) {
            return Err(self.bad(format!("{nulls} nulls in {length} rows")));
        }
        // Both are between 0 and `MOST_ROWS`.
        Ok((length as usize, nulls as usize))
    }

    fn validity(&mut self, length: usize, nulls: usize) -> Result<Option<NullBuffer>> {
        let bitmap = self.buffer()?;
        if nulls == 0 {
            return Ok(None);
        }
        if bitmap.len() < length.div_ceil(8) {
            let rule = format!(
                "a validity bitmap of {} bytes for {length} rows",
                bitmap.len()
            );
            return Err(Error::column(self.column, rule));
        }
        let found = NullBuffer::new(BooleanBuffer::new(bitmap, 0, length));
        if found.null_count() == nulls {
            return Ok(Some(found));
        }
        let rule = format!(
            "{} nulls where the metadata says {nulls}",
            found.null_count()
        );
        Err(Error::column(self.column, rule))
    }

    fn variadic(&mut self) -> Result<usize> {
        let count = self
            .variadic
            .next()
            .ok_or_else(|| self.bad("fewer counts of variadic buffers than view columns"))?;
        match usize::try_from(count) {
            Ok(count) if count <= self.buffers.len() => Ok(count),
            _ => Err(self.bad(format!("a view column of {count} buffers"))),
        }
    }

    fn take(&mut self, count: usize) -> Result<Vec<Buffer>> {
        (0..count).map(|_| self.buffer()).collect()
    }

    fn buffer(&mut self) -> Result<Buffer> {
        let (index, place) = self
            .buffers
            .next()
            .ok_or_else(|| self.bad("fewer buffers than the schema has"))?;
        let (offset, length) = (
            usize::try_from(place.offset()),
            usize::try_from(place.length()),
        );
        let stored = match (offset, length) {
            // Some writers give an empty buffer an offset that means nothing.
            (_, Ok(0)) => self.body.slice_with_length(0, 0),
            (Ok(offset), Ok(length))
                if offset
                    .checked_add(length)
                    .is_some_and(|end| end <= self.body.len()) =>
            {
                self.body.slice_with_length(offset, length)
            }
            _ => return Err(self.broken(index, "it does not lie in the body")),
        };
        decompress(&stored, self.codec, &mut self.allowed).map_err(|broken| match broken {
            Broken::Rule(rule) => self.broken(index, rule),
            Broken::TooLarge { size, limit } => Error::TooLarge {
                what: "a message after decompression",
                size,
                limit,
            },
        })
    }

    fn dictionary(&mut self, value: &DataType) -> Result<ArrayData> {
        // The ids inside come before the one of the dictionary itself; its values were read with them.
        for _ in 0..inner_dictionaries(value) {
            self.ids.next();
        }
        let id = self
            .ids
            .next()
            .ok_or_else(|| self.bad("more dictionaries than the schema has"))?;
        match self.dictionaries.get(id) {
            Some(values) => Ok(values.to_data()),
            // A writer may leave out the dictionary of a column in which all is null; where it is
            // not, no key is valid.
            None => Ok(ArrayData::new_empty(value)),
        }
    }

    fn bad(&self, rule: impl Into<String>) -> Error {
        Error::header(self.message, rule.into())
    }

    fn broken(&self, buffer: usize, rule: impl Into<String>) -> Error {
        Error::Buffer {
            message: self.message,
            column: self.column.to_owned(),
            buffer,
            rule: rule.into().into(),
        }
    }
}

fn inner_dictionaries(data_type: &DataType) -> usize {
    match data_type {
        DataType::Dictionary(_, value) => 1 + inner_dictionaries(value),
        other => crate::fields::children(other)
            .into_iter()
            .map(|child| inner_dictionaries(child.data_type()))
            .sum(),
    }
}
