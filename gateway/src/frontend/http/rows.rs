//! `GET /operations/{operation}/rowset`, `…/log` and `…/resultsetmetadata`: results in pieces, in
//! the shapes of Kyuubi's clients. Must not know how a result is suspended.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, IntervalUnit, SchemaRef};
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::header::CONTENT_TYPE;
use serde::Deserialize;
use sluice_core::error::{Error, ErrorKind};
use sluice_core::operation::Operation;
use sluice_wire::http::{Column, LogRowSet, ResultSetMetadata, field, media};

use super::Shared;
use super::caller::Caller;
use super::cursor::Orientation;
use super::decode::{Named, Parameters};
use super::error::Failure;
use super::stream::unprintable;
use super::text::cells::{BoxCells, Unprintable, cells, json_text};
use super::text::writer::type_name;

/// Rows and lines that a fetch brings when it does not say how many.
const DEFAULT_ROWS: i64 = 100;
/// An answer that has reached this size is given away, with fewer rows than were asked for.
const ANSWER_BYTES: usize = 8 << 20;

/// The parameters of a fetch.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Fetch {
    #[serde(default = "default_rows")]
    maxrows: i64,
    fetchorientation: Option<String>,
}

fn default_rows() -> i64 {
    DEFAULT_ROWS
}

impl Fetch {
    fn orientation(&self) -> Result<Orientation, Failure> {
        match self.fetchorientation.as_deref() {
            None | Some("FETCH_NEXT") => Ok(Orientation::Next),
            Some("FETCH_FIRST") => Ok(Orientation::First),
            Some(_) => Err(Failure::bad(
                "fetchorientation must be FETCH_NEXT or FETCH_FIRST",
            )),
        }
    }

    fn rows(&self, most: u64) -> Result<u64, Failure> {
        let rows = u64::try_from(self.maxrows)
            .ok()
            .filter(|rows| (1..=most).contains(rows));
        rows.ok_or_else(|| Failure::bad(format!("maxrows must be from 1 to {most}")))
    }
}

/// The next rows. No rows is the end.
pub(super) async fn rowset(
    State(door): State<Shared>,
    caller: Caller,
    Named(id): Named,
    Parameters(fetch): Parameters<Fetch>,
) -> Result<Response, Failure> {
    let operation = door.gateway.operation(&caller.identity, &id)?;
    let (orientation, most) = (
        fetch.orientation()?,
        fetch.rows(door.settings.max_fetch_rows)?,
    );
    let cursor = door.cursors.of(&operation);
    let mut answer = Answer {
        text: "{\"rows\":[".to_owned(),
        rows: 0,
        most,
    };
    let fetched = cursor.fetch(
        &operation,
        orientation,
        door.settings.max_row_bytes,
        |batch, row| {
            answer
                .take(batch, row)
                .map_err(|Unprintable(reason)| unprintable(&reason))
        },
    );
    fetched.await.map_err(|error| error.of_operation(id))?;
    let body = answer.finish();
    Ok(([(CONTENT_TYPE, media::JSON)], body).into_response())
}

/// The next lines of the operation's log.
pub(super) async fn log(
    State(door): State<Shared>,
    caller: Caller,
    Named(id): Named,
    Parameters(fetch): Parameters<Fetch>,
) -> Result<Json<LogRowSet>, Failure> {
    let operation = door.gateway.operation(&caller.identity, &id)?;
    let (orientation, most) = (
        fetch.orientation()?,
        fetch.rows(door.settings.max_fetch_rows)?,
    );
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let lines = door
        .cursors
        .of(&operation)
        .log(&operation.log(), orientation, most);
    Ok(Json(LogRowSet {
        row_count: lines.len() as u64,
        log_row_set: lines,
    }))
}

/// The columns of the result.
pub(super) async fn metadata(
    State(door): State<Shared>,
    caller: Caller,
    Named(id): Named,
) -> Result<Json<ResultSetMetadata>, Failure> {
    let operation = door.gateway.operation(&caller.identity, &id)?;
    let schema = schema_of(&operation).map_err(|error| error.of_operation(id))?;
    let columns = schema
        .fields()
        .iter()
        .enumerate()
        .map(|(index, field)| column(index, field));
    Ok(Json(ResultSetMetadata {
        columns: columns.collect(),
    }))
}

fn schema_of(operation: &Arc<Operation>) -> Result<SchemaRef, Error> {
    let not_yet = || {
        let message = "the statement has no result yet; ask for its status";
        Error::new(ErrorKind::Conflict, message).with_retryable(true)
    };
    operation
        .schema()
        .ok_or_else(|| operation.status().error.unwrap_or_else(not_yet))
}

