//! The same without async: `blocking SQL`, with SLUICE_URL, SLUICE_USER, SLUICE_PASSWORD and
//! SLUICE_PIN in the environment. Counts rows, the way any loop over batches works.
#![allow(clippy::print_stdout)]

use std::env;

use sluice_client::blocking::Client;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = env::var("SLUICE_URL").unwrap_or_else(|_| "sluice://localhost:8443".to_owned());
    let sql = env::args()
        .nth(1)
        .unwrap_or_else(|| "SELECT 1 AS one".to_owned());

    let mut builder = Client::builder(url);
    if let Ok(user) = env::var("SLUICE_USER") {
        builder = builder
            .user(user)
            .password(env::var("SLUICE_PASSWORD").unwrap_or_default());
    }
    if let Ok(pin) = env::var("SLUICE_PIN") {
        builder = builder.pinned_certificate(pin);
    }

    let session = builder.build_blocking()?.session()?;
    session.set("arrow.compression.codec", "lz4")?;
    let mut rows = session.query(&sql)?;
    println!("{}", rows.schema());
    let mut count = 0;
    for batch in &mut rows {
        count += batch?.num_rows();
    }
    println!("{count} rows, {} bytes", rows.summary().bytes);
    session.close()?;
    Ok(())
}
