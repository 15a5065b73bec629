//! The command line. Owns its words and which of them go together. Must not act on them.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};

/// Runs SQL on a Sluice gateway and shows the rows.
///
/// Without -e or -f it reads statements from a pipe, or opens a shell on a terminal. The password
/// comes from the environment variable SLUICE_PASSWORD, or is asked for; never from here.
///
/// Exit codes: 0 all statements worked, 1 one did not, 64 this command line is wrong.
#[derive(Debug, Parser)]
#[command(name = "sluice-sql", version)]
pub(crate) struct Args {
    /// Where the gateway is: sluice://host:port/catalog.schema?setting=value
    #[arg(long, default_value = "sluice://localhost:8443")]
    pub(crate) url: String,

    /// Who you are; without it nobody in particular
    #[arg(short, long, value_name = "NAME")]
    pub(crate) user: Option<String>,

    /// Statements to run, separated by semicolons
    #[arg(short = 'e', long, value_name = "SQL", conflicts_with = "file")]
    pub(crate) execute: Vec<String>,

    /// A file of statements to run
    #[arg(short, long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,

    /// How rows are written
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub(crate) format: Format,

    /// A setting of the session; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = setting)]
    pub(crate) settings: Vec<(String, String)>,

    /// Show after each statement how its rows travelled
    #[arg(long)]
    pub(crate) stats: bool,

    /// PEM file of the authorities that may vouch for the gateway, instead of the system's
    #[arg(long, value_name = "FILE", conflicts_with = "pin")]
    pub(crate) ca: Option<PathBuf>,

    /// SHA-256 of the gateway's certificate, which is then the only one accepted
    #[arg(long, value_name = "SHA256")]
    pub(crate) pin: Option<String>,
}

/// How rows are written.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum Format {
    /// For people; the first 1000 rows
    Table,
    /// RFC 4180 with a header; NULL is empty, an empty string is ""
    Csv,
    /// An array of objects
    Json,
    /// An Arrow IPC stream
    Arrow,
}

fn setting(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => {
            Ok((key.trim().to_owned(), value.to_owned()))
        }
        _ => Err("expected KEY=VALUE".to_owned()),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_holds_together() {
        Args::command().debug_assert();
        let args = Args::try_parse_from(["sluice-sql", "--set", "a.b = c=d", "-e", "x"]).unwrap();
        assert_eq!(args.settings, [("a.b".to_owned(), " c=d".to_owned())]);
        for wrong in [
            &["--set", "a"][..],
            &["--format", "xml"],
            &["-e", "a", "-f", "b"],
            &["--password", "x"],
        ] {
            let words = std::iter::once(&"sluice-sql").chain(wrong);
            assert!(Args::try_parse_from(words).is_err(), "{wrong:?}");
        }
    }
}
