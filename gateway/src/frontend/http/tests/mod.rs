//! The door as a whole.

#![allow(clippy::unwrap_used)]

mod house;

use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, ALLOW, AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, Method, StatusCode};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde_json::{Value, json};
use sluice_wire::http::{OPENAPI, RowSet, headers, verdict};

use self::house::{House, query, request};
use super::HttpSettings;

/// The whole body and its trailers, or that it broke.
async fn read(response: http::Response<Incoming>) -> Option<(Bytes, HeaderMap)> {
    let collected = response.into_body().collect().await.ok()?;
    let trailers = collected.trailers().cloned().unwrap_or_default();
    Some((collected.to_bytes(), trailers))
}

const ARROW_ZSTD: &str = "application/vnd.apache.arrow.stream; codecs=\"zstd\"";

fn rows_of(stream: &[u8]) -> usize {
    let reader = arrow_ipc::reader::StreamReader::try_new(stream, None).unwrap();
    reader.map(|batch| batch.unwrap().num_rows()).sum()
}

#[tokio::test]
async fn a_session_from_its_opening_to_the_delivery_report() {
    let house = House::new();
    let operation = house.execute("rows 2500").await;
    let (_, event) = house
        .get(&format!("/api/v1/operations/{operation}/event"))
        .await;
    assert_eq!(
        (event["state"].as_str(), event["sessionUser"].as_str()),
        (Some("FINISHED"), Some("a"))
    );
    let (_, columns) = house
        .get(&format!("/api/v1/operations/{operation}/resultsetmetadata"))
        .await;
    assert_eq!(columns["columns"][0]["dataType"], "BIGINT_TYPE");

    let path = format!("/api/v1/operations/{operation}/result");
    let mut asked = request(Method::GET, &path, None);
    asked
        .headers_mut()
        .insert(ACCEPT, ARROW_ZSTD.parse().unwrap());
    let response = house.send(asked).await;
    assert_eq!(response.headers()[headers::OPERATION_ID], *operation);
    assert!(response.headers().contains_key(headers::SESSION_ID));
    assert_eq!(
        response.headers()[CONTENT_TYPE],
        "application/vnd.apache.arrow.stream; codecs=zstd"
    );
    let (body, trailers) = read(response).await.unwrap();
    assert_eq!(rows_of(&body), 2500);
    assert_eq!(body[body.len() - 8..], sluice_ipc::END_OF_STREAM);
    assert_eq!(trailers[headers::ROWS], "2500");
    assert_eq!(trailers[headers::TRUNCATED], "false");

    let report = house.delivery(&operation).await;
    assert_eq!(
        (report.verdict.as_str(), report.rows),
        (verdict::COMPLETE, 2500)
    );
    assert_eq!(trailers[headers::DIGEST], *report.digest);
    assert_eq!(trailers[headers::BYTES], report.bytes_encoded.to_string());
    assert_eq!(report.bytes_sent, body.len() as u64);
    assert_eq!(house.get(&path).await.0, StatusCode::GONE);
}

#[tokio::test]
async fn the_codec_is_one_that_the_reader_has() {
    let house = House::new();
    for (accept, content_type) in [
        (
            ARROW_ZSTD,
            "application/vnd.apache.arrow.stream; codecs=zstd",
        ),
        ("*/*", "application/vnd.apache.arrow.stream"),
        (
            "application/vnd.apache.arrow.stream;codecs=\"\"",
            "application/vnd.apache.arrow.stream",
        ),
    ] {
        let response = house.send(query("rows 10", accept)).await;
        assert_eq!(response.headers()[CONTENT_TYPE], content_type, "{accept}");
    }
    let mut wish = query("rows 10", "*/*");
    wish.headers_mut()
        .insert("arrow.compression.codec", "lz4".parse().unwrap());
    let response = house.send(wish).await;
    assert_eq!(
        response.headers()[CONTENT_TYPE],
        "application/vnd.apache.arrow.stream; codecs=lz4"
    );
}

