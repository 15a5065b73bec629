//! Rows as JSON, NDJSON or CSV: what stands before the rows, pieces of rows, what stands after.
//! Must not know where batches come from.

use arrow_array::RecordBatch;
use arrow_schema::{DataType, SchemaRef};
use sluice_wire::http::media::Form;

use super::cells::{BoxCells, Unprintable, cells, csv_text, json_text, push};
use super::nested::distinct;

/// Rows of a piece, at most: the thread does other things in between.
const PIECE_ROWS: usize = 1024;
/// A piece that has reached this size is given away.
const PIECE_BYTES: usize = 256 << 10;

/// The end of a line in CSV (RFC 4180, section 2).
const CRLF: &str = "\r\n";

/// Which text form it is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in super::super) enum Text {
    /// `{"columns":[{"name","type"}],"rows":[[…],…],"rowCount":n,"truncated":bool}`.
    Json,
    /// One object a row.
    NdJson,
    /// A header, then a line a row.
    Csv,
}

impl Text {
    /// The text form that `form` is, if it is one.
    pub(in super::super) fn of(form: Form) -> Option<Self> {
        match form {
            Form::Arrow => None,
            Form::Json => Some(Self::Json),
            Form::NdJson => Some(Self::NdJson),
            Form::Csv => Some(Self::Csv),
        }
    }
}

/// Writes the rows of one result.
pub(super) struct Writer {
    text: Text,
    /// `"name":` for each column of NDJSON.
    labels: Vec<String>,
    rows: u64,
}

impl Writer {
    /// A writer, and what stands before the first row.
    pub(super) fn new(text: Text, schema: &SchemaRef) -> (Self, String) {
        let names = || schema.fields().iter().map(|field| field.name().as_str());
        let head = match text {
            Text::Json => json_head(schema),
            Text::NdJson => String::new(),
            Text::Csv => csv_head(names()),
        };
        let labels = match text {
            Text::NdJson => distinct(names()).iter().map(|name| label(name)).collect(),
            Text::Json | Text::Csv => Vec::new(),
        };
        (
            Self {
                text,
                labels,
                rows: 0,
            },
            head,
        )
    }

    /// The rows of `batch` from `start` on, as many as make a piece, and the row after them.
    pub(super) fn piece(
        &mut self,
        batch: &RecordBatch,
        start: usize,
    ) -> Result<(String, usize), Unprintable> {
        let columns: Vec<_> = batch
            .columns()
            .iter()
            .map(|array| cells(array))
            .collect::<Result<_, _>>()?;
        let mut out = String::new();
        let mut row = start;
        while row < batch.num_rows() && row - start < PIECE_ROWS && out.len() < PIECE_BYTES {
            self.row(&columns, row, &mut out)?;
            self.rows += 1;
            row += 1;
        }
        Ok((out, row))
    }

    /// What stands after the last row.
    pub(super) fn tail(&self, truncated: bool) -> String {
        match self.text {
            Text::Json => format!("],\"rowCount\":{},\"truncated\":{truncated}}}", self.rows),
            Text::NdJson | Text::Csv => String::new(),
        }
    }

