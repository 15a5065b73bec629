//! The gateway as something that runs in the world: strangers, floods, signals, bad files. Against
//! the program itself where signals, exit codes or memory are what is looked at.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::io::Write as _;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use http::Method;
use http_body_util::BodyExt;
use serde_json::json;
use sluice_integration_tests::door::rest;
use sluice_integration_tests::gateway::{TestGateway, USERS, password_of};
use sluice_integration_tests::http::{As, Http, Reply, Version, secured};
use sluice_integration_tests::process::{Process, programs};
use sluice_integration_tests::tls;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const ARROW: (&str, &str) = ("accept", rest::ACCEPT_ALL);

fn user(name: &str) -> As {
    As::user(name, &password_of(name))
}

/// Reads until the other end closes. `None` when it has not within ten seconds.
async fn closed(io: &mut (impl AsyncReadExt + Unpin)) -> Option<Vec<u8>> {
    let mut seen = Vec::new();
    match tokio::time::timeout(Duration::from_secs(10), io.read_to_end(&mut seen)).await {
        // A reset is an end as well.
        Ok(_) => Some(seen),
        Err(_) => None,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_users_things_are_not_found() {
    let gateway = TestGateway::start().await;
    let mut ada = Http::connect(
        gateway.address(),
        Version::Http2,
        gateway.user_called("ada"),
    )
    .await
    .unwrap();
    let mut bob = Http::connect(
        gateway.address(),
        Version::Http2,
        gateway.user_called("bob"),
    )
    .await
    .unwrap();
    let configs = json!({"configs": {"gateway.engine": "fault"}});
    let session = ada.post("/api/v1/sessions", configs).await.unwrap().json()["identifier"]
        .as_str()
        .unwrap()
        .to_owned();
    let statement = json!({"statement": "SELECT * FROM fault('rows 3')"});
    let path = format!("/api/v1/sessions/{session}/operations/statement");
    let operation = ada.post(&path, statement.clone()).await.unwrap().json()["identifier"]
        .as_str()
        .unwrap()
        .to_owned();

    let unknown = "00000000-0000-4000-8000-000000000000";
    for (own, strange) in [(session.as_str(), unknown), (operation.as_str(), unknown)] {
        let of = |id: &str| match own == session {
            true => vec![format!("/api/v1/sessions/{id}")],
            false => [
                "event",
                "result",
                "delivery",
                "log",
                "resultsetmetadata",
                "rowset",
            ]
            .map(|part| format!("/api/v1/operations/{id}/{part}"))
            .to_vec(),
        };
        for (foreign, never) in of(own).iter().zip(of(strange)) {
            let (foreign, never) = (
                bob.get(foreign).await.unwrap(),
                bob.get(&never).await.unwrap(),
            );
            assert_eq!(
                (foreign.status, never.status),
                (http::StatusCode::NOT_FOUND, http::StatusCode::NOT_FOUND)
            );
            assert_eq!(
                foreign.json()["error"]["message"],
                never.json()["error"]["message"],
                "the same words"
            );
        }
    }
    assert_eq!(bob.post(&path, statement).await.unwrap().status, 404);
    let delete = bob
        .send(
            Method::DELETE,
            &format!("/api/v1/sessions/{session}"),
            &[],
            None,
        )
        .await
        .unwrap();
    assert_eq!(delete.status, 404);
    let cancel = json!({"action": "cancel"});
    let cancel = bob
        .send(
            Method::PUT,
            &format!("/api/v1/operations/{operation}"),
            &[],
            Some(cancel),
        )
        .await
        .unwrap();
    assert_eq!(cancel.status, 404);
    assert!(
        !bob.get("/api/v1/sessions")
            .await
            .unwrap()
            .body
            .windows(36)
            .any(|id| id == session.as_bytes())
    );

    let result = ada
        .send(
            Method::GET,
            &format!("/api/v1/operations/{operation}/result"),
            &[ARROW],
            None,
        )
        .await
        .unwrap();
    assert_eq!(
        result.trailer("sluice-rows"),
        "3",
        "the owner's result is untouched"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_proves_nothing_gets_nothing() {
    let gateway = TestGateway::start().await;
    let callers = [
        As::Nobody,
        As::user("ada", "wrong"),
        As::user("nobody", "wrong"),
        As::user("", ""),
        As::Token("x".to_owned()),
        As::Token(
            "00000000-0000-4000-8000-000000000000.00000000-0000-4000-8000-000000000000".to_owned(),
        ),
    ];
    let mut messages = Vec::new();
    for caller in callers {
        let shown = format!("{caller:?}");
        let mut http = Http::connect(gateway.address(), Version::Http1, caller)
            .await
            .unwrap();
        let reply = http
            .post("/api/v1/query", json!({"statement": "SELECT 1"}))
            .await
            .unwrap();
        assert_eq!(reply.status, 401, "{shown}");
        assert!(
            reply.header("www-authenticate").contains("Basic"),
            "{shown}"
        );
        messages.push(reply.json()["error"]["message"].clone());
    }
    assert_eq!(
        messages[1], messages[2],
        "a wrong password and an unknown user read alike"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn guessing_passwords_gets_slow_and_locks_nobody_else_out() {
    let gateway = TestGateway::start().await;
    let started = Instant::now();
    let (mut checked, mut refused) = (0, 0);
    for guess in 0..40 {
        let caller = As::user("ada", &format!("guess {guess}"));
        let mut http = Http::connect(gateway.address(), Version::Http1, caller)
            .await
            .unwrap();
        let reply = http.get("/api/v1/sessions").await.unwrap();
        match reply.status.as_u16() {
            401 => checked += 1,
            429 | 503 => {
                assert!(!reply.header("retry-after").is_empty(), "{reply:?}");
                refused += 1;
            }
            other => panic!("guess {guess}: {other}"),
        }
    }
    // The waits double from a second on, so that many were looked at only if it took long.
    let allowed = 8 + usize::try_from(started.elapsed().as_secs()).unwrap();
    assert!(
        checked <= allowed,
        "{checked} guesses were checked, {refused} refused"
    );
    assert!(refused > 0);
    let mut bob = Http::connect(
        gateway.address(),
        Version::Http1,
        gateway.user_called("bob"),
    )
    .await
    .unwrap();
    assert_eq!(bob.get("/api/v1/sessions").await.unwrap().status, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bytes_that_are_not_http_are_refused() {
    let gateway = TestGateway::start().await;
    for bytes in [
        &b"\x00\x01\x02\x03 nothing that anybody speaks\r\n\r\n"[..],
        b"\xff\xff\xff\xff\x00\x00\x00\x00",
    ] {
        let mut plain = TcpStream::connect(gateway.address()).await.unwrap();
        plain.write_all(bytes).await.unwrap();
        assert!(closed(&mut plain).await.is_some(), "without TLS");

        let mut inside = secured(gateway.address(), &[b"http/1.1"]).await.unwrap();
        inside.write_all(bytes).await.unwrap();
        let seen = closed(&mut inside).await.expect("inside of TLS");
        assert!(
            seen.is_empty() || seen.starts_with(b"HTTP/1.1 4"),
            "{}",
            String::from_utf8_lossy(&seen)
        );
    }
    // A plain request to the TLS port.
    let mut plain = TcpStream::connect(gateway.address()).await.unwrap();
    plain
        .write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
        .await
        .unwrap();
    assert!(closed(&mut plain).await.is_some());
    let mut http = Http::connect(gateway.address(), Version::Http1, gateway.user())
        .await
        .unwrap();
    assert_eq!(
        http.get("/api/v1/version").await.unwrap().status,
        200,
        "others are served"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_head_is_given_up() {
    let gateway = TestGateway::builder()
        .set("server.header_timeout=1s")
        .set("server.handshake_timeout=1s")
        .start()
        .await;
    // No handshake at all.
    let mut silent = TcpStream::connect(gateway.address()).await.unwrap();
    assert!(
        closed(&mut silent).await.is_some(),
        "a silent connection stays open"
    );
    // A head, a byte at a time.
    let mut slow = secured(gateway.address(), &[b"http/1.1"]).await.unwrap();
    let dripping = async {
        for byte in b"GET /api/v1/version HTTP/1.1\r\nx-slow: "
            .iter()
            .chain(std::iter::repeat_n(&b'a', 1000))
        {
            slow.write_all(&[*byte]).await?;
            slow.flush().await?;
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Ok::<_, std::io::Error>(())
    };
    let dripped = tokio::time::timeout(Duration::from_secs(15), dripping).await;
    assert!(
        dripped.is_ok_and(|written| written.is_err()),
        "a slow head is still read after 15 seconds"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_head_of_100_megabytes_costs_little() {
    let process = Process::start("", &[]);
    let before = process.memory().1;
    for version in [Version::Http1, Version::Http2] {
        let sent = match version {
            Version::Http1 => {
                let mut io = secured(process.address, &[b"http/1.1"]).await.unwrap();
                io.write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\nx-large: ")
                    .await
                    .unwrap();
                let piece = vec![b'a'; 1 << 20];
                let mut sent = 0;
                while sent < 100 && io.write_all(&piece).await.is_ok() && io.flush().await.is_ok() {
                    sent += 1;
                }
                sent
            }
            Version::Http2 => {
                let mut http = Http::connect(process.address, version, user("ada"))
                    .await
                    .unwrap();
                let large = "a".repeat(1 << 20);
                let reply = http
                    .send(Method::GET, "/api/v1/version", &[("x-large", &large)], None)
                    .await;
                usize::from(reply.is_ok_and(|reply| reply.status.is_success())) * 100
            }
        };
        assert!(sent < 100, "{version:?}: all of it was taken");
    }
    let grown = process.memory().1.saturating_sub(before);
    assert!(grown < 32 << 20, "{grown} bytes");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_that_is_too_large_is_refused() {
    let gateway = TestGateway::builder()
        .set("server.request_body_limit=64KiB")
        .start()
        .await;
    for version in [Version::Http1, Version::Http2] {
        let mut http = Http::connect(gateway.address(), version, gateway.user())
            .await
            .unwrap();
        let statement = format!("SELECT '{}'", "x".repeat(1 << 20));
        match http
            .post("/api/v1/query", json!({"statement": statement}))
            .await
        {
            Ok(reply) => assert_eq!(reply.status, 413, "{version:?}"),
            // The gateway need not wait for the rest of the body.
            Err(broken) => assert!(version == Version::Http1, "{version:?}: {broken}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_log_ins_at_once_stay_bounded() {
    // Hashes as `sluice hash-password` makes them: 19 MiB a check.
    let process = Process::start("", &[]);
    let hash = hash_password("a password");
    std::fs::write(
        process.folder().join("users.toml"),
        format!("eve = {hash:?}\n"),
    )
    .unwrap();
    process.signal("HUP");
    tokio::time::sleep(Duration::from_millis(500)).await;
    let before = process.memory().1;
    let asking: Vec<_> = (0..1000)
        .map(|_| {
            let address = process.address;
            tokio::spawn(async move {
                let mut http =
                    Http::connect(address, Version::Http1, As::user("eve", "a password"))
                        .await
                        .ok()?;
                Some(http.get("/api/v1/sessions").await.ok()?.status.as_u16())
            })
        })
        .collect();
    let mut answers = Vec::new();
    for one in asking {
        answers.push(one.await.unwrap());
    }
    let count = |wanted: u16| {
        answers
            .iter()
            .filter(|status| **status == Some(wanted))
            .count()
    };
    assert!(count(200) > 0, "nobody got in: {answers:?}");
    assert_eq!(
        count(200)
            + count(429)
            + count(503)
            + answers.iter().filter(|status| status.is_none()).count(),
        1000,
        "{answers:?}"
    );
    let grown = process.memory().1.saturating_sub(before);
    assert!(grown < 300 << 20, "{} MiB more", grown >> 20);
    let mut http = Http::connect(
        process.address,
        Version::Http1,
        As::user("eve", "a password"),
    )
    .await
    .unwrap();
    assert_eq!(
        http.get("/api/v1/sessions").await.unwrap().status,
        200,
        "and after that all is well"
    );
}

/// `sluice hash-password` as a script uses it.
fn hash_password(password: &str) -> String {
    let output = sluice(&["hash-password"], password);
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.lines().count(), 1, "only the hash: {text:?}");
    text.trim().to_owned()
}

fn sluice(arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new(programs().join("sluice"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("sluice, built beside this test");
    child
        .stdin
        .take()
        .unwrap()
        .write_all(input.as_bytes())
        .unwrap();
    child.wait_with_output().unwrap()
}

#[test]
fn mistakes_in_a_configuration_are_told_all_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("gateway.toml");
    let text = "[server]\nlisten = \"nowhere\"\nlissten = 3\n[auth]\nmethod = \"magic\"\n\
                [settings]\n\"arrow.compression.codec\" = \"gzip\"\n\"arrow.compression.zstd.level\" = 99\n";
    std::fs::write(&file, text).unwrap();
    let output = sluice(&["check-config", "--config", &file.to_string_lossy()], "");
    let said = String::from_utf8_lossy(&output.stderr).into_owned()
        + &String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(64), "{said}");
    for part in [
        "server.listen",
        "lissten",
        "auth.method",
        "arrow.compression.codec",
        "arrow.compression.zstd.level",
        "none, lz4, zstd",
    ] {
        assert!(said.contains(part), "{part} is not in:\n{said}");
    }
    let missing = sluice(&["serve", "--config", "/nowhere/gateway.toml"], "");
    let said = String::from_utf8_lossy(&missing.stderr);
    assert_eq!(missing.status.code(), Some(64), "{said}");
    assert!(said.contains("/nowhere/gateway.toml"), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_admin_port_tells_health_and_metrics() {
    let gateway = TestGateway::start().await;
    let mut http = Http::connect(gateway.address(), Version::Http2, gateway.user())
        .await
        .unwrap();
    let body = json!({"statement": "SELECT * FROM fault('rows 1000')", "configs": {"gateway.engine": "fault"}});
    http.send(Method::POST, "/api/v1/query", &[ARROW], Some(body))
        .await
        .unwrap();
    for (path, part) in [("/healthz", ""), ("/readyz", ""), ("/metrics", "sluice_")] {
        let mut io = TcpStream::connect(gateway.admin_address()).await.unwrap();
        io.write_all(
            format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
                .as_bytes(),
        )
        .await
        .unwrap();
        let answer = String::from_utf8(closed(&mut io).await.unwrap()).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{path}: {answer}");
        assert!(answer.contains(part), "{path}: {answer}");
        assert!(!answer.contains(USERS[0]) || path == "/metrics", "{path}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_signal_to_stop_lets_a_result_end() {
    let mut process = Process::start(
        "[engines.embedded.tpch]\nscale_factor = 0.2",
        &["server.drain_timeout=30s"],
    );
    let mut http = Http::connect(process.address, Version::Http1, user("ada"))
        .await
        .unwrap();
    let mut other = Http::connect(process.address, Version::Http2, user("bob"))
        .await
        .unwrap();
    assert_eq!(other.get("/api/v1/sessions").await.unwrap().status, 200);
    let body = json!({"statement": "SELECT * FROM tpch.lineitem"});
    let mut response = http
        .open(Method::POST, "/api/v1/query", &[ARROW], Some(body))
        .await
        .unwrap();
    let first = response
        .body_mut()
        .frame()
        .await
        .unwrap()
        .unwrap()
        .into_data()
        .unwrap();

    process.signal("TERM");
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(
        TcpStream::connect(process.address).await.is_err()
            || Http::connect(process.address, Version::Http1, user("bob"))
                .await
                .is_err(),
        "new connections are taken"
    );
    assert!(
        process.ended_within(Duration::from_millis(200)).is_none(),
        "it did not wait"
    );

    let mut reply = Reply::of(response).await;
    assert_eq!(reply.broken, None, "a result that ran was cut off");
    reply.body = [first, reply.body].concat().into();
    rest::answer(reply).expect("a complete result");
    drop((http, other));
    let status = process
        .ended_within(Duration::from_secs(30))
        .expect("it ends after its last result");
    assert!(status.success(), "{status}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn at_the_deadline_what_still_runs_is_broken() {
    let mut process = Process::start(
        "[engines.embedded.tpch]\nscale_factor = 0.5",
        &["server.drain_timeout=1s"],
    );
    let mut http = Http::connect(process.address, Version::Http2, user("ada"))
        .await
        .unwrap();
    let body =
        json!({"statement": "SELECT a.* FROM tpch.lineitem AS a CROSS JOIN tpch.lineitem AS b"});
    let mut response = http
        .open(Method::POST, "/api/v1/query", &[ARROW], Some(body))
        .await
        .unwrap();
    response.body_mut().frame().await.unwrap().unwrap();
    process.signal("TERM");
    let reply = Reply::of(response).await;
    assert!(reply.broken.is_some(), "an endless result ended cleanly");
    let status = process
        .ended_within(Duration::from_secs(30))
        .expect("it ends at its deadline");
    assert!(status.success(), "{status}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn certificates_are_read_again_on_a_signal() {
    let process = Process::start("", &[]);
    let presented = async |address| {
        let mut io = match secured(address, &[b"http/1.1"]).await {
            Ok(io) => io,
            Err(broken) => return Err(broken.to_string()),
        };
        let _ = io.shutdown().await;
        Ok(())
    };
    assert_eq!(presented(process.address).await, Ok(()));

    // A bad file keeps the old certificate, and is told.
    std::fs::write(process.folder().join("cert.pem"), "no certificate").unwrap();
    process.signal("HUP");
    process.await_line("TLS files are bad");
    assert_eq!(presented(process.address).await, Ok(()));

    let other = tls::another();
    std::fs::write(process.folder().join("cert.pem"), &other.pem).unwrap();
    std::fs::write(process.folder().join("key.pem"), &other.key_pem).unwrap();
    process.signal("HUP");
    let deadline = Instant::now() + Duration::from_secs(10);
    while presented(process.address).await.is_ok() {
        assert!(Instant::now() < deadline, "the old certificate stays");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_password_is_in_the_log() {
    let mut process = Process::start("[log]\nfilter = \"trace\"", &[]);
    for name in USERS {
        let mut http = Http::connect(process.address, Version::Http1, user(name))
            .await
            .unwrap();
        let body = json!({"statement": "SELECT 1", "configs": {"arrow.compression.codec": "zstd"}});
        assert_eq!(
            http.send(Method::POST, "/api/v1/query", &[ARROW], Some(body))
                .await
                .unwrap()
                .status,
            200
        );
    }
    let mut wrong = Http::connect(
        process.address,
        Version::Http1,
        As::user("ada", "a wrong secret"),
    )
    .await
    .unwrap();
    assert_eq!(wrong.get("/api/v1/sessions").await.unwrap().status, 401);
    process.signal("TERM");
    process.ended_within(Duration::from_secs(20));
    let log = process.log().join("\n");
    assert!(!log.is_empty());
    for secret in [
        password_of("ada"),
        password_of("bob"),
        "a wrong secret".to_owned(),
    ] {
        assert!(!log.contains(&secret), "{secret:?} is in the log");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sql_reaches_none_of_the_gateways_own_files() {
    let gateway = TestGateway::start().await;
    let users = gateway.folder().join("users.toml");
    let before = std::fs::read_to_string(&users).unwrap();
    let link = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(&users, link.path().join("link.csv")).unwrap();
    let key = gateway.folder().join("key.pem").display().to_string();
    let (users, link) = (
        users.display().to_string(),
        link.path().join("link.csv").display().to_string(),
    );
    let mut http = Http::connect(gateway.address(), Version::Http2, gateway.user())
        .await
        .unwrap();
    for sql in [
        format!("CREATE EXTERNAL TABLE stolen STORED AS CSV LOCATION '{users}'"),
        format!("CREATE EXTERNAL TABLE stolen STORED AS CSV LOCATION 'file://{key}'"),
        format!("CREATE EXTERNAL TABLE stolen STORED AS CSV LOCATION '{link}'"),
        format!("SELECT * FROM '{users}'"),
        format!("SELECT * FROM \"{link}\""),
        format!("COPY (SELECT 1) TO '{users}' STORED AS CSV"),
        format!(
            "COPY (SELECT 1) TO '{}' STORED AS CSV",
            gateway.folder().join("new.csv").display()
        ),
        "CREATE EXTERNAL TABLE stolen STORED AS CSV LOCATION 'https://localhost/x.csv'".to_owned(),
    ] {
        let reply = http
            .post("/api/v1/query", json!({"statement": sql}))
            .await
            .unwrap();
        let error = &reply.json()["error"];
        let is_refused = error["sqlState"] == "42501"
            || (sql.starts_with("SELECT") && error["sqlState"] == "42P01");
        assert!(is_refused, "{sql}: {} {error}", reply.status);
    }
    assert_eq!(
        std::fs::read_to_string(gateway.folder().join("users.toml")).unwrap(),
        before
    );
    assert!(!gateway.folder().join("new.csv").exists());
}
