//! The embedded engine: DataFusion in this process, on threads of its own.
//!
//! ```text
//! session ─ statement ─ complexity, expansion, bounded, show,
//!              │        settings, metadata           what a session asks
//!           workers ─ memory, stop                           where it runs, and within which bounds
//!              │
//! files ─ store ─ policy, walk, remote                 the one way to files
//! tables, tpch                                         what can be read
//! ```
//!
//! Owns the engine's shared parts: threads, memory, spill files, stores, configured tables. Must
//! not know front ends, other engines, or the gateway's limits on results.

mod bounded;
mod complexity;
mod error;
mod expansion;
mod files;
mod like;
mod memory;
mod metadata;
mod policy;
mod remote;
mod rows;
mod session;
mod settings;
mod show;
mod statement;
mod stop;
mod store;
mod tables;
#[cfg(test)]
mod tests;
mod tpch;
mod types;
mod walk;
mod workers;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::{TableProvider, TableProviderFactory};
use datafusion::common::DataFusionError;
use datafusion::datasource::listing::ListingTableUrl;
use datafusion::execution::cache::cache_manager::CacheManagerConfig;
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::memory_pool::MemoryPool;
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use datafusion::execution::{SessionState, SessionStateBuilder};
use datafusion::prelude::SessionConfig;
use object_store::path::Path as ObjectPath;
use sluice_core::engine::{Dialect, Engine, EngineSession, SessionOptions};
use sluice_core::error::{Error, ErrorKind, Result};
use url::{Position, Url};

use self::error::translate;
use self::memory::{Pool, Total};
use self::policy::{Place, Policy, parse_place};
use self::session::Session;
use self::store::{Guarded, Stores, TABLE_SCHEME};
use self::workers::Workers;

/// The catalog that sessions start in.
const CATALOG: &str = "datafusion";
/// The schema of configured tables.
const SCHEMA: &str = "public";
/// The schema of generated tables.
const TPCH: &str = "tpch";

/// Smaller factors leave tables empty, which the generators do not expect.
const SCALE_FACTORS: std::ops::RangeInclusive<f64> = 0.001..=100_000.0;

/// What the engine is made of.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// Names of tables with the absolute path, or URL, of a file or folder.
    pub tables: Vec<(String, String)>,
    /// Absolute paths and URLs below which SQL may read and write.
    pub allow: Vec<String>,
    /// Files of the gateway itself, which SQL never touches.
    pub own_files: Vec<PathBuf>,
    /// Size of the generated schema `tpch`; none without.
    pub tpch_scale_factor: Option<f64>,
    /// Bytes that all statements and session tables may hold together.
    pub memory_limit: u64,
    /// Bytes that one statement, or the tables of one session, may hold.
    pub query_memory_limit: u64,
    /// Where statements put what does not fit in memory; the system's temporary folder without.
    pub spill_dir: Option<PathBuf>,
    /// Bytes that may be there.
    pub spill_limit: u64,
    /// Parallel parts of a statement, and threads of the engine.
    pub target_partitions: usize,
    /// Credentials and options of remote stores, named as the crate `object_store` names them.
    pub store_options: Vec<(String, String)>,
}

/// The engine.
pub struct Embedded {
    shared: Arc<Shared>,
}

/// What all sessions use.
struct Shared {
    workers: Workers,
    /// Memory held by all statements and session tables.
    memory: Arc<Total>,
    statement_memory: usize,
    policy: Arc<Policy>,
    /// What a new session starts as, but for its catalog.
    template: SessionState,
    tables: Vec<(String, Arc<dyn TableProvider>)>,
    tpch: Vec<(String, Arc<dyn TableProvider>)>,
}

