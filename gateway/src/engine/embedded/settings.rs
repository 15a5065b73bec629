//! DataFusion's own settings in a session: which may be set, how far, and what is said when not.
//!
//! Owns the settings that are the server's business and the ceilings of those with which one
//! session could take the whole process's memory. The checks of values are DataFusion's.
//! Must not know the gateway's settings.

use datafusion::common::utils::datafusion_strsim::levenshtein;
use datafusion::config::{ConfigField, ConfigOptions};
use datafusion::execution::context::SessionContext;
use datafusion::logical_expr::{LogicalPlan, SetVariable, Statement};
use sluice_core::engine::EngineSetting;
use sluice_core::error::{Error, ErrorKind, Result};

use super::error::translate;

/// What is fixed for all sessions: it names files, or the core reads statements under it too, or
/// guards the process's stack.
const FIXED: [&str; 6] = [
    "datafusion.catalog.create_default_catalog_and_schema",
    "datafusion.catalog.format",
    "datafusion.catalog.information_schema",
    "datafusion.catalog.location",
    "datafusion.sql_parser.dialect",
    "datafusion.sql_parser.recursion_limit",
];

/// Settings of the runtime that all sessions share.
const SHARED: &str = "datafusion.runtime.";

const MEBI: u64 = 1 << 20;

/// Sizes and counts that DataFusion allocates for without asking the memory pool.
const CEILINGS: [(&str, u64); 19] = [
    ("datafusion.execution.batch_size", MEBI),
    (
        "datafusion.execution.hash_join_buffering_capacity",
        64 * MEBI,
    ),
    (
        "datafusion.execution.max_buffered_batches_per_output_file",
        64,
    ),
    ("datafusion.execution.meta_fetch_concurrency", 256),
    ("datafusion.execution.minimum_parallel_output_files", 64),
    (
        "datafusion.execution.objectstore_writer_buffer_size",
        64 * MEBI,
    ),
    ("datafusion.execution.parquet.bloom_filter_ndv", 10_000_000),
    (
        "datafusion.execution.parquet.data_pagesize_limit",
        64 * MEBI,
    ),
    (
        "datafusion.execution.parquet.dictionary_page_size_limit",
        64 * MEBI,
    ),
    ("datafusion.execution.parquet.max_row_group_size", 8 * MEBI),
    (
        "datafusion.execution.parquet.maximum_buffered_record_batches_per_stream",
        64,
    ),
    (
        "datafusion.execution.parquet.maximum_parallel_row_group_writers",
        16,
    ),
    ("datafusion.execution.parquet.metadata_size_hint", 64 * MEBI),
    ("datafusion.execution.parquet.write_batch_size", MEBI),
    (
        "datafusion.execution.perfect_hash_join_small_build_threshold",
        MEBI,
    ),
    ("datafusion.execution.planning_concurrency", 256),
    (
        "datafusion.execution.sort_pushdown_buffer_capacity",
        1024 * MEBI,
    ),
    ("datafusion.execution.target_partitions", 256),
    ("datafusion.optimizer.max_passes", 32),
];

/// How many near names an error gives.
const NEAREST: usize = 3;

/// Sets `key`, or leaves the session as it was.
pub(super) async fn set(context: &SessionContext, key: &str, value: &str) -> Result<()> {
    let key = key.to_ascii_lowercase();
    may_set(context, &key)?;
    let mut trial = context.copied_config().options().as_ref().clone();
    trial
        .set(&key, value)
        .map_err(|error| bad_value(context, &key, value, error))?;
    within_ceiling(&trial, &key)?;
    apply(context, &key, value).await
}

/// Sets a key without asking whether sessions may.
pub(super) async fn apply(context: &SessionContext, key: &str, value: &str) -> Result<()> {
    // Through a plan, since functions that depend on settings are made anew that way.
    let set = SetVariable {
        variable: key.to_owned(),
        value: value.to_owned(),
    };
    let plan = LogicalPlan::Statement(Statement::SetVariable(set));
    context
        .execute_logical_plan(plan)
        .await
        .map(|_| ())
        .map_err(translate)
}

