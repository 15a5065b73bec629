//! Arrays laid out as IPC wants them (Arrow columnar format, "RecordBatch message"): field nodes and
//! buffers, depth first, cut to the rows. Nothing is copied but what has to be rewritten. Owns the
//! order of nodes, buffers and dictionaries; must not know flatbuffers or codecs.

use arrow_array::{Array, ArrayRef};
use arrow_buffer::{ArrowNativeType, Buffer, MutableBuffer};
use arrow_data::ArrayData;
use arrow_schema::{DataType, UnionMode};

use crate::error::{Error, Result};
use crate::size::width;

/// A batch, or the values of a dictionary, before compression.
#[derive(Debug, Default)]
pub(crate) struct Plain {
    pub(crate) rows: usize,
    /// Length and null count of each field.
    pub(crate) nodes: Vec<(usize, usize)>,
    pub(crate) buffers: Vec<Buffer>,
    /// How many data buffers each view column has.
    pub(crate) variadic: Vec<usize>,
}

/// The dictionaries of a batch in the order in which a reader needs them. The position is the id:
/// ids are given depth first, inner dictionaries before outer ones, as in the schema message.
pub(crate) type Dictionaries = Vec<Plain>;

impl Plain {
    /// Lays out `columns`, which are fit for the reader, and adds what dictionaries they have.
    pub(crate) fn of(
        columns: &[ArrayRef],
        rows: usize,
        dictionaries: &mut Dictionaries,
    ) -> Result<Self> {
        let mut plain = Self {
            rows,
            ..Self::default()
        };
        for column in columns {
            plain.put(&column.to_data(), dictionaries)?;
        }
        Ok(plain)
    }

    fn put(&mut self, data: &ArrayData, dictionaries: &mut Dictionaries) -> Result<()> {
        use DataType::{
            Binary, BinaryView, Boolean, Dictionary, FixedSizeList, LargeBinary, LargeList,
            LargeListView, LargeUtf8, List, ListView, Map, Null, RunEndEncoded, Struct, Union,
            Utf8, Utf8View,
        };
        self.put_node(data);
        match data.data_type() {
            Null => {}
            Boolean => {
                let bits = data.buffers()[0].bit_slice(data.offset(), data.len());
                self.buffers.push(bits);
            }
            Utf8 | Binary => self.put_bytes::<i32>(data),
            LargeUtf8 | LargeBinary => self.put_bytes::<i64>(data),
            Utf8View | BinaryView => {
                self.put_fixed(data, 0, size_of::<u128>());
                self.buffers.extend_from_slice(&data.buffers()[1..]);
                self.variadic.push(data.buffers().len() - 1);
            }
            List(_) | Map(_, _) => self.put_list::<i32>(data, dictionaries)?,
            LargeList(_) => self.put_list::<i64>(data, dictionaries)?,
            ListView(_) => self.put_list_view(data, size_of::<i32>(), dictionaries)?,
            LargeListView(_) => self.put_list_view(data, size_of::<i64>(), dictionaries)?,
            FixedSizeList(_, size) => {
                let size = usize::try_from(*size).unwrap_or(0);
                let values = data.child_data()[0].slice(data.offset() * size, data.len() * size);
                self.put(&values, dictionaries)?;
            }
            // A slice of a struct's data has its children sliced.
            Struct(_) => self.put_children(data, false, dictionaries)?,
            Union(_, mode) => {
                self.put_fixed(data, 0, 1);
                if *mode == UnionMode::Dense {
                    self.put_fixed(data, 1, size_of::<i32>());
                }
                self.put_children(data, *mode == UnionMode::Sparse, dictionaries)?;
            }
            RunEndEncoded(_, _) if data.offset() == 0 => {
                self.put_children(data, false, dictionaries)?
            }
            RunEndEncoded(_, _) => return Err(Error::unsupported("runs that are not trimmed")),
            Dictionary(key, _) => {
                self.put_fixed(data, 0, width(key));
                put_dictionary(&data.child_data()[0], dictionaries)?;
            }
            fixed => self.put_fixed(data, 0, width(fixed)),
        }
        Ok(())
    }

