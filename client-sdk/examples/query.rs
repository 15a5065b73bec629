//! Runs a query and prints its rows: `query SQL`, with SLUICE_URL, SLUICE_USER, SLUICE_PASSWORD
//! and, for a gateway with a certificate of its own making, SLUICE_PIN in the environment.
#![allow(clippy::print_stdout)]

use std::env;

use futures::TryStreamExt;
use sluice_client::{Client, render, report};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = env::var("SLUICE_URL").unwrap_or_else(|_| "sluice://localhost:8443".to_owned());
    let sql = env::args()
        .nth(1)
        .unwrap_or_else(|| "SELECT 1 AS one".to_owned());

    let mut builder = Client::builder(url).setting("arrow.compression.codec", "zstd");
    if let Ok(user) = env::var("SLUICE_USER") {
        builder = builder
            .user(user)
            .password(env::var("SLUICE_PASSWORD").unwrap_or_default());
    }
    if let Ok(pin) = env::var("SLUICE_PIN") {
        builder = builder.pinned_certificate(pin);
    }

    let session = builder.build()?.session().await?;
    let mut rows = session.query(&sql).await?;
    let mut table = render::TableBuffer::new(rows.schema(), 20);
    while let Some(batch) = rows.try_next().await? {
        table.push(&batch);
    }
    println!("{}", table.finish());
    println!(
        "{}",
        report::table(&[("delivery", &rows.delivery().await?)])
    );
    session.close().await?;
    Ok(())
}
