//! The schema of a stream that somebody else wrote: checked field by field before arrow-ipc turns
//! it into types, since it takes a valid one for granted. Owns which types are read, and which field
//! has which dictionary; must not know batches.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_ipc::{
    DateUnit, Endianness, Field as FbField, IntervalUnit, Message as FbMessage, MetadataVersion,
    Precision, Schema as FbSchema, TimeUnit, Type, UnionMode,
};
use arrow_schema::{DataType, FieldRef, Schema, SchemaRef};

use crate::error::{Error, Result};
use crate::fields::{MAX_NESTING, children};

/// A schema, and the dictionaries that its fields refer to.
#[derive(Clone, Debug)]
pub(super) struct Known {
    pub(super) schema: SchemaRef,
    /// The id of each dictionary field, in the order in which [`walk`] comes to them.
    pub(super) ids: Vec<i64>,
    /// The type of the values of each dictionary.
    pub(super) values: HashMap<i64, Values>,
}

/// The type of a dictionary's values, and the ids of the dictionaries inside it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Values {
    pub(super) data_type: DataType,
    pub(super) ids: Vec<i64>,
}

impl Known {
    /// Reads a schema message.
    pub(super) fn read(message: &FbMessage<'_>) -> Result<Self> {
        check_version(message.version())?;
        let schema = message
            .header_as_schema()
            .ok_or_else(|| bad("it is not a schema"))?;
        if schema.endianness() != Endianness::Little {
            return Err(Error::unsupported("big-endian data"));
        }
        let mut ids = Vec::new();
        for field in fields(&schema)? {
            let column = field.name().unwrap_or_default();
            check(&field, message.version(), MAX_NESTING, &mut ids)
                .map_err(|rule| Error::header("schema", format!("column {column}: {rule}")))?;
        }
        Self::new(Arc::new(arrow_ipc::convert::fb_to_schema(schema)), ids)
    }

    /// Takes a schema that came by another way. Where its fields have no ids of their own,
    /// dictionaries are expected in the order of writers that number them one by one.
    pub(super) fn given(schema: SchemaRef) -> Result<Self> {
        let mut ids = Vec::new();
        for field in schema.fields() {
            given_ids(field, MAX_NESTING, &mut ids)?;
        }
        if ids.len() > 1 && ids.iter().all(|id| *id == ids[0]) {
            ids = (0..).take(ids.len()).collect();
        }
        Self::new(schema, ids)
    }

    fn new(schema: SchemaRef, ids: Vec<i64>) -> Result<Self> {
        let mut values = HashMap::new();
        let mut next = 0;
        for field in schema.fields() {
            walk(
                field.data_type(),
                &ids,
                &mut next,
                &mut |id, found| match values.get(&id) {
                    Some(known) if *known != found => Err(bad(format!(
                        "dictionary {id} has values of two types (column {})",
                        field.name()
                    ))),
                    _ => {
                        values.insert(id, found);
                        Ok(())
                    }
                },
            )?;
        }
        Ok(Self {
            schema,
            ids,
            values,
        })
    }
}

/// Comes to each dictionary of a type: the ones inside it first, then itself.
fn walk(
    data_type: &DataType,
    ids: &[i64],
    next: &mut usize,
    found: &mut impl FnMut(i64, Values) -> Result<()>,
) -> Result<()> {
    if let DataType::Dictionary(_, value) = data_type {
        let first = *next;
        walk(value, ids, next, found)?;
        let values = Values {
            data_type: DataType::clone(value),
            ids: ids[first..*next].to_vec(),
        };
        let id = ids
            .get(*next)
            .ok_or_else(|| bad("a dictionary has no id"))?;
        *next += 1;
        return found(*id, values);
    }
    children(data_type)
        .into_iter()
        .try_for_each(|child| walk(child.data_type(), ids, next, found))
}

fn given_ids(field: &FieldRef, depth: usize, ids: &mut Vec<i64>) -> Result<()> {
    let depth = depth.checked_sub(1).ok_or_else(|| bad(too_deep()))?;
    let inner = match field.data_type() {
        DataType::Dictionary(_, value) => value,
        other => other,
    };
    children(inner)
        .into_iter()
        .try_for_each(|child| given_ids(child, depth, ids))?;
    if let DataType::Dictionary(_, _) = field.data_type() {
        #[allow(deprecated)] // There is no other place for the id that a reader found.
        ids.push(field.dict_id().unwrap_or_default());
    }
    Ok(())
}

