//! The process: arguments, signals, exit codes. Must not know a protocol or an engine.
//!
//! Exit codes: 0 good, 1 failed, 64 wrong usage or configuration (EX_USAGE of sysexits.h).

#![allow(clippy::print_stderr)]

use std::io::{IsTerminal, Read, Write, stdin, stdout};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use sluice::app::App;
use sluice::config::{self, Shown, Sources};
use sluice::{auth, observe};
use tokio::signal::unix::{Signal, SignalKind, signal};

const USAGE: u8 = 64;

/// Longer passwords are not taken.
const MAX_PASSWORD: usize = 1024;

const EXAMPLES: &str = "\
Examples:
  sluice demo --once                            see it work: TPC-H rows over TLS under three codecs
  sluice serve                                  on https://127.0.0.1:8443, without authentication
  sluice serve --config conf/gateway.toml       as the file says
  sluice serve --set engines.embedded.tpch.scale_factor=0.1 --set log.filter=debug
  sluice check-config --config conf/gateway.toml
  printf %s \"$PASSWORD\" | sluice hash-password   a line for the file of users

Configuration, later wins: built-in defaults, the file, SLUICE__SECTION__KEY variables, --set.
Signals: SIGTERM and SIGINT stop in three phases (nothing new, let run, cancel), a second one at
once; SIGHUP reads TLS files and users again.
Exit codes: 0 good, 1 failed, 64 wrong usage or configuration.";

/// A result-set gateway: SQL in, compressed Arrow out, over TLS.
#[derive(Parser)]
#[command(name = "sluice", version, after_help = EXAMPLES)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the gateway.
    Serve(Configured),
    /// Check a configuration and print every key with its value and source.
    CheckConfig(Configured),
    /// Hash a password with argon2id, for the file of users; it is read from standard input.
    HashPassword,
    /// Start a gateway with generated TPC-H tables, and show what each codec makes of a result.
    Demo(Demo),
}

#[derive(Args)]
struct Configured {
    /// A TOML file, such as conf/gateway.toml; without one, the built-in defaults hold.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// One key, such as server.listen=127.0.0.1:9443; wins over file and environment.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
}

#[derive(Args)]
struct Demo {
    /// End after the table instead of serving on.
    #[arg(long)]
    once: bool,
    /// Size of the generated tables: 1 is six million rows of lineitem.
    #[arg(long, value_name = "FACTOR", default_value_t = 0.1)]
    scale_factor: f64,
}

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help and version are no mistakes. Nothing is left to do when printing fails.
            let _ = error.print();
            return if error.use_stderr() {
                ExitCode::from(USAGE)
            } else {
                ExitCode::SUCCESS
            };
        }
    };
    match arguments.command {
        Command::Serve(configured) => with_config(configured, |config| on_runtime(serve(config))),
        Command::CheckConfig(configured) => with_config(configured, |config| {
            say(Shown::table(&config.shown).trim_end());
            ExitCode::SUCCESS
        }),
        Command::HashPassword => finish(hash_password()),
        Command::Demo(demo) => on_runtime(async move {
            let options = sluice::demo::Options {
                once: demo.once,
                scale_factor: demo.scale_factor,
            };
            finish(sluice::demo::run(options).await)
        }),
    }
}

fn with_config(configured: Configured, run: impl FnOnce(config::Config) -> ExitCode) -> ExitCode {
    match config::load(&Sources::of_process(configured.config, configured.set)) {
        Ok(config) => run(config),
        Err(mistakes) => {
            eprintln!("sluice: {mistakes}");
            ExitCode::from(USAGE)
        }
    }
}

fn on_runtime(work: impl Future<Output = ExitCode>) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => return finish(Err(format!("cannot start threads: {error}"))),
    };
    let code = runtime.block_on(work);
    // A password check or a file that is being read is not waited for.
    runtime.shutdown_background();
    code
}

async fn serve(config: config::Config) -> ExitCode {
    observe::start_log(&config.log);
    finish(serve_until_told(config).await)
}

async fn serve_until_told(config: config::Config) -> Result<(), String> {
    let mut signals =
        Signals::new().map_err(|error| format!("cannot listen for signals: {error}"))?;
    let running = App::build(config)
        .await
        .map_err(|error| error.to_string())?
        .spawn();
    say(&format!(
        "sluice {} on https://{}",
        env!("CARGO_PKG_VERSION"),
        running.address
    ));
    say(&format!(
        "health and metrics on http://{}",
        running.admin_address
    ));
    say(&format!(
        "certificate SHA-256 {}",
        running.certificate().sha256()
    ));
    while signals.next().await == Told::Reload {
        running.reload();
    }
    tokio::select! {
        () = running.shutdown() => {}
        () = signals.stop() => running.stop_now(),
    }
    Ok(())
}

#[derive(Clone, Copy, Eq, PartialEq)]
enum Told {
    Reload,
    Stop,
}

struct Signals {
    hangup: Signal,
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    fn new() -> std::io::Result<Self> {
        Ok(Self {
            hangup: signal(SignalKind::hangup())?,
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    async fn next(&mut self) -> Told {
        tokio::select! {
            _ = self.hangup.recv() => Told::Reload,
            _ = self.interrupt.recv() => Told::Stop,
            _ = self.terminate.recv() => Told::Stop,
        }
    }

    /// Completes when told to stop.
    async fn stop(&mut self) {
        while self.next().await != Told::Stop {}
    }
}

fn hash_password() -> Result<(), String> {
    let password = if stdin().is_terminal() {
        ask()?
    } else {
        read_piped()?
    };
    if password.is_empty() || password.len() > MAX_PASSWORD {
        return Err(format!("a password has 1 to {MAX_PASSWORD} bytes"));
    }
    say(&auth::hash::hash(&password)?);
    Ok(())
}

fn ask() -> Result<String, String> {
    let prompt = |text| rpassword::prompt_password(text).map_err(|error| error.to_string());
    let password = prompt("Password: ")?;
    match prompt("Again: ")? == password {
        true => Ok(password),
        false => Err("the two are not the same".to_owned()),
    }
}

/// The first line of standard input.
fn read_piped() -> Result<String, String> {
    let mut bytes = Vec::new();
    let most = MAX_PASSWORD as u64 + 2;
    stdin()
        .take(most)
        .read_to_end(&mut bytes)
        .map_err(|error| error.to_string())?;
    let text = String::from_utf8(bytes).map_err(|_| "the password is not UTF-8".to_owned())?;
    Ok(text.lines().next().unwrap_or_default().to_owned())
}

fn finish<E: std::fmt::Display>(outcome: Result<(), E>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("sluice: {error}");
            ExitCode::FAILURE
        }
    }
}

/// A line on standard output. A reader that went away is none of our business.
fn say(text: &str) {
    let _ = writeln!(stdout(), "{text}");
}
