//! Answers of a few columns and rows, built row by row.
//!
//! Owns the three types that answers have. Must not know what they are about.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int16Array, Int32Array, RecordBatch, RecordBatchOptions, StringArray};
use arrow_schema::{DataType, Field, Schema};
use sluice_core::error::Result;

use super::error::translate;

/// The type of an answer's column.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    Text,
    Int,
    Short,
}

/// A value of an answer. `None` fits all kinds.
#[derive(Clone)]
pub(super) enum Value {
    None,
    Text(String),
    Int(i32),
}

pub(super) fn text(value: impl Into<String>) -> Value {
    Value::Text(value.into())
}

pub(super) fn int(value: Option<i32>) -> Value {
    value.map_or(Value::None, Value::Int)
}

/// An answer of these columns.
pub(super) fn batch(columns: &[(&str, Kind)], rows: Vec<Vec<Value>>) -> Result<RecordBatch> {
    let count = rows.len();
    let mut fields = Vec::with_capacity(columns.len());
    let mut arrays = Vec::with_capacity(columns.len());
    for (index, (name, kind)) in columns.iter().enumerate() {
        let values = rows
            .iter()
            .map(|row| row.get(index).unwrap_or(&Value::None));
        let array = array(*kind, values);
        let data_type: &DataType = array.data_type();
        fields.push(Field::new(*name, data_type.clone(), true));
        arrays.push(array);
    }
    let options = RecordBatchOptions::new().with_row_count(Some(count));
    RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), arrays, &options)
        .map_err(|error| translate(error.into()))
}

fn array<'a>(kind: Kind, values: impl Iterator<Item = &'a Value>) -> ArrayRef {
    let number = |value: &Value| match value {
        Value::Int(number) => Some(*number),
        _ => None,
    };
    match kind {
        Kind::Int => Arc::new(values.map(number).collect::<Int32Array>()),
        Kind::Short => {
            let short = |value: &Value| number(value).and_then(|number| number.try_into().ok());
            Arc::new(values.map(short).collect::<Int16Array>())
        }
        Kind::Text => {
            let text = |value: &'a Value| match value {
                Value::Text(text) => Some(text.as_str()),
                _ => None,
            };
            Arc::new(values.map(text).collect::<StringArray>())
        }
    }
}
