//! The interactive shell: lines until a `;`, a history, a few commands of its own. Owns the
//! dialogue. Must not know how a statement is run.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::ValueEnum;
use rustyline::completion::Completer;
use rustyline::config::Configurer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Editor, Helper};
use tokio::runtime::Runtime;

use crate::args::Format;
use crate::problem::Problem;
use crate::run::Runner;
use crate::split::split;

const HELP: &str = "\
Statements end with a semicolon and may take several lines.
  \\?               this help (also: help)
  \\q               leave (also: quit, exit, Ctrl-D)
  \\set             show the session's settings
  \\set KEY VALUE   change a setting
  \\format FORMAT   table, csv or json
  \\stats on|off    show how rows travelled, after each statement
Ctrl-C cancels a running statement, or drops the line. A line that begins with a blank is not
kept in the history.
";

/// Reads and runs until the user leaves.
pub(crate) fn run(runner: &mut Runner<'_>, runtime: &Runtime, url: &str) -> Result<(), Problem> {
    if runner.format == Format::Arrow {
        return Err(Problem::Usage(
            "a shell cannot show Arrow; use -e or -f".to_owned(),
        ));
    }
    let mut shell = Shell {
        editor: editor()?,
        history: history_file(),
        runner,
        runtime,
    };
    say(&format!(
        "Connected to {url}. \\? for help, \\q to leave.\n"
    ))?;
    shell.dialogue()
}

struct Shell<'a, 'b> {
    editor: Editor<Statements, FileHistory>,
    history: Option<PathBuf>,
    runner: &'a mut Runner<'b>,
    runtime: &'a Runtime,
}

