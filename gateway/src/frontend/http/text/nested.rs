//! Values that hold other values, and values that stand somewhere else: lists, structs, maps,
//! unions, dictionaries, runs. Must not know scalars.

use std::collections::HashMap;
use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowDictionaryKeyType, RunEndIndexType};
use arrow_array::{
    Array, DictionaryArray, FixedSizeListArray, MapArray, OffsetSizeTrait, RunArray, StructArray,
    UnionArray, downcast_dictionary_array, downcast_run_array,
};
use arrow_buffer::ArrowNativeType;
use arrow_schema::DataType;

use super::cells::{BoxCells, Cells, Printed, Unprintable, cells as cells_of, json_text};

/// The values of `array`, whose type is not a scalar.
pub(super) fn cells(array: &dyn Array) -> Result<BoxCells<'_>, Unprintable> {
    Ok(match array.data_type() {
        DataType::List(_) => list::<i32>(array)?,
        DataType::LargeList(_) => list::<i64>(array)?,
        DataType::ListView(_) => list_view::<i32>(array)?,
        DataType::LargeListView(_) => list_view::<i64>(array)?,
        DataType::FixedSizeList(..) => fixed_size_list(array.as_fixed_size_list())?,
        DataType::Struct(_) => Box::new(Structs::new(array.as_struct())?),
        DataType::Map(..) => map(array.as_map())?,
        DataType::Union(..) => union(array.as_union())?,
        DataType::Dictionary(..) => downcast_dictionary_array!(
            array => dictionary(array)?,
            other => return Err(unknown(other))
        ),
        DataType::RunEndEncoded(..) => downcast_run_array!(
            array => runs(array)?,
            other => return Err(unknown(other))
        ),
        other => return Err(unknown(other)),
    })
}

fn unknown(data_type: &DataType) -> Unprintable {
    Unprintable(format!("the type {data_type} has no form as text"))
}

/// Names for the members of an object: the second of two alike gets `_2`, and so on.
pub(super) fn distinct<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let names: Vec<_> = names.collect();
    let mut taken: HashMap<String, usize> =
        names.iter().map(|name| ((*name).to_owned(), 0)).collect();
    names
        .into_iter()
        .map(|name| {
            let seen = taken.get(name).copied().unwrap_or_default() + 1;
            let mut number = seen;
            let mut given = name.to_owned();
            while number > 1 {
                given = format!("{name}_{number}");
                if !taken.contains_key(&given) {
                    break;
                }
                number += 1;
            }
            taken.insert(name.to_owned(), number);
            taken.entry(given.clone()).or_insert(1);
            given
        })
        .collect()
}

/// Lists of any layout, by where their values stand in the child.
struct Lists<'a, F> {
    array: &'a dyn Array,
    values: BoxCells<'a>,
    place: F,
}

impl<F: Fn(usize) -> Range<usize>> Cells for Lists<'_, F> {
    fn is_null(&self, row: usize) -> bool {
        self.array.is_null(row)
    }

    fn value_json(&self, row: usize, out: &mut String) -> Printed {
        out.push('[');
        for (index, at) in (self.place)(row).enumerate() {
            if index > 0 {
                out.push(',');
            }
            self.values.json(at, out)?;
        }
        out.push(']');
        Ok(())
    }
}

fn list<O: OffsetSizeTrait>(array: &dyn Array) -> Result<BoxCells<'_>, Unprintable> {
    let list = array.as_list::<O>();
    let offsets = list.value_offsets();
    let place = |row: usize| offsets[row].as_usize()..offsets[row + 1].as_usize();
    Ok(Box::new(Lists {
        array,
        values: cells_of(list.values())?,
        place,
    }))
}

fn list_view<O: OffsetSizeTrait>(array: &dyn Array) -> Result<BoxCells<'_>, Unprintable> {
    let list = array.as_list_view::<O>();
    let place = |row| {
        let start = list.value_offset(row).as_usize();
        start..start + list.value_size(row).as_usize()
    };
    Ok(Box::new(Lists {
        array,
        values: cells_of(list.values())?,
        place,
    }))
}

