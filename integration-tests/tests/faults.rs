//! What goes wrong on the way: engines that fail, links that break, clients that vanish. A result is
//! complete or it is an error that its reader sees, and whoever goes away stops what it asked for.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::process::Command;
use std::time::Duration;

use http::Method;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use sluice_core::error::ErrorKind;
use sluice_integration_tests::door::{self, rest};
use sluice_integration_tests::engine::fault::Counts;
use sluice_integration_tests::gateway::{TestGateway, USERS, password_of};
use sluice_integration_tests::http::{Http, Reply, Version};
use sluice_integration_tests::ipc::Parts;
use sluice_integration_tests::process::Process;
use sluice_integration_tests::proxy::{Fault, Proxy};

const VERSIONS: [Version; 2] = [Version::Http1, Version::Http2];

/// How long is waited for what must happen within a second: a tenfold guard.
const WITHIN_A_SECOND: Duration = Duration::from_secs(10);
const ARROW: (&str, &str) = ("accept", rest::ACCEPT_ALL);

/// The body of a query in one call, to the fault engine.
fn query(steps: &str, codec: &str) -> Value {
    let statement = format!("SELECT * FROM fault('{steps}')");
    json!({"statement": statement, "configs": {"gateway.engine": "fault", "arrow.compression.codec": codec}})
}

async fn post(http: &mut Http, body: Value) -> Reply {
    http.send(Method::POST, "/api/v1/query", &[ARROW], Some(body))
        .await
        .unwrap()
}

