//! The `sluice-sql` command as others run it: output, exit codes, interruption.

use std::process::{Output, Stdio};
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use http::Method;
use sluice_ipc::Codec;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::Command;

use crate::gateway::{Gateway, OPERATION, SESSION, Script, Sent, Step, detail, numbers};

/// The command, with its home in an empty folder.
struct Bench {
    gateway: Gateway,
    folder: tempfile::TempDir,
}

impl Bench {
    async fn of(script: Script) -> Self {
        let bench = Self {
            gateway: Gateway::start(script).await,
            folder: tempfile::tempdir().unwrap(),
        };
        std::fs::write(bench.path("ca.pem"), &bench.gateway.keys.pem).unwrap();
        bench
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sluice-sql"));
        command
            .args(["--url", &self.gateway.url(), "--ca"])
            .arg(self.path("ca.pem"))
            .args(arguments)
            .env_remove("SLUICE_PASSWORD")
            .env("XDG_STATE_HOME", self.folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }

    async fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().await.unwrap()
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn people() -> Sent {
    let id: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None]));
    let name: ArrayRef = Arc::new(StringArray::from(vec!["a,b", ""]));
    let batch =
        RecordBatch::try_from_iter_with_nullable([("id", id, true), ("name", name, true)]).unwrap();
    Sent::of(&[batch], Codec::Zstd)
}

#[tokio::test]
async fn each_format_is_what_it_says() {
    let bench = Bench::of(people().whole()).await;
    let shown = async |format| bench.run(&["-e", "SELECT 1;", "--format", format]).await;

    let table = shown("table").await;
    assert_eq!(table.status.code(), Some(0), "{}", text(&table.stderr));
    let table = text(&table.stdout);
    assert!(table.contains("│    1 ┆ a,b  │"), "{table}");
    assert!(table.contains("│ NULL ┆      │"), "{table}");
    assert!(table.contains("2 rows in "), "{table}");

    let csv = shown("csv").await;
    assert_eq!(text(&csv.stdout), "id,name\n1,\"a,b\"\n,\"\"\n");
    assert_eq!(text(&csv.stderr), "");

    let json = shown("json").await;
    assert_eq!(
        text(&json.stdout),
        "[{\"id\":1,\"name\":\"a,b\"},{\"id\":null,\"name\":\"\"}]\n"
    );

    let arrow = shown("arrow").await;
    let reader = arrow_ipc::reader::StreamReader::try_new(&arrow.stdout[..], None).unwrap();
    assert_eq!(
        reader.map(|batch| batch.unwrap().num_rows()).sum::<usize>(),
        2
    );
}

#[tokio::test]
async fn long_results_say_how_much_they_do_not_show() {
    let bench = Bench::of(Sent::of(&numbers(3, 500), Codec::None).whole()).await;
    let output = text(&bench.run(&["-e", "SELECT 1"]).await.stdout);
    assert!(
        output.contains("│ 999 │") && !output.contains("1000 │"),
        "{output}"
    );
    assert!(output.contains("… 500 more rows not shown"), "{output}");
    assert!(output.contains("1500 rows in "), "{output}");
}

