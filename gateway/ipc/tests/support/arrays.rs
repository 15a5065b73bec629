//! Arrays of any type, with nulls, hidden values and slices, made from a seed.

use std::sync::Arc;

use arrow_array::builder::{BinaryViewBuilder, StringViewBuilder};
use arrow_array::{
    Array, ArrayRef, BinaryArray, FixedSizeListArray, GenericListArray, GenericListViewArray,
    LargeBinaryArray, LargeStringArray, MapArray, NullArray, OffsetSizeTrait, StringArray,
    StructArray, UnionArray, make_array,
};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_data::{ArrayData, layout};
use arrow_schema::{DataType, Field, FieldRef, IntervalUnit, TimeUnit, UnionFields, UnionMode};
use proptest::prelude::*;

/// Numbers without a pattern, the same for the same seed.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11
    }

    pub fn below(&mut self, bound: usize) -> usize {
        if bound == 0 {
            0
        } else {
            (self.next() % bound as u64) as usize
        }
    }

    fn bytes(&mut self, len: usize) -> Vec<u8> {
        // Values repeat, so that there is something to compress.
        let kinds = 1 + self.below(255);
        (0..len).map(|_| self.below(kinds) as u8).collect()
    }

    fn text(&mut self) -> String {
        let len = [0, 1, 3, 11, 12, 13, 40][self.below(7)];
        (0..len)
            .map(|_| ['a', 'b', 'é', '漢'][self.below(4)])
            .collect::<String>()
    }
}

fn item(data_type: DataType) -> FieldRef {
    Arc::new(Field::new_list_field(data_type, true))
}

/// Any type of value that has no children.
pub fn leaf_type() -> impl Strategy<Value = DataType> {
    use DataType::*;
    let zone = Some("+02:00".into());
    prop::sample::select(vec![
        Null,
        Boolean,
        Int8,
        Int16,
        Int32,
        Int64,
        UInt8,
        UInt16,
        UInt32,
        UInt64,
        Float16,
        Float32,
        Float64,
        Date32,
        Date64,
        Time32(TimeUnit::Second),
        Time64(TimeUnit::Nanosecond),
        Timestamp(TimeUnit::Microsecond, None),
        Timestamp(TimeUnit::Second, zone),
        Duration(TimeUnit::Millisecond),
        Interval(IntervalUnit::YearMonth),
        Interval(IntervalUnit::DayTime),
        Interval(IntervalUnit::MonthDayNano),
        Decimal32(9, 2),
        Decimal64(18, 0),
        Decimal128(38, 10),
        Decimal256(76, -3),
        FixedSizeBinary(5),
        Utf8,
        LargeUtf8,
        Binary,
        LargeBinary,
        Utf8View,
        BinaryView,
    ])
}

/// Any type.
pub fn any_type() -> impl Strategy<Value = DataType> {
    leaf_type().prop_recursive(3, 12, 3, |inner| {
        let field = |data_type| item(data_type);
        let keys = prop::sample::select(vec![DataType::Int8, DataType::UInt16, DataType::Int64]);
        let ends = prop::sample::select(vec![DataType::Int16, DataType::Int32, DataType::Int64]);
        let modes = prop::sample::select(vec![UnionMode::Sparse, UnionMode::Dense]);
        prop_oneof![
            inner.clone().prop_map(move |i| DataType::List(field(i))),
            inner
                .clone()
                .prop_map(move |i| DataType::LargeList(field(i))),
            inner
                .clone()
                .prop_map(move |i| DataType::ListView(field(i))),
            inner
                .clone()
                .prop_map(move |i| DataType::LargeListView(field(i))),
            (inner.clone(), 1..3_i32).prop_map(move |(i, n)| DataType::FixedSizeList(field(i), n)),
            prop::collection::vec(inner.clone(), 0..3).prop_map(|types| DataType::Struct(
                types
                    .into_iter()
                    .enumerate()
                    .map(|(n, t)| Field::new(format!("f{n}"), t, true))
                    .collect()
            )),
            (leaf_type(), inner.clone()).prop_map(|(key, value)| map_type(key, value)),
            (keys, no_runs(inner.clone()))
                .prop_map(|(k, v)| DataType::Dictionary(Box::new(k), Box::new(v))),
            (ends, no_runs(inner.clone())).prop_map(|(ends, values)| DataType::RunEndEncoded(
                Arc::new(Field::new("run_ends", ends, false)),
                Arc::new(Field::new("values", values, true)),
            )),
            (prop::collection::vec(inner, 1..3), modes).prop_map(|(types, mode)| {
                let fields = types
                    .into_iter()
                    .enumerate()
                    .map(|(n, t)| Field::new(format!("u{n}"), t, true));
                let ids = [3_i8, 7, 100];
                DataType::Union(
                    ids.into_iter()
                        .zip(fields.map(Arc::new))
                        .collect::<UnionFields>(),
                    mode,
                )
            }),
        ]
    })
}

