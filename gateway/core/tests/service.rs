//! The service from outside, with an engine made of a channel: sessions, operations, results, and
//! how they end. Time is paused, never slept.

#![allow(clippy::unwrap_used)]

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use async_trait::async_trait;
use futures::{FutureExt, StreamExt, stream};
use sluice_core::auth::Identity;
use sluice_core::client::Client;
use sluice_core::delivery::{Report, Verdict};
use sluice_core::engine::{
    Dialect, Engine, EngineSession, EngineSetting, Execution, MetadataRequest, Output, Query,
    SessionOptions,
};
use sluice_core::error::{Error, ErrorKind, Result};
use sluice_core::operation::{Operation, State};
use sluice_core::result::Form;
use sluice_core::service::{ExecuteOptions, Gateway, GatewayParts, Limits, Observer, OpenSession};
use sluice_core::session::Session;
use sluice_core::settings::{Defaults, Policy};
use sluice_ipc::{Codec, Pool};

/// Batches of 1,000 rows without end, counted while they live.
#[derive(Default)]
struct Endless {
    running: Arc<AtomicUsize>,
}

struct Running(Arc<AtomicUsize>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

fn batch() -> RecordBatch {
    let values: ArrayRef = Arc::new(Int64Array::from_iter_values(0..1000));
    RecordBatch::try_from_iter([("x", values)]).unwrap()
}

#[async_trait]
impl Engine for Endless {
    fn dialect(&self) -> Dialect {
        Dialect::DataFusion
    }
    fn setting_prefixes(&self) -> &'static [&'static str] {
        &["engine."]
    }
    async fn open(&self, _: SessionOptions) -> Result<Arc<dyn EngineSession>> {
        Ok(Arc::new(EndlessSession {
            running: Arc::clone(&self.running),
        }))
    }
    async fn probe(&self) -> Result<()> {
        Ok(())
    }
}

struct EndlessSession {
    running: Arc<AtomicUsize>,
}

#[async_trait]
impl EngineSession for EndlessSession {
    async fn execute(&self, query: Query) -> Result<Execution> {
        self.running.fetch_add(1, Ordering::SeqCst);
        let running = Running(Arc::clone(&self.running));
        if query.text.contains("plans_for_ever") {
            std::future::pending::<()>().await;
        }
        assert!(!query.text.contains("panics"), "as asked");
        let batches = stream::unfold(running, |running| async { Some((Ok(batch()), running)) });
        Ok(Execution {
            schema: Arc::new(Schema::new(vec![Field::new("x", DataType::Int64, false)])),
            output: Output::Batches(batches.boxed()),
        })
    }
    async fn set(&self, key: &str, _: &str) -> Result<()> {
        if key == "engine.good" {
            Ok(())
        } else {
            Err(Error::invalid("42704", "no such setting"))
        }
    }
    async fn reset(&self, _: &str) -> Result<()> {
        Ok(())
    }
    async fn settings(&self) -> Result<Vec<EngineSetting>> {
        Ok(Vec::new())
    }
    async fn set_time_zone(&self, _: &str) -> Result<()> {
        Ok(())
    }
    async fn use_schema(&self, _: Option<&str>, _: Option<&str>) -> Result<()> {
        Ok(())
    }
    async fn current_schema(&self) -> Result<(String, String)> {
        Ok(("c".into(), "s".into()))
    }
    async fn metadata(&self, _: MetadataRequest) -> Result<Execution> {
        Err(Error::invalid("0A000", "nothing to ask"))
    }
}

struct Unwatched;

impl Observer for Unwatched {
    fn session_opened(&self, _: &Session) {}
    fn session_closed(&self, _: &Session) {}
    fn operation_started(&self, _: &Operation) {}
    fn operation_ended(&self, _: &Operation, _: &Report) {}
}

struct Fixture {
    gateway: Gateway,
    running: Arc<AtomicUsize>,
}