#[tokio::test]
async fn text_forms_are_complete() {
    let house = House::new();
    let (body, trailers) = read(house.send(query("rows 3000", "application/json")).await)
        .await
        .unwrap();
    let json: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(
        (&json["rowCount"], &json["truncated"]),
        (&json!(3000), &json!(false))
    );
    assert_eq!(json["rows"][2999], json!([2999, "x".repeat(200)]));
    assert_eq!(json["rows"][2997], json!([2997, null]));
    assert_eq!(trailers[headers::ROWS], "3000");

    let (body, _) = read(house.send_h2(query("rows 4", "application/x-ndjson")).await)
        .await
        .unwrap();
    assert_eq!(body.split(|byte| *byte == b'\n').count(), 5);
    let response = house.send(query("rows 0", "text/csv")).await;
    assert!(
        response.headers()[CONTENT_TYPE]
            .to_str()
            .unwrap()
            .starts_with("text/csv")
    );
    assert_eq!(read(response).await.unwrap().0, "n,t\r\n");

    let mut cut = request(
        Method::POST,
        "/api/v1/query?format=json",
        Some(json!({ "statement": "rows 50", "maxRows": 7 })),
    );
    cut.headers_mut()
        .insert(ACCEPT, "text/csv".parse().unwrap());
    let (_, json) = house.ask(cut).await;
    assert_eq!(
        (&json["rowCount"], &json["truncated"]),
        (&json!(7), &json!(true))
    );
}

#[tokio::test]
async fn types_that_not_every_reader_has_are_text_all_the_same() {
    let house = House::new();
    let (_, json) = house.ask(query("types", "application/json")).await;
    let rows = json!([
        ["x", "a view of some length", null, null],
        [null, null, [1, null], null]
    ]);
    assert_eq!(json["rows"], rows);
    assert_eq!(json["columns"][0], json!({ "name": "d", "type": "Utf8" }));
    let (body, _) = read(house.send(query("types", "text/csv")).await)
        .await
        .unwrap();
    assert_eq!(
        body,
        "d,v,l,z\r\nx,a view of some length,,\r\n,,\"[1,null]\",\r\n"
    );
    let operation = house.execute("types").await;
    let (_, set) = house
        .get(&format!("/api/v1/operations/{operation}/rowset"))
        .await;
    assert_eq!(
        (&set["rowCount"], &set["rows"][0]["fields"][0]["value"]),
        (&json!(2), &json!("x"))
    );
}

#[tokio::test]
async fn a_failure_has_a_status_before_the_first_byte_and_breaks_the_body_after_it() {
    let house = House::new();
    let (status, error) = house.ask(query("fail", "*/*")).await;
    assert_eq!(
        (status, &error["error"]["sqlState"]),
        (StatusCode::BAD_REQUEST, &json!("42601"))
    );
    let (status, error) = house.ask(query("fail first", "*/*")).await;
    assert_eq!(
        (status, &error["error"]["kind"]),
        (StatusCode::BAD_GATEWAY, &json!("Engine"))
    );
    assert!(error["error"]["operationId"].is_string());

    for accept in [
        "*/*",
        "application/json",
        "application/x-ndjson",
        "text/csv",
    ] {
        let response = house.send(query("fail after 5000", accept)).await;
        assert_eq!(response.status(), StatusCode::OK);
        let operation = response.headers()[headers::OPERATION_ID]
            .to_str()
            .unwrap()
            .to_owned();
        assert!(read(response).await.is_none(), "{accept}");
        assert_eq!(house.delivery(&operation).await.verdict, verdict::FAILED);
        let response = house.send_h2(query("fail after 5000", accept)).await;
        assert!(read(response).await.is_none(), "{accept} over HTTP/2");
    }
}

#[tokio::test]
async fn rows_in_pieces() {
    let house = House::new();
    let operation = house.execute("rows 2100").await;
    let path = |rest: &str| format!("/api/v1/operations/{operation}/rowset{rest}");
    let mut fetched = 0;
    let (_, first) = house
        .get(&path("?maxrows=1&fetchorientation=FETCH_FIRST"))
        .await;
    fetched += first["rowCount"].as_u64().unwrap();
    let again = house.get(&path("?fetchorientation=FETCH_FIRST")).await;
    assert_eq!(again.0, StatusCode::CONFLICT);
    loop {
        let (status, rows) = house.get(&path("?maxrows=700")).await;
        assert_eq!(status, StatusCode::OK, "{rows}");
        let rows: RowSet = serde_json::from_value(rows).unwrap();
        let Some(row) = rows.rows.first() else { break };
        assert_eq!(row.fields[0].value, fetched);
        fetched += rows.row_count;
    }
    assert_eq!(fetched, 2100);
    assert_eq!(house.delivery(&operation).await.verdict, verdict::COMPLETE);
    assert_eq!(
        house.get(&path("?maxrows=0")).await.0,
        StatusCode::BAD_REQUEST
    );
    assert_eq!(
        house.get(&path("?fetchorientation=FETCH_PRIOR")).await.0,
        StatusCode::BAD_REQUEST
    );
    let (_, log) = house
        .get(&format!("/api/v1/operations/{operation}/log"))
        .await;
    assert!(log["rowCount"].as_u64().unwrap() > 0);
}