/// Refuses metadata of versions that are laid out differently.
pub(super) fn check_version(version: MetadataVersion) -> Result<()> {
    match version {
        MetadataVersion::V4 | MetadataVersion::V5 => Ok(()),
        MetadataVersion(other) => Err(Error::unsupported(format!(
            "version {other} of IPC metadata, which is neither V4 nor V5"
        ))),
    }
}

fn bad(rule: impl Into<String>) -> Error {
    Error::header("schema", rule.into())
}

fn too_deep() -> String {
    format!("types nest deeper than {MAX_NESTING}")
}

fn fields<'a>(schema: &FbSchema<'a>) -> Result<impl Iterator<Item = FbField<'a>> + use<'a>> {
    Ok(schema
        .fields()
        .ok_or_else(|| bad("it has no fields"))?
        .iter())
}

/// Refuses what arrow-ipc would panic on, and notes the ids of dictionaries.
fn check(
    field: &FbField<'_>,
    version: MetadataVersion,
    depth: usize,
    ids: &mut Vec<i64>,
) -> Result<(), String> {
    let depth = depth.checked_sub(1).ok_or_else(too_deep)?;
    check_values(field, version)?;
    for child in field.children().iter().flatten() {
        check(&child, version, depth, ids)?;
    }
    if let Some(dictionary) = field.dictionary() {
        let keys = dictionary
            .indexType()
            .ok_or("a dictionary without a type of keys")?;
        check_width(keys.bitWidth(), &[8, 16, 32, 64])?;
        ids.push(dictionary.id());
    }
    Ok(())
}

fn check_values(field: &FbField<'_>, version: MetadataVersion) -> Result<(), String> {
    match field.type_type() {
        Type::Null
        | Type::Bool
        | Type::Binary
        | Type::Utf8
        | Type::LargeBinary
        | Type::LargeUtf8
        | Type::BinaryView
        | Type::Utf8View => Ok(()),
        Type::Struct_ => Ok(()),
        Type::List | Type::LargeList | Type::ListView | Type::LargeListView => {
            children_of(field, 1).map(drop)
        }
        Type::Union if version == MetadataVersion::V4 => Err(
            "unions of metadata version V4, which have validity bitmaps, are not supported".into(),
        ),
        Type::Union => check_union(field),
        Type::Map => check_map(field),
        Type::RunEndEncoded => check_runs(field),
        Type::FixedSizeList => {
            children_of(field, 1)?;
            let list = field.type_as_fixed_size_list().ok_or("no type")?;
            if list.listSize() < 0 {
                Err("lists of negative size".into())
            } else {
                Ok(())
            }
        }
        Type::FixedSizeBinary => {
            let binary = field.type_as_fixed_size_binary().ok_or("no type")?;
            if binary.byteWidth() < 0 {
                Err("binaries of negative size".into())
            } else {
                Ok(())
            }
        }
        _ => check_number(field),
    }
}

fn check_number(field: &FbField<'_>) -> Result<(), String> {
    const NONE: &str = "no type";
    let exists = match field.type_type() {
        Type::Int => {
            let int = field.type_as_int().ok_or(NONE)?;
            return check_width(int.bitWidth(), &[8, 16, 32, 64]);
        }
        Type::Decimal => {
            let decimal = field.type_as_decimal().ok_or(NONE)?;
            is_decimal(decimal.bitWidth(), decimal.precision(), decimal.scale())
        }
        Type::FloatingPoint => {
            let precision = field.type_as_floating_point().ok_or(NONE)?.precision();
            matches!(
                precision,
                Precision::HALF | Precision::SINGLE | Precision::DOUBLE
            )
        }
        Type::Date => {
            let unit = field.type_as_date().ok_or(NONE)?.unit();
            matches!(unit, DateUnit::DAY | DateUnit::MILLISECOND)
        }
        Type::Time => {
            let time = field.type_as_time().ok_or(NONE)?;
            is_time(time.bitWidth(), time.unit())
        }
        Type::Timestamp => is_unit(field.type_as_timestamp().ok_or(NONE)?.unit()),
        Type::Duration => is_unit(field.type_as_duration().ok_or(NONE)?.unit()),
        Type::Interval => is_interval(field.type_as_interval().ok_or(NONE)?.unit()),
        other => return Err(format!("type {other:?} is not supported")),
    };
    if exists {
        return Ok(());
    }
    Err(format!(
        "a form of type {:?} that does not exist",
        field.type_type()
    ))
}