    fn row(
        &self,
        columns: &[BoxCells<'_>],
        row: usize,
        out: &mut String,
    ) -> Result<(), Unprintable> {
        let [open, close] = match self.text {
            Text::Json if self.rows == 0 => ["[", "]"],
            Text::Json => [",[", "]"],
            Text::NdJson => ["{", "}\n"],
            Text::Csv => ["", CRLF],
        };
        out.push_str(open);
        for (index, column) in columns.iter().enumerate() {
            if index > 0 {
                out.push(',');
            }
            let printed = match self.text {
                Text::Json => column.json(row, out),
                Text::NdJson => {
                    out.push_str(&self.labels[index]);
                    column.json(row, out)
                }
                Text::Csv => column.csv(row, out),
            };
            printed.map_err(|Unprintable(reason)| {
                Unprintable(format!(
                    "column {}, row {}: {reason}",
                    index + 1,
                    self.rows + 1
                ))
            })?;
        }
        out.push_str(close);
        Ok(())
    }
}

/// The Arrow type behind the ways to store it, as people are told of it.
pub(in super::super) fn type_name(data_type: &DataType) -> String {
    match data_type {
        DataType::Dictionary(_, value) => type_name(value),
        DataType::RunEndEncoded(_, values) => type_name(values.data_type()),
        DataType::Utf8View | DataType::LargeUtf8 => DataType::Utf8.to_string(),
        DataType::BinaryView | DataType::LargeBinary => DataType::Binary.to_string(),
        other => other.to_string(),
    }
}

fn label(name: &str) -> String {
    let mut label = String::new();
    json_text(name, &mut label);
    label.push(':');
    label
}

fn json_head(schema: &SchemaRef) -> String {
    let mut head = "{\"columns\":[".to_owned();
    for (index, field) in schema.fields().iter().enumerate() {
        if index > 0 {
            head.push(',');
        }
        push(&mut head, "{\"name\":");
        json_text(field.name(), &mut head);
        push(&mut head, ",\"type\":");
        json_text(&type_name(field.data_type()), &mut head);
        head.push('}');
    }
    head.push_str("],\"rows\":[");
    head
}

fn csv_head<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let mut head = String::new();
    for (index, name) in names.enumerate() {
        if index > 0 {
            head.push(',');
        }
        csv_text(name, &mut head);
    }
    head.push_str(CRLF);
    head
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{Int64Array, RecordBatchOptions, StringArray};
    use arrow_schema::{Field, Schema};

    use super::*;

    fn batch(rows: i64) -> RecordBatch {
        let schema = Schema::new(vec![
            Field::new("a", DataType::Int64, false),
            Field::new("a", DataType::Utf8, true),
        ]);
        let texts = (0..rows).map(|row| if row % 2 == 0 { Some("x,") } else { None });
        let columns: Vec<arrow_array::ArrayRef> = vec![
            Arc::new(Int64Array::from_iter_values(0..rows)),
            Arc::new(texts.collect::<StringArray>()),
        ];
        RecordBatch::try_new(Arc::new(schema), columns).unwrap()
    }

    fn written(text: Text, batches: &[RecordBatch]) -> String {
        let (mut writer, mut out) = Writer::new(text, &batches[0].schema());
        for batch in batches {
            let mut row = 0;
            while row < batch.num_rows() {
                let (piece, next) = writer.piece(batch, row).unwrap();
                assert!(next - row <= PIECE_ROWS);
                out += &piece;
                row = next;
            }
        }
        out + &writer.tail(false)
    }

    #[test]
    fn the_three_forms() {
        let batches = [batch(2), batch(1)];
        assert_eq!(
            written(Text::Json, &batches),
            r#"{"columns":[{"name":"a","type":"Int64"},{"name":"a","type":"Utf8"}],"rows":[[0,"x,"],[1,null],[0,"x,"]],"rowCount":3,"truncated":false}"#
        );
        let lines = "{\"a\":0,\"a_2\":\"x,\"}\n{\"a\":1,\"a_2\":null}\n{\"a\":0,\"a_2\":\"x,\"}\n";
        assert_eq!(written(Text::NdJson, &batches), lines);
        assert_eq!(
            written(Text::Csv, &batches),
            "a,a\r\n0,\"x,\"\r\n1,\r\n0,\"x,\"\r\n"
        );
    }

    #[test]
    fn large_batches_come_in_pieces() {
        let json: serde_json::Value =
            serde_json::from_str(&written(Text::Json, &[batch(5000)])).unwrap();
        assert_eq!(json["rowCount"], 5000);
        assert_eq!(json["rows"][4999][0], 4999);
    }

    #[test]
    fn no_columns_and_no_rows() {
        let empty = Arc::new(Schema::empty());
        let options = RecordBatchOptions::new().with_row_count(Some(2));
        let rows = RecordBatch::try_new_with_options(Arc::clone(&empty), vec![], &options).unwrap();
        assert_eq!(
            written(Text::Json, std::slice::from_ref(&rows)),
            r#"{"columns":[],"rows":[[],[]],"rowCount":2,"truncated":false}"#
        );
        assert_eq!(
            written(Text::NdJson, std::slice::from_ref(&rows)),
            "{}\n{}\n"
        );
        let none = batch(0);
        assert_eq!(written(Text::Csv, &[none]), "a,a\r\n");
    }
}
