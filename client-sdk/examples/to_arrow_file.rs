//! Writes a result into an Arrow IPC file, which pyarrow, polars, DuckDB and others open:
//! `to_arrow_file SQL FILE`, with SLUICE_URL, SLUICE_USER, SLUICE_PASSWORD and SLUICE_PIN in the
//! environment. The file takes its name when it is known to be complete.
#![allow(clippy::print_stdout)]

use std::env;
use std::fs::{self, File};
use std::io::BufWriter;

use arrow_array::RecordBatchReader;
use arrow_ipc::writer::FileWriter;
use sluice_client::blocking::Client;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = env::args().skip(1);
    let (Some(sql), Some(path)) = (arguments.next(), arguments.next()) else {
        return Err("usage: to_arrow_file SQL FILE".into());
    };
    let url = env::var("SLUICE_URL").unwrap_or_else(|_| "sluice://localhost:8443".to_owned());
    let mut builder = Client::builder(url).setting("arrow.compression.codec", "zstd");
    if let Ok(user) = env::var("SLUICE_USER") {
        builder = builder
            .user(user)
            .password(env::var("SLUICE_PASSWORD").unwrap_or_default());
    }
    if let Ok(pin) = env::var("SLUICE_PIN") {
        builder = builder.pinned_certificate(pin);
    }

    let session = builder.build_blocking()?.session()?;
    let partial = format!("{path}.partial");
    let rows = write(session.query(&sql)?, &partial)?;
    fs::rename(&partial, &path)?;
    println!("{rows} rows in {path}");
    session.close()?;
    Ok(())
}

/// Works with anything that reads batches; a result that is not complete is an error here.
fn write(batches: impl RecordBatchReader, path: &str) -> Result<usize, Box<dyn std::error::Error>> {
    let to = BufWriter::new(File::create(path)?);
    let mut writer = FileWriter::try_new(to, &batches.schema())?;
    let mut rows = 0;
    for batch in batches {
        let batch = batch?;
        rows += batch.num_rows();
        writer.write(&batch)?;
    }
    writer.finish()?;
    Ok(rows)
}
