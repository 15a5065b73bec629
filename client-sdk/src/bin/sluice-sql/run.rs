//! One statement from its text to its last row. Owns interruption, progress and what is said at
//! the end. Must not know where statements come from.

use std::io::{self, BufWriter, Write};
use std::time::Duration;

use futures::StreamExt;
use sluice_client::render::counted;
use sluice_client::{ResultStream, Session, report};
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval, timeout};

use crate::args::Format;
use crate::output::{Output, unwritable};
use crate::problem::Problem;
use crate::progress::{Progress, TICK};

/// How long the gateway may take to answer to a cancellation.
const PARTING: Duration = Duration::from_secs(2);

/// Bytes that are written to standard output at a time.
const OUT_BUFFER: usize = 256 << 10;

/// Ctrl-C, counted. The process no longer ends by it, from the moment this exists.
pub(crate) struct Interrupts(watch::Receiver<u64>);

impl Interrupts {
    /// Begins to listen.
    pub(crate) fn listen(runtime: &Runtime) -> Self {
        let (count, seen) = watch::channel(0);
        runtime.spawn(async move {
            while tokio::signal::ctrl_c().await.is_ok() {
                count.send_modify(|count| *count += 1);
            }
        });
        Self(seen)
    }

    /// Waits for one that has not been seen; none is lost while nobody waits.
    async fn next(&mut self) {
        if self.0.changed().await.is_err() {
            // Where signals cannot be listened to, there are none.
            std::future::pending().await
        }
    }
}

/// Runs statements in one session.
pub(crate) struct Runner<'a> {
    session: &'a Session,
    interrupts: Interrupts,
    pub(crate) format: Format,
    pub(crate) stats: bool,
}

impl<'a> Runner<'a> {
    /// A runner that writes to standard output.
    pub(crate) fn new(
        session: &'a Session,
        interrupts: Interrupts,
        format: Format,
        stats: bool,
    ) -> Self {
        Self {
            session,
            interrupts,
            format,
            stats,
        }
    }

    /// Interruptions until now were meant for something else.
    pub(crate) fn forget_interrupts(&mut self) {
        self.interrupts.0.mark_unchanged();
    }

    /// The session that statements run in.
    pub(crate) fn session(&self) -> &Session {
        self.session
    }

    /// Runs a statement and writes its rows. Ctrl-C cancels it.
    pub(crate) async fn run(&mut self, statement: &str) -> Result<(), Problem> {
        let mut progress = Progress::start(self.format);
        let Some(mut stream) = self.start(statement, &mut progress).await? else {
            return Err(Problem::Interrupted);
        };
        if let Some(reason) = unwritable(self.format, &stream.schema()) {
            return Err(Problem::Usage(reason));
        }
        let out = BufWriter::with_capacity(OUT_BUFFER, io::stdout().lock());
        let output = Output::begin(self.format, out, &stream.schema());
        let mut output = output.map_err(Problem::of_output)?;
        let interrupts = &mut self.interrupts;
        deliver(&mut stream, &mut output, &mut progress, interrupts).await?;
        let elapsed = progress.elapsed();
        drop(progress);
        output.finish().map_err(Problem::of_output)?;
        self.say_end(&stream, elapsed).map_err(Problem::of_output)?;
        self.say_stats(&stream).await
    }

    /// Waits for the result; `None` when it was interrupted.
    async fn start(
        &mut self,
        statement: &str,
        progress: &mut Progress,
    ) -> Result<Option<ResultStream>, Problem> {
        // Dropping it, as an interruption does, cancels the statement.
        let mut starting = std::pin::pin!(self.session.query(statement));
        let mut tick = ticker();
        loop {
            tokio::select! {
                started = &mut starting => return Ok(Some(started?)),
                () = self.interrupts.next() => return Ok(None),
                _ = tick.tick() => progress.update(0, 0),
            }
        }
    }

    fn say_end(&self, stream: &ResultStream, elapsed: Duration) -> io::Result<()> {
        let summary = stream.summary();
        let mut text = format!(
            "{} in {:.3} s",
            counted(summary.rows, "row"),
            elapsed.as_secs_f64()
        );
        if summary.truncated {
            text.push_str("; cut by a bound on rows, there are more");
        }
        match self.format {
            Format::Table => writeln!(io::stdout(), "{text}"),
            // Rows alone go to standard output here, so what a reader must know goes elsewhere.
            _ if summary.truncated => writeln!(io::stderr(), "{text}"),
            _ => Ok(()),
        }
    }

    async fn say_stats(&self, stream: &ResultStream) -> Result<(), Problem> {
        if !self.stats {
            return Ok(());
        }
        let delivery = stream.delivery().await?;
        let text = report::table(&[("delivery", &delivery)]);
        let written = match self.format {
            Format::Table => io::stdout().write_all(text.as_bytes()),
            _ => io::stderr().write_all(text.as_bytes()),
        };
        written.map_err(Problem::of_output)
    }
}

/// Writes batch after batch. Ctrl-C cancels the statement, of which the stream then knows.
async fn deliver<W: Write>(
    stream: &mut ResultStream,
    output: &mut Output<W>,
    progress: &mut Progress,
    interrupts: &mut Interrupts,
) -> Result<(), Problem> {
    let canceller = stream.canceller();
    let mut tick = ticker();
    loop {
        tokio::select! {
            next = stream.next() => match next {
                Some(batch) => output.write(&batch?).map_err(Problem::of_output)?,
                None => return Ok(()),
            },
            () = interrupts.next() => {
                // Closing the stream says the same to a gateway that does not answer.
                let _ = timeout(PARTING, canceller.cancel()).await;
            }
            _ = tick.tick() => {
                let summary = stream.summary();
                progress.update(summary.rows, summary.bytes);
            }
        }
    }
}

fn ticker() -> tokio::time::Interval {
    let mut tick = interval(TICK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Skip);
    tick
}
