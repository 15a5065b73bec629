//! What can be read: files of all formats, folders, generated tables.

use std::fs::File;

use arrow_array::Int64Array;
use arrow_ipc::writer::{FileWriter, StreamWriter};
use arrow_schema::{DataType, Field, Schema};

use super::*;

/// Writes through an engine of its own, so that formats need no other writer.
async fn write(root: &Path, sql: &str) {
    let allow = vec![text(root)];
    let config = Config {
        allow,
        memory_limit: 64 * MEBI,
        query_memory_limit: 64 * MEBI,
        target_partitions: 1,
        ..Config::default()
    };
    let engine = Embedded::build(config).unwrap();
    let session = engine.open(SessionOptions::default()).await.unwrap();
    run(&session, sql)
        .await
        .unwrap_or_else(|error| panic!("{sql}: {error}"));
}

fn batch() -> RecordBatch {
    let schema = Arc::new(Schema::new(vec![Field::new("a", DataType::Int64, false)]));
    RecordBatch::try_new(schema, vec![Arc::new(Int64Array::from(vec![1, 2]))]).unwrap()
}

#[tokio::test]
async fn files_of_all_formats_are_tables() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let file = |name: &str| root.join(name);
    for name in ["p.parquet", "c.csv", "n.json"] {
        let format = name.rsplit('.').next().unwrap();
        let sql = format!(
            "COPY (VALUES (1), (2)) TO '{}' STORED AS {format}",
            file(name).display()
        );
        write(
            root,
            &sql.replace("(VALUES", "(SELECT column1 AS a FROM (VALUES")
                .replace(") TO", ")) TO"),
        )
        .await;
    }
    let sql = format!(
        "COPY (SELECT column1 AS a FROM (VALUES (1), (2))) TO '{}' STORED AS CSV \
         OPTIONS ('format.compression' 'gzip')",
        file("z.csv.gz").display()
    );
    write(root, &sql).await;
    fs::write(file("t.tsv"), "a\tb\n1\tx\n2\ty\n").unwrap();
    fs::write(file("array.json"), " [{\"a\": 1}, {\"a\": 2}]").unwrap();
    fs::write(file("lines.ndjson"), "{\"a\": 1}\n{\"a\": 2}\n").unwrap();
    let mut writer =
        FileWriter::try_new(File::create(file("f.arrow")).unwrap(), &batch().schema()).unwrap();
    writer.write(&batch()).unwrap();
    writer.finish().unwrap();
    let mut writer =
        StreamWriter::try_new(File::create(file("s.arrows")).unwrap(), &batch().schema()).unwrap();
    writer.write(&batch()).unwrap();
    writer.finish().unwrap();

    let names = [
        "p.parquet",
        "c.csv",
        "n.json",
        "z.csv.gz",
        "t.tsv",
        "array.json",
        "lines.ndjson",
        "f.arrow",
        "s.arrows",
    ];
    let fixture = Fixture::new(|config, _| {
        for name in names {
            config
                .tables
                .push((name.replace('.', "_"), text(&file(name))));
        }
    });
    let session = fixture.session().await;
    for name in names {
        let table = name.replace('.', "_");
        let found = rows(&session, &format!("SELECT a FROM {table} ORDER BY a")).await;
        assert_eq!(found, [["1"], ["2"]], "{name}");
    }
}

#[tokio::test]
async fn folders_have_partition_columns() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    for (year, value) in [(2023, 1), (2024, 2)] {
        let path = root.join(format!("sales/year={year}/region=north east/part.parquet"));
        write(
            root,
            &format!(
                "COPY (SELECT {value} AS v) TO '{}' STORED AS PARQUET",
                path.display()
            ),
        )
        .await;
    }
    fs::write(root.join("sales/_SUCCESS"), "").unwrap();
    fs::write(root.join("sales/README.md"), "about").unwrap();
    let fixture = Fixture::new(|config, _| {
        config
            .tables
            .push(("sales".to_owned(), text(&root.join("sales"))))
    });
    let session = fixture.session().await;
    let sql = "SELECT v, year, region FROM sales WHERE year = '2024'";
    assert_eq!(rows(&session, sql).await, [["2", "2024", "north east"]]);
    assert_eq!(
        rows(&session, "SELECT sum(v) FROM sales WHERE year < 2024").await,
        [["1"]]
    );
    // New files are there at once.
    let path = root.join("sales/year=2025/region=x/part.parquet");
    write(
        root,
        &format!(
            "COPY (SELECT 4 AS v) TO '{}' STORED AS PARQUET",
            path.display()
        ),
    )
    .await;
    assert_eq!(rows(&session, "SELECT sum(v) FROM sales").await, [["7"]]);
}

