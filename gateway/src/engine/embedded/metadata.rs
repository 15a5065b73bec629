//! Questions about catalogs, schemas, tables, columns, functions and types, answered with the
//! columns of JDBC's `DatabaseMetaData`.
//!
//! Owns the shapes of the answers. Must not know who asks.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::Field;
use datafusion::catalog::SchemaProvider;
use datafusion::catalog::information_schema::INFORMATION_SCHEMA;
use datafusion::common::TableReference;
use datafusion::datasource::TableType;
use datafusion::execution::SessionState;
use sluice_core::engine::MetadataRequest;
use sluice_core::error::Result;

use super::error::translate;
use super::like::matches;
use super::rows::Kind::{self, Int, Short, Text};
use super::rows::{Value, batch, int, text};
use super::types::JdbcType;

/// Answers one question.
pub(super) async fn answer(state: &SessionState, request: MetadataRequest) -> Result<RecordBatch> {
    match request {
        MetadataRequest::Catalogs => {
            let rows = catalogs(state, None)
                .into_iter()
                .map(|name| vec![text(name)])
                .collect();
            batch(&[("TABLE_CAT", Text)], rows)
        }
        MetadataRequest::Schemas { catalog, schema } => {
            let found = schemas(state, catalog.as_deref(), schema.as_deref()).into_iter();
            let rows = found
                .map(|(catalog, schema)| vec![text(schema), text(catalog)])
                .collect();
            batch(&[("TABLE_SCHEM", Text), ("TABLE_CATALOG", Text)], rows)
        }
        MetadataRequest::Tables {
            catalog,
            schema,
            table,
            types,
        } => {
            let wanted = Wanted {
                catalog,
                schema,
                table,
            };
            batch(&TABLES, table_rows(state, &wanted, &types).await?)
        }
        MetadataRequest::TableTypes => {
            let rows = TABLE_TYPES
                .map(|name| vec![text(name)])
                .into_iter()
                .collect();
            batch(&[("TABLE_TYPE", Text)], rows)
        }
        MetadataRequest::Columns {
            catalog,
            schema,
            table,
            column,
        } => {
            let wanted = Wanted {
                catalog,
                schema,
                table,
            };
            batch(
                &COLUMNS,
                column_rows(state, &wanted, column.as_deref()).await?,
            )
        }
        MetadataRequest::Functions { name } => {
            batch(&FUNCTIONS, function_rows(state, name.as_deref()))
        }
        MetadataRequest::TypeInfo => {
            batch(&TYPE_INFO, JdbcType::all().iter().map(type_row).collect())
        }
    }
}

const TABLE_TYPES: [&str; 4] = ["LOCAL TEMPORARY", "SYSTEM TABLE", "TABLE", "VIEW"];

const TABLES: [(&str, Kind); 10] = [
    ("TABLE_CAT", Text),
    ("TABLE_SCHEM", Text),
    ("TABLE_NAME", Text),
    ("TABLE_TYPE", Text),
    ("REMARKS", Text),
    ("TYPE_CAT", Text),
    ("TYPE_SCHEM", Text),
    ("TYPE_NAME", Text),
    ("SELF_REFERENCING_COL_NAME", Text),
    ("REF_GENERATION", Text),
];

const COLUMNS: [(&str, Kind); 24] = [
    ("TABLE_CAT", Text),
    ("TABLE_SCHEM", Text),
    ("TABLE_NAME", Text),
    ("COLUMN_NAME", Text),
    ("DATA_TYPE", Int),
    ("TYPE_NAME", Text),
    ("COLUMN_SIZE", Int),
    ("BUFFER_LENGTH", Int),
    ("DECIMAL_DIGITS", Int),
    ("NUM_PREC_RADIX", Int),
    ("NULLABLE", Int),
    ("REMARKS", Text),
    ("COLUMN_DEF", Text),
    ("SQL_DATA_TYPE", Int),
    ("SQL_DATETIME_SUB", Int),
    ("CHAR_OCTET_LENGTH", Int),
    ("ORDINAL_POSITION", Int),
    ("IS_NULLABLE", Text),
    ("SCOPE_CATALOG", Text),
    ("SCOPE_SCHEMA", Text),
    ("SCOPE_TABLE", Text),
    ("SOURCE_DATA_TYPE", Short),
    ("IS_AUTOINCREMENT", Text),
    ("IS_GENERATEDCOLUMN", Text),
];

