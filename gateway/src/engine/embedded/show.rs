//! `SHOW` statements that DataFusion lacks, as queries of its information schema.
//!
//! Owns the rewriting: catalogs, schemas (which Hive's and Spark's people call databases), and
//! tables with `IN` and `LIKE`. Must not know how queries run.

use datafusion::execution::SessionState;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    ObjectName, ShowStatementFilter, ShowStatementFilterPosition, ShowStatementOptions,
    Statement as SqlStatement,
};
use sluice_core::error::Result;

use super::error::unsupported;

/// The query that answers a `SHOW`, if this module has one for it.
pub(super) fn rewrite(state: &SessionState, statement: &Statement) -> Result<Option<String>> {
    let Statement::Statement(statement) = statement else {
        return Ok(None);
    };
    let query = match statement.as_ref() {
        SqlStatement::ShowCatalogs { show_options, .. } => catalogs(state, show_options)?,
        SqlStatement::ShowSchemas { show_options, .. }
        | SqlStatement::ShowDatabases { show_options, .. } => schemas(state, show_options)?,
        SqlStatement::ShowTables { show_options, .. } => tables(state, show_options)?,
        _ => return Ok(None),
    };
    Ok(Some(query))
}

fn catalogs(state: &SessionState, options: &ShowStatementOptions) -> Result<String> {
    let filter = filter(options, "catalog_name")?;
    let names = state.catalog_list().catalog_names();
    let names: Vec<_> = names
        .iter()
        .map(|name| format!("({})", quoted(name)))
        .collect();
    Ok(format!(
        "SELECT catalog_name FROM (VALUES {}) AS c(catalog_name) WHERE true{filter} ORDER BY 1",
        names.join(", ")
    ))
}

fn schemas(state: &SessionState, options: &ShowStatementOptions) -> Result<String> {
    let filter = filter(options, "schema_name")?;
    let catalog = match parents(options)?.as_slice() {
        [] => state.config_options().catalog.default_catalog.clone(),
        [catalog] => catalog.clone(),
        _ => return Err(unsupported("SHOW SCHEMAS IN takes the name of a catalog")),
    };
    Ok(format!(
        "SELECT schema_name, catalog_name FROM information_schema.schemata \
         WHERE catalog_name = {}{filter} ORDER BY 1",
        quoted(&catalog)
    ))
}

fn tables(state: &SessionState, options: &ShowStatementOptions) -> Result<String> {
    let filter = filter(options, "table_name")?;
    let place = match parents(options)?.as_slice() {
        [] => "true".to_owned(),
        [schema] => {
            let catalog = &state.config_options().catalog.default_catalog;
            format!(
                "table_catalog = {} AND table_schema = {}",
                quoted(catalog),
                quoted(schema)
            )
        }
        [catalog, schema] => {
            format!(
                "table_catalog = {} AND table_schema = {}",
                quoted(catalog),
                quoted(schema)
            )
        }
        _ => return Err(unsupported("SHOW TABLES IN takes the name of a schema")),
    };
    Ok(format!(
        "SELECT table_catalog, table_schema, table_name, table_type \
         FROM information_schema.tables WHERE {place}{filter} ORDER BY 1, 2, 3"
    ))
}

/// The parts of the name after `IN` or `FROM`, unquoted ones in lower case as everywhere.
fn parents(options: &ShowStatementOptions) -> Result<Vec<String>> {
    let Some(parent) = &options.show_in else {
        return Ok(Vec::new());
    };
    let Some(ObjectName(parts)) = &parent.parent_name else {
        return Err(unsupported("SHOW … IN needs a name"));
    };
    let name = |part: &datafusion::sql::sqlparser::ast::ObjectNamePart| {
        part.as_ident().map(|ident| match ident.quote_style {
            Some(_) => ident.value.clone(),
            None => ident.value.to_lowercase(),
        })
    };
    parts
        .iter()
        .map(name)
        .collect::<Option<_>>()
        .ok_or_else(|| unsupported("SHOW … IN an expression"))
}

fn filter(options: &ShowStatementOptions, column: &str) -> Result<String> {
    if options.starts_with.is_some() || options.limit.is_some() || options.limit_from.is_some() {
        return Err(unsupported(
            "SHOW takes IN, LIKE and WHERE; not STARTS WITH or LIMIT",
        ));
    }
    let filter = match &options.filter_position {
        None => return Ok(String::new()),
        Some(
            ShowStatementFilterPosition::Infix(filter)
            | ShowStatementFilterPosition::Suffix(filter),
        ) => filter,
    };
    Ok(match filter {
        ShowStatementFilter::Like(pattern) | ShowStatementFilter::NoKeyword(pattern) => {
            format!(" AND {column} LIKE {}", quoted(pattern))
        }
        ShowStatementFilter::ILike(pattern) => format!(" AND {column} ILIKE {}", quoted(pattern)),
        ShowStatementFilter::Where(condition) => format!(" AND ({condition})"),
    })
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