#[tokio::test]
async fn bad_tables_are_all_named() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    fs::write(root.join("bad.parquet"), "no parquet").unwrap();
    fs::create_dir(root.join("mixed")).unwrap();
    fs::write(root.join("mixed/a.csv"), "a\n1\n").unwrap();
    fs::write(root.join("mixed/b.json"), "{}\n").unwrap();
    fs::create_dir(root.join("empty")).unwrap();
    let table = |name: &str, place: &str| (name.to_owned(), text(&root.join(place)));
    let config = Config {
        tables: vec![
            table("gone", "gone.csv"),
            table("bad", "bad.parquet"),
            table("mixed", "mixed"),
            table("empty", "empty"),
            ("relative".to_owned(), "x.csv".to_owned()),
            ("remote".to_owned(), "s3://bucket/x.parquet".to_owned()),
        ],
        memory_limit: MEBI,
        query_memory_limit: MEBI,
        ..Config::default()
    };
    let Err(error) = Embedded::build(config) else {
        panic!("it was built")
    };
    for name in ["gone", "bad", "mixed", "empty", "relative"] {
        assert!(
            error.message().contains(&format!("table \"{name}\"")),
            "{error}"
        );
    }
    assert_eq!(
        error.message().contains("table \"remote\""),
        !cfg!(feature = "object-store")
    );
    let Err(error) = Embedded::build(Config {
        tpch_scale_factor: Some(0.0),
        ..Config::default()
    }) else {
        panic!("it was built")
    };
    assert!(error.message().contains("0.001"), "{error}");
}

#[tokio::test]
async fn tpch_has_its_rows() {
    let fixture = Fixture::plain();
    let session = fixture.session().await;
    for (table, count) in [
        ("customer", "1500"),
        ("lineitem", "60175"),
        ("nation", "25"),
        ("orders", "15000"),
        ("part", "2000"),
        ("partsupp", "8000"),
        ("region", "5"),
        ("supplier", "100"),
    ] {
        let sql = format!("SELECT count(*) FROM tpch.{table}");
        assert_eq!(rows(&session, &sql).await, [[count]], "{table}");
        // Counted by reading, and not from statistics.
        let batches = run(&session, &format!("SELECT * FROM tpch.{table}"))
            .await
            .unwrap();
        let read: usize = batches.iter().map(RecordBatch::num_rows).sum();
        assert_eq!(read.to_string(), count, "{table}");
    }
    let sql = "SELECT l_returnflag, l_linestatus, sum(l_quantity), count(*) FROM tpch.lineitem \
               WHERE l_shipdate <= date '1998-09-02' GROUP BY 1, 2 ORDER BY 1, 2";
    let expected = [
        ["A", "F", "380456.00", "14876"],
        ["N", "F", "8971.00", "348"],
        ["N", "O", "742802.00", "29181"],
        ["R", "F", "381449.00", "14902"],
    ];
    assert_eq!(rows(&session, sql).await, expected);
    let sql = "SELECT count(*) FROM tpch.orders JOIN tpch.lineitem ON o_orderkey = l_orderkey \
               JOIN tpch.customer ON c_custkey = o_custkey JOIN tpch.nation ON n_nationkey = c_nationkey";
    assert_eq!(rows(&session, sql).await, [["60175"]]);
}

#[tokio::test]
async fn tpch_knows_its_order_and_size() {
    let fixture = Fixture::plain();
    let session = fixture.session().await;
    let plan = rows(
        &session,
        "EXPLAIN SELECT o_orderkey FROM tpch.orders ORDER BY o_orderkey",
    )
    .await;
    assert!(!format!("{plan:?}").contains("SortExec"), "{plan:?}");
    let keys = rows(
        &session,
        "SELECT l_orderkey FROM tpch.lineitem ORDER BY l_orderkey",
    )
    .await;
    let keys: Vec<i64> = keys.iter().map(|row| row[0].parse().unwrap()).collect();
    assert!(keys.is_sorted());
}

#[tokio::test]
async fn all_types_pass() {
    let fixture = Fixture::plain();
    let session = fixture.session().await;
    let sql = "SELECT NULL AS a, true AS b, CAST(1 AS TINYINT) AS c, CAST(1 AS SMALLINT UNSIGNED) AS d, \
        CAST(1.5 AS REAL) AS e, CAST(1.25 AS DECIMAL(20, 2)) AS f, 'text' AS g, \
        arrow_cast('view', 'Utf8View') AS h, X'00ff' AS i, DATE '2024-02-29' AS j, \
        TIME '12:30:00' AS k, TIMESTAMP '2024-02-29T12:30:00' AS l, \
        arrow_cast('2024-02-29T12:30:00', 'Timestamp(Millisecond, Some(\"Europe/Berlin\"))') AS m, \
        INTERVAL '1' DAY AS n, [1, NULL, 3] AS o, struct(1, 'x') AS p, MAP {'k': 1} AS q, \
        arrow_cast('d', 'Dictionary(Int32, Utf8)') AS r, arrow_cast([1, 2], 'FixedSizeList(2, Int64)') AS s";
    let found = rows(&session, sql).await;
    assert_eq!(found[0].len(), 19);
    assert_eq!(found[0][5], "1.25");
    let empty = start(&session, "SELECT * FROM numbers WHERE false")
        .await
        .unwrap();
    assert_eq!(empty.schema.fields().len(), 2);
    assert!(
        collect(empty)
            .await
            .unwrap()
            .iter()
            .all(|batch| batch.num_rows() == 0)
    );
}