/// Types that may stand in a dictionary or in runs: not those that have no place for a null of their
/// own, and no lists of items without bytes, which are refused.
fn no_runs(types: impl Strategy<Value = DataType>) -> impl Strategy<Value = DataType> {
    types.prop_map(|data_type| {
        let name = data_type.to_string();
        let bare = ["Union", "Dictionary"]
            .iter()
            .any(|kind| name.starts_with(kind));
        if bare
            || ["RunEndEncoded", "Null", "Struct()"]
                .iter()
                .any(|kind| name.contains(kind))
        {
            return DataType::Utf8;
        }
        data_type
    })
}

fn map_type(key: DataType, value: DataType) -> DataType {
    let key = if key == DataType::Null {
        DataType::Int8
    } else {
        key
    };
    let pair = vec![
        Field::new("keys", key, false),
        Field::new("values", value, true),
    ];
    DataType::Map(
        Arc::new(Field::new("entries", DataType::Struct(pair.into()), false)),
        false,
    )
}

/// `rows` rows that are a slice of more.
pub fn sliced(data_type: &DataType, rows: usize, random: &mut Random) -> ArrayRef {
    let (before, after) = (random.below(20), random.below(20));
    array(data_type, before + rows + after, random, true).slice(before, rows)
}

/// An array with about every fourth value null, if `nullable`.
pub fn array(data_type: &DataType, rows: usize, random: &mut Random, nullable: bool) -> ArrayRef {
    let nulls = nulls(rows, random, nullable);
    match data_type {
        DataType::Null => Arc::new(NullArray::new(rows)),
        DataType::Utf8 => Arc::new(StringArray::from_iter(texts(rows, &nulls, random))),
        DataType::LargeUtf8 => Arc::new(LargeStringArray::from_iter(texts(rows, &nulls, random))),
        DataType::Binary => Arc::new(BinaryArray::from_iter(texts(rows, &nulls, random))),
        DataType::LargeBinary => Arc::new(LargeBinaryArray::from_iter(texts(rows, &nulls, random))),
        DataType::Utf8View => {
            let mut views = StringViewBuilder::new().with_fixed_block_size(64);
            texts(rows, &nulls, random).for_each(|text| views.append_option(text));
            Arc::new(views.finish())
        }
        DataType::BinaryView => {
            let mut views = BinaryViewBuilder::new().with_fixed_block_size(64);
            texts(rows, &nulls, random).for_each(|text| views.append_option(text));
            Arc::new(views.finish())
        }
        DataType::List(item) => list::<i32>(item, rows, nulls, random),
        DataType::LargeList(item) => list::<i64>(item, rows, nulls, random),
        DataType::ListView(item) => list_view::<i32>(item, rows, nulls, random),
        DataType::LargeListView(item) => list_view::<i64>(item, rows, nulls, random),
        DataType::FixedSizeList(item, size) => {
            let values = array(item.data_type(), rows * *size as usize, random, true);
            Arc::new(
                FixedSizeListArray::try_new_with_length(
                    Arc::clone(item),
                    *size,
                    values,
                    nulls,
                    rows,
                )
                .unwrap(),
            )
        }
        DataType::Struct(fields) => {
            let children = fields
                .iter()
                .map(|field| array(field.data_type(), rows, random, true))
                .collect();
            Arc::new(
                StructArray::try_new_with_length(fields.clone(), children, nulls, rows).unwrap(),
            )
        }
        DataType::Map(entries, sorted) => map(entries, *sorted, rows, nulls, random),
        DataType::Union(fields, mode) => union(fields, *mode, rows, random),
        DataType::Dictionary(_, value) => dictionary(data_type, value, rows, nulls, random),
        DataType::RunEndEncoded(_, values) => runs(data_type, values, rows, random),
        DataType::Boolean => {
            let bits: Buffer = random.bytes(rows.div_ceil(8)).into();
            build(
                ArrayData::builder(DataType::Boolean)
                    .len(rows)
                    .add_buffer(bits)
                    .nulls(nulls),
            )
        }
        fixed => {
            let width = match &layout(fixed).buffers[0] {
                arrow_data::BufferSpec::FixedWidth { byte_width, .. } => *byte_width,
                other => panic!("{fixed} has {other:?}"),
            };
            let bytes: Buffer = small(fixed, random.bytes(rows * width), width).into();
            build(
                ArrayData::builder(fixed.clone())
                    .len(rows)
                    .add_buffer(bytes)
                    .nulls(nulls)
                    .align_buffers(true),
            )
        }
    }
}

