//! `sluice demo`: a gateway on loopback, a query under each codec through the SDK, the table of how
//! the results travelled, and how to connect. A client like any other: must not reach into the core.

#![allow(clippy::print_stdout)]

use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};

use arrow_array::RecordBatch;
use futures::StreamExt;
use sluice_client::{Client, DeliveryReport, Session, render, report};

use crate::app::{App, Running};
use crate::config::{self, Sources};

const STATEMENT: &str = "SELECT * FROM tpch.lineitem";
const CODECS: [&str; 3] = ["none", "lz4", "zstd"];
const ROWS_SHOWN: usize = 5;

/// The port that the demo stays on, when it is free.
const PORT: u16 = 8443;

/// How the demo runs.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Whether it ends after the table.
    pub once: bool,
    /// Size of the generated tables.
    pub scale_factor: f64,
}

/// Runs the demo.
///
/// # Errors
/// What is wrong with the options, the sockets, or a query.
pub async fn run(options: Options) -> Result<(), Box<dyn Error + Send + Sync>> {
    let running = start(options).await?;
    println!(
        "A gateway listens on {} over TLS; TPC-H at scale factor {}.\n",
        running.address, options.scale_factor
    );
    let session = client(&running)?.session().await?;
    println!("{STATEMENT}");
    let mut reports = Vec::new();
    for codec in CODECS {
        reports.push(deliver(&session, codec).await?);
    }
    let columns: Vec<_> = CODECS.into_iter().zip(&reports).collect();
    println!(
        "\nHow it travelled, on this machine:\n{}",
        report::table(&columns)
    );
    session.close().await?;
    if !options.once {
        print!("{}", how_to_connect(&running));
        tokio::signal::ctrl_c().await?;
    }
    running.shutdown().await;
    Ok(())
}

async fn start(options: Options) -> Result<Running, Box<dyn Error + Send + Sync>> {
    let wanted = SocketAddr::from((Ipv4Addr::LOCALHOST, PORT));
    let port = match TcpListener::bind(wanted) {
        Ok(_) if !options.once => PORT,
        _ => 0,
    };
    let sources = Sources::defaults()
        .with(format!("server.listen=127.0.0.1:{port}"))
        .with("admin.listen=127.0.0.1:0")
        .with(format!(
            "engines.embedded.tpch.scale_factor={}",
            options.scale_factor
        ));
    Ok(App::build(config::load(&sources)?).await?.spawn())
}

fn client(running: &Running) -> Result<Client, sluice_client::Error> {
    Client::builder(format!("sluice://{}", running.address))
        .user("demo")
        .pinned_certificate(running.certificate().sha256())
        .build()
}

/// Runs the statement under `codec` and reads all of it; the first time its first rows are shown.
async fn deliver(session: &Session, codec: &str) -> Result<DeliveryReport, sluice_client::Error> {
    session.set("arrow.compression.codec", codec).await?;
    let mut rows = session.query(STATEMENT).await?;
    let mut first: Option<RecordBatch> = None;
    while let Some(batch) = rows.next().await {
        let batch = batch?;
        first.get_or_insert_with(|| batch.slice(0, batch.num_rows().min(ROWS_SHOWN)));
    }
    if codec == CODECS[0] {
        println!("{}", render::table(first.as_slice(), ROWS_SHOWN));
    }
    rows.delivery().await
}

fn how_to_connect(running: &Running) -> String {
    let (address, certificate) = (running.address, running.certificate());
    let pin = certificate.sha256();
    format!(
        "\nThe gateway stays up until Ctrl-C. Nobody is asked for a password; it listens on loopback only.\n\
         Its certificate was made in memory, SHA-256 {pin}.\n\n\
         sluice-sql   cargo run --release -p sluice-client --bin sluice-sql -- \\\n\
         \x20              --url sluice://{address}/datafusion.tpch -u demo --pin {pin} --stats\n\
         curl         curl -k https://{address}/api/v1/query -H 'Content-Type: application/json' \\\n\
         \x20              -H 'Accept: text/csv' -d '{{\"statement\": \"SELECT * FROM tpch.nation\"}}'\n\
         Python       with any HTTP client and pyarrow.ipc.open_stream; see README.md\n\
         JDBC, ODBC,  not yet: the Flight SQL and HiveServer2 doors are not part of this version\n\
         ADBC\n\n"
    )
}