fn fixture() -> Fixture {
    let engine = Endless::default();
    let running = Arc::clone(&engine.running);
    let mut engines: HashMap<String, Arc<dyn Engine>> = HashMap::new();
    engines.insert("endless".into(), Arc::new(engine));
    let gateway = Gateway::new(GatewayParts {
        engines,
        default_engine: "endless".into(),
        defaults: Defaults::default(),
        policy: Policy::default(),
        limits: Limits {
            sessions: 3,
            sessions_per_user: 2,
            operations: 3,
            operations_per_user: 2,
            session_idle: Duration::from_secs(60),
            result_idle: Duration::from_secs(30),
            operation_retention: Duration::from_secs(300),
            operation_memory: 32 << 20,
        },
        pool: Arc::new(Pool::new(1)),
        observer: Arc::new(Unwatched),
    });
    Fixture { gateway, running }
}

fn ann() -> Identity {
    Identity::new("ann")
}

fn form() -> Form {
    Form {
        codec: None,
        client: Client::default(),
        max_batch_bytes: u64::MAX,
        max_row_bytes: u64::MAX,
    }
}

fn waiting() -> ExecuteOptions {
    ExecuteOptions {
        wait: true,
        ..ExecuteOptions::default()
    }
}

async fn open(fixture: &Fixture) -> Arc<Session> {
    fixture
        .gateway
        .open_session(ann(), OpenSession::default())
        .await
        .unwrap()
}

async fn rows(operation: &Arc<Operation>) -> u64 {
    let messages: Vec<_> = operation.result(&form()).unwrap().collect().await;
    messages
        .into_iter()
        .map(|message| message.unwrap().rows)
        .sum()
}

#[tokio::test]
async fn a_limit_ends_an_endless_query_and_the_record_stays() {
    let fixture = fixture();
    let session = open(&fixture).await;
    let operation = fixture
        .gateway
        .execute(&session, "SELECT x FROM t LIMIT 2500", waiting())
        .await
        .unwrap();
    assert_eq!(rows(&operation).await, 2500);
    let report = fixture
        .gateway
        .operation(&ann(), &operation.id())
        .unwrap()
        .delivery();
    assert_eq!(
        (report.verdict, report.rows, report.truncated),
        (Verdict::Complete, 2500, false)
    );
    assert_eq!(fixture.running.load(Ordering::SeqCst), 0);
    assert_eq!(
        operation.result(&form()).err().unwrap().kind(),
        ErrorKind::Gone
    );
}

