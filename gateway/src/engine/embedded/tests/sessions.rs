//! Sessions: catalogs, settings, `SHOW`, metadata.

use sluice_core::engine::MetadataRequest;

use super::*;

#[tokio::test]
async fn schemas_can_be_chosen() {
    let fixture = Fixture::plain();
    let session = fixture.session().await;
    let place = session.current_schema().await.unwrap();
    assert_eq!(place, ("datafusion".to_owned(), "public".to_owned()));
    session.use_schema(None, Some("TPCH")).await.unwrap();
    assert_eq!(rows(&session, "SELECT count(*) FROM region").await, [["5"]]);
    let error = session.use_schema(None, Some("nowhere")).await.unwrap_err();
    assert_eq!(error.sqlstate(), "3F000");
    assert!(
        error.message().contains("information_schema, public, tpch"),
        "{error}"
    );
    assert_eq!(
        session
            .use_schema(Some("x"), None)
            .await
            .unwrap_err()
            .sqlstate(),
        "3F000"
    );
    assert_eq!(session.current_schema().await.unwrap().1, "tpch");
    run(&session, "CREATE SCHEMA mine").await.unwrap();
    session
        .use_schema(Some("datafusion"), Some("mine"))
        .await
        .unwrap();
    run(&session, "CREATE TEMPORARY TABLE t AS SELECT 1 AS a")
        .await
        .unwrap();
    run(&session, "CREATE OR REPLACE TABLE t AS SELECT 2 AS a")
        .await
        .unwrap();
    run(&session, "CREATE TABLE IF NOT EXISTS t AS SELECT 3 AS a")
        .await
        .unwrap();
    run(&session, "CREATE VIEW v AS SELECT a + 1 AS b FROM t")
        .await
        .unwrap();
    assert_eq!(rows(&session, "SELECT * FROM v").await, [["3"]]);
    assert_eq!(rows(&session, "UPDATE t SET a = 5").await, [["1"]]);
    assert_eq!(
        rows(&session, "SELECT b FROM datafusion.mine.v").await,
        [["6"]]
    );
    let other = fixture.session().await;
    assert_eq!(
        fails(&other, "SELECT * FROM mine.t").await.sqlstate(),
        "42P01"
    );
    let opened = fixture
        .engine
        .open(SessionOptions {
            schema: Some("tpch".to_owned()),
            ..SessionOptions::default()
        })
        .await
        .unwrap();
    assert_eq!(rows(&opened, "SELECT count(*) FROM nation").await, [["25"]]);
    let bad = SessionOptions {
        schema: Some("x".to_owned()),
        ..SessionOptions::default()
    };
    assert_eq!(
        fixture.engine.open(bad).await.err().unwrap().sqlstate(),
        "3F000"
    );
}

#[tokio::test]
async fn show_and_describe_answer() {
    let fixture = Fixture::plain();
    let session = fixture.session().await;
    assert_eq!(rows(&session, "SHOW CATALOGS").await, [["datafusion"]]);
    let schemas = rows(&session, "SHOW SCHEMAS LIKE 't%'").await;
    assert_eq!(schemas, [["tpch", "datafusion"]]);
    assert!(rows(&session, "SHOW DATABASES").await.len() >= 2);
    let tables = rows(&session, "SHOW TABLES IN tpch").await;
    assert_eq!(tables.len(), 8);
    assert_eq!(tables[0], ["datafusion", "tpch", "customer", "BASE TABLE"]);
    assert_eq!(
        rows(&session, "SHOW TABLES FROM datafusion.tpch LIKE 'part%'")
            .await
            .len(),
        2
    );
    assert_eq!(
        rows(&session, "SHOW TABLES FROM public LIKE 'it''s%'")
            .await
            .len(),
        0
    );
    assert!(rows(&session, "SHOW TABLES").await.len() > 9);
    assert_eq!(rows(&session, "SHOW COLUMNS FROM numbers").await.len(), 2);
    let described = rows(&session, "DESCRIBE numbers").await;
    assert_eq!(
        described,
        [["n", "Int64", "YES"], ["name", "Utf8", "YES"]].map(|r| r.map(str::to_owned))
    );
    let plan = rows(&session, "EXPLAIN SELECT * FROM numbers").await;
    assert_eq!(plan[0][0], "logical_plan");
    assert_eq!(
        rows(&session, "EXPLAIN ANALYZE SELECT * FROM numbers")
            .await
            .len(),
        1
    );
    assert!(!rows(&session, "SHOW FUNCTIONS LIKE 'abs'").await.is_empty());
    let zone = rows(&session, "SHOW TIME ZONE").await;
    assert_eq!(zone, [["datafusion.execution.time_zone", "UTC"]]);
}