/// Points in time that can be shown: their highest bytes are 0.
fn small(data_type: &DataType, mut bytes: Vec<u8>, width: usize) -> Vec<u8> {
    if data_type.is_temporal() {
        let chunks = bytes.chunks_mut(width);
        chunks.for_each(|value| value[width / 4..].fill(0));
    }
    bytes
}

fn build(builder: arrow_data::ArrayDataBuilder) -> ArrayRef {
    make_array(builder.build().unwrap())
}

fn nulls(rows: usize, random: &mut Random, nullable: bool) -> Option<NullBuffer> {
    let wanted = nullable && random.below(3) > 0;
    wanted.then(|| NullBuffer::new(BooleanBuffer::collect_bool(rows, |_| random.below(4) > 0)))
}

fn texts<'a>(
    rows: usize,
    nulls: &'a Option<NullBuffer>,
    random: &'a mut Random,
) -> impl Iterator<Item = Option<String>> + 'a {
    (0..rows).map(|row| {
        let text = random.text();
        nulls
            .as_ref()
            .is_none_or(|nulls| nulls.is_valid(row))
            .then_some(text)
    })
}

/// Offsets that begin above 0, over values of which the last ones belong to nobody. Rows that are
/// null have values too.
fn offsets<O: OffsetSizeTrait>(rows: usize, random: &mut Random) -> (OffsetBuffer<O>, usize) {
    let mut offsets = vec![O::usize_as(random.below(3))];
    for row in 0..rows {
        offsets.push(offsets[row] + O::usize_as(random.below(4)));
    }
    let total = offsets[rows].as_usize() + random.below(3);
    (OffsetBuffer::new(offsets.into()), total)
}

fn list<O: OffsetSizeTrait>(
    item: &FieldRef,
    rows: usize,
    nulls: Option<NullBuffer>,
    random: &mut Random,
) -> ArrayRef {
    let (offsets, total) = offsets::<O>(rows, random);
    let values = array(item.data_type(), total, random, true);
    Arc::new(GenericListArray::<O>::new(
        Arc::clone(item),
        offsets,
        values,
        nulls,
    ))
}