fn fixed_size_list(list: &FixedSizeListArray) -> Result<BoxCells<'_>, Unprintable> {
    let length = list.value_length().as_usize();
    let place = move |row: usize| {
        let start = list.value_offset(row).as_usize();
        start..start + length
    };
    Ok(Box::new(Lists {
        array: list,
        values: cells_of(list.values())?,
        place,
    }))
}

struct Structs<'a> {
    array: &'a StructArray,
    /// `"name":` and the values under it.
    members: Vec<(String, BoxCells<'a>)>,
}

impl<'a> Structs<'a> {
    fn new(array: &'a StructArray) -> Result<Self, Unprintable> {
        let names = distinct(array.fields().iter().map(|field| field.name().as_str()));
        let members = names.iter().zip(array.columns()).map(|(name, column)| {
            let mut label = String::new();
            json_text(name, &mut label);
            label.push(':');
            Ok((label, cells_of(column)?))
        });
        Ok(Self {
            array,
            members: members.collect::<Result<_, Unprintable>>()?,
        })
    }
}

impl Cells for Structs<'_> {
    fn is_null(&self, row: usize) -> bool {
        self.array.is_null(row)
    }

    fn value_json(&self, row: usize, out: &mut String) -> Printed {
        out.push('{');
        for (index, (label, values)) in self.members.iter().enumerate() {
            if index > 0 {
                out.push(',');
            }
            out.push_str(label);
            values.json(row, out)?;
        }
        out.push('}');
        Ok(())
    }
}

/// An object when keys are strings; otherwise pairs, since JSON's names are strings.
struct Maps<'a> {
    array: &'a MapArray,
    keys: BoxCells<'a>,
    values: BoxCells<'a>,
    is_object: bool,
}

fn map(array: &MapArray) -> Result<BoxCells<'_>, Unprintable> {
    let is_object = matches!(
        array.key_type(),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View
    );
    let (keys, values) = (cells_of(array.keys())?, cells_of(array.values())?);
    Ok(Box::new(Maps {
        array,
        keys,
        values,
        is_object,
    }))
}

impl Cells for Maps<'_> {
    fn is_null(&self, row: usize) -> bool {
        self.array.is_null(row)
    }

    fn value_json(&self, row: usize, out: &mut String) -> Printed {
        let offsets = self.array.value_offsets();
        let [open, between, end, close] = if self.is_object {
            ["{", ":", "", "}"]
        } else {
            ["[", ",", "]", "]"]
        };
        out.push_str(open);
        for (index, at) in (offsets[row].as_usize()..offsets[row + 1].as_usize()).enumerate() {
            if index > 0 {
                out.push(',');
            }
            if !self.is_object {
                out.push('[');
            }
            self.keys.json(at, out)?;
            out.push_str(between);
            self.values.json(at, out)?;
            out.push_str(end);
        }
        out.push_str(close);
        Ok(())
    }
}

/// Values that stand elsewhere: `None` is NULL.
struct Elsewhere<'a, F> {
    targets: Vec<BoxCells<'a>>,
    /// Which target, and where in it.
    place: F,
}

impl<F: Fn(usize) -> Option<(usize, usize)>> Elsewhere<'_, F> {
    fn find(&self, row: usize) -> Option<(&dyn Cells, usize)> {
        let (target, at) = (self.place)(row)?;
        Some((self.targets.get(target)?.as_ref(), at))
    }
}

