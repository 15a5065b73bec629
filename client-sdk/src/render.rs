//! Rows as a table for people. Owns how values look there. Must not know where rows come from.
//!
//! A NULL is shown as `NULL`; text that reads the same is shown in quotes. Control characters are
//! escaped, so that every row is one line and no value reaches the terminal as a command.

use std::fmt::Write as _;

use arrow_array::{Array, RecordBatch};
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::{ArrowError, DataType, SchemaRef};
use comfy_table::{Cell, CellAlignment, ContentArrangement, Table, presets};

/// How a NULL is shown.
const NULL: &str = "NULL";

/// The first `max_rows` rows of `batches` as a table, and how many rows are left out.
pub fn table(batches: &[RecordBatch], max_rows: usize) -> String {
    let Some(first) = batches.first() else {
        return "(no rows)\n".to_owned();
    };
    let mut table = TableBuffer::new(first.schema(), max_rows);
    for batch in batches {
        table.push(batch);
    }
    table.finish()
}

/// A table that grows batch by batch and keeps no more than its first rows.
#[derive(Debug)]
pub struct TableBuffer {
    schema: SchemaRef,
    rows: Vec<Vec<String>>,
    max_rows: usize,
    left_out: u64,
}

impl TableBuffer {
    /// A table with the columns of `schema` that shows at most `max_rows` rows.
    pub fn new(schema: SchemaRef, max_rows: usize) -> Self {
        Self {
            schema,
            rows: Vec::new(),
            max_rows,
            left_out: 0,
        }
    }

    /// Takes the rows that still have a place, and counts the others.
    pub fn push(&mut self, batch: &RecordBatch) {
        let shown = batch.num_rows().min(self.max_rows - self.rows.len());
        self.left_out += (batch.num_rows() - shown) as u64;
        if shown == 0 {
            return;
        }
        let head = batch.slice(0, shown);
        let columns: Vec<Vec<String>> = head.columns().iter().map(|column| texts(column)).collect();
        let mut columns: Vec<_> = columns.into_iter().map(Vec::into_iter).collect();
        for _ in 0..shown {
            self.rows
                .push(columns.iter_mut().filter_map(Iterator::next).collect());
        }
    }

    /// The table, ending in a newline.
    pub fn finish(self) -> String {
        let mut text = String::new();
        if self.schema.fields().is_empty() {
            text.push_str("(no columns)\n");
        } else {
            // Writing into a string does not fail.
            let _ = writeln!(text, "{}", self.drawn());
        }
        if self.left_out > 0 {
            let _ = writeln!(text, "… {} not shown", counted(self.left_out, "more row"));
        }
        text
    }

    fn drawn(&self) -> Table {
        let mut table = Table::new();
        table.load_preset(presets::UTF8_FULL_CONDENSED);
        // One line per row, however long; the terminal may fold it, or `less -S` not.
        table.set_content_arrangement(ContentArrangement::Disabled);
        table.set_header(
            self.schema
                .fields()
                .iter()
                .map(|field| Cell::new(escaped(field.name()))),
        );
        for row in &self.rows {
            table.add_row(row);
        }
        for (column, field) in table.column_iter_mut().zip(self.schema.fields()) {
            if is_number(field.data_type()) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        table
    }
}

/// `1 row`, `2 rows`.
pub fn counted(count: u64, noun: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{ending}")
}

fn texts(column: &dyn Array) -> Vec<String> {
    let nulls = column.logical_nulls();
    let is_null = |row| nulls.as_ref().is_some_and(|nulls| nulls.is_null(row));
    let formatter = formatter(column);
    let text = |row| {
        if is_null(row) {
            return NULL.to_owned();
        }
        match &formatter {
            Ok(formatter) => match formatter.value(row).try_to_string() {
                Ok(text) if text == NULL => format!("'{text}'"),
                Ok(text) => escaped(&text),
                Err(error) => format!("<{error}>"),
            },
            Err(error) => format!("<{error}>"),
        }
    };
    (0..column.len()).map(text).collect()
}

/// Formats values for people and for CSV; a NULL inside of a list or struct is `NULL`.
pub(crate) fn formatter(column: &dyn Array) -> Result<ArrayFormatter<'_>, ArrowError> {
    ArrayFormatter::try_new(
        column,
        &FormatOptions::new()
            .with_display_error(false)
            .with_null(NULL),
    )
}

fn is_number(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(_, values) => is_number(values),
        other => other.is_numeric(),
    }
}

fn escaped(text: &str) -> String {
    if !text.contains(char::is_control) {
        return text.to_owned();
    }
    let mut escaped = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        if character.is_control() {
            escaped.extend(character.escape_default());
        } else {
            escaped.push(character);
        }
    }
    escaped
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Int64Array, StringArray};

    use super::*;

    fn batch() -> RecordBatch {
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None, Some(300)]));
        let words = StringArray::from(vec![Some("NULL"), None, Some("ä\n\u{1b}[2J")]);
        RecordBatch::try_from_iter_with_nullable([
            ("n", numbers, true),
            ("word", Arc::new(words), true),
        ])
        .unwrap()
    }

    #[test]
    fn a_table_lines_up_and_tells_null_from_text() {
        let shown = table(&[batch()], 10);
        assert_eq!(shown.lines().count(), 7, "{shown}");
        let widths: Vec<usize> = shown.lines().map(|line| line.chars().count()).collect();
        assert!(widths.windows(2).all(|pair| pair[0] == pair[1]), "{shown}");
        for part in [
            "│    1 ┆ 'NULL'",
            "│ NULL ┆ NULL ",
            "│  300 ┆ ä\\n\\u{1b}[2J",
        ] {
            assert!(shown.contains(part), "{shown}");
        }
    }

    #[test]
    fn rows_beyond_the_bound_are_counted_over_all_batches() {
        let shown = table(&[batch(), batch(), batch()], 4);
        assert!(shown.contains("… 5 more rows not shown"), "{shown}");
        assert_eq!(shown.matches("'NULL'").count(), 2);
        assert_eq!(table(&[], 4), "(no rows)\n");
    }
}