#[tokio::test]
async fn statements_come_from_a_file_or_a_pipe_and_settings_and_password_from_outside() {
    let bench = Bench::of(people().whole()).await;
    let sql = "SELECT ';'; -- a comment;\nSELECT 2";
    std::fs::write(bench.path("all.sql"), sql).unwrap();
    let file = bench.path("all.sql");
    let mut command = bench.command(&["-u", "ada", "--set", "a.b=c", "--stats", "-f"]);
    let output = command
        .arg(file)
        .env("SLUICE_PASSWORD", "secret")
        .output()
        .await
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("waiting for network"));

    let mut piped = bench
        .command(&["--format", "csv"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    piped
        .stdin
        .take()
        .unwrap()
        .write_all(sql.as_bytes())
        .await
        .unwrap();
    let piped = piped.wait_with_output().await.unwrap();
    assert_eq!(text(&piped.stdout).matches("id,name").count(), 2);

    let asked = bench.gateway.asked();
    assert_eq!(asked[0].headers["authorization"], "Basic YWRhOnNlY3JldA==");
    assert_eq!(asked[0].body, r#"{"configs":{"a.b":"c"}}"#);
    let statement = |text: &str| {
        asked
            .iter()
            .filter(|asked| asked.body.contains(text))
            .count()
    };
    assert_eq!((statement("SELECT ';'"), statement("SELECT 2")), (2, 2));
    bench
        .gateway
        .asked_for(Method::DELETE, &format!("/api/v1/sessions/{SESSION}"))
        .await;
}

#[tokio::test]
async fn errors_have_a_sqlstate_and_end_the_command_with_1() {
    let mut refusal = detail("Unauthenticated", "who are you?");
    refusal.sql_state = "28000".to_owned();
    let bench = Bench::of(Script {
        refusal: Some((401, refusal)),
        ..Script::default()
    })
    .await;
    let output = bench.run(&["-e", "SELECT 1; SELECT 2"]).await;
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    assert!(
        said.starts_with("error: who are you?\n  Unauthenticated, SQLSTATE 28000\n"),
        "{said}"
    );
    assert!(said.contains("hint: name a user with -u"), "{said}");
    let asked = bench.gateway.asked();
    let statements = asked.iter().filter(|asked| asked.body.contains("SELECT"));
    assert_eq!(
        statements.count(),
        1,
        "the first error is the last statement"
    );
}

#[tokio::test]
async fn an_incomplete_result_has_no_end_in_any_format() {
    let sent = people();
    let bench = Bench::of(sent.script(sent.data())).await;
    for (format, end) in [("json", "]\n"), ("arrow", "\u{0}\u{0}\u{0}\u{0}")] {
        let output = bench.run(&["-e", "SELECT 1", "--format", format]).await;
        assert_eq!(output.status.code(), Some(1));
        assert!(text(&output.stderr).contains("Incomplete, SQLSTATE 08006"));
        let marker = [&[0xff; 4], end.as_bytes()].concat();
        assert!(
            !output.stdout.ends_with(&marker) && !output.stdout.ends_with(b"]\n"),
            "{format}"
        );
    }
    let table = bench.run(&["-e", "SELECT 1"]).await;
    assert_eq!(text(&table.stdout), "");
}

#[tokio::test]
async fn wrong_command_lines_end_with_64() {
    let bench = Bench::of(Script::default()).await;
    let wrong = [
        &["--format", "xml"][..],
        &["--password", "x"],
        &["-f", "/nowhere.sql"],
        &["--set", "novalue", "-e", "x"],
        &["--url", "http://localhost", "-e", "x"],
        // Nobody can be asked for it.
        &["-u", "ada", "-e", "x"],
    ];
    for arguments in wrong {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sluice-sql"));
        command
            .args(arguments)
            .env_remove("SLUICE_PASSWORD")
            .stdin(Stdio::null());
        let output = command.output().await.unwrap();
        assert_eq!(
            output.status.code(),
            Some(64),
            "{arguments:?}: {}",
            text(&output.stderr)
        );
        assert!(!output.stderr.is_empty());
    }
    assert_eq!(bench.run(&["--help"]).await.status.code(), Some(0));
    assert!(bench.gateway.asked().is_empty());
}

#[tokio::test]
async fn a_reader_that_leaves_is_no_error() {
    let bench = Bench::of(Sent::of(&numbers(50, 20_000), Codec::Zstd).whole()).await;
    let mut child = bench
        .command(&["-e", "SELECT 1", "--format", "csv"])
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(lines.next_line().await.unwrap().unwrap(), "n");
    drop(lines);
    let mut said = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut said)
        .await
        .unwrap();
    assert_eq!(said, "");
    assert_eq!(child.wait().await.unwrap().code(), Some(0));
}

#[cfg(unix)]
#[tokio::test]
async fn an_interruption_cancels_the_statement() {
    let sent = Sent::of(&numbers(4, 10_000), Codec::None);
    let bench = Bench::of(sent.script([&sent.data()[..20], &[Step::Stall]].concat())).await;
    let child = bench
        .command(&["-e", "SELECT 1; SELECT 2"])
        .spawn()
        .unwrap();
    let path = format!("/api/v1/operations/{OPERATION}");
    bench
        .gateway
        .asked_for(Method::GET, &format!("{path}/result"))
        .await;
    let id = child.id().unwrap().to_string();
    let sent = std::process::Command::new("kill")
        .args(["-INT", &id])
        .status()
        .unwrap();
    assert!(sent.success());
    bench.gateway.asked_for(Method::PUT, &path).await;
    let output = child.wait_with_output().await.unwrap();
    assert_eq!(output.status.code(), Some(1), "{:?}", output.status);
    let said = text(&output.stderr);
    assert!(said.contains("cancelled"), "{said}");
    assert!(
        !bench
            .gateway
            .asked()
            .iter()
            .any(|asked| asked.body.contains("SELECT 2"))
    );
}
