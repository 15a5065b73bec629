//! No statement reaches a file that is neither a configured table nor allowed.

use std::fs;
use std::os::unix::fs::symlink;

use super::*;

fn external(name: &str, path: &Path) -> String {
    format!(
        "CREATE EXTERNAL TABLE {name} STORED AS CSV LOCATION '{}'",
        path.display()
    )
}

fn copy(to: &Path) -> String {
    format!("COPY (SELECT 'x' AS a) TO '{}' STORED AS CSV", to.display())
}

fn own_files_are_whole(fixture: &Fixture) {
    for name in ["users.toml", "open/key.pem"] {
        assert_eq!(
            fs::read_to_string(fixture.path(name)).unwrap(),
            "secret\nvalue\n",
            "{name}"
        );
    }
}

#[tokio::test]
async fn allowed_places_can_be_read_and_written() {
    let fixture = Fixture::plain();
    let session = fixture.session().await;
    run(&session, &external("t", &fixture.path("open/data.csv")))
        .await
        .unwrap();
    assert_eq!(
        rows(&session, "SELECT b FROM t ORDER BY a").await,
        [["x"], ["y"]]
    );
    let written = rows(&session, &copy(&fixture.path("open/new/out.csv"))).await;
    assert_eq!(written, [["1"]]);
    assert_eq!(
        fs::read_to_string(fixture.path("open/new/out.csv")).unwrap(),
        "a\nx\n"
    );
    let path = text(&fixture.path("open/data.csv"));
    assert_eq!(
        rows(&session, &format!("SELECT sum(a) FROM '{path}'")).await,
        [["3"]]
    );
    assert_eq!(
        rows(&session, &format!("SELECT sum(a) FROM \"file://{path}\"")).await,
        [["3"]]
    );
}

#[tokio::test]
async fn inserts_go_to_allowed_folders() {
    let fixture = Fixture::plain();
    fs::create_dir(fixture.path("open/grows")).unwrap();
    let session = fixture.session().await;
    let folder = fixture.path("open/grows");
    let create = format!(
        "CREATE EXTERNAL TABLE g (a INT) STORED AS PARQUET LOCATION '{}/'",
        folder.display()
    );
    run(&session, &create).await.unwrap();
    assert_eq!(
        rows(&session, "INSERT INTO g VALUES (1), (2)").await,
        [["2"]]
    );
    assert_eq!(rows(&session, "SELECT sum(a) FROM g").await, [["3"]]);
}

#[tokio::test]
async fn own_files_are_out_of_reach() {
    let fixture = Fixture::plain();
    let session = fixture.session().await;
    for name in ["users.toml", "open/key.pem"] {
        let path = fixture.path(name);
        refused(&session, &external("t", &path)).await;
        refused(&session, &copy(&path)).await;
        refused(&session, &format!("SELECT * FROM '{}'", path.display())).await;
        refused(
            &session,
            &format!("SELECT * FROM \"file://{}\"", path.display()),
        )
        .await;
        refused(&session, &format!("EXPLAIN ANALYZE {}", copy(&path))).await;
    }
    own_files_are_whole(&fixture);
}

#[tokio::test]
async fn own_files_in_allowed_folders_are_not_listed() {
    let fixture = Fixture::plain();
    let session = fixture.session().await;
    fs::write(fixture.path("open/own.csv"), "a,b\n7,secret\n").unwrap();
    let fixture = Fixture::new(|config, root| {
        fs::write(root.join("open/own.csv"), "a,b\n7,secret\n").unwrap();
        config.own_files.push(root.join("open/own.csv"));
    });
    drop(session);
    let session = fixture.session().await;
    run(&session, &external("t", &fixture.path("open")))
        .await
        .unwrap();
    assert_eq!(rows(&session, "SELECT count(*) FROM t").await, [["2"]]);
    let glob = format!(
        "SELECT count(*) FROM '{}'",
        fixture.path("open/*.csv").display()
    );
    assert_eq!(rows(&session, &glob).await, [["2"]]);
}