#[tokio::test]
async fn settings_are_checked_when_set() {
    let fixture = Fixture::plain();
    let session = fixture.session().await;
    session
        .set("datafusion.execution.batch_size", "100")
        .await
        .unwrap();
    let batches = run(&session, "SELECT * FROM tpch.part").await.unwrap();
    assert!(batches.iter().all(|batch| batch.num_rows() <= 100));
    for (key, value, sqlstate, words) in [
        (
            "datafusion.execution.batch_size",
            "x",
            "22023",
            "whole number",
        ),
        (
            "datafusion.execution.batch_size",
            "0",
            "22023",
            "greater than 0",
        ),
        (
            "datafusion.execution.batch_size",
            "100000000000",
            "22023",
            "at most",
        ),
        (
            "datafusion.execution.coalesce_batches",
            "maybe",
            "22023",
            "true or false",
        ),
        (
            "datafusion.execution.bach_size",
            "1",
            "42704",
            "datafusion.execution.batch_size",
        ),
        (
            "datafusion.batch_size",
            "1",
            "42704",
            "datafusion.execution.batch_size",
        ),
        ("datafusion.runtime.memory_limit", "1G", "42501", "fixed"),
        (
            "datafusion.runtime.temp_directory",
            "/tmp",
            "42501",
            "fixed",
        ),
        ("datafusion.catalog.location", "/", "42501", "fixed"),
        ("datafusion.catalog.format", "csv", "42501", "fixed"),
        ("DataFusion.SQL_Parser.Dialect", "mysql", "42501", "fixed"),
        (
            "datafusion.catalog.default_schema",
            "nowhere",
            "3F000",
            "tpch",
        ),
    ] {
        let error = session.set(key, value).await.unwrap_err();
        assert_eq!(error.sqlstate(), sqlstate, "{key}: {error}");
        assert!(error.message().contains(words), "{key}: {error}");
    }
    let value = |settings: Vec<sluice_core::engine::EngineSetting>, key: &str| {
        settings
            .into_iter()
            .find(|setting| setting.key == key)
            .unwrap()
            .value
    };
    let settings = session.settings().await.unwrap();
    assert!(
        settings
            .iter()
            .all(|setting| !setting.key.starts_with("datafusion.runtime."))
    );
    assert_eq!(value(settings, "datafusion.execution.batch_size"), "100");
    session
        .reset("datafusion.execution.batch_size")
        .await
        .unwrap();
    session
        .set("datafusion.catalog.default_schema", "tpch")
        .await
        .unwrap();
    assert_eq!(session.current_schema().await.unwrap().1, "tpch");
    session
        .reset("datafusion.catalog.default_schema")
        .await
        .unwrap();
    assert_eq!(session.current_schema().await.unwrap().1, "public");
    let settings = session.settings().await.unwrap();
    assert_eq!(value(settings, "datafusion.execution.batch_size"), "8192");
    session
        .set("datafusion.execution.target_partitions", "1")
        .await
        .unwrap();
    session
        .reset("datafusion.execution.target_partitions")
        .await
        .unwrap();
    let settings = session.settings().await.unwrap();
    assert_eq!(
        value(settings, "datafusion.execution.target_partitions"),
        "2"
    );
    // Settings of one session are not those of another.
    session.set_time_zone("Asia/Tokyo").await.unwrap();
    let zone = "SELECT arrow_typeof(now())";
    assert!(rows(&session, zone).await[0][0].contains("Asia/Tokyo"));
    let other = fixture.session().await;
    assert!(rows(&other, zone).await[0][0].contains("UTC"));
}

#[tokio::test]
async fn metadata_has_the_columns_of_jdbc() {
    let fixture = Fixture::plain();
    let session = fixture.session().await;
    run(&session, "CREATE VIEW v AS SELECT 1 AS a")
        .await
        .unwrap();
    let ask = async |request| {
        collect(session.metadata(request).await.unwrap())
            .await
            .unwrap()
    };
    let some = |text: &str| Some(text.to_owned());
    let catalogs = ask(MetadataRequest::Catalogs).await;
    assert_eq!(catalogs[0].schema().field(0).name(), "TABLE_CAT");
    assert_eq!(values(&catalogs), [["datafusion"]]);
    let schemas = ask(MetadataRequest::Schemas {
        catalog: None,
        schema: some("p%"),
    })
    .await;
    assert_eq!(values(&schemas), [["public", "datafusion"]]);
    let tables = MetadataRequest::Tables {
        catalog: None,
        schema: some("public"),
        table: None,
        types: vec!["TABLE".to_owned(), "VIEW".to_owned()],
    };
    let tables = values(&ask(tables).await);
    assert_eq!(tables.len(), 2);
    assert_eq!(tables[0][..4], ["datafusion", "public", "numbers", "TABLE"]);
    assert_eq!(tables[1][..4], ["datafusion", "public", "v", "VIEW"]);
    let columns = MetadataRequest::Columns {
        catalog: some("datafusion"),
        schema: some("tpch"),
        table: some("lineitem"),
        column: some("l\\_%price"),
    };
    let batches = ask(columns).await;
    assert_eq!(batches[0].num_columns(), 24);
    let columns = values(&batches);
    assert_eq!(columns.len(), 1);
    assert_eq!(
        columns[0][3..9],
        ["l_extendedprice", "3", "DECIMAL", "15", "", "2"]
    );
    assert_eq!(columns[0][16..18], ["6", "NO"]);
    assert_eq!(
        values(&ask(MetadataRequest::Functions { name: some("abs") }).await).len(),
        1
    );
    assert_eq!(values(&ask(MetadataRequest::TableTypes).await).len(), 4);
    let types = ask(MetadataRequest::TypeInfo).await;
    assert_eq!(
        (types[0].num_columns(), types[0].num_rows() > 10),
        (18, true)
    );
    fixture.engine.probe().await.unwrap();
}
