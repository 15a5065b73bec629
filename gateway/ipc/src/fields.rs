//! Types as IPC sees them: which are the same but for their labels, which a reader is told, and how
//! deep they may nest. Must not know arrays.

use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, Fields, Schema, SchemaRef, UnionFields};

use crate::error::{Error, Result};

/// How deep types may nest. Other readers verify metadata to a depth of 64 tables, of which a
/// message, its schema, a field and its type take one each.
pub const MAX_NESTING: usize = 60;

/// What names and metadata of a schema may take; flatbuffers end at 2 GiB.
const MAX_TEXT: u64 = 1 << 30;

/// What a reader takes as it is. The rest is sent as the plain type that stands for it.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Types {
    /// Dictionaries; otherwise their values are sent.
    pub dictionaries: bool,
    /// Views; otherwise they are sent as `Utf8` and `Binary`.
    pub views: bool,
}

/// The schema that a reader of `types` is told.
pub(crate) fn announced(schema: &Schema, types: Types) -> Result<SchemaRef> {
    check_text(schema)?;
    let fields: Fields = schema
        .fields()
        .iter()
        .map(|field| announced_field(field, types))
        .collect();
    for field in &fields {
        check_type(field.name(), field.data_type(), MAX_NESTING)?;
    }
    Ok(Arc::new(Schema::new_with_metadata(
        fields,
        schema.metadata().clone(),
    )))
}

fn announced_field(field: &FieldRef, types: Types) -> FieldRef {
    let data_type = announced_type(field.data_type(), types);
    if data_type == *field.data_type() {
        return Arc::clone(field);
    }
    Arc::new(Field::clone(field).with_data_type(data_type))
}

fn announced_type(data_type: &DataType, types: Types) -> DataType {
    use DataType::{
        Binary, BinaryView, Dictionary, FixedSizeList, LargeList, LargeListView, List, ListView,
        Map, RunEndEncoded, Struct, Union, Utf8, Utf8View,
    };
    let field = |field: &FieldRef| announced_field(field, types);
    match data_type {
        Dictionary(key, value) if types.dictionaries => {
            let value = announced_type(value, types);
            // IPC has no dictionary of a dictionary: the outer one is sent with the inner one's values.
            let value = if let Dictionary(_, inner) = value {
                *inner
            } else {
                value
            };
            Dictionary(key.clone(), Box::new(value))
        }
        Dictionary(_, value) => announced_type(value, types),
        Utf8View if !types.views => Utf8,
        BinaryView if !types.views => Binary,
        List(item) => List(field(item)),
        LargeList(item) => LargeList(field(item)),
        ListView(item) => ListView(field(item)),
        LargeListView(item) => LargeListView(field(item)),
        FixedSizeList(item, size) => FixedSizeList(field(item), *size),
        Map(entries, sorted) => Map(field(entries), *sorted),
        Struct(fields) => Struct(fields.iter().map(field).collect()),
        RunEndEncoded(ends, values) => RunEndEncoded(Arc::clone(ends), field(values)),
        Union(fields, mode) => Union(
            fields
                .iter()
                .map(|(id, child)| (id, field(child)))
                .collect::<UnionFields>(),
            *mode,
        ),
        other => other.clone(),
    }
}

/// Refuses what a message cannot say.
fn check_type(column: &str, data_type: &DataType, depth: usize) -> Result<()> {
    let Some(depth) = depth.checked_sub(1) else {
        return Err(Error::column(
            column,
            format!("types nest deeper than {MAX_NESTING}"),
        ));
    };
    match data_type {
        DataType::Dictionary(key, _) if !key.is_dictionary_key_type() => {
            return Err(Error::column(
                column,
                "a dictionary's keys are not integers",
            ));
        }
        DataType::Dictionary(_, value) => return check_type(column, value, depth),
        DataType::RunEndEncoded(ends, _)
            if !ends.data_type().is_run_ends_type() || ends.is_nullable() =>
        {
            return Err(Error::column(
                column,
                "run ends are not integers without nulls",
            ));
        }
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(fields) if fields.len() == 2 => {}
            _ => {
                return Err(Error::column(
                    column,
                    "the entries of a map are not keys and values",
                ));
            }
        },
        _ => {}
    }
    children(data_type)
        .into_iter()
        .try_for_each(|child| check_type(column, child.data_type(), depth))
}

fn check_text(schema: &Schema) -> Result<()> {
    let pairs = |map: &std::collections::HashMap<String, String>| -> usize {
        map.iter()
            .map(|(key, value)| key.len() + value.len() + 24)
            .sum()
    };
    let text: usize = schema
        .flattened_fields()
        .iter()
        .map(|field| field.name().len() + pairs(field.metadata()))
        .sum();
    let size = (text + pairs(schema.metadata())) as u64;
    if size > MAX_TEXT {
        return Err(Error::TooLarge {
            what: "the metadata of a schema",
            size,
            limit: MAX_TEXT,
        });
    }
    Ok(())
}

/// The fields that stand under a type; none for a dictionary, whose values are another message.
pub(crate) fn children(data_type: &DataType) -> Vec<&FieldRef> {
    use DataType::{
        FixedSizeList, LargeList, LargeListView, List, ListView, Map, RunEndEncoded, Struct, Union,
    };
    match data_type {
        List(item)
        | LargeList(item)
        | ListView(item)
        | LargeListView(item)
        | FixedSizeList(item, _)
        | Map(item, _) => vec![item],
        Struct(fields) => fields.iter().collect(),
        RunEndEncoded(ends, values) => vec![ends, values],
        Union(fields, _) => fields.iter().map(|(_, field)| field).collect(),
        _ => Vec::new(),
    }
}