impl Embedded {
    /// Starts the engine's threads and looks at all tables. May be called from any thread.
    ///
    /// # Errors
    /// Tells all tables that cannot be used at once, by name.
    pub fn build(config: Config) -> Result<Arc<Self>> {
        let factor = config.tpch_scale_factor;
        if factor.is_some_and(|factor| !SCALE_FACTORS.contains(&factor)) {
            let (low, high) = (SCALE_FACTORS.start(), SCALE_FACTORS.end());
            let message = format!("the scale factor of tpch lies between {low} and {high}");
            return Err(Error::invalid("22023", message));
        }
        let workers = Workers::start(config.target_partitions)?;
        let memory = Total::new(to_usize(config.memory_limit));
        let statement_memory = to_usize(config.query_memory_limit);
        let (template, tables, policy) = {
            let pool = Pool::shared(to_usize(config.memory_limit), &memory);
            let runtime = runtime(&config, pool)?;
            let policy = Arc::new(Policy::new(&config.allow, own_files(&config, &runtime))?);
            let (stores, sources) = stores(&config, &policy)?;
            let runtime = RuntimeEnv {
                object_store_registry: Arc::new(stores),
                ..runtime
            };
            let template = template(&config, Arc::new(runtime))?;
            let state = template.clone();
            let tables = workers.wait(async move { open_tables(&state, sources).await })?;
            (template, tables, policy)
        };
        let tpch = factor.into_iter().flat_map(tpch::tables);
        let tpch = tpch.map(|(name, table)| (name.to_owned(), table)).collect();
        let shared = Shared {
            workers,
            memory,
            statement_memory,
            policy,
            template,
            tables,
            tpch,
        };
        Ok(Arc::new(Self {
            shared: Arc::new(shared),
        }))
    }
}

#[async_trait]
impl Engine for Embedded {
    fn dialect(&self) -> Dialect {
        Dialect::DataFusion
    }

    fn setting_prefixes(&self) -> &'static [&'static str] {
        &["datafusion."]
    }

    async fn open(&self, options: SessionOptions) -> Result<Arc<dyn EngineSession>> {
        Ok(Session::open(Arc::clone(&self.shared), options).await?)
    }

    async fn probe(&self) -> Result<()> {
        let state = self.shared.template.clone();
        let work = async move {
            let plan = state
                .create_logical_plan("SELECT 1")
                .await
                .map_err(translate)?;
            let plan = state.create_physical_plan(&plan).await.map_err(translate)?;
            let rows = datafusion::physical_plan::collect(plan, state.task_ctx()).await;
            rows.map(|_| ()).map_err(translate)
        };
        self.shared.workers.run(work).await
    }
}

impl Shared {
    /// The shared runtime with a memory pool for one statement.
    fn statement_runtime(&self) -> Arc<RuntimeEnv> {
        let memory_pool = Pool::shared(self.statement_memory, &self.memory);
        Arc::new(RuntimeEnv {
            memory_pool,
            ..self.template.runtime_env().as_ref().clone()
        })
    }
}

