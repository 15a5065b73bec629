//! The `sluice-sql` command: SQL in, rows out. Owns the order of things and the exit code. Must
//! not know protocols; that is the library's part.

mod args;
mod output;
mod problem;
mod progress;
mod run;
mod shell;
mod split;

use std::io::{self, IsTerminal, Read};
use std::process::ExitCode;

use clap::Parser;
use sluice_client::{Client, Session};
use tokio::runtime::Runtime;

use args::Args;
use problem::Problem;
use run::{Interrupts, Runner};

/// EX_USAGE of sysexits.h.
const USAGE: u8 = 64;

fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => {
            // Help and version go to standard output and are no mistake.
            let code = if error.use_stderr() { USAGE } else { 0 };
            let _ = error.print();
            return ExitCode::from(code);
        }
    };
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            problem.report(&mut io::stderr());
            ExitCode::from(problem.exit_code())
        }
    }
}

fn run(args: &Args) -> Result<(), Problem> {
    let work = Work::of(args)?;
    let runtime = Runtime::new().map_err(Problem::Local)?;
    let client = client(args)?;
    let session = runtime.block_on(client.session())?;
    let done = execute(args, &work, &runtime, &session);
    // An error of the work says more than one of the parting.
    let parted = runtime.block_on(session.close());
    done.and(parted.map_err(Problem::from))
}

/// What is to be run.
enum Work {
    Statements(String),
    Shell,
}

impl Work {
    fn of(args: &Args) -> Result<Self, Problem> {
        if let Some(path) = &args.file {
            let text = std::fs::read_to_string(path)
                .map_err(|error| Problem::Usage(format!("{}: {error}", path.display())))?;
            return Ok(Self::Statements(text));
        }
        if !args.execute.is_empty() {
            return Ok(Self::Statements(args.execute.join(";\n")));
        }
        if io::stdin().is_terminal() {
            return Ok(Self::Shell);
        }
        let mut text = String::new();
        io::stdin()
            .read_to_string(&mut text)
            .map_err(Problem::Local)?;
        Ok(Self::Statements(text))
    }
}

fn execute(args: &Args, work: &Work, runtime: &Runtime, session: &Session) -> Result<(), Problem> {
    let interrupts = Interrupts::listen(runtime);
    let mut runner = Runner::new(session, interrupts, args.format, args.stats);
    let Work::Statements(text) = work else {
        return shell::run(&mut runner, runtime, &args.url);
    };
    if args.format == args::Format::Arrow && io::stdout().is_terminal() {
        return Err(Problem::Usage(
            "Arrow is binary: send it to a file or a pipe".to_owned(),
        ));
    }
    for statement in split::split(text).all() {
        runtime.block_on(runner.run(statement))?;
    }
    Ok(())
}

fn client(args: &Args) -> Result<Client, Problem> {
    let mut builder = Client::builder(&args.url);
    for (key, value) in &args.settings {
        builder = builder.setting(key, value);
    }
    if let Some(path) = &args.ca {
        builder = builder.ca_file(path);
    }
    if let Some(pin) = &args.pin {
        builder = builder.pinned_certificate(pin);
    }
    if let Some(user) = args.user.as_deref().or_else(|| user_in(&args.url)) {
        builder = builder.password(password(user)?);
    }
    if let Some(user) = &args.user {
        builder = builder.user(user);
    }
    builder
        .build()
        .map_err(|error| Problem::Usage(error.message().to_owned()))
}

/// The user that a URL names, for whom there is a password to find.
fn user_in(url: &str) -> Option<&str> {
    let (_, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?']).next()?;
    authority.rsplit_once('@').map(|(user, _)| user)
}

/// From the environment, or asked for where somebody can answer.
fn password(user: &str) -> Result<String, Problem> {
    if let Ok(password) = std::env::var("SLUICE_PASSWORD") {
        return Ok(password);
    }
    if !io::stderr().is_terminal() {
        let hint = "no password: set SLUICE_PASSWORD, or run on a terminal to be asked";
        return Err(Problem::Usage(hint.to_owned()));
    }
    rpassword::prompt_password(format!("Password for {user}: ")).map_err(Problem::Local)
}
