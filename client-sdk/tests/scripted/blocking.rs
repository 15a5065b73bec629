//! The client for threads that may block.

use arrow_array::{RecordBatch, RecordBatchReader};
use http::Method;
use sluice_ipc::Codec;
use tokio::runtime::Runtime;

use crate::gateway::{Gateway, OPERATION, SESSION, Script, Sent, Step, numbers};
use sluice_client::{Error, ErrorKind};

/// The gateway needs a runtime; the client must not be within it.
fn started(script: Script) -> (Runtime, Gateway) {
    let runtime = Runtime::new().unwrap();
    let gateway = runtime.block_on(Gateway::start(script));
    (runtime, gateway)
}

fn read(reader: impl RecordBatchReader) -> Vec<RecordBatch> {
    let schema = reader.schema();
    let batches: Vec<_> = reader.collect::<Result<_, _>>().unwrap();
    assert!(
        batches
            .iter()
            .all(|batch: &RecordBatch| batch.schema() == schema)
    );
    batches
}

#[test]
fn rows_come_as_from_any_reader() {
    let expected = numbers(10, 20_000);
    let (_runtime, gateway) = started(Sent::of(&expected, Codec::Zstd).whole());
    let session = gateway
        .client()
        .build_blocking()
        .unwrap()
        .session()
        .unwrap();
    session.set("a", "b").unwrap();
    assert_eq!(read(session.query("SELECT 1").unwrap()), expected);
    assert_eq!(session.execute("SELECT 1").unwrap().rows, 200_000);
    session.close().unwrap();
}

#[test]
fn an_error_reaches_the_caller_through_arrows() {
    let sent = Sent::of(&numbers(2, 100), Codec::None);
    let (_runtime, gateway) = started(sent.script(sent.data()));
    let session = gateway
        .client()
        .build_blocking()
        .unwrap()
        .session()
        .unwrap();
    let mut rows = session.query("SELECT 1").unwrap();
    let error = rows.find_map(Result::err).unwrap();
    let arrow_schema::ArrowError::ExternalError(error) = error else {
        panic!("{error}")
    };
    assert_eq!(
        error.downcast_ref::<Error>().unwrap().kind(),
        ErrorKind::Incomplete
    );
    assert!(rows.next().is_none());
}

#[test]
fn parting_words_are_said_before_the_client_is_gone() {
    let sent = Sent::of(&numbers(4, 10_000), Codec::None);
    let (runtime, gateway) = started(sent.script([&sent.data()[..20], &[Step::Stall]].concat()));
    {
        let session = gateway
            .client()
            .build_blocking()
            .unwrap()
            .session()
            .unwrap();
        let mut rows = session.query("SELECT 1").unwrap();
        rows.next_batch().unwrap().unwrap();
    }
    let operation = format!("/api/v1/operations/{OPERATION}");
    runtime.block_on(gateway.asked_for(Method::PUT, &operation));
    let session = format!("/api/v1/sessions/{SESSION}");
    runtime.block_on(gateway.asked_for(Method::DELETE, &session));
}