impl<F: Fn(usize) -> Option<(usize, usize)>> Cells for Elsewhere<'_, F> {
    fn is_null(&self, row: usize) -> bool {
        self.find(row).is_none_or(|(cells, at)| cells.is_null(at))
    }

    fn value_json(&self, row: usize, out: &mut String) -> Printed {
        self.find(row)
            .map_or(Ok(()), |(cells, at)| cells.value_json(at, out))
    }

    fn value_csv(&self, row: usize, out: &mut String) -> Printed {
        self.find(row)
            .map_or(Ok(()), |(cells, at)| cells.value_csv(at, out))
    }
}

fn union(array: &UnionArray) -> Result<BoxCells<'_>, Unprintable> {
    let DataType::Union(fields, _) = array.data_type() else {
        return Err(unknown(array.data_type()));
    };
    let ids: Vec<i8> = fields.iter().map(|(id, _)| id).collect();
    let targets: Vec<_> = ids
        .iter()
        .map(|id| cells_of(array.child(*id)))
        .collect::<Result<_, _>>()?;
    let place = move |row| {
        let id = array.type_id(row);
        Some((
            ids.iter().position(|known| *known == id)?,
            array.value_offset(row),
        ))
    };
    Ok(Box::new(Elsewhere { targets, place }))
}

fn dictionary<K: ArrowDictionaryKeyType>(
    array: &DictionaryArray<K>,
) -> Result<BoxCells<'_>, Unprintable> {
    let targets = vec![cells_of(array.values())?];
    Ok(Box::new(Elsewhere {
        targets,
        place: |row| Some((0, array.key(row)?)),
    }))
}