#[tokio::test]
async fn a_result_is_read_once() {
    let fixture = fixture();
    let session = open(&fixture).await;
    let operation = fixture
        .gateway
        .execute(&session, "SELECT 1", waiting())
        .await
        .unwrap();
    let reading = operation.result(&form()).unwrap();
    assert_eq!(
        operation.result(&form()).err().unwrap().kind(),
        ErrorKind::Conflict
    );
    drop(reading);
    assert_eq!(operation.status().state, State::Cancelled);
    assert_eq!(fixture.running.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_cancelled_query_stops_although_nobody_polls_its_result() {
    let fixture = fixture();
    let session = open(&fixture).await;
    let operation = fixture
        .gateway
        .execute(&session, "SELECT 1", waiting())
        .await
        .unwrap();
    let mut reading = operation.result(&form()).unwrap();
    reading.next().await.unwrap().unwrap();
    assert_eq!(fixture.running.load(Ordering::SeqCst), 1);
    operation.cancel();
    assert_eq!(fixture.running.load(Ordering::SeqCst), 0);
    let error = loop {
        match reading.next().await.unwrap() {
            Ok(_) => {}
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::Cancelled);
    assert!(reading.next().await.is_none());
}

#[tokio::test]
async fn a_caller_that_leaves_while_the_engine_plans_stops_it() {
    let fixture = fixture();
    let session = open(&fixture).await;
    let left = fixture
        .gateway
        .execute(&session, "SELECT plans_for_ever", waiting())
        .now_or_never();
    assert!(left.is_none());
    tokio::time::timeout(Duration::from_secs(10), async {
        while fixture.gateway.running_operations() > 0 {
            tokio::task::yield_now().await;
        }
    })
    .await
    .unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_time_out_ends_planning() {
    let fixture = fixture();
    let session = open(&fixture).await;
    fixture
        .gateway
        .execute(&session, "SET query.timeout = 5", waiting())
        .await
        .unwrap();
    let error = fixture
        .gateway
        .execute(&session, "SELECT plans_for_ever", waiting())
        .await
        .err()
        .unwrap();
    assert_eq!(error.kind(), ErrorKind::Timeout);
    assert!(error.operation().is_some());
}

#[tokio::test]
async fn a_panic_in_an_engine_is_an_error() {
    let fixture = fixture();
    let session = open(&fixture).await;
    let error = fixture
        .gateway
        .execute(&session, "SELECT panics", waiting())
        .await
        .err()
        .unwrap();
    assert_eq!(error.kind(), ErrorKind::Internal);
    assert_eq!(fixture.gateway.running_operations(), 0);
}

#[tokio::test]
async fn sessions_and_operations_are_not_found_by_others() {
    let fixture = fixture();
    let session = open(&fixture).await;
    let operation = fixture
        .gateway
        .execute(&session, "SELECT 1", waiting())
        .await
        .unwrap();
    let bob = Identity::new("bob");
    assert_eq!(
        fixture
            .gateway
            .session(&bob, &session.id())
            .err()
            .unwrap()
            .kind(),
        ErrorKind::NotFound
    );
    assert_eq!(
        fixture
            .gateway
            .operation(&bob, &operation.id())
            .err()
            .unwrap()
            .kind(),
        ErrorKind::NotFound
    );
    assert_eq!(
        fixture
            .gateway
            .close_session(&bob, &session.id())
            .err()
            .unwrap()
            .kind(),
        ErrorKind::NotFound
    );
    assert_eq!(
        fixture
            .gateway
            .session_of_token(&session.token())
            .unwrap()
            .id(),
        session.id()
    );
    let forged = format!("{}.{}", session.id(), operation.id());
    assert_eq!(
        fixture
            .gateway
            .session_of_token(&forged)
            .err()
            .unwrap()
            .kind(),
        ErrorKind::Unauthenticated
    );
}

#[tokio::test]
async fn limits_are_told_at_once_and_places_come_back() {
    let fixture = fixture();
    let session = open(&fixture).await;
    let first = fixture
        .gateway
        .execute(&session, "SELECT 1", waiting())
        .await
        .unwrap();
    let _second = fixture
        .gateway
        .execute(&session, "SELECT 1", waiting())
        .await
        .unwrap();
    let full = fixture
        .gateway
        .execute(&session, "SELECT 1", waiting())
        .await
        .err()
        .unwrap();
    assert_eq!(
        (full.kind(), full.retryable()),
        (ErrorKind::Overloaded, true)
    );
    first.close();
    fixture
        .gateway
        .execute(&session, "SELECT 1", waiting())
        .await
        .unwrap();
    let _other = open(&fixture).await;
    assert!(
        fixture
            .gateway
            .open_session(ann(), OpenSession::default())
            .await
            .is_err()
    );
    fixture
        .gateway
        .close_session(&ann(), &session.id())
        .unwrap();
    drop(session);
    open(&fixture).await;
}

#[tokio::test]
async fn own_statements_hold_no_place_while_they_wait_to_be_read() {
    let fixture = fixture();
    let session = open(&fixture).await;
    for _ in 0..10 {
        fixture
            .gateway
            .execute(&session, "SHOW ALL", waiting())
            .await
            .unwrap();
    }
    assert_eq!(fixture.gateway.running_operations(), 0);
}

#[tokio::test(start_paused = true)]
async fn the_idle_clock_stands_still_while_a_result_streams() {
    let fixture = fixture();
    let house = fixture.gateway.clone();
    tokio::spawn(async move { house.keep_house().await });
    let session = open(&fixture).await;
    let operation = fixture
        .gateway
        .execute(&session, "SELECT 1", waiting())
        .await
        .unwrap();
    let mut reading = operation.result(&form()).unwrap();
    for _ in 0..100 {
        tokio::time::sleep(Duration::from_secs(7)).await;
        reading.next().await.unwrap().unwrap();
    }
    drop(reading);
    assert_eq!(fixture.gateway.sessions(&ann()).len(), 1);
    tokio::time::sleep(Duration::from_secs(80)).await;
    assert_eq!(fixture.gateway.sessions(&ann()).len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_result_that_nobody_fetches_is_given_up() {
    let fixture = fixture();
    let house = fixture.gateway.clone();
    tokio::spawn(async move { house.keep_house().await });
    let session = open(&fixture).await;
    let operation = fixture
        .gateway
        .execute(&session, "SELECT 1", waiting())
        .await
        .unwrap();
    tokio::time::sleep(Duration::from_secs(50)).await;
    assert_eq!(fixture.running.load(Ordering::SeqCst), 0);
    assert_eq!(
        operation.result(&form()).err().unwrap().kind(),
        ErrorKind::Gone
    );
}

#[tokio::test]
async fn one_call_closes_its_session_with_its_result() {
    let fixture = fixture();
    let operation = fixture
        .gateway
        .query(
            ann(),
            OpenSession::default(),
            "SELECT 1 LIMIT 10",
            waiting(),
        )
        .await
        .unwrap();
    assert_eq!(fixture.gateway.open_sessions(), 1);
    assert_eq!(rows(&operation).await, 10);
    tokio::time::timeout(Duration::from_secs(10), async {
        while fixture.gateway.open_sessions() > 0 {
            tokio::task::yield_now().await;
        }
    })
    .await
    .unwrap();
    assert_eq!(
        fixture
            .gateway
            .operation(&ann(), &operation.id())
            .unwrap()
            .delivery()
            .rows,
        10
    );
    assert!(
        fixture
            .gateway
            .query(ann(), OpenSession::default(), "SELECT panics", waiting())
            .await
            .is_err()
    );
}

#[tokio::test]
async fn a_level_and_a_codec_change_within_a_session() {
    let fixture = fixture();
    let session = open(&fixture).await;
    let mut sizes = Vec::new();
    for set in [
        "SET arrow.compression.codec = none",
        "SET arrow.compression.codec = zstd",
        "SET arrow.compression.level = 19",
    ] {
        fixture
            .gateway
            .execute(&session, set, waiting())
            .await
            .unwrap();
        let operation = fixture
            .gateway
            .execute(&session, "SELECT x FROM t LIMIT 100000", waiting())
            .await
            .unwrap();
        assert_eq!(rows(&operation).await, 100_000);
        sizes.push(operation.delivery().bytes_encoded);
    }
    assert!(sizes[0] > sizes[1] && sizes[1] > sizes[2], "{sizes:?}");
    let wrong = fixture
        .gateway
        .execute(&session, "SET arrow.compression.level = 23", waiting())
        .await
        .err()
        .unwrap();
    assert_eq!(wrong.sqlstate(), "22023");
    fixture
        .gateway
        .execute(&session, "SET engine.good = 1", waiting())
        .await
        .unwrap();
    assert!(
        fixture
            .gateway
            .execute(&session, "SET engine.bad = 1", waiting())
            .await
            .is_err()
    );
    let explained = fixture
        .gateway
        .execute(&session, "EXPLAIN DELIVERY SELECT 1 LIMIT 5", waiting())
        .await
        .unwrap();
    assert!(rows(&explained).await > 10);
    assert_eq!(form().codec, None::<Codec>);
}

#[tokio::test]
async fn a_stopping_gateway_refuses_and_then_cancels() {
    let fixture = fixture();
    let session = open(&fixture).await;
    let operation = fixture
        .gateway
        .execute(&session, "SELECT 1", waiting())
        .await
        .unwrap();
    fixture.gateway.begin_drain();
    let refused = fixture
        .gateway
        .execute(&session, "SELECT 1", waiting())
        .await
        .err()
        .unwrap();
    assert_eq!(
        (refused.kind(), refused.sqlstate()),
        (ErrorKind::Overloaded, "57P01")
    );
    assert_eq!(operation.status().state, State::Finished);
    fixture.gateway.cancel_all();
    assert_eq!(fixture.running.load(Ordering::SeqCst), 0);
}