fn map(
    entries: &FieldRef,
    sorted: bool,
    rows: usize,
    nulls: Option<NullBuffer>,
    random: &mut Random,
) -> ArrayRef {
    let DataType::Struct(pair) = entries.data_type() else {
        panic!("{entries}")
    };
    let (offsets, total) = offsets::<i32>(rows, random);
    let keys = array(pair[0].data_type(), total, random, false);
    let values = array(pair[1].data_type(), total, random, true);
    let values = StructArray::new(pair.clone(), vec![keys, values], None);
    Arc::new(MapArray::new(
        Arc::clone(entries),
        offsets,
        values,
        nulls,
        sorted,
    ))
}

fn list_view<O: OffsetSizeTrait>(
    item: &FieldRef,
    rows: usize,
    nulls: Option<NullBuffer>,
    random: &mut Random,
) -> ArrayRef {
    let total = random.below(2 * rows + 5);
    let values = array(item.data_type(), total, random, true);
    let places: Vec<_> = (0..rows)
        .map(|_| {
            let offset = random.below(total + 1);
            (offset, random.below((total - offset).min(4) + 1))
        })
        .collect();
    let offsets: ScalarBuffer<O> = places
        .iter()
        .map(|(offset, _)| O::usize_as(*offset))
        .collect();
    let sizes: ScalarBuffer<O> = places.iter().map(|(_, size)| O::usize_as(*size)).collect();
    Arc::new(GenericListViewArray::<O>::new(
        Arc::clone(item),
        offsets,
        sizes,
        values,
        nulls,
    ))
}

fn union(fields: &UnionFields, mode: UnionMode, rows: usize, random: &mut Random) -> ArrayRef {
    let ids: Vec<i8> = fields.iter().map(|(id, _)| id).collect();
    let types: Vec<i8> = (0..rows).map(|_| ids[random.below(ids.len())]).collect();
    let length = if mode == UnionMode::Dense {
        rows / 2 + 1
    } else {
        rows
    };
    let children = fields
        .iter()
        .map(|(_, field)| array(field.data_type(), length, random, true))
        .collect();
    let offsets = (mode == UnionMode::Dense)
        .then(|| (0..rows).map(|_| random.below(length) as i32).collect());
    Arc::new(UnionArray::try_new(fields.clone(), types.into(), offsets, children).unwrap())
}

fn dictionary(
    data_type: &DataType,
    value: &DataType,
    rows: usize,
    nulls: Option<NullBuffer>,
    random: &mut Random,
) -> ArrayRef {
    let DataType::Dictionary(key, _) = data_type else {
        panic!("{data_type}")
    };
    let size = [1, 3, 100][random.below(3)];
    let width = key.primitive_width().unwrap();
    let keys: Vec<u8> = (0..rows)
        .flat_map(|_| random.below(size).to_le_bytes().into_iter().take(width))
        .collect();
    let values = array(value, size, random, true);
    build(
        ArrayData::builder(data_type.clone())
            .len(rows)
            .add_buffer(keys.into())
            .add_child_data(values.to_data())
            .nulls(nulls)
            .align_buffers(true),
    )
}

fn runs(data_type: &DataType, values: &FieldRef, rows: usize, random: &mut Random) -> ArrayRef {
    let DataType::RunEndEncoded(ends, _) = data_type else {
        panic!("{data_type}")
    };
    let width = ends.data_type().primitive_width().unwrap();
    let (mut end, mut bytes, mut count) = (0, Vec::new(), 0);
    while end < rows {
        end += 1 + random.below(4);
        count += 1;
        bytes.extend(end.to_le_bytes().into_iter().take(width));
    }
    let ends = ArrayData::builder(ends.data_type().clone())
        .len(count)
        .add_buffer(bytes.into())
        .align_buffers(true);
    let values = array(values.data_type(), count, random, true);
    build(
        ArrayData::builder(data_type.clone())
            .len(rows)
            .add_child_data(ends.build().unwrap())
            .add_child_data(values.to_data()),
    )
}
