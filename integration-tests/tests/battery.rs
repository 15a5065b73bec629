//! Every door × every engine × codec over the same cases, and what must hold for each of them: the
//! engine's own rows, types, limits, kinds of errors, shapes, settings. A door is entered in
//! `door::all`, an engine in [`ENGINES`], by one line each.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "battery/settings.rs"]
mod settings;

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use futures::TryStreamExt;
use sluice_core::engine::{Engine, Output, Query, SessionOptions};
use sluice_core::error::ErrorKind;
use sluice_integration_tests::cases::{self, outline};
use sluice_integration_tests::door::{self, Answer, Door};
use sluice_integration_tests::engine::{FaultEngine, Shape};
use sluice_integration_tests::fixtures;
use sluice_integration_tests::gateway::{Builder, SCALE, TestGateway, embedded_at};
use sluice_ipc::Codec;

/// Engines that must give the same rows, whatever shape these have on their way into the gateway.
const ENGINES: [(&str, Shape); 6] = [
    ("embedded", Shape::AsIs),
    ("one-row", Shape::OneRow),
    ("empty-between", Shape::EmptyBetween),
    ("sliced", Shape::Sliced),
    ("messages-lz4", Shape::Messages(Codec::Lz4)),
    ("messages-zstd", Shape::Messages(Codec::Zstd)),
];

const CODECS: [Codec; 3] = [Codec::None, Codec::Lz4, Codec::Zstd];

fn with_engines() -> Builder {
    ENGINES
        .iter()
        .skip(1)
        .fold(TestGateway::builder(), |builder, (name, shape)| {
            builder.reshaped(name, *shape)
        })
}

/// What an engine itself answers, without a gateway.
async fn own_answer(engine: &Arc<dyn Engine>, sql: &str) -> (SchemaRef, Vec<RecordBatch>) {
    let session = engine
        .open(SessionOptions {
            time_zone: "UTC".to_owned(),
            ..SessionOptions::default()
        })
        .await
        .unwrap();
    let execution = session
        .execute(Query {
            text: sql.into(),
            row_hint: None,
        })
        .await
        .unwrap();
    let Output::Batches(batches) = execution.output else {
        panic!("the embedded engine gives batches")
    };
    (execution.schema, batches.try_collect().await.unwrap())
}

/// A script as a statement.
fn script(steps: &str) -> String {
    format!("SELECT * FROM fault('{steps}')")
}

