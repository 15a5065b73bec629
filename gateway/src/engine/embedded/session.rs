//! A session of the embedded engine: its own catalog and settings over the engine's shared tables.
//!
//! Owns the default catalog and schema. Must not know how statements are planned.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::information_schema::INFORMATION_SCHEMA;
use datafusion::catalog::{
    CatalogProvider, CatalogProviderList, MemoryCatalogProvider, MemoryCatalogProviderList,
    MemorySchemaProvider, SchemaProvider, TableProvider,
};
use datafusion::execution::context::SessionContext;
use sluice_core::engine::{
    EngineSession, EngineSetting, Execution, MetadataRequest, Output, Query, SessionOptions,
};
use sluice_core::error::{Error, Result};

use super::error::translate;
use super::memory::Pool;
use super::statement::Place;
use super::stop::Stop;
use super::{CATALOG, SCHEMA, Shared, TPCH, metadata, settings};

const DEFAULT_CATALOG: &str = "datafusion.catalog.default_catalog";
const DEFAULT_SCHEMA: &str = "datafusion.catalog.default_schema";
const TIME_ZONE: &str = "datafusion.execution.time_zone";

/// One session.
pub(super) struct Session {
    place: Place,
}

impl Session {
    pub(super) async fn open(shared: Arc<Shared>, options: SessionOptions) -> Result<Arc<Self>> {
        let mut state = shared.template.clone();
        state.register_catalog_list(catalogs(&shared)?);
        let context = SessionContext::new_with_state(state);
        let tables = Pool::shared(shared.statement_memory, &shared.memory);
        let session = Arc::new(Self {
            place: Place {
                shared,
                context,
                tables,
                stop: Stop::default(),
            },
        });
        if !options.time_zone.is_empty() {
            session.set_time_zone(&options.time_zone).await?;
        }
        session
            .use_schema(options.catalog.as_deref(), options.schema.as_deref())
            .await?;
        Ok(session)
    }

    fn defaults(&self) -> (String, String) {
        let config = self.place.context.copied_config();
        let catalog = &config.options().catalog;
        (
            catalog.default_catalog.clone(),
            catalog.default_schema.clone(),
        )
    }

    async fn set_default(&self, key: &str, value: &str) -> Result<()> {
        if key.eq_ignore_ascii_case(DEFAULT_CATALOG) {
            self.use_schema(Some(value), None).await
        } else {
            self.use_schema(None, Some(value)).await
        }
    }
}

#[async_trait]
impl EngineSession for Session {
    async fn execute(&self, query: Query) -> Result<Execution> {
        let stop = Stop::default();
        let waiting = stop.on_drop();
        let place = Place {
            stop,
            ..self.place.clone()
        };
        let workers = &self.place.shared.workers;
        let batches = workers.run(place.start(query.text)).await?;
        let schema = batches.schema();
        Ok(Execution {
            schema,
            output: Output::Batches(workers.pump(batches, waiting)),
        })
    }

    async fn set(&self, key: &str, value: &str) -> Result<()> {
        if is_default(key) {
            return self.set_default(key, value).await;
        }
        settings::set(&self.place.context, key, value).await
    }

    async fn reset(&self, key: &str) -> Result<()> {
        if is_default(key) {
            let (_, value) = [(DEFAULT_CATALOG, CATALOG), (DEFAULT_SCHEMA, SCHEMA)]
                .into_iter()
                .find(|(name, _)| key.eq_ignore_ascii_case(name))
                .unwrap_or_default();
            return self.set_default(key, value).await;
        }
        let defaults = self.place.shared.template.config_options();
        settings::reset(&self.place.context, defaults, key).await
    }

    async fn settings(&self) -> Result<Vec<EngineSetting>> {
        Ok(settings::list(&self.place.context))
    }

    async fn set_time_zone(&self, zone: &str) -> Result<()> {
        settings::apply(&self.place.context, TIME_ZONE, zone).await
    }

    async fn use_schema(&self, catalog: Option<&str>, schema: Option<&str>) -> Result<()> {
        let (mut to_catalog, mut to_schema) = self.defaults();
        let state = self.place.context.state();
        if let Some(name) = catalog {
            let names = state.catalog_list().catalog_names();
            to_catalog = find("catalog", name, names)?;
        }
        let provider = state.catalog_list().catalog(&to_catalog).ok_or_else(|| {
            Error::invalid(
                "3F000",
                format!("there is no catalog \"{to_catalog}\" any more"),
            )
        })?;
        let mut names = provider.schema_names();
        names.push(INFORMATION_SCHEMA.to_owned());
        match schema {
            Some(name) => to_schema = find("schema", name, names)?,
            None if catalog.is_some() && !names.contains(&to_schema) => {
                let usual = names.iter().find(|name| *name == SCHEMA).or(names.first());
                to_schema = usual.cloned().unwrap_or_default();
            }
            None => {}
        }
        let state = self.place.context.state_ref();
        let mut state = state.write();
        let options = state.config_mut().options_mut();
        options.catalog.default_catalog = to_catalog;
        options.catalog.default_schema = to_schema;
        Ok(())
    }

    async fn current_schema(&self) -> Result<(String, String)> {
        Ok(self.defaults())
    }

    async fn metadata(&self, request: MetadataRequest) -> Result<Execution> {
        let state = self.place.context.state();
        let work = async move { metadata::answer(&state, request).await };
        let batch = self.place.shared.workers.run(work).await?;
        let schema = batch.schema();
        let rows = futures::stream::once(async { Ok(batch) });
        Ok(Execution {
            schema,
            output: Output::Batches(Box::pin(rows)),
        })
    }
}

fn is_default(key: &str) -> bool {
    key.eq_ignore_ascii_case(DEFAULT_CATALOG) || key.eq_ignore_ascii_case(DEFAULT_SCHEMA)
}

/// The name as it is, or as DataFusion reads unquoted names: in lower case.
fn find(what: &str, name: &str, mut names: Vec<String>) -> Result<String> {
    let lower = name.to_lowercase();
    if let Some(found) = [name, &lower]
        .into_iter()
        .find(|name| names.iter().any(|n| n == name))
    {
        return Ok(found.to_owned());
    }
    names.sort();
    let message = format!(
        "there is no {what} \"{name}\"; there are: {}",
        names.join(", ")
    );
    Err(Error::invalid("3F000", message))
}

/// A catalog of the session's own that lists the engine's tables.
fn catalogs(shared: &Shared) -> Result<Arc<dyn CatalogProviderList>> {
    let catalog = MemoryCatalogProvider::new();
    let register = |name: &str, tables: &[(String, Arc<dyn TableProvider>)]| {
        let schema = MemorySchemaProvider::new();
        for (name, table) in tables {
            schema.register_table(name.clone(), Arc::clone(table))?;
        }
        catalog.register_schema(name, Arc::new(schema)).map(|_| ())
    };
    register(SCHEMA, &shared.tables).map_err(translate)?;
    if !shared.tpch.is_empty() {
        register(TPCH, &shared.tpch).map_err(translate)?;
    }
    let catalogs = MemoryCatalogProviderList::new();
    catalogs.register_catalog(CATALOG.to_owned(), Arc::new(catalog));
    Ok(Arc::new(catalogs))
}