/// What a line was.
enum Line<'a> {
    Nothing,
    Help,
    Quit,
    Set(Option<(&'a str, &'a str)>),
    Format(&'a str),
    Stats(&'a str),
    Unknown(&'a str),
    Sql(&'a str),
}

impl Shell<'_, '_> {
    fn dialogue(&mut self) -> Result<(), Problem> {
        if let Some(path) = &self.history {
            // The first time there is none.
            let _ = self.editor.load_history(path);
        }
        loop {
            let text = match self.editor.readline("sluice> ") {
                Ok(text) => text,
                Err(ReadlineError::Interrupted) => continue,
                Err(ReadlineError::Eof) => return Ok(()),
                Err(error) => return Err(Problem::Local(io::Error::other(error))),
            };
            self.remember(&text);
            match self.obey(&text) {
                Ok(true) => {}
                Ok(false) => return Ok(()),
                // A mistake ends the statement and not the dialogue.
                Err(problem) => problem.report(&mut io::stderr()),
            }
        }
    }

    fn remember(&mut self, text: &str) {
        let Ok(true) = self.editor.add_history_entry(text) else {
            return;
        };
        let Some(path) = &self.history else { return };
        // A history that cannot be kept is no reason to stop.
        let _ = self.editor.append_history(path);
    }

    /// Whether to go on.
    fn obey(&mut self, text: &str) -> Result<bool, Problem> {
        match read(text) {
            Line::Nothing => {}
            Line::Quit => return Ok(false),
            Line::Help => say(HELP)?,
            Line::Set(None) => self.statements("SET")?,
            Line::Set(Some((key, value))) => {
                self.runtime
                    .block_on(self.runner.session().set(key, value))?;
            }
            Line::Format(name) => self.runner.format = format(name)?,
            Line::Stats(word) => self.runner.stats = switch(word)?,
            Line::Unknown(word) => {
                return Err(Problem::Usage(format!(
                    "{word} is no command; \\? shows all"
                )));
            }
            Line::Sql(text) => self.statements(text)?,
        }
        Ok(true)
    }

    fn statements(&mut self, text: &str) -> Result<(), Problem> {
        self.runner.forget_interrupts();
        for statement in split(text).all() {
            self.runtime.block_on(self.runner.run(statement))?;
        }
        Ok(())
    }
}

fn read(text: &str) -> Line<'_> {
    let text = text.trim();
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let rest = rest.trim();
    match word {
        "" => Line::Nothing,
        "\\q" | "\\quit" => Line::Quit,
        "\\?" | "\\h" | "\\help" => Line::Help,
        "\\set" if rest.is_empty() => Line::Set(None),
        "\\set" => {
            let separator = |c: char| c == '=' || c.is_whitespace();
            let (key, value) = rest.split_once(separator).unwrap_or((rest, ""));
            Line::Set(Some((key, value.trim().trim_start_matches('=').trim())))
        }
        "\\format" => Line::Format(rest),
        "\\stats" => Line::Stats(rest),
        _ if word.starts_with('\\') => Line::Unknown(word),
        _ if is_word(text, &["quit", "exit"]) => Line::Quit,
        _ if is_word(text, &["help"]) => Line::Help,
        _ => Line::Sql(text),
    }
}

fn is_word(text: &str, words: &[&str]) -> bool {
    let text = text.trim_end_matches(';').trim_end();
    words.iter().any(|word| text.eq_ignore_ascii_case(word))
}

fn format(name: &str) -> Result<Format, Problem> {
    match Format::from_str(name, true) {
        Ok(Format::Arrow) | Err(_) => Err(Problem::Usage(
            "formats of the shell: table, csv, json".to_owned(),
        )),
        Ok(format) => Ok(format),
    }
}

fn switch(word: &str) -> Result<bool, Problem> {
    match word {
        "on" | "" => Ok(true),
        "off" => Ok(false),
        _ => Err(Problem::Usage("\\stats on or \\stats off".to_owned())),
    }
}

fn say(text: &str) -> Result<(), Problem> {
    let mut out = io::stdout();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .map_err(Problem::of_output)
}

fn editor() -> Result<Editor<Statements, FileHistory>, Problem> {
    let failed = |error: ReadlineError| Problem::Local(io::Error::other(error));
    let mut editor = Editor::new().map_err(failed)?;
    editor.set_helper(Some(Statements));
    editor.set_history_ignore_space(true);
    Ok(editor)
}

/// `$XDG_STATE_HOME/sluice/history`, in a folder that is the user's alone.
fn history_file() -> Option<PathBuf> {
    let state = match std::env::var_os("XDG_STATE_HOME").map(PathBuf::from) {
        Some(path) if path.is_absolute() => path,
        _ => std::env::home_dir()?.join(".local").join("state"),
    };
    let folder = state.join("sluice");
    std::fs::create_dir_all(&folder).ok()?;
    Some(folder.join("history"))
}

/// Tells the line editor when a statement is whole.
struct Statements;

impl Validator for Statements {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        Ok(match is_whole(context.input()) {
            true => ValidationResult::Valid(None),
            false => ValidationResult::Incomplete,
        })
    }
}

impl Completer for Statements {
    type Candidate = String;
}

impl Hinter for Statements {
    type Hint = String;
}

impl Highlighter for Statements {}

impl Helper for Statements {}

fn is_whole(text: &str) -> bool {
    match read(text) {
        Line::Sql(text) => split(text).rest.is_empty(),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_is_whole_with_its_semicolon() {
        for whole in [
            "select 1;",
            "",
            "  ",
            "\\q",
            "quit",
            "help;",
            "-- nothing",
            "select ';'; -- x",
        ] {
            assert!(is_whole(whole), "{whole}");
        }
        for open in ["select 1", "select ';", "select 1; select 2", "quit select"] {
            assert!(!is_whole(open), "{open}");
        }
    }

    #[test]
    fn settings_are_read_in_both_spellings() {
        for text in ["\\set a.b zstd", "\\set a.b=zstd", " \\set  a.b = zstd "] {
            assert!(
                matches!(read(text), Line::Set(Some(("a.b", "zstd")))),
                "{text}"
            );
        }
        assert!(matches!(read("\\set"), Line::Set(None)));
        assert!(matches!(read("\\nothing"), Line::Unknown("\\nothing")));
        assert!(matches!(read("EXIT;"), Line::Quit));
    }
}
