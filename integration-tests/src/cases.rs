//! SQL cases as data: `cases/NAME.sql` is a statement, `cases/NAME.result` what the embedded engine
//! itself answers to it. Owns the form of a result as text. Must not know doors.
//!
//! `UPDATE_CASES=1` writes the results anew.

use std::fs;
use std::path::PathBuf;

use arrow_array::RecordBatch;
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::{DataType, Schema, SchemaRef};

/// One case.
#[derive(Clone, Debug)]
pub struct Case {
    /// The file's name without its ending.
    pub name: String,
    /// The statement.
    pub sql: String,
    path: PathBuf,
}

/// All cases, by name.
#[allow(clippy::expect_used)]
pub fn all() -> Vec<Case> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("cases");
    let mut all: Vec<_> = fs::read_dir(&folder)
        .expect("the folder of cases")
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            (path.extension()? == "sql").then(|| Case {
                name: path
                    .file_stem()
                    .unwrap_or_default()
                    .to_string_lossy()
                    .into_owned(),
                sql: fs::read_to_string(&path).expect("a case that can be read"),
                path,
            })
        })
        .collect();
    all.sort_by(|a, b| a.name.cmp(&b.name));
    all
}

impl Case {
    /// The stored result, or with `UPDATE_CASES` the one that is given.
    #[allow(clippy::expect_used)]
    pub fn expected(&self, own: impl FnOnce() -> String) -> String {
        let file = self.path.with_extension("result");
        if std::env::var_os("UPDATE_CASES").is_some() {
            let text = own();
            fs::write(&file, &text).expect("a result that can be written");
            return text;
        }
        fs::read_to_string(&file)
            .unwrap_or_else(|error| format!("{}: {error}; run with UPDATE_CASES=1", file.display()))
    }
}

/// A result as text: a line of `name: type`, then a line a row, cells separated by tabs.
///
/// Views and dictionaries are shown as the plain types that readers get instead, so that the
/// engine's own result and the one that travelled read alike.
pub fn text(schema: &SchemaRef, batches: &[RecordBatch]) -> String {
    let head: Vec<_> = schema
        .fields()
        .iter()
        .map(|field| format!("{}: {}", escaped(field.name()), plain(field.data_type())))
        .collect();
    let mut lines = vec![head.join("\t")];
    lines.extend(batches.iter().flat_map(rows));
    lines.join("\n") + "\n"
}

/// The rows alone.
pub fn rows(batch: &RecordBatch) -> Vec<String> {
    let options = FormatOptions::default()
        .with_null("NULL")
        .with_display_error(true);
    let cells: Vec<_> = batch
        .columns()
        .iter()
        .map(|column| {
            ArrayFormatter::try_new(column.as_ref(), &options).map_err(|error| error.to_string())
        })
        .collect();
    (0..batch.num_rows())
        .map(|row| {
            let cells = cells.iter().map(|cell| match cell {
                Ok(cell) => escaped(&cell.value(row).to_string()),
                Err(error) => format!("({error})"),
            });
            cells.collect::<Vec<_>>().join("\t")
        })
        .collect()
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('\t', "\\t")
        .replace('\n', "\\n")
        .replace('\r', "\\r")
}

/// The type that a reader gets which knows neither views nor dictionaries.
pub fn plain(data_type: &DataType) -> DataType {
    let field = |field: &arrow_schema::FieldRef| {
        std::sync::Arc::new(
            field
                .as_ref()
                .clone()
                .with_data_type(plain(field.data_type())),
        )
    };
    match data_type {
        DataType::Utf8View => DataType::Utf8,
        DataType::BinaryView => DataType::Binary,
        DataType::Dictionary(_, values) => plain(values),
        DataType::List(item) => DataType::List(field(item)),
        DataType::LargeList(item) => DataType::LargeList(field(item)),
        DataType::FixedSizeList(item, length) => DataType::FixedSizeList(field(item), *length),
        DataType::Map(entries, sorted) => DataType::Map(field(entries), *sorted),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(field).collect()),
        other => other.clone(),
    }
}

/// Names and plain types, for comparing schemas.
pub fn outline(schema: &Schema) -> Vec<(String, DataType)> {
    schema
        .fields()
        .iter()
        .map(|field| (field.name().clone(), plain(field.data_type())))
        .collect()
}