/// Whether values of a type have neither children nor another dictionary.
pub(crate) fn is_flat(data_type: &DataType) -> bool {
    !matches!(data_type, DataType::Dictionary(_, _)) && !data_type.is_nested()
}

/// Whether lists of a type may have more items than bytes. Nothing bounds how many, and arrow
/// counts them with 32 bits.
pub(crate) fn has_weightless_items(data_type: &DataType) -> bool {
    let is_list = matches!(
        data_type,
        DataType::List(_)
            | DataType::LargeList(_)
            | DataType::ListView(_)
            | DataType::LargeListView(_)
            | DataType::Map(_, _)
            | DataType::FixedSizeList(_, _)
    );
    children(data_type).into_iter().any(|child| {
        is_list && is_weightless(child.data_type()) || has_weightless_items(child.data_type())
    })
}

fn is_weightless(data_type: &DataType) -> bool {
    match data_type {
        DataType::Null | DataType::FixedSizeBinary(0) | DataType::FixedSizeList(_, 0) => true,
        DataType::Struct(fields) => fields.iter().all(|field| is_weightless(field.data_type())),
        DataType::FixedSizeList(item, _) => is_weightless(item.data_type()),
        DataType::RunEndEncoded(_, _) => true,
        DataType::Dictionary(_, value) => is_weightless(value),
        _ => false,
    }
}

/// Whether two types have the same values, layout and struct names: they may differ in nullability,
/// in metadata and in the names that the items of lists and maps and the values of runs go by.
pub(crate) fn same_values(one: &DataType, other: &DataType) -> bool {
    use DataType::{
        Dictionary, FixedSizeList, LargeList, LargeListView, List, ListView, Map, RunEndEncoded,
        Struct, Union,
    };
    let item = |one: &FieldRef, other: &FieldRef| same_values(one.data_type(), other.data_type());
    match (one, other) {
        (List(a), List(b))
        | (LargeList(a), LargeList(b))
        | (ListView(a), ListView(b))
        | (LargeListView(a), LargeListView(b)) => item(a, b),
        (FixedSizeList(a, n), FixedSizeList(b, m)) => n == m && item(a, b),
        (Map(a, _), Map(b, _)) => match (a.data_type(), b.data_type()) {
            (Struct(a), Struct(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| item(a, b))
            }
            _ => false,
        },
        (Struct(a), Struct(b)) => {
            a.len() == b.len()
                && a.iter()
                    .zip(b)
                    .all(|(a, b)| a.name() == b.name() && item(a, b))
        }
        (RunEndEncoded(a, v), RunEndEncoded(b, w)) => item(a, b) && item(v, w),
        (Union(a, n), Union(b, m)) => {
            n == m
                && a.len() == b.len()
                && a.iter()
                    .zip(b.iter())
                    .all(|((i, a), (j, b))| i == j && item(a, b))
        }
        (Dictionary(k, v), Dictionary(l, w)) => k == l && same_values(v, w),
        (one, other) => one == other,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn list(item: DataType) -> DataType {
        DataType::List(Arc::new(Field::new_list_field(item, true)))
    }

    fn dictionary(value: DataType) -> DataType {
        DataType::Dictionary(Box::new(DataType::Int8), Box::new(value))
    }

    #[test]
    fn readers_are_told_what_they_take() {
        let exotic = list(dictionary(DataType::Utf8View));
        let told = |dictionaries, views| {
            announced_type(
                &exotic,
                Types {
                    dictionaries,
                    views,
                },
            )
        };
        assert_eq!(told(false, false), list(DataType::Utf8));
        assert_eq!(told(false, true), list(DataType::Utf8View));
        assert_eq!(told(true, false), list(dictionary(DataType::Utf8)));
        assert_eq!(told(true, true), exotic);
        let twice = dictionary(dictionary(DataType::Utf8));
        assert_eq!(
            announced_type(
                &twice,
                Types {
                    dictionaries: true,
                    views: true
                }
            ),
            dictionary(DataType::Utf8)
        );
    }

    #[test]
    fn what_ipc_cannot_say_is_refused() {
        let deep = (0..MAX_NESTING).fold(DataType::Int8, |inner, _| list(inner));
        let float_keys =
            DataType::Dictionary(Box::new(DataType::Float32), Box::new(DataType::Utf8));
        for bad in [deep, float_keys] {
            let schema = Schema::new(vec![Field::new("bad", bad, true)]);
            let error = announced(
                &schema,
                Types {
                    dictionaries: true,
                    views: true,
                },
            )
            .unwrap_err();
            assert!(error.to_string().contains("bad"), "{error}");
        }
    }

    #[test]
    fn items_without_bytes_are_known() {
        assert!(has_weightless_items(&list(list(DataType::Null))));
        assert!(has_weightless_items(&list(DataType::Struct(
            Fields::empty()
        ))));
        assert!(
            !has_weightless_items(&list(list(DataType::Int8)))
                && !has_weightless_items(&DataType::Null)
        );
    }

    #[test]
    fn labels_do_not_make_a_type() {
        let named = DataType::List(Arc::new(Field::new("element", DataType::Int8, false)));
        assert!(same_values(&named, &list(DataType::Int8)));
        assert!(!same_values(&named, &list(DataType::Int16)));
        let point =
            |name: &str| DataType::Struct(vec![Field::new(name, DataType::Int8, true)].into());
        assert!(!same_values(&point("x"), &point("y")));
    }
}
