//! Rows on their way to standard output, in four formats. Owns what a format looks like. Must not
//! know how rows arrive.

use std::collections::HashSet;
use std::io::{self, Write};
use std::sync::Arc;

use arrow_array::{Array, RecordBatch};
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_ipc::writer::StreamWriter;
use arrow_json::writer::{JsonArray, WriterBuilder};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use sluice_client::render::TableBuffer;

use crate::args::Format;

/// Rows that a table shows.
const TABLE_ROWS: usize = 1000;

/// One result, being written.
pub(crate) enum Output<W: Write> {
    Table(W, TableBuffer),
    Csv(W),
    Json(arrow_json::Writer<W, JsonArray>, SchemaRef),
    Arrow(StreamWriter<W>),
}

impl<W: Write> Output<W> {
    /// Begins with what stands before the first row.
    pub(crate) fn begin(format: Format, mut to: W, schema: &SchemaRef) -> io::Result<Self> {
        Ok(match format {
            Format::Table => Self::Table(to, TableBuffer::new(Arc::clone(schema), TABLE_ROWS)),
            Format::Csv => {
                let names = schema.fields().iter().map(|field| quoted(field.name()));
                writeln(&mut to, &names.collect::<Vec<_>>().join(","))?;
                Self::Csv(to)
            }
            Format::Json => {
                let writer = WriterBuilder::new().with_explicit_nulls(true).build(to);
                Self::Json(writer, distinctly_named(schema))
            }
            Format::Arrow => Self::Arrow(StreamWriter::try_new(to, schema).map_err(io_error)?),
        })
    }

    /// Writes a batch, or keeps it for the table.
    pub(crate) fn write(&mut self, batch: &RecordBatch) -> io::Result<()> {
        match self {
            Self::Table(_, table) => {
                table.push(batch);
                Ok(())
            }
            Self::Csv(to) => write_csv(to, batch),
            Self::Json(writer, schema) => {
                let batch = RecordBatch::try_new_with_options(
                    Arc::clone(schema),
                    batch.columns().to_vec(),
                    &arrow_array::RecordBatchOptions::new()
                        .with_match_field_names(false)
                        .with_row_count(Some(batch.num_rows())),
                );
                batch
                    .and_then(|batch| writer.write(&batch))
                    .map_err(io_error)
            }
            Self::Arrow(writer) => writer.write(batch).map_err(io_error),
        }
    }

    /// Ends a result that is complete. One that is not must not get here: what was written so far
    /// then lacks its end.
    pub(crate) fn finish(self) -> io::Result<()> {
        let mut to = match self {
            Self::Table(mut to, table) => {
                to.write_all(table.finish().as_bytes())?;
                to
            }
            Self::Csv(to) => to,
            Self::Json(mut writer, _) => {
                writer.finish().map_err(io_error)?;
                let mut to = writer.into_inner();
                writeln(&mut to, "")?;
                to
            }
            Self::Arrow(writer) => writer.into_inner().map_err(io_error)?,
        };
        to.flush()
    }
}

/// RFC 4180 with line feeds: NULL is nothing at all, an empty string is `""`.
fn write_csv(to: &mut impl Write, batch: &RecordBatch) -> io::Result<()> {
    let options = FormatOptions::new()
        .with_display_error(false)
        .with_null("NULL");
    let columns = batch.columns().iter().map(|column| {
        let formatter = ArrayFormatter::try_new(column, &options).map_err(io_error)?;
        Ok((formatter, column.logical_nulls()))
    });
    let columns = columns.collect::<io::Result<Vec<_>>>()?;
    let mut line = String::new();
    for row in 0..batch.num_rows() {
        line.clear();
        for (at, (formatter, nulls)) in columns.iter().enumerate() {
            if at > 0 {
                line.push(',');
            }
            if !nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
                let text = formatter.value(row).try_to_string().map_err(io_error)?;
                line.push_str(&quoted(&text));
            }
        }
        writeln(to, &line)?;
    }
    Ok(())
}