fn to_usize(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

fn runtime(config: &Config, pool: Arc<dyn MemoryPool>) -> Result<RuntimeEnv> {
    let wrong = |cause: DataFusionError| {
        let message = "the folder for spill files cannot be used";
        Error::new(ErrorKind::Invalid, message).with_cause(cause)
    };
    let mode = match &config.spill_dir {
        Some(folder) => {
            std::fs::create_dir_all(folder).map_err(|error| wrong(error.into()))?;
            DiskManagerMode::Directories(vec![folder.clone()])
        }
        None => DiskManagerMode::OsTmpDirectory,
    };
    let disk = DiskManagerBuilder::default()
        .with_mode(mode)
        .with_max_temp_directory_size(config.spill_limit);
    // Files may come and go between two statements: folders are listed anew for each.
    let caches = CacheManagerConfig::default().with_list_files_cache_limit(0);
    let runtime = RuntimeEnvBuilder::new()
        .with_memory_pool(pool)
        .with_disk_manager_builder(disk)
        .with_cache_manager(caches)
        .build()
        .map_err(wrong)?;
    // The first file makes the folder, which is to be known before SQL runs.
    runtime
        .disk_manager
        .create_tmp_file("a first look")
        .map_err(wrong)?;
    Ok(runtime)
}

/// What SQL never touches: the gateway's files, and what statements of other users spilled.
fn own_files(config: &Config, runtime: &RuntimeEnv) -> Vec<PathBuf> {
    let mut own = config.own_files.clone();
    own.extend(config.spill_dir.clone());
    own.extend(runtime.disk_manager.temp_dir_paths());
    own
}

fn template(config: &Config, runtime: Arc<RuntimeEnv>) -> Result<SessionState> {
    let session = SessionConfig::new()
        .with_target_partitions(config.target_partitions.max(1))
        .with_information_schema(true)
        .with_create_default_catalog_and_schema(false)
        .with_default_catalog_and_schema(CATALOG, SCHEMA)
        .with_sort_spill_reservation_bytes(sort_reservation(config))
        .set_bool("datafusion.sql_parser.collect_spans", true);
    let factory: Arc<dyn TableProviderFactory> = Arc::new(files::Factory::default());
    let factories: HashMap<_, _> = ["PARQUET", "CSV", "JSON", "NDJSON", "ARROW"]
        .into_iter()
        .map(|name| (name.to_owned(), Arc::clone(&factory)))
        .collect();
    let mut state = SessionStateBuilder::new()
        .with_config(session)
        .with_runtime_env(runtime)
        .with_default_features()
        .with_table_factories(factories)
        .build();
    let limit = to_usize(config.query_memory_limit);
    bounded::register(&mut state, limit).map_err(translate)?;
    Ok(state)
}

/// Each partition of a sort sets this aside for merging; with DataFusion's fixed size, small limits
/// would leave nothing to sort in.
fn sort_reservation(config: &Config) -> usize {
    const USUAL: usize = 10 << 20;
    let partitions = config.target_partitions.max(1);
    (to_usize(config.query_memory_limit) / partitions / 8).min(USUAL)
}

/// A configured table before it was looked at: its name and where it is, or what is wrong.
type Source = (String, Result<ListingTableUrl>);

/// The stores for everything that may be read, and the configured tables by their URLs there.
fn stores(config: &Config, policy: &Arc<Policy>) -> Result<(Stores, Vec<Source>)> {
    let mut stores = Stores::new(Guarded::sql(policy));
    for url in policy.urls() {
        let (store, _) = remote::open(url, &config.store_options)?;
        let authority = ..Position::BeforePath;
        let same = |place: &&Url| place[authority] == url[authority];
        let places = policy.urls().iter().filter(same);
        let prefixes = places.filter_map(|place| ObjectPath::from_url_path(place.path()).ok());
        stores.add(
            url,
            Guarded::remote(policy, store, prefixes.collect(), true),
        );
    }
    let mut sources = Vec::new();
    for (number, (name, place)) in config.tables.iter().enumerate() {
        let source = table_store(config, policy, place).and_then(|(store, path)| {
            let url = format!("{TABLE_SCHEME}://{number}{path}");
            let url = Url::parse(&url).map_err(|_| Error::invalid("22023", "no path or URL"))?;
            stores.add(&url, store);
            ListingTableUrl::try_new(url, None).map_err(translate)
        });
        sources.push((name.clone(), source));
    }
    Ok((stores, sources))
}

/// The store of one configured table, and the path of the table in it as a URL has it.
fn table_store(config: &Config, policy: &Arc<Policy>, place: &str) -> Result<(Guarded, String)> {
    match parse_place(place)? {
        Place::Local(path) => {
            let real = path
                .canonicalize()
                .map_err(|error| unreadable(&path, error))?;
            let url = if real.is_dir() {
                Url::from_directory_path(&real)
            } else {
                Url::from_file_path(&real)
            };
            let url = url.map_err(|()| Error::invalid("22023", "no absolute path"))?;
            let url = url.path().to_owned();
            Ok((Guarded::table(policy, real), url))
        }
        Place::Remote(url) => {
            let (store, prefix) = remote::open(&url, &config.store_options)?;
            let store = Guarded::remote(policy, store, vec![prefix], false);
            Ok((store, url.path().to_owned()))
        }
    }
}

fn unreadable(path: &Path, error: std::io::Error) -> Error {
    let message = format!("\"{}\" cannot be read: {error}", path.display());
    Error::new(ErrorKind::Invalid, message).with_sqlstate("58P01")
}

async fn open_tables(
    state: &SessionState,
    sources: Vec<Source>,
) -> Result<Vec<(String, Arc<dyn TableProvider>)>> {
    let (mut tables, mut wrong) = (Vec::new(), Vec::new());
    for (name, source) in sources {
        let opened = match source {
            Ok(url) => files::table(state, url).await.map_err(translate),
            Err(error) => Err(error),
        };
        match opened {
            Ok(table) => {
                tables.push((name.clone(), tables::ReadOnly::over(&name, Arc::new(table))))
            }
            Err(error) => wrong.push(format!("table \"{name}\": {}", error.message())),
        }
    }
    if wrong.is_empty() {
        Ok(tables)
    } else {
        Err(Error::invalid("22023", wrong.join("; ")))
    }
}