/// Runs `statement` in a session of its own.
async fn ask(
    door: &dyn Door,
    gateway: &TestGateway,
    settings: &[(&str, &str)],
    statement: &str,
) -> Result<Answer, door::Failure> {
    door.connect(gateway, settings)
        .await?
        .run(statement, None)
        .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_door_gives_what_the_engine_itself_answers() {
    let gateway = with_engines().start().await;
    let engine = embedded_at(SCALE).await;
    let mut wrong = Vec::new();
    for case in cases::all() {
        let (schema, batches) = own_answer(&engine, &case.sql).await;
        let own = cases::text(&schema, &batches);
        let expected = case.expected(|| own.clone());
        assert_eq!(
            own, expected,
            "{}: the engine's own answer is another one than the stored",
            case.name
        );
        for door in door::all() {
            for (name, _) in ENGINES {
                for codec in CODECS {
                    let at = format!("{} by {} from {name} with {codec}", case.name, door.name());
                    let settings = [
                        ("gateway.engine", name),
                        ("arrow.compression.codec", codec.name()),
                    ];
                    match ask(&*door, &gateway, &settings, &case.sql).await {
                        Ok(answer) => {
                            if cases::text(&answer.schema, &answer.batches) != expected {
                                wrong.push(format!("{at}: another result"));
                            }
                            if let Some(other) = answer.codecs.iter().find(|used| **used != codec) {
                                wrong.push(format!("{at}: a message with {other}"));
                            }
                        }
                        Err(failure) => wrong.push(format!("{at}: {failure}")),
                    }
                }
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_type_travels_in_every_shape() {
    let gateway = TestGateway::start().await;
    let mut wrong = Vec::new();
    for fixture in fixtures::all() {
        gateway.fault().add_table(
            fixture.name,
            Arc::clone(&fixture.schema),
            fixture.batches.clone(),
        );
        let expected: Vec<_> = fixture.batches.iter().flat_map(cases::rows).collect();
        for door in door::all() {
            for codec in CODECS {
                for form in ["", "messages zstd; "] {
                    let at = format!("{form}{} by {} with {codec}", fixture.name, door.name());
                    let settings = [
                        ("gateway.engine", "fault"),
                        ("arrow.compression.codec", codec.name()),
                    ];
                    let statement = script(&format!("{form}table {}", fixture.name));
                    match ask(&*door, &gateway, &settings, &statement).await {
                        Ok(answer) => {
                            let found: Vec<_> =
                                answer.batches.iter().flat_map(cases::rows).collect();
                            if found != expected {
                                let first = found
                                    .iter()
                                    .zip(&expected)
                                    .position(|(ours, theirs)| ours != theirs);
                                wrong.push(format!(
                                    "{at}: {} rows of {}, first wrong: {first:?}",
                                    found.len(),
                                    expected.len()
                                ));
                            }
                            if outline(&answer.schema) != outline(&fixture.schema) {
                                wrong.push(format!("{at}: another schema: {:?}", answer.schema));
                            }
                        }
                        Err(failure) => wrong.push(format!("{at}: {failure}")),
                    }
                }
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_limit_cuts_exactly_wherever_it_falls() {
    let gateway = TestGateway::start().await;
    let whole = ask(
        &*door::all()[0],
        &gateway,
        &[("gateway.engine", "fault")],
        &script("rows 1000 x 3"),
    )
    .await
    .unwrap();
    let all: Vec<_> = whole.batches.iter().flat_map(cases::rows).collect();
    assert_eq!(all.len(), 3000);
    for door in door::all() {
        for codec in CODECS {
            for limit in [
                0_usize, 1, 999, 1000, 1001, 2500, 2999, 3000, 3001, 1_000_000,
            ] {
                let at = format!("LIMIT {limit} by {} with {codec}", door.name());
                let settings = [
                    ("gateway.engine", "fault"),
                    ("arrow.compression.codec", codec.name()),
                ];
                let statement = script("rows 1000 x 3");
                let mut line = door.connect(&gateway, &settings).await.unwrap();

                let answer = line
                    .run(&format!("{statement} LIMIT {limit}"), None)
                    .await
                    .unwrap_or_else(|e| panic!("{at}: {e}"));
                let found: Vec<_> = answer.batches.iter().flat_map(cases::rows).collect();
                assert_eq!(found, all[..limit.min(3000)], "{at}");
                assert!(
                    answer.codecs.iter().all(|used| *used == codec),
                    "{at}: {:?}",
                    answer.codecs
                );
                assert_ne!(
                    answer.truncated,
                    Some(true),
                    "{at}: a literal LIMIT is what was asked for"
                );

                if door.tells_truncation() && limit > 0 {
                    let answer = line
                        .run(&statement, Some(limit as u64))
                        .await
                        .unwrap_or_else(|e| panic!("{at}: {e}"));
                    assert_eq!(answer.rows(), limit.min(3000), "maxRows {at}");
                    assert_eq!(answer.truncated, Some(limit < 3000), "maxRows {at}");
                }
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bound_of_the_session_cuts_and_is_told() {
    let gateway = TestGateway::start().await;
    for door in door::all() {
        for (bound, rows, truncated) in [
            ("10", 10, true),
            ("0", 3000, false),
            ("3000", 3000, false),
            ("2999", 2999, true),
        ] {
            let settings = [("gateway.engine", "fault"), ("result.max.rows", bound)];
            let statements = [
                script("rows 1000 x 3"),
                format!("{} -- LIMIT 1", script("rows 1000 x 3")),
            ];
            for statement in statements {
                let answer = ask(&*door, &gateway, &settings, &statement).await.unwrap();
                assert_eq!(
                    (answer.rows(), answer.truncated),
                    (rows, Some(truncated)),
                    "{bound} by {}",
                    door.name()
                );
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slice_carries_the_bytes_of_its_rows_alone() {
    let gateway = TestGateway::start().await;
    for door in door::all() {
        for codec in CODECS {
            let settings = [
                ("gateway.engine", "fault"),
                ("arrow.compression.codec", codec.name()),
            ];
            let mut line = door.connect(&gateway, &settings).await.unwrap();
            let whole = line.run(&script("random; rows 50000"), None).await.unwrap();
            let slice = line
                .run(&format!("{} LIMIT 10", script("random; rows 50000")), None)
                .await
                .unwrap();
            if whole.bytes > 0 {
                assert!(whole.bytes > 1_000_000, "{}", whole.bytes);
                assert!(
                    slice.bytes < 4096,
                    "{} by {} with {codec}",
                    slice.bytes,
                    door.name()
                );
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_kind_of_error_is_told_by_every_door() {
    let gateway = TestGateway::start().await;
    let mut wrong = Vec::new();
    for door in door::all() {
        for kind in ErrorKind::ALL {
            for steps in [
                format!("plan error {kind}"),
                format!("error {kind}"),
                format!("rows 5000 x 4; error {kind}"),
            ] {
                let at = format!("{steps:?} by {}", door.name());
                match ask(
                    &*door,
                    &gateway,
                    &[("gateway.engine", "fault")],
                    &script(&steps),
                )
                .await
                {
                    Ok(answer) => wrong.push(format!("{at}: {} rows and no error", answer.rows())),
                    Err(failure)
                        if kind == ErrorKind::Cancelled
                            && !door.tells_cancelled_from_cut()
                            && failure.kind.is_none() => {}
                    Err(failure) if failure.kind != Some(kind) => {
                        wrong.push(format!("{at}: {failure}"))
                    }
                    Err(failure) if failure.sqlstate.len() != 5 => {
                        wrong.push(format!("{at}: SQLSTATE {:?}", failure.sqlstate))
                    }
                    Err(failure) if !failure.message.contains("scripted") => {
                        wrong.push(format!("{at}: {failure}"))
                    }
                    Err(_) => {}
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn batches_have_the_shape_that_is_promised() {
    let gateway = TestGateway::start().await;
    for door in door::all() {
        let settings = [
            ("gateway.engine", "fault"),
            ("arrow.maxRecordsPerBatch", "700"),
        ];
        let mut line = door.connect(&gateway, &settings).await.unwrap();

        let merged = line.run(&script("rows 1 x 5000"), None).await.unwrap();
        assert_eq!(merged.rows(), 5000, "{}", door.name());
        assert!(
            merged.batches.len() < 100,
            "{} batches by {}",
            merged.batches.len(),
            door.name()
        );

        let cut = line.run(&script("rows 10000"), None).await.unwrap();
        assert_eq!(cut.rows(), 10_000);
        assert!(
            cut.batches.iter().all(|batch| batch.num_rows() <= 700),
            "{}",
            door.name()
        );

        let without_empty = line
            .run(&script("empty; rows 1; empty x 3; rows 1; empty"), None)
            .await
            .unwrap();
        assert_eq!(without_empty.rows(), 2, "{}", door.name());
        assert!(
            without_empty
                .batches
                .iter()
                .all(|batch| batch.num_rows() > 0),
            "{}",
            door.name()
        );

        let none = line.run(&script("empty x 3"), None).await.unwrap();
        assert_eq!(
            (none.rows(), outline(&none.schema)),
            (0, outline(&fixtures::rows_schema(None))),
            "{}",
            door.name()
        );

        let settings = [
            ("gateway.engine", "fault"),
            ("arrow.maxBytesPerBatch", "65536"),
        ];
        let small = ask(&*door, &gateway, &settings, &script("random; rows 20000"))
            .await
            .unwrap();
        let largest = small
            .batches
            .iter()
            .map(RecordBatch::get_array_memory_size)
            .max()
            .unwrap();
        assert!(
            largest < 3 * 65536,
            "{largest} bytes in a batch by {}",
            door.name()
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_level_is_applied_and_can_change_in_a_session() {
    let gateway = TestGateway::start().await;
    for door in door::all() {
        let mut line = door
            .connect(&gateway, &[("gateway.engine", "embedded")])
            .await
            .unwrap();
        if line
            .run("SHOW arrow.compression.zstd.level", None)
            .await
            .is_err()
        {
            panic!("{} does not show settings", door.name());
        }
        let mut sizes = Vec::new();
        for level in ["1", "19", "1"] {
            let settings = [
                ("arrow.compression.codec", "zstd"),
                ("arrow.compression.zstd.level", level),
            ];
            let answer = ask(&*door, &gateway, &settings, "SELECT * FROM tpch.orders")
                .await
                .unwrap();
            sizes.push(answer.bytes);
        }
        if sizes[0] > 0 {
            assert_eq!(sizes[0], sizes[2], "{}", door.name());
            assert!(
                sizes[1] * 100 < sizes[0] * 95,
                "{sizes:?} by {}",
                door.name()
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_set_statement_takes_effect_on_the_next_one() {
    let gateway = TestGateway::start().await;
    for door in door::all().into_iter().filter(|door| door.keeps_session()) {
        let mut line = door
            .connect(&gateway, &[("gateway.engine", "fault")])
            .await
            .unwrap();
        let mut seen = Vec::new();
        for codec in ["zstd", "none", "lz4"] {
            line.run(&format!("SET arrow.compression.codec = {codec}"), None)
                .await
                .unwrap();
            let answer = line.run(&script("rows 2000"), None).await.unwrap();
            seen.push(
                answer
                    .codecs
                    .first()
                    .map(|codec| codec.name().to_owned())
                    .unwrap_or_else(|| codec.to_owned()),
            );
            let shown = line
                .run("SHOW arrow.compression.codec", None)
                .await
                .unwrap();
            assert!(
                cases::rows(&shown.batches[0])[0].contains(codec),
                "{}",
                door.name()
            );
        }
        assert_eq!(seen, ["zstd", "none", "lz4"], "{}", door.name());

        let refused = line
            .run("SET arrow.compression.zstd.level = 23", None)
            .await
            .unwrap_err();
        assert_eq!(
            (refused.kind, refused.sqlstate.as_str()),
            (Some(ErrorKind::Invalid), "22023"),
            "{}",
            door.name()
        );
        let refused = line
            .run("SET arrow.compresion.codec = none", None)
            .await
            .unwrap_err();
        assert!(
            refused.message.contains("arrow.compression.codec"),
            "{refused}"
        );
        let still = line.run(&script("rows 5"), None).await.unwrap();
        assert_eq!(still.rows(), 5, "the session stays good");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_stays_good_after_a_wrong_statement() {
    let gateway = TestGateway::start().await;
    for door in door::all() {
        let mut line = door.connect(&gateway, &[]).await.unwrap();
        for (sql, class) in [
            ("SELEC 1", "42"),
            ("SELECT nothing_like_this", "42"),
            ("SELECT * FROM nowhere", "42"),
            ("", "42"),
        ] {
            let failure = line.run(sql, None).await.unwrap_err();
            assert_eq!(
                failure.kind,
                Some(ErrorKind::Invalid),
                "{sql:?} by {}: {failure}",
                door.name()
            );
            assert!(
                failure.sqlstate.starts_with(class),
                "{sql:?} by {}: {failure}",
                door.name()
            );
        }
        assert_eq!(
            line.run("SELECT 1", None).await.unwrap().rows(),
            1,
            "{}",
            door.name()
        );
    }
}

#[test]
fn doors_have_names_of_their_own() {
    let names: BTreeSet<_> = door::all().iter().map(|door| door.name()).collect();
    assert_eq!(names.len(), door::all().len());
    assert_eq!(FaultEngine::new().counts().started(), 0);
}