fn quoted(text: &str) -> String {
    let special = text.is_empty() || text.contains([',', '"', '\n', '\r']);
    if special {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

fn writeln(to: &mut impl Write, line: &str) -> io::Result<()> {
    to.write_all(line.as_bytes())?;
    to.write_all(b"\n")
}

/// The same columns under names that differ, as the members of an object must: `a`, `a:1`, `a:2`.
fn distinctly_named(schema: &Schema) -> SchemaRef {
    let mut taken: HashSet<String> = schema.fields().iter().map(|f| f.name().clone()).collect();
    let mut seen = HashSet::new();
    let fields = schema.fields().iter().map(|field| {
        if seen.insert(field.name().clone()) {
            return Arc::clone(field);
        }
        let candidates = (1_u64..).map(|number| format!("{}:{number}", field.name()));
        let name = candidates
            .into_iter()
            .find(|name| taken.insert(name.clone()));
        Arc::new(Field::clone(field).with_name(name.unwrap_or_default()))
    });
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// Keeps the kind of an I/O error, by which a closed pipe is told from a full disk.
fn io_error(error: ArrowError) -> io::Error {
    match error {
        ArrowError::IoError(_, error) => error,
        other => io::Error::other(other),
    }
}

/// Whether a column cannot be written as JSON, so that the statement is refused before it writes.
pub(crate) fn unwritable(format: Format, schema: &Schema) -> Option<String> {
    let is_union = |field: &&Arc<Field>| holds_union(field.data_type());
    let field = schema
        .fields()
        .iter()
        .find(is_union)
        .filter(|_| format == Format::Json)?;
    Some(format!(
        "column {:?} is a union, which JSON has no form for",
        field.name()
    ))
}

fn holds_union(data_type: &DataType) -> bool {
    match data_type {
        DataType::Union(..) => true,
        DataType::Struct(fields) => fields.iter().any(|field| holds_union(field.data_type())),
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::ListView(field)
        | DataType::LargeListView(field)
        | DataType::FixedSizeList(field, _)
        | DataType::Map(field, _)
        | DataType::RunEndEncoded(_, field) => holds_union(field.data_type()),
        DataType::Dictionary(_, values) => holds_union(values),
        _ => false,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use arrow_array::{ArrayRef, Int64Array, StringArray};

    use super::*;

    fn batch() -> RecordBatch {
        let number: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None]));
        let text: ArrayRef = Arc::new(StringArray::from(vec![Some("a,\"b\"\nc"), Some("")]));
        RecordBatch::try_new(
            Arc::new(Schema::new(vec![
                Field::new("a", DataType::Int64, true),
                Field::new("a", DataType::Utf8, true),
            ])),
            vec![number, text],
        )
        .unwrap()
    }

    fn written(format: Format) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut output = Output::begin(format, &mut bytes, &batch().schema()).unwrap();
        output.write(&batch()).unwrap();
        output.finish().unwrap();
        bytes
    }

    #[test]
    fn csv_tells_null_from_nothing() {
        let text = String::from_utf8(written(Format::Csv)).unwrap();
        assert_eq!(text, "a,a\n1,\"a,\"\"b\"\"\nc\"\n,\"\"\n");
    }

    #[test]
    fn json_keeps_columns_of_the_same_name_apart() {
        let value: serde_json::Value = serde_json::from_slice(&written(Format::Json)).unwrap();
        let expected = serde_json::json!([{"a": 1, "a:1": "a,\"b\"\nc"}, {"a": null, "a:1": ""}]);
        assert_eq!(value, expected);
    }

    #[test]
    fn arrow_is_read_back() {
        let bytes = written(Format::Arrow);
        let mut reader = arrow_ipc::reader::StreamReader::try_new(&bytes[..], None).unwrap();
        assert_eq!(reader.next().unwrap().unwrap(), batch());
        assert!(reader.next().is_none());
    }

    #[test]
    fn a_result_without_rows_is_well_formed_everywhere() {
        for format in [Format::Csv, Format::Json, Format::Arrow, Format::Table] {
            let mut bytes = Vec::new();
            Output::begin(format, &mut bytes, &batch().schema())
                .unwrap()
                .finish()
                .unwrap();
            assert!(!bytes.is_empty(), "{format:?}");
            if format == Format::Json {
                assert_eq!(bytes, b"[]\n");
            }
        }
    }
}