fn runs<R: RunEndIndexType>(array: &RunArray<R>) -> Result<BoxCells<'_>, Unprintable> {
    let targets = vec![cells_of(array.values())?];
    Ok(Box::new(Elsewhere {
        targets,
        place: |row| Some((0, array.get_physical_index(row))),
    }))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::Arc;

    use arrow_array::builder::{Int32Builder, MapBuilder, StringBuilder};
    use arrow_array::types::{Int8Type, Int32Type};
    use arrow_array::*;
    use arrow_buffer::{OffsetBuffer, ScalarBuffer};
    use arrow_schema::{Field, Fields, UnionFields};

    use super::*;

    fn json(array: &dyn Array) -> Vec<String> {
        let cells = cells_of(array).unwrap();
        let shown = (0..array.len()).map(|row| {
            let mut out = String::new();
            cells.json(row, &mut out).unwrap();
            serde_json::from_str::<serde_json::Value>(&out).unwrap();
            out
        });
        shown.collect()
    }

    fn csv(array: &dyn Array, row: usize) -> String {
        let mut out = String::new();
        cells_of(array).unwrap().csv(row, &mut out).unwrap();
        out
    }

    fn lists() -> ListArray {
        ListArray::from_iter_primitive::<Int32Type, _, _>([
            Some(vec![Some(1), None]),
            None,
            Some(vec![]),
            Some(vec![Some(4)]),
        ])
    }

    #[test]
    fn lists_of_every_layout() {
        let list = lists();
        assert_eq!(json(&list), ["[1,null]", "null", "[]", "[4]"]);
        assert_eq!(json(&list.slice(2, 2)), ["[]", "[4]"]);
        assert_eq!(csv(&list, 0), "\"[1,null]\"");
        assert_eq!(csv(&list, 1), "");
        assert_eq!(
            json(&LargeListViewArray::from(arrow_cast_large(&list))),
            ["[1,null]", "null", "[]", "[4]"]
        );
        let field = Arc::new(Field::new("item", DataType::Int32, true));
        let fixed =
            FixedSizeListArray::new(field, 2, Arc::new(Int32Array::from(vec![1, 2, 3, 4])), None);
        assert_eq!(json(&fixed.slice(1, 1)), ["[3,4]"]);
    }

    fn arrow_cast_large(list: &ListArray) -> LargeListArray {
        arrow_cast::cast(
            list,
            &DataType::LargeList(Arc::new(Field::new("item", DataType::Int32, true))),
        )
        .unwrap()
        .as_list::<i64>()
        .clone()
    }

    #[test]
    fn members_have_names_of_their_own() {
        assert_eq!(
            distinct(["a", "a", "a_2", "a", ""].into_iter()),
            ["a", "a_3", "a_2", "a_4", ""]
        );
        assert_eq!(distinct(["a", "b", "a"].into_iter()), ["a", "b", "a_2"]);
        let column = |values: Vec<Option<i32>>| Arc::new(Int32Array::from(values)) as ArrayRef;
        let fields = Fields::from(vec![
            Field::new("a\"", DataType::Int32, true),
            Field::new("b", DataType::Int32, true),
            Field::new("b", DataType::Int32, true),
        ]);
        let columns = vec![
            column(vec![Some(1)]),
            column(vec![None]),
            column(vec![Some(3)]),
        ];
        assert_eq!(
            json(&StructArray::new(fields, columns, None)),
            [r#"{"a\"":1,"b":null,"b_2":3}"#]
        );
    }

    #[test]
    fn maps_are_objects_when_they_can_be() {
        let mut builder = MapBuilder::new(None, StringBuilder::new(), Int32Builder::new());
        builder.keys().append_value("k");
        builder.values().append_null();
        builder.append(true).unwrap();
        builder.append(false).unwrap();
        assert_eq!(json(&builder.finish()), [r#"{"k":null}"#, "null"]);

        let mut builder = MapBuilder::new(None, Int32Builder::new(), Int32Builder::new());
        for (key, value) in [(1, 2), (3, 4)] {
            builder.keys().append_value(key);
            builder.values().append_value(value);
        }
        builder.append(true).unwrap();
        assert_eq!(json(&builder.finish()), ["[[1,2],[3,4]]"]);
    }

    #[test]
    fn values_that_stand_elsewhere() {
        let dictionary: DictionaryArray<Int8Type> = vec![Some("x"), None, Some("y"), Some("x")]
            .into_iter()
            .collect();
        assert_eq!(json(&dictionary), ["\"x\"", "null", "\"y\"", "\"x\""]);
        assert_eq!(csv(&dictionary, 2), "y");
        let empty = DictionaryArray::<Int8Type>::new(
            Int8Array::from(vec![None]),
            Arc::new(StringArray::from(Vec::<&str>::new())),
        );
        assert_eq!(json(&empty), ["null"]);

        let ends = Int32Array::from(vec![2, 3]);
        let runs = RunArray::<Int32Type>::try_new(&ends, &StringArray::from(vec![Some("r"), None]))
            .unwrap();
        assert_eq!(json(&runs), ["\"r\"", "\"r\"", "null"]);
        assert_eq!(json(&runs.slice(1, 2)), ["\"r\"", "null"]);

        let fields: UnionFields = [
            (3, Arc::new(Field::new("i", DataType::Int32, true))),
            (7, Arc::new(Field::new("s", DataType::Utf8, true))),
        ]
        .into_iter()
        .collect();
        let children: Vec<ArrayRef> = vec![
            Arc::new(Int32Array::from(vec![Some(5), None])),
            Arc::new(StringArray::from(vec!["u,"])),
        ];
        let ids = ScalarBuffer::from(vec![3_i8, 7, 3]);
        let offsets = ScalarBuffer::from(vec![0, 0, 1]);
        let union = UnionArray::try_new(fields, ids, Some(offsets), children).unwrap();
        assert_eq!(json(&union), ["5", "\"u,\"", "null"]);
        assert_eq!(csv(&union, 1), "\"u,\"");
    }

    #[test]
    fn nested_nulls_and_depth() {
        let inner = lists();
        let field = Arc::new(Field::new("item", inner.data_type().clone(), true));
        let outer = ListArray::new(
            field,
            OffsetBuffer::from_lengths([3, 1]),
            Arc::new(inner),
            None,
        );
        assert_eq!(json(&outer), ["[[1,null],null,[]]", "[[4]]"]);
    }
}