const FUNCTIONS: [(&str, Kind); 6] = [
    ("FUNCTION_CAT", Text),
    ("FUNCTION_SCHEM", Text),
    ("FUNCTION_NAME", Text),
    ("REMARKS", Text),
    ("FUNCTION_TYPE", Short),
    ("SPECIFIC_NAME", Text),
];

const TYPE_INFO: [(&str, Kind); 18] = [
    ("TYPE_NAME", Text),
    ("DATA_TYPE", Int),
    ("PRECISION", Int),
    ("LITERAL_PREFIX", Text),
    ("LITERAL_SUFFIX", Text),
    ("CREATE_PARAMS", Text),
    ("NULLABLE", Short),
    ("CASE_SENSITIVE", Text),
    ("SEARCHABLE", Short),
    ("UNSIGNED_ATTRIBUTE", Text),
    ("FIXED_PREC_SCALE", Text),
    ("AUTO_INCREMENT", Text),
    ("LOCAL_TYPE_NAME", Text),
    ("MINIMUM_SCALE", Short),
    ("MAXIMUM_SCALE", Short),
    ("SQL_DATA_TYPE", Int),
    ("SQL_DATETIME_SUB", Int),
    ("NUM_PREC_RADIX", Int),
];

struct Wanted {
    catalog: Option<String>,
    schema: Option<String>,
    table: Option<String>,
}

fn catalogs(state: &SessionState, pattern: Option<&str>) -> Vec<String> {
    let mut names = state.catalog_list().catalog_names();
    names.retain(|name| matches(pattern, name));
    names.sort();
    names
}

/// Pairs of catalog and schema in order.
fn schemas(
    state: &SessionState,
    catalog: Option<&str>,
    schema: Option<&str>,
) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for catalog in catalogs(state, catalog) {
        let provider = state.catalog_list().catalog(&catalog);
        let mut names = provider
            .map(|provider| provider.schema_names())
            .unwrap_or_default();
        names.push(INFORMATION_SCHEMA.to_owned());
        names.retain(|name| matches(schema, name));
        names.sort();
        names.dedup();
        found.extend(names.into_iter().map(|schema| (catalog.clone(), schema)));
    }
    found
}

/// One table that was asked for.
struct Found {
    catalog: String,
    schema: String,
    name: String,
    provider: Arc<dyn datafusion::catalog::TableProvider>,
}

impl Found {
    fn kind(&self) -> &'static str {
        match self.provider.table_type() {
            _ if self.schema == INFORMATION_SCHEMA => "SYSTEM TABLE",
            TableType::Base => "TABLE",
            TableType::View => "VIEW",
            TableType::Temporary => "LOCAL TEMPORARY",
        }
    }
}

async fn tables(state: &SessionState, wanted: &Wanted) -> Result<Vec<Found>> {
    let mut found = Vec::new();
    for (catalog, schema) in schemas(state, wanted.catalog.as_deref(), wanted.schema.as_deref()) {
        let reference = TableReference::full(catalog.as_str(), schema.as_str(), "");
        let provider: Arc<dyn SchemaProvider> = match state.schema_for_ref(reference) {
            Ok(provider) => provider,
            Err(_) => continue,
        };
        let mut names = provider.table_names();
        names.retain(|name| matches(wanted.table.as_deref(), name));
        names.sort();
        for name in names {
            if let Some(table) = provider.table(&name).await.map_err(translate)? {
                let (catalog, schema) = (catalog.clone(), schema.clone());
                found.push(Found {
                    catalog,
                    schema,
                    name,
                    provider: table,
                });
            }
        }
    }
    Ok(found)
}