    /// The node, and the validity bitmap of types that have one: empty when there is no null.
    fn put_node(&mut self, data: &ArrayData) {
        if *data.data_type() == DataType::Null {
            self.nodes.push((data.len(), data.len()));
            return;
        }
        self.nodes.push((data.len(), data.null_count()));
        if matches!(
            data.data_type(),
            DataType::Union(_, _) | DataType::RunEndEncoded(_, _)
        ) {
            return;
        }
        let validity = data.nulls().filter(|nulls| nulls.null_count() > 0);
        self.buffers
            .push(validity.map_or_else(empty, |nulls| nulls.inner().sliced()));
    }

    fn put_fixed(&mut self, data: &ArrayData, buffer: usize, width: usize) {
        let bytes =
            data.buffers()[buffer].slice_with_length(data.offset() * width, data.len() * width);
        self.buffers.push(bytes);
    }

    fn put_bytes<O: Offset>(&mut self, data: &ArrayData) {
        let (offsets, first, last) = rebased::<O>(data);
        self.buffers.push(offsets);
        self.buffers
            .push(data.buffers()[1].slice_with_length(first, last - first));
    }

    fn put_list<O: Offset>(
        &mut self,
        data: &ArrayData,
        dictionaries: &mut Dictionaries,
    ) -> Result<()> {
        let (offsets, first, last) = rebased::<O>(data);
        self.buffers.push(offsets);
        self.put(
            &data.child_data()[0].slice(first, last - first),
            dictionaries,
        )
    }

    fn put_list_view(
        &mut self,
        data: &ArrayData,
        width: usize,
        dictionaries: &mut Dictionaries,
    ) -> Result<()> {
        self.put_fixed(data, 0, width);
        self.put_fixed(data, 1, width);
        self.put(&data.child_data()[0], dictionaries)
    }

    fn put_children(
        &mut self,
        data: &ArrayData,
        cut: bool,
        dictionaries: &mut Dictionaries,
    ) -> Result<()> {
        data.child_data().iter().try_for_each(|child| {
            let cut = cut && (data.offset(), data.len()) != (0, child.len());
            if cut {
                self.put(&child.slice(data.offset(), data.len()), dictionaries)
            } else {
                self.put(child, dictionaries)
            }
        })
    }
}

/// Inner dictionaries are added first: they have the lower ids, and a reader needs them first.
fn put_dictionary(values: &ArrayData, dictionaries: &mut Dictionaries) -> Result<()> {
    let mut plain = Plain {
        rows: values.len(),
        ..Plain::default()
    };
    plain.put(values, dictionaries)?;
    dictionaries.push(plain);
    Ok(())
}

fn empty() -> Buffer {
    MutableBuffer::new(0).into()
}

trait Offset: ArrowNativeType + std::ops::Sub<Output = Self> {}

impl Offset for i32 {}
impl Offset for i64 {}

/// Offsets that begin at 0, and what they began and ended at before. No rows have one offset, as
/// the format says, although some writers leave it out.
fn rebased<O: Offset>(data: &ArrayData) -> (Buffer, usize, usize) {
    if data.is_empty() {
        return (Buffer::from_slice_ref([O::default()]), 0, 0);
    }
    let offsets = &data.buffers()[0].typed_data::<O>()[data.offset()..=data.offset() + data.len()];
    let (first, last) = (offsets[0], offsets[data.len()]);
    let buffer = if first == O::default() {
        data.buffers()[0].slice_with_length(
            data.offset() * size_of::<O>(),
            (data.len() + 1) * size_of::<O>(),
        )
    } else {
        offsets.iter().map(|offset| *offset - first).collect()
    };
    (buffer, first.as_usize(), last.as_usize())
}
