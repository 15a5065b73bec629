//! Results that are right, and every way of being wrong.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, DictionaryArray, RecordBatch};
use bytes::Bytes;
use futures::TryStreamExt;
use http::{Method, Version};
use sluice_ipc::Codec;

use crate::gateway::{Gateway, OPERATION, Script, Sent, Step, detail, numbers};
use sluice_client::{ClientBuilder, Error, ErrorKind, ResultStream, Summary};

/// What came before the end, and the end.
type Outcome = (Vec<RecordBatch>, Result<Summary, Error>);

async fn read_to_end(mut stream: ResultStream) -> Outcome {
    let mut batches = Vec::new();
    loop {
        match stream.try_next().await {
            Ok(Some(batch)) => batches.push(batch),
            Ok(None) => {
                assert!(stream.summary().complete);
                return (batches, Ok(stream.summary()));
            }
            Err(error) => {
                assert!(!stream.summary().complete);
                assert!(
                    matches!(stream.try_next().await, Ok(None)),
                    "nothing follows an error"
                );
                return (batches, Err(error));
            }
        }
    }
}

async fn outcome(script: Script, versions: fn(ClientBuilder) -> ClientBuilder) -> Outcome {
    let gateway = Gateway::start(script).await;
    let session = versions(gateway.client())
        .build()
        .unwrap()
        .session()
        .await
        .unwrap();
    match session.query("SELECT 1").await {
        Ok(stream) => {
            gateway.open_gate();
            read_to_end(stream).await
        }
        Err(error) => (Vec::new(), Err(error)),
    }
}

const VERSIONS: [fn(ClientBuilder) -> ClientBuilder; 2] =
    [ClientBuilder::http1_only, ClientBuilder::http2_only];

/// The script must end in `kind` over both versions of HTTP, after `rows` rows.
async fn ends_in(script: Script, kind: ErrorKind, rows: usize) -> Error {
    let mut last = None;
    for versions in VERSIONS {
        let (batches, end) = outcome(script.clone(), versions).await;
        let error = end.unwrap_err();
        assert_eq!(error.kind(), kind, "{error:?}");
        assert_eq!(
            batches.iter().map(RecordBatch::num_rows).sum::<usize>(),
            rows,
            "{error:?}"
        );
        last = Some(error);
    }
    last.unwrap()
}

#[tokio::test]
async fn good_results_come_whole_under_every_codec_and_version() {
    for codec in [Codec::None, Codec::Lz4, Codec::Zstd] {
        let expected = numbers(20, 20_000);
        let sent = Sent::of(&expected, codec);
        for versions in VERSIONS {
            let (batches, end) = outcome(sent.whole(), versions).await;
            let summary = end.unwrap();
            // Decoded on several threads, and still in order.
            assert_eq!(batches, expected);
            assert_eq!((summary.rows, summary.batches), (400_000, 20));
            assert_eq!(summary.bytes, sent.bytes);
            assert!(!summary.truncated);
        }
    }
}

#[tokio::test]
async fn http2_is_preferred_and_what_is_read_is_declared() {
    let gateway = Gateway::start(Sent::of(&numbers(1, 10), Codec::None).whole()).await;
    let client = gateway
        .client()
        .user("ada")
        .password("secret")
        .build()
        .unwrap();
    let session = client.session().await.unwrap();
    session.execute("SELECT 1").await.unwrap();
    let asked = gateway.asked();
    assert!(asked.iter().all(|asked| asked.version == Version::HTTP_2));
    assert_eq!(asked[0].headers["authorization"], "Basic YWRhOnNlY3JldA==");
    for later in &asked[1..] {
        assert_eq!(later.headers["authorization"], "Bearer session-token");
    }
    let path = format!("/api/v1/operations/{OPERATION}/result");
    let result = gateway.asked_for(Method::GET, &path).await;
    assert_eq!(result.headers["te"], "trailers");
    let accept = result.headers["accept"].to_str().unwrap();
    assert!(
        accept.contains("codecs=\"zstd, lz4\"; types=\"views, dictionaries\""),
        "{accept}"
    );
}

#[tokio::test]
async fn dictionaries_count_for_the_batches_after_them() {
    let batch = |words: [&str; 3]| {
        let column: DictionaryArray<Int32Type> = words.into_iter().collect();
        RecordBatch::try_from_iter([("word", Arc::new(column) as ArrayRef)]).unwrap()
    };
    let expected = [
        batch(["a", "b", "a"]),
        batch(["c", "c", "d"]),
        batch(["e", "a", "f"]),
    ];
    let sent = Sent::of(&expected, Codec::Zstd);
    let (batches, end) = outcome(sent.whole(), ClientBuilder::http2_only).await;
    end.unwrap();
    assert_eq!(batches, expected);
}

