//! Whom the client talks to, and how it says that it does not.

use std::time::Duration;

use sluice_ipc::Codec;
use tokio::net::TcpListener;

use crate::gateway::{Gateway, Keys, Sent, numbers};
use sluice_client::{Client, ClientBuilder, Error, ErrorKind};

async fn gateway() -> Gateway {
    Gateway::start(Sent::of(&numbers(1, 10), Codec::None).whole()).await
}

async fn connect(builder: ClientBuilder) -> Result<(), Error> {
    builder.build().unwrap().session().await?.close().await
}

#[tokio::test]
async fn a_pinned_certificate_is_accepted_and_another_is_not() {
    let gateway = gateway().await;
    let pin = gateway.keys.sha256();
    let colons: Vec<&str> = pin
        .as_bytes()
        .chunks(2)
        .map(|pair| std::str::from_utf8(pair).unwrap())
        .collect();
    for right in [pin.clone(), colons.join(":").to_uppercase()] {
        connect(Client::builder(gateway.url()).pinned_certificate(right))
            .await
            .unwrap();
    }
    let wrong = Client::builder(gateway.url()).pinned_certificate("00".repeat(32));
    let error = connect(wrong).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Tls, "{error:?}");
    // Whoever finds it right can copy it from there.
    assert!(error.message().contains(&pin), "{error}");
    assert!(!error.retryable());
}

#[tokio::test]
async fn a_pinned_certificate_without_its_key_is_refused() {
    let keys = Keys::generate().with_key_of(Keys::generate());
    let pin = keys.sha256();
    let script = Sent::of(&numbers(1, 10), Codec::None).whole();
    let gateway = Gateway::start_with(script, keys).await;
    let error = connect(Client::builder(gateway.url()).pinned_certificate(pin))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Tls, "{error:?}");
}

#[tokio::test]
async fn authorities_are_those_that_were_named() {
    let gateway = gateway().await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ca.pem");
    std::fs::write(&path, &gateway.keys.pem).unwrap();
    connect(Client::builder(gateway.url()).ca_file(&path))
        .await
        .unwrap();

    std::fs::write(&path, Keys::generate().pem).unwrap();
    let error = connect(Client::builder(gateway.url()).ca_file(&path))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Tls, "{error:?}");
}

#[tokio::test]
async fn the_name_in_the_certificate_counts() {
    let gateway = gateway().await;
    let url = format!("sluice://127.0.0.2:{}", gateway.address.port());
    let other = Client::builder(url).ca_pem(gateway.keys.pem.clone());
    // Where the machine has no such address it is not reached, which is no trust either.
    let kind = connect(other).await.unwrap_err().kind();
    assert!(
        matches!(kind, ErrorKind::Tls | ErrorKind::Connect),
        "{kind}"
    );
    let url = format!("https://localhost:{}", gateway.address.port());
    connect(Client::builder(url).ca_pem(gateway.keys.pem.clone()))
        .await
        .unwrap();
}

#[tokio::test]
async fn nobody_there_is_a_connect_error() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("sluice://{}", listener.local_addr().unwrap());
    let builder = Client::builder(url).pinned_certificate("00".repeat(32));

    // Somebody who takes the connection and says nothing.
    let patient = builder.clone().connect_timeout(Duration::from_millis(100));
    let error = connect(patient).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Connect, "{error:?}");
    assert!(error.message().contains("100ms"), "{error}");
    assert!(error.retryable());

    drop(listener);
    assert_eq!(
        connect(builder).await.unwrap_err().kind(),
        ErrorKind::Connect
    );
}
