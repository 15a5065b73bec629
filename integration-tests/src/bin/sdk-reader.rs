//! Reads with the Rust SDK and prints a JSON array a row, as the readers in other languages do:
//! numbers as text so that none is rounded on its way. With `--ask ADDRESS CERTIFICATE USER
//! PASSWORD BODY` it runs the statement of a query's body; with `ADDRESS CERTIFICATE USER PASSWORD
//! CODEC STATEMENT` a statement.

#![allow(clippy::print_stdout)]

use std::error::Error;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, TimestampMicrosecondType, TimestampMillisecondType, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, TimeUnit};
use futures::TryStreamExt;
use serde_json::{Value, json};
use sluice_client::Client;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let words: Vec<_> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["--ask", connection @ .., body] => {
            let body: Value = serde_json::from_str(body)?;
            let statement = body["statement"].as_str().ok_or("no statement")?;
            let configs = body["configs"].as_object().cloned().unwrap_or_default();
            let settings = configs
                .iter()
                .filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)));
            read(connection, settings.collect(), statement).await
        }
        [connection @ .., codec, statement] => {
            read(
                connection,
                vec![("arrow.compression.codec", codec)],
                statement,
            )
            .await
        }
        _ => Err("too few arguments".into()),
    }
}

async fn read(
    connection: &[&str],
    settings: Vec<(&str, &str)>,
    statement: &str,
) -> Result<(), Box<dyn Error>> {
    let [address, certificate, user, password] = connection else {
        return Err("expected an address, a certificate, a user and a password".into());
    };
    let mut builder = Client::builder(format!("sluice://{address}"))
        .user(*user)
        .password(*password)
        .ca_file(*certificate);
    for (key, value) in settings {
        builder = builder.setting(key, value);
    }
    let session = builder.build()?.session().await?;
    let mut rows = session.query(statement).await?;
    while let Some(batch) = rows.try_next().await? {
        print(&batch)?;
    }
    session.close().await?;
    Ok(())
}

fn print(batch: &RecordBatch) -> Result<(), Box<dyn Error>> {
    for row in 0..batch.num_rows() {
        let cells = batch.columns().iter().map(|column| cell(column, row));
        println!("{}", Value::from(cells.collect::<Result<Vec<_>, _>>()?));
    }
    Ok(())
}

fn cell(column: &dyn Array, row: usize) -> Result<Value, String> {
    if column.is_null(row) {
        return Ok(Value::Null);
    }
    macro_rules! number {
        ($type:ty) => {
            json!(column.as_primitive::<$type>().value(row).to_string())
        };
    }
    let bits = |value: f64| json!(format!("{:016x}", value.to_bits()));
    Ok(match column.data_type() {
        DataType::Boolean => json!(column.as_boolean().value(row)),
        DataType::Int8 => number!(Int8Type),
        DataType::Int16 => number!(Int16Type),
        DataType::Int32 => number!(Int32Type),
        DataType::Int64 => number!(Int64Type),
        DataType::UInt8 => number!(UInt8Type),
        DataType::UInt16 => number!(UInt16Type),
        DataType::UInt32 => number!(UInt32Type),
        DataType::UInt64 => number!(UInt64Type),
        DataType::Float32 => bits(f64::from(column.as_primitive::<Float32Type>().value(row))),
        DataType::Float64 => bits(column.as_primitive::<Float64Type>().value(row)),
        DataType::Decimal128(..) => number!(Decimal128Type),
        DataType::Date32 => number!(Date32Type),
        DataType::Timestamp(TimeUnit::Millisecond, _) => number!(TimestampMillisecondType),
        DataType::Timestamp(TimeUnit::Microsecond, _) => number!(TimestampMicrosecondType),
        DataType::Utf8 => json!(column.as_string::<i32>().value(row)),
        DataType::Utf8View => json!(column.as_string_view().value(row)),
        DataType::Binary => hex(column.as_binary::<i32>().value(row)),
        DataType::BinaryView => hex(column.as_binary_view().value(row)),
        DataType::Dictionary(..) => {
            let dictionary = column.as_any_dictionary();
            return cell(dictionary.values(), dictionary.normalized_keys()[row]);
        }
        DataType::List(_) => {
            let items = column.as_list::<i32>().value(row);
            Value::from(
                (0..items.len())
                    .map(|item| cell(&items, item))
                    .collect::<Result<Vec<_>, _>>()?,
            )
        }
        DataType::Struct(_) => {
            let fields = column
                .as_struct()
                .columns()
                .iter()
                .map(|field| cell(field, row));
            Value::from(fields.collect::<Result<Vec<_>, _>>()?)
        }
        other => return Err(format!("a column of type {other}")),
    })
}

fn hex(bytes: &[u8]) -> Value {
    json!(
        bytes
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect::<String>()
    )
}
