//! The language of the fault engine: what a query yields, as a list of steps. Owns the grammar.
//! Must not know how a step is carried out.
//!
//! A script is the first string literal of a statement, so that the statement around it stays SQL
//! and a literal `LIMIT` can be found in it:
//!
//! ```sql
//! SELECT * FROM fault('rows 1000 x 3; sleep 50ms; error Engine') LIMIT 999
//! ```
//!
//! | step | what it does |
//! |---|---|
//! | `rows N [x K]` | K batches (1 unless said) of N rows |
//! | `endless N` | batches of N rows without end |
//! | `empty [x K]` | K batches without rows |
//! | `huge SIZE` | one row with a text of that size, as `300MB` |
//! | `table NAME` | the batches of a table that the test gave to the engine |
//! | `sleep TIME` | nothing for `50ms` or `2s` |
//! | `error KIND` | an error of that kind, as `Engine` |
//! | `panic` | a panic |
//! | `hang` | nothing, without end |
//! | `garbage` | a message that is no Arrow message (with `messages` only) |
//! | `plan STEP` | `sleep`, `error`, `panic` or `hang` before there is a schema |
//! | `messages CODEC` | yields IPC messages compressed with `none`, `lz4` or `zstd` instead of batches |
//! | `columns N` | N columns instead of the usual three |
//! | `random` | texts that do not compress |

use std::time::Duration;

use sluice_core::error::ErrorKind;
use sluice_ipc::Codec;

/// What a query does.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Script {
    /// Before there is a schema.
    pub plan: Vec<Step>,
    /// After that.
    pub steps: Vec<Step>,
    /// The codec, when messages are to be yielded.
    pub messages: Option<Codec>,
    /// How many columns, when not the usual three.
    pub columns: Option<usize>,
    /// Whether texts are made incompressible.
    pub random: bool,
}

/// One thing that happens.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Step {
    Rows { rows: usize, batches: usize },
    Huge { bytes: usize },
    Table(String),
    Sleep(Duration),
    Error(ErrorKind),
    Panic,
    Hang,
    Garbage,
}

impl Script {
    /// Reads the script in `statement`.
    ///
    /// # Errors
    /// What is wrong, with the step.
    pub fn of(statement: &str) -> Result<Self, String> {
        let mut parts = statement.splitn(3, '\'');
        let (Some(_), Some(script)) = (parts.next(), parts.next()) else {
            return Err(format!(
                "no script in {statement:?}: expected a string literal"
            ));
        };
        let mut read = Self::default();
        for step in script
            .split(';')
            .map(str::trim)
            .filter(|step| !step.is_empty())
        {
            read.add(step)
                .ok_or_else(|| format!("{step:?} is no step"))?;
        }
        Ok(read)
    }

    fn add(&mut self, text: &str) -> Option<()> {
        let words: Vec<_> = text.split_whitespace().collect();
        match words.as_slice() {
            ["messages", codec] => self.messages = Some(codec.parse().ok()?),
            ["columns", count] => self.columns = Some(count.parse().ok()?),
            ["random"] => self.random = true,
            ["plan", step @ ..] => self.plan.push(step_of(step)?),
            step => self.steps.push(step_of(step)?),
        }
        Some(())
    }
}

fn step_of(words: &[&str]) -> Option<Step> {
    Some(match words {
        ["rows", rows] => Step::Rows {
            rows: rows.parse().ok()?,
            batches: 1,
        },
        ["rows", rows, "x", batches] => Step::Rows {
            rows: rows.parse().ok()?,
            batches: batches.parse().ok()?,
        },
        ["endless", rows] => Step::Rows {
            rows: rows.parse().ok()?,
            batches: usize::MAX,
        },
        ["empty"] => Step::Rows {
            rows: 0,
            batches: 1,
        },
        ["empty", "x", batches] => Step::Rows {
            rows: 0,
            batches: batches.parse().ok()?,
        },
        ["huge", size] => Step::Huge {
            bytes: size_of(size)?,
        },
        ["table", name] => Step::Table((*name).to_owned()),
        ["sleep", time] => Step::Sleep(time_of(time)?),
        ["error", kind] => Step::Error(
            ErrorKind::ALL
                .into_iter()
                .find(|known| known.name() == *kind)?,
        ),
        ["panic"] => Step::Panic,
        ["hang"] => Step::Hang,
        ["garbage"] => Step::Garbage,
        _ => return None,
    })
}

fn size_of(text: &str) -> Option<usize> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "" | "B" => 1,
        "KB" => 1 << 10,
        "MB" => 1 << 20,
        _ => return None,
    };
    digits.parse::<usize>().ok()?.checked_mul(unit)
}

fn time_of(text: &str) -> Option<Duration> {
    match text.strip_suffix("ms") {
        Some(millis) => Some(Duration::from_millis(millis.parse().ok()?)),
        None => Some(Duration::from_secs(text.strip_suffix('s')?.parse().ok()?)),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_read_out_of_its_statement() {
        let script = Script::of(
            "SELECT * FROM fault('plan sleep 50ms; messages zstd; columns 7; random; rows 10 x 3; huge 3MB; \
             table t; error Engine; hang') LIMIT 5 -- it's",
        );
        let expected = Script {
            plan: vec![Step::Sleep(Duration::from_millis(50))],
            steps: vec![
                Step::Rows {
                    rows: 10,
                    batches: 3,
                },
                Step::Huge { bytes: 3 << 20 },
                Step::Table("t".to_owned()),
                Step::Error(ErrorKind::Engine),
                Step::Hang,
            ],
            messages: Some(Codec::Zstd),
            columns: Some(7),
            random: true,
        };
        assert_eq!(script.unwrap(), expected);
    }

    #[test]
    fn what_is_no_step_is_named() {
        assert!(
            Script::of("SELECT fault('rows 3; dance')")
                .unwrap_err()
                .contains("dance")
        );
        assert!(Script::of("SELECT 1").unwrap_err().contains("literal"));
        for wrong in [
            "rows x",
            "huge 3TB",
            "sleep 5",
            "error Nothing",
            "messages gzip",
        ] {
            assert!(
                Script::of(&format!("SELECT fault('{wrong}')")).is_err(),
                "{wrong}"
            );
        }
    }
}