/// Puts `key` back to what new sessions start with.
pub(super) async fn reset(
    context: &SessionContext,
    defaults: &ConfigOptions,
    key: &str,
) -> Result<()> {
    let key = key.to_ascii_lowercase();
    may_set(context, &key)?;
    if let Some(value) = value(defaults, &key) {
        return apply(context, &key, &value).await;
    }
    let state = context.state_ref();
    let mut state = state.write();
    state
        .config_mut()
        .options_mut()
        .reset(&key)
        .map_err(translate)
}

/// All settings in force, but for those of the shared runtime.
pub(super) fn list(context: &SessionContext) -> Vec<EngineSetting> {
    let config = context.copied_config();
    let mut settings: Vec<_> = config
        .options()
        .entries()
        .into_iter()
        .filter(|entry| !entry.key.starts_with(SHARED))
        .map(|entry| EngineSetting {
            key: entry.key,
            value: entry.value.unwrap_or_default(),
            description: entry.description.to_owned(),
        })
        .collect();
    settings.sort_by(|a, b| a.key.cmp(&b.key));
    settings
}

fn may_set(context: &SessionContext, key: &str) -> Result<()> {
    if key.starts_with(SHARED) || FIXED.contains(&key) {
        let message = format!("\"{key}\" is fixed by the server for all sessions");
        return Err(Error::new(ErrorKind::Forbidden, message));
    }
    let config = context.copied_config();
    let names: Vec<_> = config
        .options()
        .entries()
        .into_iter()
        .map(|entry| entry.key)
        .collect();
    if names.iter().any(|name| name == key) {
        return Ok(());
    }
    let near = nearest(key, names);
    let message = format!(
        "there is no setting \"{key}\"; near it are: {}",
        near.join(", ")
    );
    Err(Error::invalid("42704", message))
}

fn nearest(key: &str, mut names: Vec<String>) -> Vec<String> {
    let tail = |name: &str| name.rsplit('.').next().unwrap_or_default().to_owned();
    let wanted = tail(key);
    names.retain(|name| !name.starts_with(SHARED) && !FIXED.contains(&name.as_str()));
    names.sort_by_cached_key(|name| levenshtein(name, key).min(levenshtein(&tail(name), &wanted)));
    names.truncate(NEAREST);
    names
}

fn bad_value(
    context: &SessionContext,
    key: &str,
    given: &str,
    error: datafusion::common::DataFusionError,
) -> Error {
    let present = value(context.copied_config().options(), key).unwrap_or_default();
    let expected = if matches!(present.as_str(), "true" | "false") {
        "; it is true or false"
    } else if present.parse::<u64>().is_ok() {
        "; it is a whole number"
    } else if present.parse::<f64>().is_ok() {
        "; it is a number"
    } else {
        ""
    };
    let cause = translate(error);
    let given: String = given.chars().take(100).collect();
    let message = format!(
        "\"{given}\" is no value for \"{key}\"{expected}: {}",
        cause.message()
    );
    Error::invalid("22023", message).with_cause(cause)
}

fn within_ceiling(trial: &ConfigOptions, key: &str) -> Result<()> {
    let Some((_, ceiling)) = CEILINGS.iter().find(|(name, _)| *name == key) else {
        return Ok(());
    };
    let set = value(trial, key).and_then(|text| text.parse::<u64>().ok());
    if set.is_some_and(|set| set > *ceiling) {
        return Err(Error::invalid(
            "22023",
            format!("\"{key}\" is at most {ceiling}"),
        ));
    }
    Ok(())
}

fn value(options: &ConfigOptions, key: &str) -> Option<String> {
    options
        .entries()
        .into_iter()
        .find(|entry| entry.key == key)?
        .value
}
