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
use crate::fields;
use crate::message::Codec;
use crate::size::width;

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
        let (length, nulls) = self.node()?;
        let validity = match data_type {
            DataType::Null | DataType::Union(_, _) | DataType::RunEndEncoded(_, _) => None,
            _ => self.validity(length, nulls)?,
        };
        let buffers = self.own_buffers(data_type, length)?;
        let mut children = Vec::new();
        if let DataType::Dictionary(_, value) = data_type {
            children.push(self.dictionary(value)?);
        }
        for field in fields::children(data_type) {
            children.push(self.array(field.data_type())?);
        }
        let builder = ArrayData::builder(data_type.clone())
            .len(length)
            .nulls(validity);
        self.build(builder.buffers(buffers).child_data(children))
    }

    /// The buffers of an array besides its validity and its children's.
    fn own_buffers(&mut self, data_type: &DataType, length: usize) -> Result<Vec<Buffer>> {
        use DataType::{
            Binary, BinaryView, Boolean, Dictionary, FixedSizeList, LargeBinary, LargeList,
            LargeListView, LargeUtf8, List, ListView, Map, Null, RunEndEncoded, Struct, Union,
            Utf8, Utf8View,
        };
        Ok(match data_type {
            Null | Struct(_) | FixedSizeList(_, _) | RunEndEncoded(_, _) => Vec::new(),
            Utf8 | Binary => vec![self.offsets(length, 4)?, self.buffer()?],
            LargeUtf8 | LargeBinary => vec![self.offsets(length, 8)?, self.buffer()?],
            Utf8View | BinaryView => {
                let count = self.variadic()?;
                let views = self.exact(length * 16)?;
                let data = (0..count).map(|_| self.buffer());
                std::iter::once(Ok(views))
                    .chain(data)
                    .collect::<Result<_>>()?
            }
            List(_) | Map(_, _) => vec![self.offsets(length, 4)?],
            LargeList(_) => vec![self.offsets(length, 8)?],
            ListView(_) => vec![self.exact(length * 4)?, self.exact(length * 4)?],
            LargeListView(_) => vec![self.exact(length * 8)?, self.exact(length * 8)?],
            Union(_, UnionMode::Sparse) => vec![self.exact(length)?],
            Union(_, UnionMode::Dense) => vec![self.exact(length)?, self.exact(length * 4)?],
            Boolean => vec![self.exact(length.div_ceil(8))?],
            Dictionary(key, _) => vec![self.exact(length * width(key))?],
            fixed => vec![self.exact(length * width(fixed))?],
        })
    }

    /// A buffer of at least `needed` bytes, cut to them: arrow expects whole values.
    fn exact(&mut self, needed: usize) -> Result<Buffer> {
        let buffer = self.buffer()?;
        if buffer.len() < needed {
            let rule = format!(
                "a buffer of {} bytes where its rows need {needed}",
                buffer.len()
            );
            return Err(Error::column(self.column, rule));
        }
        Ok(buffer.slice_with_length(0, needed))
    }

    /// Offsets of `width` bytes, one more than rows; some writers leave it out where there are no rows.
    fn offsets(&mut self, length: usize, width: usize) -> Result<Buffer> {
        if length > 0 {
            return self.exact((length + 1) * width);
        }
        let buffer = self.buffer()?;
        let kept = if buffer.len() < width { 0 } else { width };
        Ok(buffer.slice_with_length(0, kept))
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
        other => fields::children(other)
            .into_iter()
            .map(|child| inner_dictionaries(child.data_type()))
            .sum(),
    }
}
