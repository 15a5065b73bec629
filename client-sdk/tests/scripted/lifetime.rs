//! What is stopped and closed when nobody wants it any more.

use futures::TryStreamExt;
use http::Method;
use sluice_ipc::Codec;

use crate::gateway::{Gateway, OPERATION, SESSION, Script, Sent, Step, numbers};
use sluice_client::{ClientBuilder, ErrorKind};

fn operation() -> String {
    format!("/api/v1/operations/{OPERATION}")
}

fn session_path() -> String {
    format!("/api/v1/sessions/{SESSION}")
}

/// Some rows, and then nothing.
fn stalling() -> Script {
    let sent = Sent::of(&numbers(4, 10_000), Codec::None);
    sent.script([&sent.data()[..20], &[Step::Stall]].concat())
}

const VERSIONS: [fn(ClientBuilder) -> ClientBuilder; 2] =
    [ClientBuilder::http1_only, ClientBuilder::http2_only];

#[tokio::test]
async fn dropping_an_unfinished_result_cancels_it() {
    for versions in VERSIONS {
        let gateway = Gateway::start(stalling()).await;
        let session = versions(gateway.client())
            .build()
            .unwrap()
            .session()
            .await
            .unwrap();
        let mut stream = session.query("SELECT 1").await.unwrap();
        stream.try_next().await.unwrap().unwrap();
        drop(stream);
        let asked = gateway.asked_for(Method::PUT, &operation()).await;
        assert_eq!(asked.body, r#"{"action":"cancel"}"#);
        assert!(
            !gateway
                .asked()
                .iter()
                .any(|asked| asked.method == Method::DELETE)
        );
    }
}

#[tokio::test]
async fn a_finished_result_is_not_cancelled() {
    let gateway = Gateway::start(Sent::of(&numbers(2, 10), Codec::None).whole()).await;
    let session = gateway.client().build().unwrap().session().await.unwrap();
    session.execute("SELECT 1").await.unwrap();
    session.close().await.unwrap();
    gateway.asked_for(Method::DELETE, &session_path()).await;
    assert!(
        !gateway
            .asked()
            .iter()
            .any(|asked| asked.method == Method::PUT)
    );
}

#[tokio::test]
async fn a_canceller_stops_the_statement_from_elsewhere() {
    for versions in VERSIONS {
        let gateway = Gateway::start(stalling()).await;
        let session = versions(gateway.client())
            .build()
            .unwrap()
            .session()
            .await
            .unwrap();
        let mut stream = session.query("SELECT 1").await.unwrap();
        stream.try_next().await.unwrap().unwrap();
        let canceller = stream.canceller();
        let other = tokio::spawn(async move { canceller.clone().cancel().await });
        let error = loop {
            match stream.try_next().await {
                Ok(batch) => assert!(batch.is_some(), "it must not end well"),
                Err(error) => break error,
            }
        };
        other.await.unwrap().unwrap();
        assert_eq!(error.kind(), ErrorKind::Cancelled, "{error:?}");
        assert_eq!(error.sqlstate(), "57014");
    }
}

#[tokio::test]
async fn a_statement_that_nobody_waits_for_takes_its_request_along() {
    for versions in VERSIONS {
        let gateway = Gateway::start(Script {
            never_ready: true,
            ..Script::default()
        })
        .await;
        let session = versions(gateway.client())
            .build()
            .unwrap()
            .session()
            .await
            .unwrap();
        let path = format!("{}/operations/statement", session_path());
        let query = session.query("SELECT 1");
        tokio::select! {
            _ = query => panic!("it is never ready"),
            _ = gateway.asked_for(Method::POST, &path) => {}
        }
        gateway.abandoned().await;
    }
}

#[tokio::test]
async fn a_dropped_session_is_closed_when_its_last_result_is_gone() {
    let gateway = Gateway::start(stalling()).await;
    let session = gateway.client().build().unwrap().session().await.unwrap();
    let mut stream = session.query("SELECT 1").await.unwrap();
    drop(session);
    stream.try_next().await.unwrap().unwrap();
    assert!(
        !gateway
            .asked()
            .iter()
            .any(|asked| asked.method == Method::DELETE)
    );
    drop(stream);
    gateway.asked_for(Method::PUT, &operation()).await;
    let closed = gateway.asked_for(Method::DELETE, &session_path()).await;
    assert_eq!(closed.headers["authorization"], "Bearer session-token");
}
