//! The embedded engine seen through the core's traits.
//!
//! Owns the set-up that these tests share: a folder with tables, an allowed folder, and files that
//! play the gateway's own.
#![allow(clippy::unwrap_used)]

mod running;
mod security;
mod sessions;
mod sources;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_cast::display::array_value_to_string;
use futures::TryStreamExt;
use sluice_core::engine::{Engine, EngineSession, Execution, Output, Query, SessionOptions};
use sluice_core::error::{Error, ErrorKind, Result};

use super::{Config, Embedded};

const MEBI: u64 = 1 << 20;

/// An engine with a folder of its own.
struct Fixture {
    folder: tempfile::TempDir,
    engine: Arc<Embedded>,
}

impl Fixture {
    /// `open` may be touched by SQL; `tables/numbers.csv` is configured; `users.toml` and
    /// `open/key.pem` are the gateway's own.
    fn new(change: impl FnOnce(&mut Config, &Path)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        for name in ["open", "closed", "tables"] {
            fs::create_dir(root.join(name)).unwrap();
        }
        fs::write(root.join("tables/numbers.csv"), "n,name\n1,one\n2,two\n").unwrap();
        fs::write(root.join("open/data.csv"), "a,b\n1,x\n2,y\n").unwrap();
        for name in ["users.toml", "open/key.pem", "closed/secret.csv"] {
            fs::write(root.join(name), "secret\nvalue\n").unwrap();
        }
        let mut config = Config {
            tables: vec![("numbers".to_owned(), text(&root.join("tables/numbers.csv")))],
            allow: vec![text(&root.join("open"))],
            own_files: vec![root.join("users.toml"), root.join("open/key.pem")],
            tpch_scale_factor: Some(0.01),
            memory_limit: 256 * MEBI,
            query_memory_limit: 128 * MEBI,
            spill_dir: Some(root.join("spill")),
            spill_limit: 1024 * MEBI,
            target_partitions: 2,
            store_options: Vec::new(),
        };
        change(&mut config, root);
        let engine = Embedded::build(config).unwrap();
        Self { folder, engine }
    }

    fn plain() -> Self {
        Self::new(|_, _| {})
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    async fn session(&self) -> Arc<dyn EngineSession> {
        let options = SessionOptions {
            time_zone: "UTC".to_owned(),
            ..SessionOptions::default()
        };
        self.engine.open(options).await.unwrap()
    }
}

fn text(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

async fn start(session: &Arc<dyn EngineSession>, sql: &str) -> Result<Execution> {
    session
        .execute(Query {
            text: sql.into(),
            row_hint: None,
        })
        .await
}

async fn collect(execution: Execution) -> Result<Vec<RecordBatch>> {
    let Output::Batches(batches) = execution.output else {
        panic!("batches")
    };
    let batches: Vec<_> = batches.try_collect().await?;
    assert!(
        batches
            .iter()
            .all(|batch| batch.schema() == execution.schema)
    );
    Ok(batches)
}

async fn run(session: &Arc<dyn EngineSession>, sql: &str) -> Result<Vec<RecordBatch>> {
    collect(start(session, sql).await?).await
}

/// All values as text, row by row.
async fn rows(session: &Arc<dyn EngineSession>, sql: &str) -> Vec<Vec<String>> {
    let batches = run(session, sql)
        .await
        .unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    values(&batches)
}

fn values(batches: &[RecordBatch]) -> Vec<Vec<String>> {
    let row = |batch: &RecordBatch, row| {
        batch
            .columns()
            .iter()
            .map(|column| array_value_to_string(column, row).unwrap())
            .collect()
    };
    batches
        .iter()
        .flat_map(|batch| (0..batch.num_rows()).map(move |i| row(batch, i)))
        .collect()
}

async fn fails(session: &Arc<dyn EngineSession>, sql: &str) -> Error {
    match run(session, sql).await {
        Ok(batches) => panic!("{sql} gave {:?}", values(&batches)),
        Err(error) => error,
    }
}

/// Asserts the one answer to what SQL may not touch.
async fn refused(session: &Arc<dyn EngineSession>, sql: &str) {
    let error = fails(session, sql).await;
    assert_eq!(
        (error.kind(), error.sqlstate()),
        (ErrorKind::Forbidden, "42501"),
        "{sql}: {error}"
    );
}
