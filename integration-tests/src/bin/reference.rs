//! What the embedded engine itself answers, with no gateway in between: a statement on standard
//! input, an uncompressed Arrow file out. The truth that readers are compared with. With
//! `--first-row` it prints instead after how many milliseconds the engine gives its first batch,
//! the best of seven.
//!
//! Usage: reference [--scale FACTOR] [--table NAME=FILE] (--out FILE | --first-row) < STATEMENT

#![allow(clippy::print_stdout)]

use std::error::Error;
use std::fs::File;
use std::io::Read;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_ipc::writer::FileWriter;
use arrow_schema::SchemaRef;
use futures::StreamExt;
use sluice::config::{self, Sources};
use sluice_core::engine::{BatchStream, EngineSession, Output, Query, SessionOptions};
use sluice_integration_tests::gateway::embedded;

const REPEATS: usize = 7;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let (mut sources, mut out) = (Sources::defaults(), None);
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        if name == "--first-row" {
            continue;
        }
        let value = arguments
            .next()
            .ok_or_else(|| format!("{name} needs a value"))?;
        match name.as_str() {
            "--scale" => {
                sources = sources.with(format!("engines.embedded.tpch.scale_factor={value}"));
            }
            "--table" => sources = sources.with(format!("engines.embedded.tables.{value}")),
            "--out" => out = Some(value),
            other => return Err(format!("{other} is no option").into()),
        }
    }
    let mut statement = String::new();
    std::io::stdin().read_to_string(&mut statement)?;
    let engine = embedded(&config::load(&sources)?).await;
    let options = SessionOptions {
        time_zone: "UTC".to_owned(),
        ..SessionOptions::default()
    };
    let session = engine.open(options).await?;
    match out {
        Some(out) => write(&session, &statement, &out).await,
        None => {
            println!(
                "{:.1}",
                first_row(&session, &statement).await?.as_secs_f64() * 1000.0
            );
            Ok(())
        }
    }
}

async fn execute(
    session: &Arc<dyn EngineSession>,
    statement: &str,
) -> Result<(SchemaRef, BatchStream), Box<dyn Error>> {
    let query = Query {
        text: statement.into(),
        row_hint: None,
    };
    let execution = session.execute(query).await?;
    match execution.output {
        Output::Batches(batches) => Ok((execution.schema, batches)),
        Output::Messages(_) => Err("the engine gave messages".into()),
    }
}

async fn write(
    session: &Arc<dyn EngineSession>,
    statement: &str,
    out: &str,
) -> Result<(), Box<dyn Error>> {
    let (schema, mut batches) = execute(session, statement).await?;
    let mut writer = FileWriter::try_new(File::create(out)?, &schema)?;
    while let Some(batch) = batches.next().await {
        writer.write(&batch?)?;
    }
    writer.finish()?;
    Ok(())
}

async fn first_row(
    session: &Arc<dyn EngineSession>,
    statement: &str,
) -> Result<Duration, Box<dyn Error>> {
    let mut best = Duration::MAX;
    for _ in 0..REPEATS {
        let started = Instant::now();
        let (_, mut batches) = execute(session, statement).await?;
        batches.next().await.ok_or("the engine gave no batch")??;
        best = best.min(started.elapsed());
    }
    Ok(best)
}