/// Waits until `reached`, which must be so within a second: a tenfold guard.
async fn soon(what: &str, counts: &Counts, reached: impl Fn(&Counts) -> bool) {
    let deadline = tokio::time::Instant::now() + WITHIN_A_SECOND;
    while !reached(counts) {
        assert!(
            tokio::time::Instant::now() < deadline,
            "not within a second: {what}; {counts:?}"
        );
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_error_in_mid_stream_has_no_end_marker_and_no_clean_end() {
    let gateway = TestGateway::start().await;
    for version in VERSIONS {
        for codec in ["none", "lz4", "zstd"] {
            for end in ["error Engine", "panic"] {
                let mut http = Http::connect(gateway.address(), version, gateway.user())
                    .await
                    .unwrap();
                let reply = post(
                    &mut http,
                    query(&format!("rows 5000 x 20; sleep 300ms; {end}"), codec),
                )
                .await;
                let at = format!("{end} over {version:?} with {codec}");
                assert_eq!(
                    reply.status, 200,
                    "{at}: the error comes after the first byte"
                );
                assert!(reply.broken.is_some(), "{at}: the body ended cleanly");
                assert!(!reply.body.is_empty(), "{at}");
                assert!(
                    !Parts::of(&reply.body).is_ok_and(|parts| parts.ended),
                    "{at}: an end marker"
                );

                let mut again = Http::connect(gateway.address(), version, gateway.user())
                    .await
                    .unwrap();
                let path = format!(
                    "/api/v1/operations/{}/delivery",
                    reply.header("sluice-operation-id")
                );
                let verdict = again.get(&path).await.unwrap().json();
                assert_eq!(verdict["verdict"], "failed", "{at}: {verdict}");
                assert!(verdict["error"]["kind"].is_string(), "{at}: {verdict}");
            }
        }
    }
}

/// The exit code of curl, which tells success by 0.
fn curl(gateway: &TestGateway, port: u16, more: &[&str], body: &Value) -> i32 {
    let status = Command::new("curl")
        .args([
            "--silent",
            "--output",
            "/dev/null",
            "--max-time",
            "60",
            "--cacert",
            &gateway.certificate_file(),
        ])
        .args(["--user", &format!("{}:{}", USERS[0], password_of(USERS[0]))])
        .args([
            "--header",
            "Content-Type: application/json",
            "--data",
            &body.to_string(),
        ])
        .args(more)
        .arg(format!("https://localhost:{port}/api/v1/query"))
        .status()
        .expect("curl is installed");
    status.code().unwrap_or(-1)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn curl_sees_every_broken_result() {
    let gateway = TestGateway::start().await;
    let proxy = Proxy::before(gateway.address(), Fault::None).await.unwrap();
    let (direct, proxied) = (gateway.address().port(), proxy.address().port());
    let run = |port, args: Vec<&'static str>, body: Value| {
        tokio::task::block_in_place(|| curl(&gateway, port, &args, &body))
    };
    let media = [
        rest::ACCEPT_ALL,
        "application/json",
        "application/x-ndjson",
        "text/csv",
    ];
    for version in ["--http1.1", "--http2"] {
        for accept in media {
            let accept: &'static str = match accept {
                "application/json" => "Accept: application/json",
                "application/x-ndjson" => "Accept: application/x-ndjson",
                "text/csv" => "Accept: text/csv",
                _ => "Accept: application/vnd.apache.arrow.stream",
            };
            let args = vec![version, "--header", accept];
            let at = format!("{version} {accept}");
            let whole = query("rows 5000 x 20", "none");
            let broken = query("rows 5000 x 20; sleep 100ms; error Engine", "none");
            assert_eq!(
                run(direct, args.clone(), whole.clone()),
                0,
                "{at}: a whole result"
            );
            assert_ne!(
                run(direct, args.clone(), broken),
                0,
                "{at}: an engine that fails"
            );
            for fault in [Fault::CutAfter(400_000), Fault::ResetAfter(400_000)] {
                proxy.set(fault);
                assert_ne!(
                    run(proxied, args.clone(), whole.clone()),
                    0,
                    "{at}: {fault:?}"
                );
            }
            proxy.set(Fault::None);
            assert_eq!(
                run(proxied, args, whole),
                0,
                "{at}: a proxy that does nothing"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cut_link_is_seen_over_both_versions() {
    let gateway = TestGateway::start().await;
    for version in VERSIONS {
        // After the handshake, in the middle of a body, and shortly before its end.
        let mut http = Http::connect(gateway.address(), version, gateway.user())
            .await
            .unwrap();
        let whole = post(&mut http, query("rows 5000 x 20", "none"))
            .await
            .body
            .len() as u64;
        for limit in [20_000, whole / 2, whole - 10] {
            for fault in [Fault::CutAfter(limit), Fault::ResetAfter(limit)] {
                let proxy = Proxy::before(gateway.address(), fault).await.unwrap();
                let mut http = Http::connect(proxy.address(), version, gateway.user())
                    .await
                    .unwrap();
                let reply = http
                    .send(
                        Method::POST,
                        "/api/v1/query",
                        &[ARROW],
                        Some(query("rows 5000 x 20", "none")),
                    )
                    .await;
                let seen = reply.as_ref().map_or(true, |reply| reply.broken.is_some());
                assert!(
                    seen,
                    "{fault:?} over {version:?}: {} bytes and a clean end",
                    reply.unwrap().body.len()
                );
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_gateway_is_seen_over_both_versions() {
    for version in VERSIONS {
        let process = Process::start("[engines.embedded.tpch]\nscale_factor = 0.2", &[]);
        let user = sluice_integration_tests::http::As::user(USERS[0], &password_of(USERS[0]));
        let mut http = Http::connect(process.address, version, user).await.unwrap();
        let body = json!({"statement": "SELECT * FROM tpch.lineitem"});
        let mut response = http
            .open(Method::POST, "/api/v1/query", &[ARROW], Some(body))
            .await
            .unwrap();
        response.body_mut().frame().await.unwrap().unwrap();
        drop(process);
        let reply = Reply::of(response).await;
        assert!(
            reply.broken.is_some(),
            "{version:?}: {} bytes and a clean end",
            reply.body.len()
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_vanishes_stops_its_query() {
    let gateway = TestGateway::start().await;
    let counts = gateway.fault().counts();
    let stages = [
        "plan hang",
        "hang",
        "rows 1000; hang",
        "endless 1000",
        "rows 1000 x 3; sleep 5s; rows 1",
    ];
    for version in VERSIONS {
        for stage in stages {
            let before = counts.dropped();
            let mut http = Http::connect(gateway.address(), version, gateway.user())
                .await
                .unwrap();
            let body = query(stage, "none");
            let asking = tokio::spawn(async move {
                let mut response = http
                    .open(Method::POST, "/api/v1/query", &[ARROW], Some(body))
                    .await?;
                // A reader who stops reading, and then is gone.
                let _ = response.body_mut().frame().await;
                std::future::pending::<Result<(), sluice_integration_tests::http::Broken>>().await
            });
            soon("the query begins", counts, |counts| counts.live() == 1).await;
            tokio::time::sleep(Duration::from_millis(100)).await;
            asking.abort();
            let at = format!("{stage:?} over {version:?} is dropped");
            soon(&at, counts, |counts| {
                counts.live() == 0 && counts.dropped() == before + 1
            })
            .await;
        }
    }
    soon("no statement is left", counts, |_| {
        gateway.core().running_operations() == 0
    })
    .await;
    soon("no session is left", counts, |_| {
        gateway.core().open_sessions() == 0
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cancel_close_and_the_end_of_a_session_stop_a_query() {
    let gateway = TestGateway::start().await;
    let counts = gateway.fault().counts();
    let mut http = Http::connect(gateway.address(), Version::Http2, gateway.user())
        .await
        .unwrap();
    for how in ["cancel", "close", "session"] {
        for stage in ["plan hang", "hang", "endless 10"] {
            let configs = json!({"configs": {"gateway.engine": "fault"}});
            let session =
                http.post("/api/v1/sessions", configs).await.unwrap().json()["identifier"]
                    .as_str()
                    .unwrap()
                    .to_owned();
            let statement =
                json!({"statement": format!("SELECT * FROM fault('{stage}')"), "runAsync": true});
            let opened = http
                .post(
                    &format!("/api/v1/sessions/{session}/operations/statement"),
                    statement,
                )
                .await
                .unwrap();
            assert!(opened.status.is_success(), "{}", opened.json());
            let operation = opened.json()["identifier"].as_str().unwrap().to_owned();
            soon("the query begins", counts, |counts| counts.live() == 1).await;
            let path = format!("/api/v1/operations/{operation}");
            let reply = match how {
                "session" => {
                    http.send(
                        Method::DELETE,
                        &format!("/api/v1/sessions/{session}"),
                        &[],
                        None,
                    )
                    .await
                }
                action => {
                    http.send(Method::PUT, &path, &[], Some(json!({"action": action})))
                        .await
                }
            };
            let status = reply.unwrap().status;
            assert!(status.is_success(), "{how} at {stage:?}: {status}");
            soon(&format!("{how} at {stage:?}"), counts, |counts| {
                counts.live() == 0
            })
            .await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_engine_is_stopped_when_there_are_rows_enough() {
    let gateway = TestGateway::start().await;
    let counts = gateway.fault().counts();
    for door in door::all() {
        for (statement, max_rows) in [
            ("SELECT * FROM fault('endless 100') LIMIT 10", None),
            ("SELECT * FROM fault('endless 100')", Some(10)),
        ] {
            let before = counts.batches();
            let mut line = door
                .connect(&gateway, &[("gateway.engine", "fault")])
                .await
                .unwrap();
            assert_eq!(
                line.run(statement, max_rows).await.unwrap().rows(),
                10,
                "{}",
                door.name()
            );
            soon("the engine is dropped", counts, |counts| counts.live() == 0).await;
            assert!(
                counts.batches() - before < 50,
                "{} batches by {}",
                counts.batches() - before,
                door.name()
            );
        }
        let mut line = door
            .connect(&gateway, &[("gateway.engine", "fault")])
            .await
            .unwrap();
        assert_eq!(
            line.run("SELECT * FROM fault('hang') LIMIT 0", None)
                .await
                .unwrap()
                .rows(),
            0,
            "{}",
            door.name()
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_that_stalls_holds_an_engine_back() {
    let gateway = TestGateway::start().await;
    let counts = gateway.fault().counts();
    for version in VERSIONS {
        let before = counts.batches();
        let mut http = Http::connect(gateway.address(), version, gateway.user())
            .await
            .unwrap();
        let response = http
            .open(
                Method::POST,
                "/api/v1/query",
                &[ARROW],
                Some(query("random; endless 10000", "none")),
            )
            .await
            .unwrap();
        let taken = settled(|| counts.batches() - before).await;
        // About 0.9 MB a batch: the permit of an operation is 32 MiB, sockets hold a few more.
        assert!(
            (1..100).contains(&taken),
            "{taken} batches were taken over {version:?}"
        );
        drop(response);
        drop(http);
        soon("the engine is dropped", counts, |counts| counts.live() == 0).await;
    }
}

/// The number when it has not changed for half a second.
async fn settled(number: impl Fn() -> usize) -> usize {
    let mut seen = (0, 0);
    while seen.1 < 10 {
        tokio::time::sleep(Duration::from_millis(50)).await;
        let now = number();
        seen = if now == seen.0 && now > 0 {
            (now, seen.1 + 1)
        } else {
            (now, 0)
        };
        assert!(now < 10_000, "{now} and growing");
    }
    seen.0
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_that_no_way_out_carries_is_named() {
    let gateway = TestGateway::builder()
        .set("limits.max_row_bytes=2MiB")
        .start()
        .await;
    for door in door::all() {
        let mut line = door
            .connect(&gateway, &[("gateway.engine", "fault")])
            .await
            .unwrap();
        let failure = line
            .run("SELECT * FROM fault('rows 10; huge 3MB; rows 10')", None)
            .await
            .unwrap_err();
        assert_eq!(
            failure.kind,
            Some(ErrorKind::RowTooLarge),
            "{}: {failure}",
            door.name()
        );
        let fits = line
            .run("SELECT * FROM fault('rows 10; huge 1MB; rows 10')", None)
            .await
            .unwrap();
        assert_eq!(fits.rows(), 21, "{}", door.name());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_row_travels_alone() {
    let gateway = TestGateway::start().await;
    for door in door::all() {
        let settings = [
            ("gateway.engine", "fault"),
            ("arrow.compression.codec", "zstd"),
        ];
        let mut line = door.connect(&gateway, &settings).await.unwrap();
        let answer = line
            .run("SELECT * FROM fault('rows 10; huge 40MB; rows 10')", None)
            .await
            .unwrap();
        assert_eq!(answer.rows(), 21, "{}", door.name());
        let alone = answer
            .batches
            .iter()
            .find(|batch| batch.get_array_memory_size() > 40 << 20)
            .unwrap();
        assert_eq!(alone.num_rows(), 1, "{}", door.name());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_engine_sends_is_checked_before_it_is_trusted() {
    let gateway = TestGateway::start().await;
    for door in door::all() {
        let mut line = door
            .connect(&gateway, &[("gateway.engine", "fault")])
            .await
            .unwrap();
        for steps in [
            "messages zstd; rows 10; garbage",
            "rows 10; panic",
            "plan panic",
        ] {
            let failure = line
                .run(&format!("SELECT * FROM fault('{steps}')"), None)
                .await
                .unwrap_err();
            let kinds = [Some(ErrorKind::Engine), Some(ErrorKind::Internal)];
            assert!(
                kinds.contains(&failure.kind),
                "{steps:?} by {}: {failure}",
                door.name()
            );
            assert!(
                !failure.message.contains("scripted panic"),
                "{}: a cause is for the log: {failure}",
                door.name()
            );
        }
        assert_eq!(
            line.run("SELECT * FROM fault('rows 3')", None)
                .await
                .unwrap()
                .rows(),
            3,
            "{}",
            door.name()
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_statement_that_takes_too_long_ends_with_its_deadline() {
    let gateway = TestGateway::start().await;
    for door in door::all() {
        for stage in ["plan hang", "hang", "rows 10; hang", "endless 10"] {
            let settings = [("gateway.engine", "fault"), ("query.timeout", "300ms")];
            let mut line = door.connect(&gateway, &settings).await.unwrap();
            let failure = line
                .run(&format!("SELECT * FROM fault('{stage}')"), None)
                .await
                .unwrap_err();
            assert_eq!(
                failure.kind,
                Some(ErrorKind::Timeout),
                "{stage:?} by {}: {failure}",
                door.name()
            );
        }
    }
    soon("nothing runs on", gateway.fault().counts(), |counts| {
        counts.live() == 0
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_idle_clock_stands_while_something_runs() {
    let gateway = TestGateway::builder()
        .set("limits.session_idle_timeout=1s")
        .start()
        .await;
    let mut http = Http::connect(gateway.address(), Version::Http1, gateway.user())
        .await
        .unwrap();
    let configs = json!({"configs": {"gateway.engine": "fault"}});
    let session = http.post("/api/v1/sessions", configs).await.unwrap().json()["identifier"]
        .as_str()
        .unwrap()
        .to_owned();
    let body = json!({"statement": "SELECT * FROM fault('sleep 4s; rows 1')"});
    let opened = http
        .post(
            &format!("/api/v1/sessions/{session}/operations/statement"),
            body,
        )
        .await
        .unwrap();
    let operation = opened.json()["identifier"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    let path = format!("/api/v1/operations/{operation}/result");
    let result = http.send(Method::GET, &path, &[ARROW], None).await.unwrap();
    assert!(
        result.broken.is_none() && result.trailer("sluice-rows") == "1",
        "{result:?}"
    );

    let deadline = tokio::time::Instant::now() + Duration::from_secs(20);
    while gateway.core().open_sessions() > 0 {
        assert!(
            tokio::time::Instant::now() < deadline,
            "an idle session stays"
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let gone = http
        .get(&format!("/api/v1/sessions/{session}"))
        .await
        .unwrap();
    assert_eq!(gone.status, 404);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_result_is_read_once() {
    let gateway = TestGateway::start().await;
    let mut http = Http::connect(gateway.address(), Version::Http2, gateway.user())
        .await
        .unwrap();
    let configs = json!({"configs": {"gateway.engine": "fault"}});
    let session = http.post("/api/v1/sessions", configs).await.unwrap().json()["identifier"]
        .as_str()
        .unwrap()
        .to_owned();
    let body = json!({"statement": "SELECT * FROM fault('endless 10')"});
    let opened = http
        .post(
            &format!("/api/v1/sessions/{session}/operations/statement"),
            body,
        )
        .await
        .unwrap();
    let path = format!(
        "/api/v1/operations/{}",
        opened.json()["identifier"].as_str().unwrap()
    );
    let result = format!("{path}/result");
    let reading = http
        .open(Method::GET, &result, &[ARROW], None)
        .await
        .unwrap();
    assert_eq!(reading.status(), 200);
    assert_eq!(http.get(&result).await.unwrap().status, 409);
    http.send(Method::PUT, &path, &[], Some(json!({"action": "cancel"})))
        .await
        .unwrap();
    assert!(
        Reply::of(reading).await.broken.is_some(),
        "a cancelled result ended cleanly"
    );
    let after = http.get(&result).await.unwrap();
    assert!(
        [409, 410].contains(&after.status.as_u16()),
        "{}",
        after.status
    );
}
