//! One policy for all ways in: a setting by configuration of a session, header, overlay, one call,
//! SQL and connection string means the same, and is refused with the same words.

use http::Method;
use serde_json::{Value, json};
use sluice_integration_tests::door::rest::{ACCEPT_ALL, good};
use sluice_integration_tests::gateway::{TestGateway, USERS, password_of};
use sluice_integration_tests::http::{Http, Reply, Version};
use sluice_integration_tests::ipc::Parts;
use sluice_integration_tests::tls;

const WAYS: [&str; 7] = [
    "configs of a session",
    "header of a session",
    "overlay of a statement",
    "configs of a call",
    "header of a call",
    "SQL",
    "connection string",
];

/// What came of a statement with one setting given in one way: the codec of its first batch, or
/// SQLSTATE and text of the refusal.
async fn ask(gateway: &TestGateway, way: &str, key: &str, value: &str) -> Result<String, String> {
    let statement = "SELECT * FROM fault('rows 2000')";
    let accept = ("accept", ACCEPT_ALL);
    let mut http = Http::connect(gateway.address(), Version::Http2, gateway.user())
        .await
        .unwrap();
    let engine = json!({"gateway.engine": "fault"});
    let with_setting = json!({"gateway.engine": "fault", key: value});
    match way {
        "configs of a call" => {
            let body = json!({"statement": statement, "configs": with_setting});
            return seen(
                http.send(Method::POST, "/api/v1/query", &[accept], Some(body))
                    .await
                    .unwrap(),
            );
        }
        "header of a call" => {
            let body = json!({"statement": statement, "configs": engine});
            let headers = [accept, (key, value)];
            return seen(
                http.send(Method::POST, "/api/v1/query", &headers, Some(body))
                    .await
                    .unwrap(),
            );
        }
        "connection string" => return by_url(gateway, key, value).await,
        _ => {}
    }
    let configs = if way == "configs of a session" {
        &with_setting
    } else {
        &engine
    };
    let headers = if way == "header of a session" {
        vec![(key, value)]
    } else {
        Vec::new()
    };
    let body = Some(json!({"configs": configs}));
    let opened = http
        .send(Method::POST, "/api/v1/sessions", &headers, body)
        .await
        .unwrap();
    let session = told(opened)?["identifier"].as_str().unwrap().to_owned();
    let path = format!("/api/v1/sessions/{session}/operations/statement");
    if way == "SQL" {
        let set = json!({"statement": format!("SET {key} = '{value}'")});
        told(http.post(&path, set).await.unwrap())?;
    }
    let overlay = if way == "overlay of a statement" {
        json!({key: value})
    } else {
        json!({})
    };
    let body = json!({"statement": statement, "confOverlay": overlay});
    let operation = told(http.post(&path, body).await.unwrap())?["identifier"]
        .as_str()
        .unwrap()
        .to_owned();
    let path = format!("/api/v1/operations/{operation}/result");
    seen(
        http.send(Method::GET, &path, &[accept], None)
            .await
            .unwrap(),
    )
}

async fn by_url(gateway: &TestGateway, key: &str, value: &str) -> Result<String, String> {
    let port = gateway.address().port();
    let refused = |error: sluice_client::Error| format!("{} {}", error.sqlstate(), error.message());
    let client =
        sluice_client::Client::builder(format!("sluice://localhost:{port}/?{key}={value}"))
            .user(USERS[0])
            .password(password_of(USERS[0]))
            .ca_pem(tls::certificate().pem.as_bytes())
            .build()
            .map_err(refused)?;
    let session = client.session().await.map_err(refused)?;
    session.execute("SELECT 1").await.map_err(refused)?;
    session
        .execute(&format!("SHOW {key}"))
        .await
        .map_err(refused)?;
    // The SDK does not show how a message travelled; the report does.
    let rows = session
        .query("SELECT * FROM (VALUES (1), (2)) AS t(n)")
        .await
        .map_err(refused)?;
    let report = rows.delivery().await.map_err(refused)?;
    Ok(report.codec)
}

fn told(reply: Reply) -> Result<Value, String> {
    let reply =
        good(reply).map_err(|failure| format!("{} {}", failure.sqlstate, failure.message))?;
    Ok(reply.json())
}

fn seen(reply: Reply) -> Result<String, String> {
    let reply =
        good(reply).map_err(|failure| format!("{} {}", failure.sqlstate, failure.message))?;
    let parts = Parts::of(&reply.body)?;
    Ok(parts
        .batches()
        .next()
        .map(|part| part.codec.name().to_owned())
        .unwrap_or_default())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_setting_takes_effect_by_every_way_in() {
    let gateway = TestGateway::start().await;
    for key in [
        "arrow.compression.codec",
        "spark.sql.execution.arrow.compression.codec",
    ] {
        for codec in ["zstd", "lz4", "none"] {
            for way in WAYS {
                assert_eq!(
                    ask(&gateway, way, key, codec).await,
                    Ok(codec.to_owned()),
                    "{key} by {way}"
                );
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_value_is_refused_with_the_same_words_by_every_way_in() {
    let gateway = TestGateway::start().await;
    for (key, value) in [
        ("arrow.compression.codec", "gzip"),
        ("arrow.compression.zstd.level", "0"),
        ("query.timeout", "soon"),
    ] {
        let mut words: Vec<String> = Vec::new();
        for way in WAYS {
            let refused = ask(&gateway, way, key, value)
                .await
                .expect_err(&format!("{key} = {value} by {way}"));
            assert!(refused.starts_with("22023"), "{key} by {way}: {refused}");
            words.push(refused);
        }
        words.dedup();
        assert_eq!(words.len(), 1, "{words:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restricted_key_is_refused_by_every_way_in() {
    let restrict = "[policy]\nrestrict = [\"arrow.compression.codec\"]";
    let gateway = TestGateway::builder().toml(restrict).start().await;
    for key in [
        "arrow.compression.codec",
        "spark.sql.execution.arrow.compression.codec",
    ] {
        for way in WAYS {
            let refused = ask(&gateway, way, key, "zstd")
                .await
                .expect_err(&format!("{key} by {way}"));
            assert!(refused.starts_with("42501"), "{key} by {way}: {refused}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_ceiling_holds_by_every_way_in() {
    let ceiling = "[policy]\nmax = { \"arrow.compression.zstd.level\" = 9 }";
    let gateway = TestGateway::builder().toml(ceiling).start().await;
    for way in WAYS {
        let refused = ask(&gateway, way, "arrow.compression.zstd.level", "10")
            .await
            .expect_err(way);
        assert!(refused.starts_with("22023"), "by {way}: {refused}");
        ask(&gateway, way, "arrow.compression.zstd.level", "9")
            .await
            .expect(way);
    }
}