/// Rows on their way into one answer.
struct Answer {
    text: String,
    rows: u64,
    most: u64,
}

impl Answer {
    fn take(&mut self, batch: &RecordBatch, start: usize) -> Result<(usize, bool), Unprintable> {
        let columns: Vec<_> = batch
            .columns()
            .iter()
            .map(|array| Ok((kind(array.data_type()), cells(array)?)))
            .collect::<Result<_, Unprintable>>()?;
        let mut row = start;
        while row < batch.num_rows() && self.wants_more() {
            self.push(&columns, row)?;
            row += 1;
        }
        Ok((row, self.wants_more()))
    }

    fn wants_more(&self) -> bool {
        self.rows < self.most && self.text.len() < ANSWER_BYTES
    }

    fn push(&mut self, columns: &[(Kind, BoxCells<'_>)], row: usize) -> Result<(), Unprintable> {
        self.text.push_str(if self.rows > 0 {
            ",{\"fields\":["
        } else {
            "{\"fields\":["
        });
        for (index, (kind, cells)) in columns.iter().enumerate() {
            if index > 0 {
                self.text.push(',');
            }
            self.text.push_str("{\"dataType\":\"");
            self.text.push_str(kind.name);
            self.text.push_str("\",\"value\":");
            if kind.is_json_in_text && !cells.is_null(row) {
                let mut json = String::new();
                cells.json(row, &mut json)?;
                json_text(&json, &mut self.text);
            } else {
                cells.json(row, &mut self.text)?;
            }
            self.text.push('}');
        }
        self.text.push_str("]}");
        self.rows += 1;
        Ok(())
    }

    fn finish(mut self) -> String {
        self.text
            .push_str(&format!("],\"rowCount\":{}}}", self.rows));
        self.text
    }
}

/// How HiveServer2 calls the values of a type.
#[derive(Clone, Copy)]
struct Kind {
    name: &'static str,
    /// Whether the value's JSON is no string although the kind is one.
    is_json_in_text: bool,
}

fn kind(data_type: &DataType) -> Kind {
    let own = |name| Kind {
        name,
        is_json_in_text: false,
    };
    match data_type {
        DataType::Boolean => own(field::BOOL),
        DataType::Int8 => own(field::BYTE),
        DataType::Int16 | DataType::UInt8 => own(field::I16),
        DataType::Int32 | DataType::UInt16 => own(field::I32),
        DataType::Int64 | DataType::UInt32 => own(field::I64),
        DataType::Float16 | DataType::Float32 | DataType::Float64 => own(field::DOUBLE),
        DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView
        | DataType::FixedSizeBinary(_) => own(field::BINARY),
        DataType::Dictionary(_, value) => kind(value),
        DataType::RunEndEncoded(_, values) => kind(values.data_type()),
        DataType::UInt64
        | DataType::List(_)
        | DataType::LargeList(_)
        | DataType::ListView(_)
        | DataType::LargeListView(_)
        | DataType::FixedSizeList(..)
        | DataType::Struct(_)
        | DataType::Map(..)
        | DataType::Union(..) => Kind {
            name: field::STRING,
            is_json_in_text: true,
        },
        _ => own(field::STRING),
    }
}

fn column(index: usize, field: &Field) -> Column {
    let (precision, scale) = match field.data_type() {
        DataType::Decimal32(precision, scale)
        | DataType::Decimal64(precision, scale)
        | DataType::Decimal128(precision, scale)
        | DataType::Decimal256(precision, scale) => (i64::from(*precision), i64::from(*scale)),
        _ => (0, 0),
    };
    Column {
        column_name: field.name().clone(),
        data_type: hive_type(field.data_type()).to_owned(),
        column_index: index as u64,
        precision,
        scale,
        comment: type_name(field.data_type()),
    }
}

/// HiveServer2's name of the type that holds all values of an Arrow type.
fn hive_type(data_type: &DataType) -> &'static str {
    match data_type {
        DataType::Null => "NULL_TYPE",
        DataType::Boolean => "BOOLEAN_TYPE",
        DataType::Int8 => "TINYINT_TYPE",
        DataType::Int16 | DataType::UInt8 => "SMALLINT_TYPE",
        DataType::Int32 | DataType::UInt16 => "INT_TYPE",
        DataType::Int64 | DataType::UInt32 => "BIGINT_TYPE",
        DataType::Float16 | DataType::Float32 => "FLOAT_TYPE",
        DataType::Float64 => "DOUBLE_TYPE",
        DataType::Date32 => "DATE_TYPE",
        DataType::Date64 | DataType::Timestamp(..) => "TIMESTAMP_TYPE",
        DataType::UInt64
        | DataType::Decimal32(..)
        | DataType::Decimal64(..)
        | DataType::Decimal128(..)
        | DataType::Decimal256(..) => "DECIMAL_TYPE",
        DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView
        | DataType::FixedSizeBinary(_) => "BINARY_TYPE",
        DataType::List(_)
        | DataType::LargeList(_)
        | DataType::ListView(_)
        | DataType::LargeListView(_)
        | DataType::FixedSizeList(..) => "ARRAY_TYPE",
        DataType::Map(..) => "MAP_TYPE",
        DataType::Struct(_) => "STRUCT_TYPE",
        DataType::Union(..) => "UNION_TYPE",
        DataType::Interval(IntervalUnit::YearMonth) => "INTERVAL_YEAR_MONTH_TYPE",
        DataType::Interval(_) | DataType::Duration(_) => "INTERVAL_DAY_TIME_TYPE",
        DataType::Dictionary(_, value) => hive_type(value),
        DataType::RunEndEncoded(_, values) => hive_type(values.data_type()),
        DataType::Utf8
        | DataType::LargeUtf8
        | DataType::Utf8View
        | DataType::Time32(_)
        | DataType::Time64(_) => "STRING_TYPE",
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use arrow_array::types::Int32Type;
    use arrow_array::{ArrayRef, Float64Array, Int32Array, ListArray, StringArray, UInt64Array};
    use sluice_wire::http::RowSet;

    use super::*;

    fn batch() -> RecordBatch {
        let list = ListArray::from_iter_primitive::<Int32Type, _, _>([Some([Some(1)]), None, None]);
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("i", Arc::new(Int32Array::from(vec![1, 2, 3]))),
            (
                "s",
                Arc::new(StringArray::from(vec![Some("x"), None, Some("")])),
            ),
            ("u", Arc::new(UInt64Array::from(vec![u64::MAX, 0, 1]))),
            ("f", Arc::new(Float64Array::from(vec![0.5, f64::NAN, 1.0]))),
            ("l", Arc::new(list)),
        ];
        RecordBatch::try_from_iter(columns).unwrap()
    }

    #[test]
    fn rows_have_kyuubis_shape() {
        let mut answer = Answer {
            text: "{\"rows\":[".to_owned(),
            rows: 0,
            most: 2,
        };
        assert_eq!(answer.take(&batch(), 0).unwrap(), (2, false));
        let set: RowSet = serde_json::from_str(&answer.finish()).unwrap();
        assert_eq!(set.row_count, 2);
        let row: Vec<_> = set.rows[0]
            .fields
            .iter()
            .map(|f| (f.data_type.as_str(), f.value.to_string()))
            .collect();
        let expected = [
            ("I32_VAL", "1"),
            ("STRING_VAL", "\"x\""),
            ("STRING_VAL", "\"18446744073709551615\""),
            ("DOUBLE_VAL", "0.5"),
            ("STRING_VAL", "\"[1]\""),
        ];
        assert_eq!(row, expected.map(|(kind, value)| (kind, value.to_owned())));
        assert!(set.rows[1].fields[1].value.is_null());
        assert_eq!(set.rows[1].fields[3].value, "NaN");
    }

    #[test]
    fn fetches_are_checked() {
        let fetch = |maxrows, orientation: Option<&str>| Fetch {
            maxrows,
            fetchorientation: orientation.map(str::to_owned),
        };
        assert_eq!(fetch(100, None).rows(100).unwrap(), 100);
        for rows in [0, -1, 101, i64::MAX, i64::MIN] {
            assert!(fetch(rows, None).rows(100).is_err(), "{rows}");
        }
        assert_eq!(
            fetch(1, Some("FETCH_FIRST")).orientation().unwrap(),
            Orientation::First
        );
        assert!(fetch(1, Some("FETCH_PRIOR")).orientation().is_err());
    }

    #[test]
    fn columns_say_both_types() {
        let column = column(3, &Field::new("d", DataType::Decimal128(15, 2), true));
        assert_eq!(
            (column.data_type.as_str(), column.precision, column.scale),
            ("DECIMAL_TYPE", 15, 2)
        );
        assert_eq!(column.comment, "Decimal128(15, 2)");
        let key = Box::new(DataType::Int8);
        let dictionary = DataType::Dictionary(key, Box::new(DataType::Utf8View));
        assert_eq!(
            (hive_type(&dictionary), type_name(&dictionary)),
            ("STRING_TYPE", "Utf8".to_owned())
        );
    }
}