#[tokio::test(start_paused = true)]
async fn rows_that_nobody_fetches_are_given_up() {
    let house = House::new();
    let operation = house.execute("rows 500000").await;
    house
        .get(&format!("/api/v1/operations/{operation}/rowset?maxrows=1"))
        .await;
    assert_eq!(house.gateway.running_operations(), 1);
    tokio::time::sleep(HttpSettings::default().fetch_idle * 2).await;
    assert_eq!(house.gateway.running_operations(), 0);
    assert_eq!(house.delivery(&operation).await.verdict, verdict::CANCELLED);
}

#[tokio::test]
async fn everybody_sees_only_what_is_theirs() {
    let house = House::new();
    let operation = house.execute("rows 10").await;
    let as_user = |authorization: String, path: &str| {
        let mut request = request(Method::GET, path, None);
        request
            .headers_mut()
            .insert(AUTHORIZATION, authorization.parse().unwrap());
        request
    };
    let event = format!("/api/v1/operations/{operation}/event");
    let (status, error) = house
        .ask(as_user("Basic YjpiYg==".to_owned(), &event))
        .await;
    assert_eq!(
        (status, &error["error"]["kind"]),
        (StatusCode::NOT_FOUND, &json!("NotFound"))
    );
    let refused = house.send(as_user("Basic YTpi".to_owned(), &event)).await;
    assert_eq!(refused.status(), StatusCode::UNAUTHORIZED);
    assert!(refused.headers().contains_key("www-authenticate"));

    let (_, session) = house
        .post("/api/v1/sessions", json!({ "name": "mine" }))
        .await;
    let bearer = format!("Bearer {}", session["token"].as_str().unwrap());
    let (status, sessions) = house.ask(as_user(bearer.clone(), "/api/v1/sessions")).await;
    assert_eq!(
        (status, sessions.as_array().unwrap().len()),
        (StatusCode::OK, 2)
    );
    let path = format!(
        "/api/v1/sessions/{}",
        session["identifier"].as_str().unwrap()
    );
    assert_eq!(
        house.ask(request(Method::DELETE, &path, None)).await.0,
        StatusCode::OK
    );
    assert_eq!(
        house.ask(as_user(bearer, &event)).await.0,
        StatusCode::UNAUTHORIZED
    );
    assert_eq!(house.get(&path).await.0, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn requests_that_are_wrong_have_their_status() {
    let house = House::new();
    let query = "/api/v1/query";
    let statement = json!({ "statement": "rows 1" });
    for (body, status) in [
        (
            json!({ "statement": "rows 1", "sql": "" }),
            StatusCode::BAD_REQUEST,
        ),
        (json!({}), StatusCode::BAD_REQUEST),
        (
            json!({ "statement": "rows 1", "configs": { "no.such": "1" } }),
            StatusCode::BAD_REQUEST,
        ),
        (
            json!({ "statement": "x".repeat(1000) }),
            StatusCode::PAYLOAD_TOO_LARGE,
        ),
    ] {
        assert_eq!(house.post(query, body.clone()).await.0, status, "{body}");
    }
    let mut plain = request(Method::POST, query, Some(statement.clone()));
    plain
        .headers_mut()
        .insert(CONTENT_TYPE, "text/plain".parse().unwrap());
    assert_eq!(house.ask(plain).await.0, StatusCode::UNSUPPORTED_MEDIA_TYPE);
    let mut html = request(Method::POST, query, Some(statement.clone()));
    html.headers_mut()
        .insert(ACCEPT, "text/html".parse().unwrap());
    assert_eq!(house.ask(html).await.0, StatusCode::NOT_ACCEPTABLE);
    for path in ["/api/v1/query?codecs=gzip", "/api/v1/query?codec=zstd"] {
        assert_eq!(
            house.post(path, statement.clone()).await.0,
            StatusCode::BAD_REQUEST,
            "{path}"
        );
    }
    assert_eq!(
        house.get("/api/v1/operations/nonsense/event").await.0,
        StatusCode::NOT_FOUND
    );
    assert_eq!(house.get("/nowhere").await.0, StatusCode::NOT_FOUND);

    let refused = house.send(request(Method::GET, query, None)).await;
    assert_eq!(refused.status(), StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(refused.headers()[ALLOW], "POST");
    let options = house.send(request(Method::OPTIONS, query, None)).await;
    assert_eq!(
        (options.status(), &options.headers()[ALLOW]),
        (StatusCode::NO_CONTENT, &"POST".parse().unwrap())
    );
    let result = format!(
        "/api/v1/operations/{}/result",
        house.execute("rows 1").await
    );
    let head = house.send(request(Method::HEAD, &result, None)).await;
    assert_eq!(head.status(), StatusCode::METHOD_NOT_ALLOWED);
    let response = house.send(request(Method::GET, &result, None)).await;
    assert_eq!(response.status(), StatusCode::OK, "HEAD took nothing away");

    for _ in 0..4 {
        house.open_session().await;
    }
    assert_eq!(
        house.post("/api/v1/sessions", json!({})).await.0,
        StatusCode::TOO_MANY_REQUESTS
    );
}

#[tokio::test]
async fn a_client_that_goes_away_stops_its_statement() {
    let house = House::new();
    let response = house.send(query("wait", "*/*")).await;
    assert_eq!(house.gateway.running_operations(), 1);
    drop(response);
    tokio::time::timeout(Duration::from_secs(10), async {
        while house.gateway.running_operations() > 0 || house.gateway.open_sessions() > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn every_documented_operation_is_routed() {
    let house = House::new();
    let document: Value = serde_json::from_str(OPENAPI).unwrap();
    assert_eq!(house.get("/api/openapi.json").await.1, document);
    for (path, methods) in document["paths"].as_object().unwrap() {
        for method in methods.as_object().unwrap().keys() {
            let method: Method = method.to_uppercase().parse().unwrap();
            let (status, error) = house.ask(request(method.clone(), path, None)).await;
            assert_ne!(status, StatusCode::METHOD_NOT_ALLOWED, "{method} {path}");
            assert_ne!(
                error["error"]["message"], "path not found",
                "{method} {path}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_silent_connection_is_closed() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let house = House::new();
    for start in ["", "PRI * HTTP/2.0\r\n", "GET / HTTP/1.1\r\nhost: door\r\n"] {
        let begun = tokio::time::Instant::now();
        let mut socket = house.connect().into_inner();
        socket.write_all(start.as_bytes()).await.unwrap();
        let mut rest = Vec::new();
        let _ = socket.read_to_end(&mut rest).await;
        assert!(
            begun.elapsed() < HttpSettings::default().header_timeout * 3,
            "{start:?}"
        );
    }
}

#[tokio::test]
async fn a_drain_lets_answers_end_and_a_cancellation_breaks_them() {
    let house = House::new();
    let response = house.send(query("rows 20000", "*/*")).await;
    house.drain.stop();
    assert_eq!(rows_of(&read(response).await.unwrap().0), 20_000);

    let house = House::new();
    let response = house.send(query("fail after 3000", "*/*")).await;
    house.gateway.cancel_all();
    house.drain.cancel();
    assert!(read(response).await.is_none());
}

#[tokio::test]
async fn a_refused_request_leaves_its_connection_of_use() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let house = House::new();
    let mut socket = house.connect().into_inner();
    for _ in 0..2 {
        // The body comes after the answer could have been written already.
        let head = "POST /nowhere HTTP/1.1\r\nhost: door\r\ncontent-length: 5\r\n\r\n";
        socket.write_all(head.as_bytes()).await.unwrap();
        tokio::time::sleep(Duration::from_millis(20)).await;
        socket.write_all(b"hello").await.unwrap();
        let mut answer = vec![0; 12];
        socket.read_exact(&mut answer).await.unwrap();
        assert_eq!(answer, b"HTTP/1.1 404");
        let mut rest = Vec::new();
        while !rest.ends_with(b"}}") {
            rest.push(socket.read_u8().await.unwrap());
        }
    }
}