fn is_decimal(width: i32, precision: i32, scale: i32) -> bool {
    let digits = match width {
        32 => 9,
        64 => 18,
        128 => 38,
        256 => 76,
        _ => return false,
    };
    (1..=digits).contains(&precision) && (-digits..=digits).contains(&scale)
}

fn is_time(width: i32, unit: TimeUnit) -> bool {
    match width {
        32 => matches!(unit, TimeUnit::SECOND | TimeUnit::MILLISECOND),
        64 => matches!(unit, TimeUnit::MICROSECOND | TimeUnit::NANOSECOND),
        _ => false,
    }
}

fn is_interval(unit: IntervalUnit) -> bool {
    matches!(
        unit,
        IntervalUnit::YEAR_MONTH | IntervalUnit::DAY_TIME | IntervalUnit::MONTH_DAY_NANO
    )
}

fn is_unit(unit: TimeUnit) -> bool {
    matches!(
        unit,
        TimeUnit::SECOND | TimeUnit::MILLISECOND | TimeUnit::MICROSECOND | TimeUnit::NANOSECOND
    )
}

fn check_width(width: i32, allowed: &[i32]) -> Result<(), String> {
    if allowed.contains(&width) {
        Ok(())
    } else {
        Err(format!("a width of {width} bits"))
    }
}

fn children_of<'a>(field: &FbField<'a>, count: usize) -> Result<Vec<FbField<'a>>, String> {
    let children: Vec<_> = field.children().iter().flatten().collect();
    if children.len() == count {
        return Ok(children);
    }
    Err(format!(
        "{:?} has {} children and not {count}",
        field.type_type(),
        children.len()
    ))
}

fn check_map(field: &FbField<'_>) -> Result<(), String> {
    field.type_as_map().ok_or("no type")?;
    let entries = children_of(field, 1)?[0];
    if entries.type_type() != Type::Struct_ || entries.dictionary().is_some() {
        return Err("the entries of a map are not a struct".into());
    }
    if entries.nullable() {
        return Err("the entries of a map may not be null".into());
    }
    let pair = children_of(&entries, 2)?;
    if pair[0].nullable() {
        Err("the keys of a map may not be null".into())
    } else {
        Ok(())
    }
}

fn check_runs(field: &FbField<'_>) -> Result<(), String> {
    let ends = children_of(field, 2)?[0];
    if ends.nullable() || ends.type_type() != Type::Int || ends.dictionary().is_some() {
        return Err("run ends are not integers without nulls".into());
    }
    let int = ends.type_as_int().ok_or("no type")?;
    if !int.is_signed() {
        return Err("run ends are not signed".into());
    }
    check_width(int.bitWidth(), &[16, 32, 64])
}

fn check_union(field: &FbField<'_>) -> Result<(), String> {
    let union = field.type_as_union().ok_or("no type")?;
    if !matches!(union.mode(), UnionMode::Sparse | UnionMode::Dense) {
        return Err("a mode of union that does not exist".into());
    }
    let count = field.children().map_or(0, |children| children.len());
    let Some(ids) = union.typeIds() else {
        return if count <= 128 {
            Ok(())
        } else {
            Err("a union of more than 128 types".into())
        };
    };
    let mut seen = [false; 128];
    for id in ids {
        let place = usize::try_from(id)
            .ok()
            .and_then(|id| seen.get_mut(id))
            .ok_or("a type id over 127")?;
        if std::mem::replace(place, true) {
            return Err("a type id twice".into());
        }
    }
    if ids.len() == count {
        Ok(())
    } else {
        Err("not one type id for each type of a union".into())
    }
}

/// Whether two schemas are the same but for what their metadata says.
pub(super) fn same(one: &Schema, other: &Schema) -> bool {
    one.fields() == other.fields()
}
