//! A gateway with the fault engine as a process, for clients in other languages. Says on standard
//! output where it is, and runs until its standard input ends.

#![allow(clippy::print_stdout)]

use std::error::Error;

use serde_json::json;
use sluice_integration_tests::gateway::{TestGateway, USERS, password_of};
use sluice_integration_tests::proxy::{Fault, Proxy};
use tokio::io::AsyncReadExt;

/// Where the proxy cuts: in mid-stream of what the scripts ask for.
const CUT_AFTER: u64 = 400_000;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let gateway = TestGateway::start().await;
    let cutting = Proxy::before(gateway.address(), Fault::CutAfter(CUT_AFTER)).await?;
    let told = json!({
        "address": format!("localhost:{}", gateway.address().port()),
        "cutting": format!("localhost:{}", cutting.address().port()),
        "certificate": gateway.certificate_file(),
        "user": USERS[0],
        "password": password_of(USERS[0]),
    });
    println!("{told}");
    let mut rest = Vec::new();
    tokio::io::stdin().read_to_end(&mut rest).await?;
    Ok(())
}