#[tokio::test]
async fn links_lead_nowhere() {
    let fixture = Fixture::plain();
    let session = fixture.session().await;
    symlink(fixture.path("users.toml"), fixture.path("open/file.csv")).unwrap();
    symlink(fixture.path("closed"), fixture.path("open/folder")).unwrap();
    fs::hard_link(fixture.path("users.toml"), fixture.path("open/hard.csv")).unwrap();
    for name in [
        "open/file.csv",
        "open/folder/secret.csv",
        "open/folder",
        "open/hard.csv",
    ] {
        refused(&session, &external("t", &fixture.path(name))).await;
        refused(&session, &copy(&fixture.path(name))).await;
    }
    refused(&session, &copy(&fixture.path("open/folder/new.csv"))).await;
    assert!(!fixture.path("closed/new.csv").exists());
    run(&session, &external("all", &fixture.path("open")))
        .await
        .unwrap();
    assert_eq!(
        rows(&session, "SELECT count(*) FROM \"all\"").await,
        [["2"]]
    );
    own_files_are_whole(&fixture);
}

#[tokio::test]
async fn a_link_that_comes_later_does_not_help() {
    let fixture = Fixture::plain();
    let session = fixture.session().await;
    let path = fixture.path("open/later.csv");
    fs::write(&path, "a\n1\n").unwrap();
    run(&session, &external("t", &path)).await.unwrap();
    fs::remove_file(&path).unwrap();
    symlink(fixture.path("users.toml"), &path).unwrap();
    refused(&session, "SELECT * FROM t").await;
    own_files_are_whole(&fixture);
}

#[tokio::test]
async fn other_places_are_refused_whether_or_not_they_exist() {
    let fixture = Fixture::plain();
    let session = fixture.session().await;
    let mut messages = Vec::new();
    for name in [
        "closed/secret.csv",
        "closed/nothing.csv",
        "open/../closed/secret.csv",
    ] {
        let path = fixture.path(name);
        refused(&session, &external("t", &path)).await;
        refused(&session, &copy(&path)).await;
        let error = fails(&session, &format!("SELECT * FROM '{}'", path.display())).await;
        messages.push(error.message().replace(&text(&path), "PATH"));
    }
    messages.dedup();
    assert_eq!(messages.len(), 1, "{messages:?}");
    assert!(messages[0].contains("`allow`"), "{messages:?}");
    for path in [
        "/etc/passwd",
        "../x.csv",
        "file.csv",
        "/",
        "/proc/self/environ",
    ] {
        refused(&session, &format!("SELECT * FROM '{path}'")).await;
        refused(&session, &external("t", Path::new(path))).await;
    }
    refused(&session, "SELECT * FROM \"/etc/*.csv\"").await;
    assert!(!fixture.path("closed/nothing.csv").exists());
}

#[tokio::test]
async fn urls_are_refused() {
    let fixture = Fixture::plain();
    let session = fixture.session().await;
    for url in [
        "http://169.254.169.254/latest/meta-data/x.csv",
        "https://example.com/x.csv",
        "s3://bucket/x.csv",
        "gs://bucket/x.csv",
        "az://container/x.csv",
        "table://0/x.csv",
        "ftp://host/x.csv",
    ] {
        refused(&session, &format!("SELECT * FROM '{url}'")).await;
        refused(&session, &external("t", Path::new(url))).await;
        refused(&session, &copy(Path::new(url))).await;
    }
}

#[tokio::test]
async fn unbounded_tables_open_no_files() {
    let fixture = Fixture::plain();
    let session = fixture.session().await;
    for path in ["open/data.csv", "users.toml"] {
        let place = fixture.path(path).display().to_string();
        for sql in [
            format!("CREATE UNBOUNDED EXTERNAL TABLE u (a TEXT) STORED AS CSV LOCATION '{place}'"),
            format!(
                "CREATE EXTERNAL TABLE u (a TEXT) STORED AS CSV LOCATION '{place}' \
                 OPTIONS ('unbounded' 'true')"
            ),
        ] {
            let error = fails(&session, &sql).await;
            assert!(matches!(error.sqlstate(), "0A000" | "42501"), "{error}");
        }
    }
}