#[tokio::test]
async fn a_result_without_rows_has_a_schema() {
    let expected = numbers(1, 0);
    let sent = Sent::of(&expected, Codec::None);
    let sent = Sent::of_messages(sent.messages[..1].to_vec(), 0);
    let gateway = Gateway::start(sent.whole()).await;
    let session = gateway.client().build().unwrap().session().await.unwrap();
    let stream = session.query("SELECT 1").await.unwrap();
    assert_eq!(stream.schema(), expected[0].schema());
    assert_eq!(read_to_end(stream).await.1.unwrap().rows, 0);
}

#[tokio::test]
async fn a_clean_end_without_the_marker_is_incomplete() {
    let sent = Sent::of(&numbers(5, 1000), Codec::Lz4);
    let script = sent.script([sent.data(), vec![sent.trailers()]].concat());
    let error = ends_in(script, ErrorKind::Incomplete, 5000).await;
    assert!(error.message().contains("end marker"), "{error}");
    assert_eq!(error.operation_id(), Some(OPERATION));
}

#[tokio::test]
async fn a_body_that_ends_within_a_message_is_incomplete() {
    let sent = Sent::of(&numbers(5, 10_000), Codec::None);
    let mut data = sent.data();
    data.pop();
    ends_in(sent.script(data), ErrorKind::Incomplete, 40_000).await;
}

#[tokio::test]
async fn figures_that_differ_are_incomplete() {
    let sent = Sent::of(&numbers(3, 1000), Codec::Zstd);
    let lies: [fn(&mut Sent); 4] = [
        |sent| sent.rows += 1,
        |sent| sent.batches -= 1,
        |sent| sent.bytes -= 8,
        |sent| sent.digest ^= 1,
    ];
    for lie in lies {
        let mut told = Sent::of(&numbers(3, 1000), Codec::Zstd);
        lie(&mut told);
        let script = sent.script([sent.data(), vec![sent.end(), told.trailers()]].concat());
        ends_in(script, ErrorKind::Incomplete, 3000).await;
        // The same lie where trailers did not come.
        let mut script = sent.script([sent.data(), vec![sent.end()]].concat());
        script.deliveries = VecDeque::from([told.report("complete")]);
        ends_in(script, ErrorKind::Incomplete, 3000).await;
    }
}

#[tokio::test]
async fn a_missing_batch_is_noticed() {
    let sent = Sent::of(&numbers(3, 1000), Codec::None);
    let mut some = sent.messages.clone();
    some.remove(2);
    let some = Sent::of_messages(some, 2);
    let script = sent.script([some.data(), vec![sent.end(), sent.trailers()]].concat());
    ends_in(script, ErrorKind::Incomplete, 2000).await;
}

#[tokio::test]
async fn bytes_after_the_end_are_incomplete() {
    let sent = Sent::of(&numbers(2, 100), Codec::None);
    let more = Step::Data(Bytes::from_static(b"more"));
    let script = sent.script([sent.data(), vec![sent.end(), more, sent.trailers()]].concat());
    ends_in(script, ErrorKind::Incomplete, 200).await;
}

#[tokio::test]
async fn damaged_buffers_are_incomplete() {
    // The frame's magic number stands behind the length of 8 bytes; the middle is mere data.
    for at in [8, 5000] {
        let sent = Sent::of(&numbers(2, 50_000), Codec::Zstd);
        let mut messages = sent.messages.clone();
        let mut body = messages[2].body.to_vec();
        body[at..at + 64].fill(0xa5);
        messages[2].body = body.into();
        let damaged = Sent::of_messages(messages, 2);
        let script = sent.script([damaged.data(), vec![sent.end(), sent.trailers()]].concat());
        for versions in VERSIONS {
            let (_, end) = outcome(script.clone(), versions).await;
            assert_eq!(end.unwrap_err().kind(), ErrorKind::Incomplete);
        }
    }
}

#[tokio::test]
async fn a_cut_link_is_incomplete() {
    let sent = Sent::of(&numbers(10, 10_000), Codec::None);
    for versions in VERSIONS {
        let mut script = sent.script([&sent.data()[..40], &[Step::Gate, Step::Cut]].concat());
        // The gateway noticed that its reader vanished and calls that cancelled.
        let mut report = sent.report("cancelled");
        report.error = Some(detail("Cancelled", "the client went away"));
        script.deliveries = VecDeque::from([report]);
        let (batches, end) = outcome(script, versions).await;
        let error = end.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Incomplete, "{error:?}");
        assert!(error.retryable());
        assert!(batches.len() < 10);
    }
}

