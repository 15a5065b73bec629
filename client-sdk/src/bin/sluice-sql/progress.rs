//! A line about what is going on, on a terminal, once it takes a while. Owns the line. Must not
//! know statements.

use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use indicatif::{HumanBytes, HumanCount, ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::args::Format;

/// Work that is done by then has no line.
const QUIET: Duration = Duration::from_millis(500);

/// How often the line is worth a look.
pub(crate) const TICK: Duration = Duration::from_millis(100);

/// The line for one statement; it goes when it is dropped.
pub(crate) struct Progress {
    started: Instant,
    bar: Option<ProgressBar>,
    wanted: bool,
}

impl Progress {
    /// Starts the clock. There is no line where nobody sees it, or where it would stand among rows.
    pub(crate) fn start(format: Format) -> Self {
        let among_rows = format != Format::Table && io::stdout().is_terminal();
        let wanted = io::stderr().is_terminal() && !among_rows;
        Self {
            started: Instant::now(),
            bar: None,
            wanted,
        }
    }

    /// How long it has taken so far.
    pub(crate) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Shows how far it has got.
    pub(crate) fn update(&mut self, rows: u64, bytes: u64) {
        if !self.wanted || self.elapsed() < QUIET {
            return;
        }
        let bar = self.bar.get_or_insert_with(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr())
                .with_elapsed(self.started.elapsed());
            if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}  {elapsed}") {
                bar.set_style(style);
            }
            bar
        });
        bar.set_message(described(rows, bytes, self.started.elapsed()));
        bar.tick();
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn described(rows: u64, bytes: u64, elapsed: Duration) -> String {
    if rows == 0 {
        return "waiting for the first row".to_owned();
    }
    let rate = bytes.saturating_mul(1000) / u64::try_from(elapsed.as_millis().max(1)).unwrap_or(1);
    format!(
        "{} rows, {}, {}/s",
        HumanCount(rows),
        HumanBytes(bytes),
        HumanBytes(rate)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_rows_bytes_and_rate() {
        let text = described(1_234_567, 10 << 20, Duration::from_secs(2));
        assert_eq!(text, "1,234,567 rows, 10.00 MiB, 5.00 MiB/s");
        assert_eq!(described(0, 0, Duration::ZERO), "waiting for the first row");
    }
}