#[tokio::test]
async fn configured_tables_are_read_only_and_shared() {
    let fixture = Fixture::plain();
    let (one, other) = (fixture.session().await, fixture.session().await);
    for sql in [
        "INSERT INTO numbers VALUES (3, 'three')",
        "DELETE FROM numbers",
        "UPDATE numbers SET n = 0",
        "MERGE INTO numbers AS t USING (SELECT 1 AS k) AS s ON t.n = s.k WHEN MATCHED THEN DELETE",
    ] {
        refused(&one, sql).await;
    }
    run(&one, "DROP TABLE numbers").await.unwrap();
    assert_eq!(
        fails(&one, "SELECT * FROM numbers").await.sqlstate(),
        "42P01"
    );
    assert_eq!(rows(&other, "SELECT count(*) FROM numbers").await, [["2"]]);
    run(&one, "DROP SCHEMA tpch CASCADE").await.unwrap();
    assert_eq!(
        rows(&other, "SELECT count(*) FROM tpch.region").await,
        [["5"]]
    );
    let fresh = fixture.session().await;
    assert_eq!(
        rows(&fresh, "SELECT name FROM numbers ORDER BY n").await,
        [["one"], ["two"]]
    );
}

#[tokio::test]
async fn a_configured_table_may_lie_outside_of_allow_but_not_lead_out() {
    let fixture = Fixture::new(|config, root| {
        let folder = root.join("tables/parts");
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("a.csv"), "x\n1\n").unwrap();
        symlink(root.join("closed/secret.csv"), folder.join("b.csv")).unwrap();
        config.tables.push(("parts".to_owned(), text(&folder)));
    });
    let session = fixture.session().await;
    assert_eq!(rows(&session, "SELECT * FROM parts").await, [["1"]]);
}

#[tokio::test]
async fn spilled_rows_of_others_are_out_of_reach() {
    let fixture = Fixture::new(|config, root| {
        config.spill_dir = Some(root.join("open/spill"));
    });
    let session = fixture.session().await;
    let folder = fs::read_dir(fixture.path("open/spill"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    fs::write(folder.join("x.csv"), "a\n1\n").unwrap();
    refused(
        &session,
        &format!("SELECT * FROM '{}'", folder.join("x.csv").display()),
    )
    .await;
}

#[tokio::test]
async fn other_doors_are_closed() {
    let fixture = Fixture::plain();
    let session = fixture.session().await;
    for sql in [
        "SET datafusion.execution.batch_size = 1",
        "SET datafusion.runtime.temp_directory = '/tmp'",
        "RESET datafusion.execution.batch_size",
        "PREPARE p AS SELECT 1",
        "EXECUTE p",
        "DEALLOCATE p",
        "BEGIN",
        "COMMIT",
        "ROLLBACK",
        "CREATE FUNCTION f() RETURNS INT RETURN 1",
        "DROP FUNCTION abs",
        "CREATE INDEX i ON numbers (n)",
        "EXPLAIN DELETE FROM numbers",
    ] {
        let error = fails(&session, sql).await;
        assert!(
            matches!(error.sqlstate(), "0A000" | "42601"),
            "{sql}: {error:?}"
        );
    }
    let state = &fixture.engine.shared.template;
    let mut functions: Vec<_> = state.table_functions().keys().cloned().collect();
    functions.sort();
    assert_eq!(
        functions,
        ["generate_series", "range"],
        "does a new one open files?"
    );
    let mut factories: Vec<_> = state.table_factories().keys().cloned().collect();
    factories.sort();
    assert_eq!(factories, ["ARROW", "CSV", "JSON", "NDJSON", "PARQUET"]);
}