#[tokio::test]
async fn a_broken_result_is_explained_by_the_gateway() {
    let sent = Sent::of(&numbers(4, 10_000), Codec::None);
    let steps = [&sent.data()[..20], &[Step::Gate, Step::Break]].concat();
    let mut failed = sent.report("failed");
    failed.error = Some(detail("Engine", "the worker died"));
    let mut script = sent.script(steps.clone());
    // At first it has not noticed yet.
    script.deliveries = VecDeque::from([sent.report("streaming"), failed]);
    for versions in VERSIONS {
        let error = outcome(script.clone(), versions).await.1.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Engine, "{error:?}");
        assert_eq!(
            (error.message(), error.sqlstate()),
            ("the worker died", "58000")
        );
        assert_eq!(error.operation_id(), Some(OPERATION));
    }
    // The same when it breaks before its head has come.
    let mut at_once = script.clone();
    at_once.steps = vec![Step::Break];
    for versions in VERSIONS {
        let error = outcome(at_once.clone(), versions).await.1.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Engine, "{error:?}");
    }
    // A gateway that knows nothing does not make it better.
    let mut script = sent.script(steps);
    script.deliveries.clear();
    for versions in VERSIONS {
        let error = outcome(script.clone(), versions).await.1.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Incomplete, "{error:?}");
    }
}

#[tokio::test]
async fn without_trailers_the_verdict_is_the_proof() {
    let sent = Sent::of(&numbers(3, 1000), Codec::Zstd);
    let mut script = sent.script([sent.data(), vec![sent.end()]].concat());
    let mut complete = sent.report("complete");
    complete.truncated = true;
    script.deliveries = VecDeque::from([sent.report("streaming"), complete]);
    for versions in VERSIONS {
        let (batches, end) = outcome(script.clone(), versions).await;
        let summary = end.unwrap();
        assert_eq!(batches.len(), 3);
        assert!(summary.truncated);
    }
    script.deliveries = VecDeque::from([sent.report("failed")]);
    ends_in(script.clone(), ErrorKind::Incomplete, 3000).await;
    script.deliveries.clear();
    let error = ends_in(script, ErrorKind::Incomplete, 3000).await;
    assert!(error.message().contains("no proof"), "{error}");
}

#[tokio::test]
async fn refusals_keep_the_gateways_words() {
    let mut refusal = detail("Invalid", "no such column: x");
    refusal.sql_state = "42703".to_owned();
    refusal.operation_id = Some("77".to_owned());
    let script = Script {
        refusal: Some((400, refusal)),
        ..Script::default()
    };
    let error = ends_in(script, ErrorKind::Invalid, 0).await;
    assert_eq!(
        (error.message(), error.sqlstate()),
        ("no such column: x", "42703")
    );
    assert_eq!(
        (error.operation_id(), error.retryable()),
        (Some("77"), false)
    );
}

#[tokio::test]
async fn what_is_not_an_arrow_stream_is_refused() {
    let sent = Sent::of(&numbers(1, 10), Codec::None);
    let script = Script {
        content_type: Some("text/html"),
        ..sent.whole()
    };
    let error = ends_in(script, ErrorKind::Protocol, 0).await;
    assert!(error.message().contains("text/html"), "{error}");
    let end_only = sent.script(vec![sent.end(), sent.trailers()]);
    ends_in(end_only, ErrorKind::Protocol, 0).await;
}

#[tokio::test]
async fn options_travel_with_the_statement() {
    let gateway = Gateway::start(Sent::of(&numbers(1, 10), Codec::None).whole()).await;
    let client = gateway
        .client()
        .setting("query.timeout", "5m")
        .build()
        .unwrap();
    let session = client.session().await.unwrap();
    session.set("a.b", "it's").await.unwrap();
    let options = sluice_client::QueryOptions {
        max_rows: Some(7),
        timeout: Some(Duration::from_secs(9)),
        settings: vec![("arrow.compression.codec".to_owned(), "lz4".to_owned())],
    };
    let stream = session.query_with("SELECT 2", options).await.unwrap();
    read_to_end(stream).await.1.unwrap();
    let bodies: Vec<String> = gateway
        .asked()
        .into_iter()
        .map(|asked| asked.body)
        .collect();
    assert_eq!(bodies[0], r#"{"configs":{"query.timeout":"5m"}}"#);
    assert!(
        bodies[1].contains(r#""statement":"SET `a.b` = 'it''s'""#),
        "{}",
        bodies[1]
    );
    let expected = r#"{"statement":"SELECT 2","runAsync":false,"queryTimeout":9,"confOverlay":{"arrow.compression.codec":"lz4"},"maxRows":7}"#;
    assert!(bodies.iter().any(|body| body == expected), "{bodies:?}");
}

#[tokio::test]
async fn the_delivery_is_asked_for_after_the_end() {
    let sent = Sent::of(&numbers(2, 1000), Codec::Lz4);
    let mut script = sent.whole();
    script.deliveries = VecDeque::from([sent.report("streaming"), sent.report("complete")]);
    let gateway = Gateway::start(script).await;
    let session = gateway.client().build().unwrap().session().await.unwrap();
    let mut stream = session.query("SELECT 1").await.unwrap();
    while stream.try_next().await.unwrap().is_some() {}
    let report = stream.delivery().await.unwrap();
    assert_eq!((report.rows, report.verdict.as_str()), (2000, "complete"));
}