async fn table_rows(
    state: &SessionState,
    wanted: &Wanted,
    types: &[String],
) -> Result<Vec<Vec<Value>>> {
    let mut found = tables(state, wanted).await?;
    found.retain(|table| {
        types.is_empty()
            || types
                .iter()
                .any(|wanted| wanted.eq_ignore_ascii_case(table.kind()))
    });
    // JDBC orders by type first.
    found.sort_by(|a, b| a.kind().cmp(b.kind()));
    let row = |table: Found| {
        let kind = table.kind();
        let mut row = vec![
            text(table.catalog),
            text(table.schema),
            text(table.name),
            text(kind),
            text(""),
        ];
        row.resize(TABLES.len(), Value::None);
        row
    };
    Ok(found.into_iter().map(row).collect())
}

async fn column_rows(
    state: &SessionState,
    wanted: &Wanted,
    column: Option<&str>,
) -> Result<Vec<Vec<Value>>> {
    let mut rows = Vec::new();
    for table in tables(state, wanted).await? {
        for (index, field) in table.provider.schema().fields().iter().enumerate() {
            if matches(column, field.name()) {
                rows.push(column_row(&table, index, field));
            }
        }
    }
    Ok(rows)
}

fn column_row(table: &Found, index: usize, field: &Field) -> Vec<Value> {
    let jdbc = JdbcType::of(field.data_type());
    let octets = matches!(jdbc.code, 12 | -2 | -3)
        .then_some(jdbc.size)
        .flatten();
    let default = table.provider.get_column_default(field.name());
    vec![
        text(&*table.catalog),
        text(&*table.schema),
        text(&*table.name),
        text(field.name()),
        Value::Int(jdbc.code),
        text(jdbc.name),
        int(jdbc.size),
        Value::None,
        int(jdbc.digits),
        int(jdbc.radix),
        Value::Int(field.is_nullable().into()),
        field.metadata().get("comment").map_or(Value::None, text),
        default.map_or(Value::None, |value| text(value.to_string())),
        Value::None,
        Value::None,
        int(octets),
        Value::Int(i32::try_from(index + 1).unwrap_or(i32::MAX)),
        text(if field.is_nullable() { "YES" } else { "NO" }),
        Value::None,
        Value::None,
        Value::None,
        Value::None,
        text("NO"),
        text("NO"),
    ]
}

fn function_rows(state: &SessionState, pattern: Option<&str>) -> Vec<Vec<Value>> {
    // 1: returns a value, 2: returns a table.
    let scalar = state.scalar_functions().keys();
    let aggregate = state.aggregate_functions().keys();
    let values = scalar
        .chain(aggregate)
        .chain(state.window_functions().keys());
    let tables = state.table_functions().keys().map(|name| (name, 2));
    let mut functions: Vec<_> = values.map(|name| (name, 1)).chain(tables).collect();
    functions.retain(|(name, _)| matches(pattern, name));
    functions.sort();
    functions.dedup();
    let row = |(name, kind): (&String, i32)| {
        vec![
            Value::None,
            Value::None,
            text(name),
            text(""),
            Value::Int(kind),
            text(name),
        ]
    };
    functions.into_iter().map(row).collect()
}

fn type_row(jdbc: &JdbcType) -> Vec<Value> {
    let quoted = matches!(jdbc.code, 12 | 91 | 92 | 93 | 2014);
    let quote = || if quoted { text("'") } else { Value::None };
    let number = jdbc.radix.is_some();
    vec![
        text(&*jdbc.name),
        Value::Int(jdbc.code),
        int(jdbc.size),
        quote(),
        quote(),
        if jdbc.code == 3 {
            text("precision,scale")
        } else {
            Value::None
        },
        Value::Int(1),
        text(if jdbc.code == 12 { "true" } else { "false" }),
        Value::Int(3),
        text(if number { "false" } else { "true" }),
        text("false"),
        text("false"),
        text(&*jdbc.name),
        int(jdbc.digits.map(|_| 0)),
        int(jdbc.digits),
        Value::None,
        Value::None,
        int(jdbc.radix),
    ]
}
