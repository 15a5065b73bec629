//! Statements stop, spill, run out and fail as they should.

use std::time::{Duration, Instant};

use futures::StreamExt;

use super::*;

const ENDLESS_CROSS: &str = "SELECT count(*) FROM generate_series(1, 1000000) AS a(x), \
     generate_series(1, 100000000) AS b(y) WHERE x * y > 100";

/// Waits until the engine has no task and no memory left.
async fn settled(fixture: &Fixture, tasks: usize) {
    let start = Instant::now();
    let shared = &fixture.engine.shared;
    while shared.workers.tasks() > tasks || shared.memory.used() > 0 {
        assert!(
            start.elapsed() < Duration::from_secs(10),
            "{} tasks and {} bytes are left",
            shared.workers.tasks(),
            shared.memory.used()
        );
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Statements that give no row for minutes, each with another operator at work.
const ENDLESS: [&str; 4] = [
    ENDLESS_CROSS,
    "SELECT a.value FROM generate_series(1, 3000000) a, generate_series(1, 3000000) b \
     WHERE a.value + b.value < 0",
    "SELECT count(*) FROM generate_series(1, 300000) a JOIN generate_series(1, 10000000) b \
     ON a.value % 2 = b.value % 2",
    "SELECT count(*) FROM (SELECT unnest(range(0, 100)) FROM generate_series(1, 1000000000))",
];

#[tokio::test]
async fn a_dropped_stream_stops_its_query() {
    let fixture = Fixture::plain();
    let session = fixture.session().await;
    let idle = fixture.engine.shared.workers.tasks();
    for sql in ENDLESS {
        let Output::Batches(mut batches) = start(&session, sql).await.unwrap().output else {
            panic!("batches")
        };
        let early = tokio::time::timeout(Duration::from_millis(300), batches.next()).await;
        assert!(early.is_err(), "{sql}: {early:?}");
        assert!(fixture.engine.shared.workers.tasks() > idle);
        drop(batches);
        settled(&fixture, idle).await;
    }
    let sql = "SELECT * FROM tpch.lineitem ORDER BY l_comment";
    let Output::Batches(mut batches) = start(&session, sql).await.unwrap().output else {
        panic!("batches")
    };
    batches.next().await.unwrap().unwrap();
    drop(batches);
    settled(&fixture, idle).await;
}

#[tokio::test]
async fn a_dropped_call_stops_its_statement() {
    let fixture = Fixture::plain();
    let session = fixture.session().await;
    let idle = fixture.engine.shared.workers.tasks();
    let create = format!("CREATE TABLE t AS {ENDLESS_CROSS}");
    let call = tokio::time::timeout(Duration::from_millis(200), start(&session, &create));
    assert!(call.await.is_err(), "it is endless");
    settled(&fixture, idle).await;
    assert_eq!(fails(&session, "SELECT * FROM t").await.sqlstate(), "42P01");
}

#[tokio::test]
async fn rows_come_while_they_are_computed() {
    let fixture = Fixture::plain();
    let session = fixture.session().await;
    let sql = "SELECT value FROM generate_series(1, 1000000000000)";
    let Output::Batches(mut batches) = start(&session, sql).await.unwrap().output else {
        panic!("batches")
    };
    for _ in 0..3 {
        assert!(batches.next().await.unwrap().unwrap().num_rows() > 0);
    }
}

#[tokio::test]
async fn a_sort_spills_within_its_memory() {
    let fixture = Fixture::new(|config, _| config.query_memory_limit = 24 * MEBI);
    let session = fixture.session().await;
    let sql = "SELECT sum(n) FROM (SELECT row_number() OVER (ORDER BY l_comment) AS n \
               FROM tpch.lineitem UNION ALL SELECT 0)";
    let idle = fixture.engine.shared.workers.tasks();
    let expected = rows(&Fixture::plain().session().await, sql).await;
    assert_eq!(rows(&session, sql).await, expected);
    settled(&fixture, idle).await;
    assert_eq!(
        fixture
            .engine
            .shared
            .template
            .runtime_env()
            .disk_manager
            .used_disk_space(),
        0
    );
}

#[tokio::test]
async fn a_full_disk_is_told() {
    let fixture = Fixture::new(|config, _| {
        config.query_memory_limit = 24 * MEBI;
        config.spill_limit = 1024;
    });
    let session = fixture.session().await;
    let error = fails(
        &session,
        "SELECT l.* FROM tpch.lineitem l, generate_series(1, 10) ORDER BY l_comment",
    )
    .await;
    assert_eq!(
        (error.kind(), error.sqlstate()),
        (ErrorKind::Overloaded, "53100"),
        "{error}"
    );
    assert!(error.retryable());
    assert_eq!(rows(&session, "SELECT 1").await, [["1"]]);
}

#[tokio::test]
async fn too_little_memory_is_told() {
    let fixture = Fixture::new(|config, _| config.query_memory_limit = MEBI);
    let session = fixture.session().await;
    let sql = "SELECT array_agg(l_comment) FROM tpch.lineitem GROUP BY l_orderkey % 3";
    let error = fails(&session, sql).await;
    assert_eq!(
        (error.kind(), error.sqlstate()),
        (ErrorKind::Overloaded, "53200"),
        "{error}"
    );
    assert_eq!(rows(&session, "SELECT 1").await, [["1"]]);
}

#[tokio::test]
async fn much_from_little_is_bounded() {
    let fixture = Fixture::plain();
    let session = fixture.session().await;
    for expression in [
        "repeat('x', 2000000000)",
        "length(repeat(name, n * 1000000000))",
        "lpad(name, 2000000000)",
        "rpad(name, 2000000000, 'xy')",
        "replace(repeat('x', 100000), 'x', repeat('y', 100000))",
        "array_repeat(n, 1000000000)",
        "array_resize([n], 1000000000, 0)",
        "cardinality(range(n, 10000000000))",
        "generate_series(0, 10000000000 * n)",
        "range(TIMESTAMP '2000-01-01', TIMESTAMP '2020-01-01', INTERVAL '1' SECOND)",
        "range(DATE '2000-01-01', DATE '9000-01-01' + CAST(n AS INT), INTERVAL '1' MICROSECOND)",
    ] {
        let sql = format!("SELECT {expression} FROM numbers");
        assert_eq!(fails(&session, &sql).await.sqlstate(), "53200", "{sql}");
    }
    for (expression, value) in [
        ("repeat('x', 3)", "xxx"),
        ("lpad('x', 3, 'y')", "yyx"),
        ("replace('abc', 'b', 'xx')", "axxc"),
        ("array_repeat(1, 2)", "[1, 1]"),
        ("range(1, 4)", "[1, 2, 3]"),
        ("range(4, 1, -1)", "[4, 3, 2]"),
        ("generate_series(1, 3)", "[1, 2, 3]"),
        ("range(5, 1)", "[]"),
        ("list_repeat('x', 1)", "[x]"),
        (
            "cardinality(range(DATE '2024-01-01', DATE '2024-02-01', INTERVAL '1' DAY))",
            "31",
        ),
    ] {
        assert_eq!(
            rows(&session, &format!("SELECT {expression}")).await,
            [[value]],
            "{expression}"
        );
    }
    // A constant of 1 MiB beside a million rows.
    let sql = "SELECT repeat('x', 1048576) AS c, value FROM generate_series(1, 1000000)";
    let Output::Batches(mut batches) = start(&session, sql).await.unwrap().output else {
        panic!("batches")
    };
    assert!(batches.next().await.unwrap().unwrap().num_rows() <= 32);
}

#[tokio::test]
async fn session_tables_count() {
    let fixture = Fixture::new(|config, _| config.query_memory_limit = 4 * MEBI);
    let session = fixture.session().await;
    let memory = &fixture.engine.shared.memory;
    run(&session, "CREATE TABLE small AS SELECT * FROM tpch.nation")
        .await
        .unwrap();
    let small = memory.used();
    assert!(small > 0);
    let sql = "CREATE TABLE big AS SELECT * FROM tpch.lineitem";
    assert_eq!(fails(&session, sql).await.sqlstate(), "53200");
    run(
        &session,
        "CREATE TABLE numbers2 AS SELECT l_orderkey FROM tpch.lineitem",
    )
    .await
    .unwrap();
    let mut last = Ok(Vec::new());
    for _ in 0..20 {
        last = run(
            &session,
            "INSERT INTO numbers2 SELECT l_orderkey FROM tpch.lineitem",
        )
        .await;
    }
    assert_eq!(last.unwrap_err().sqlstate(), "53200");
    run(&session, "DELETE FROM numbers2").await.unwrap();
    run(&session, "DROP TABLE numbers2").await.unwrap();
    assert_eq!(memory.used(), small);
    drop(session);
    assert_eq!(memory.used(), 0);
}

#[tokio::test]
async fn mistakes_have_their_classes() {
    let fixture = Fixture::plain();
    let session = fixture.session().await;
    for (sql, sqlstate, words) in [
        ("SELEC 1", "42601", "Line: 1, Column: 1"),
        ("SELECT 'x", "42601", "Line: 1"),
        ("SELECT 1; SELECT 2", "42601", "several"),
        ("", "42601", "no statement"),
        ("-- nothing", "42601", "no statement"),
        ("SELECT nam FROM numbers", "42703", "name"),
        ("SELECT\n  nam FROM numbers", "42703", "Line: 2, Column: 3"),
        ("SELECT * FROM nowhere", "42P01", "nowhere"),
        ("SELECT * FROM nowhere.numbers", "42P01", "nowhere"),
        ("SELECT abss(1)", "42883", "abs"),
        ("SELECT abs('x', 2, 3)", "42883", "abs"),
        ("SELECT 1 + interval '1 day'", "42804", "Int64"),
        ("SELECT name, count(*) FROM numbers", "42803", "name"),
        ("SELECT 1 / 0", "22012", "zero"),
        ("SELECT n / 0 FROM numbers", "22012", "zero"),
        (
            "SELECT CAST(n * 100000 AS DECIMAL(5, 2)) FROM numbers",
            "22003",
            "too large",
        ),
        ("SELECT CAST(name AS INT) FROM numbers", "22018", "one"),
        (
            "SELECT CAST(n + 1000 AS TINYINT) FROM numbers",
            "22003",
            "1001",
        ),
        ("CREATE TABLE numbers (a INT)", "42P07", "numbers"),
        ("CREATE VIEW numbers AS SELECT 1", "42P07", "numbers"),
        ("DROP TABLE nowhere", "42P01", "nowhere"),
    ] {
        let error = fails(&session, sql).await;
        assert_eq!(
            (error.kind(), error.sqlstate()),
            (ErrorKind::Invalid, sqlstate),
            "{sql}: {error}"
        );
        assert!(error.message().contains(words), "{sql}: {error}");
        assert!(!error.message().contains("bug report"), "{sql}: {error}");
        assert_eq!(rows(&session, "SELECT 1").await, [["1"]]);
    }
}

#[tokio::test]
async fn deep_statements_do_not_end_the_process() {
    let fixture = Fixture::plain();
    let session = fixture.session().await;
    let deep = format!("SELECT {}1{}", "(".repeat(50_000), ")".repeat(50_000));
    assert_eq!(fails(&session, &deep).await.sqlstate(), "42601");
    for (start, link, end) in [
        ("SELECT 1", " + 1", ""),
        ("SELECT ", "- ", "1"),
        ("SELECT ", "NOT ", "true"),
        ("SELECT 1", "::INT", ""),
        ("SELECT 1 WHERE true", " AND true", ""),
        ("SELECT 1", " UNION ALL SELECT 1", ""),
    ] {
        let deep = |n| format!("{start}{}{end}", link.repeat(n));
        let error = fails(&session, &deep(50_000)).await;
        assert!(
            matches!(error.sqlstate(), "54001" | "42601"),
            "{link}: {error}"
        );
        // Whether this is too deep or not: it answers.
        let _ = run(&session, &deep(1_000)).await;
        assert_eq!(rows(&session, "SELECT 1").await, [["1"]]);
    }
}
