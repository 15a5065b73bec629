//! Whole results over loopback TLS, by codec: time, bytes and processor time of the gateway, as
//! ratios to the engine alone and to arrow-rs's writer alone. Prints a table in Markdown.
//!
//! `cargo bench --workspace --bench throughput`, after `integration-tests/run` has made the files.

#![allow(clippy::print_stdout, clippy::unwrap_used)]

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use arrow_array::RecordBatch;
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{IpcWriteOptions, StreamWriter};
use datafusion::prelude::{ParquetReadOptions, SessionContext};
use futures::{StreamExt, TryStreamExt};
use http::Method;
use http_body_util::BodyExt;
use serde_json::json;
use sluice_integration_tests::gateway::{USERS, password_of};
use sluice_integration_tests::http::{As, Http, Version};
use sluice_integration_tests::process::Process;

const SQL: &str = "SELECT * FROM lineitem WHERE l_orderkey <= 2000000";
const REPEATS: usize = 3;

/// Codec, level, and how arrow-rs is told so.
const CODECS: [(&str, &str, i32, Option<CompressionType>); 4] = [
    ("none", "none", 3, None),
    ("lz4", "lz4", 3, Some(CompressionType::LZ4_FRAME)),
    ("zstd-1", "zstd", 1, Some(CompressionType::ZSTD)),
    ("zstd-3", "zstd", 3, Some(CompressionType::ZSTD)),
];

#[tokio::main]
async fn main() {
    let file = lineitem();
    let alone = engine_alone(&file).await;
    let batches = rows_of(&file).await;
    let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
    let raw: u64 = batches.iter().map(sluice_ipc::sliced_bytes).sum();
    println!(
        "`{SQL}`: {rows} rows, {:.0} MB in memory; the best of {REPEATS}.\n",
        raw as f64 / 1e6
    );
    println!(
        "DataFusion alone, its batches dropped: {:.2} s.\n",
        alone.as_secs_f64()
    );
    println!(
        "| codec | on the wire | gateway | MB/s of rows | ÷ engine alone | writer alone | ÷ writer alone | gateway's CPU |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for (name, codec, level, compression) in CODECS {
        let writer = writer_alone(&batches, compression, level);
        let (wall, bytes, cpu) = gateway(&file, codec, level).await;
        // Uncompressed, arrow-rs hands over its buffers as they are: there is nothing to divide by.
        let by_writer = match compression {
            None => "—".to_owned(),
            Some(_) => format!("{:.2}", wall.as_secs_f64() / writer.as_secs_f64()),
        };
        println!(
            "| {name} | {:.1} MB | {:.2} s | {:.0} | {:.2} | {:.2} s | {by_writer} | {:.2} s |",
            bytes as f64 / 1e6,
            wall.as_secs_f64(),
            raw as f64 / 1e6 / wall.as_secs_f64(),
            wall.as_secs_f64() / alone.as_secs_f64(),
            writer.as_secs_f64(),
            cpu.as_secs_f64(),
        );
    }
}

fn lineitem() -> PathBuf {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(".work/data/sf1/lineitem.parquet");
    assert!(
        file.exists(),
        "{} is missing: integration-tests/run makes it",
        file.display()
    );
    file
}

async fn context(file: &Path) -> SessionContext {
    let context = SessionContext::new();
    context
        .register_parquet(
            "lineitem",
            file.to_string_lossy(),
            ParquetReadOptions::default(),
        )
        .await
        .unwrap();
    context
}

async fn engine_alone(file: &Path) -> Duration {
    let context = context(file).await;
    let mut best = Duration::MAX;
    for _ in 0..REPEATS {
        let started = Instant::now();
        let mut stream = context
            .sql(SQL)
            .await
            .unwrap()
            .execute_stream()
            .await
            .unwrap();
        while let Some(batch) = stream.next().await {
            drop(batch.unwrap());
        }
        best = best.min(started.elapsed());
    }
    best
}

async fn rows_of(file: &Path) -> Vec<RecordBatch> {
    let stream = context(file)
        .await
        .sql(SQL)
        .await
        .unwrap()
        .execute_stream()
        .await
        .unwrap();
    stream.try_collect().await.unwrap()
}

/// One thread, from memory to nowhere.
fn writer_alone(
    batches: &[RecordBatch],
    compression: Option<CompressionType>,
    level: i32,
) -> Duration {
    let mut best = Duration::MAX;
    for _ in 0..REPEATS {
        let mut options = IpcWriteOptions::default()
            .try_with_compression(compression)
            .unwrap();
        if compression == Some(CompressionType::ZSTD) {
            options = options.try_with_compression_level(Some(level)).unwrap();
        }
        let started = Instant::now();
        let mut writer =
            StreamWriter::try_new_with_options(io::sink(), &batches[0].schema(), options).unwrap();
        for batch in batches {
            writer.write(batch).unwrap();
        }
        writer.finish().unwrap();
        writer.get_mut().flush().unwrap();
        best = best.min(started.elapsed());
    }
    best
}

/// Seconds, bytes of the body, and the processor time of the gateway's process.
async fn gateway(file: &Path, codec: &str, level: i32) -> (Duration, u64, Duration) {
    let tables = format!(
        "[engines.embedded.tables]\nlineitem = {:?}",
        file.to_string_lossy()
    );
    let process = Process::start(&tables, &[]);
    let body = json!({
        "statement": SQL,
        "configs": {"arrow.compression.codec": codec, "arrow.compression.zstd.level": level.to_string()},
    });
    let accept = [(
        "accept",
        "application/vnd.apache.arrow.stream; codecs=\"zstd, lz4\"",
    )];
    let mut best = (Duration::MAX, 0, Duration::MAX);
    for _ in 0..REPEATS {
        let user = As::user(USERS[0], &password_of(USERS[0]));
        let mut http = Http::connect(process.address, Version::Http1, user)
            .await
            .unwrap();
        let (started, cpu) = (Instant::now(), process.cpu());
        let mut response = http
            .open(Method::POST, "/api/v1/query", &accept, Some(body.clone()))
            .await
            .unwrap();
        let mut bytes = 0;
        while let Some(frame) = response.body_mut().frame().await {
            bytes += frame
                .unwrap()
                .data_ref()
                .map_or(0, |data| data.len() as u64);
        }
        let run = (started.elapsed(), bytes, process.cpu() - cpu);
        best = if run.0 < best.0 { run } else { best };
    }
    best
}
