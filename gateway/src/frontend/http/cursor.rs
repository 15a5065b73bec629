//! Results that are fetched in pieces. Between two fetches the result is suspended here: its
//! stages hold what they hold, and nothing is collected. Must not know JSON.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use arrow_array::RecordBatch;
use sluice_core::error::{Error, ErrorKind, Result};
use sluice_core::handle::Handle;
use sluice_core::operation::Operation;
use tokio::time::{Instant, interval};

use super::reader;
use super::stream::Opened;
use super::text::Batches;

/// The cursors of the door.
pub(super) struct Cursors {
    open: Mutex<HashMap<Handle, Arc<Cursor>>>,
    /// A cursor that nobody uses for so long is closed, and with it its operation.
    idle: Duration,
}

impl Cursors {
    /// No cursors yet.
    pub(super) fn new(idle: Duration) -> Arc<Self> {
        Arc::new(Self {
            open: Mutex::default(),
            idle,
        })
    }

    /// The cursor of `operation`, made when there is none.
    pub(super) fn of(self: &Arc<Self>, operation: &Arc<Operation>) -> Arc<Cursor> {
        let mut open = self.lock();
        if let Some(cursor) = open.get(&operation.id()) {
            cursor.touch();
            return Arc::clone(cursor);
        }
        let cursor = Arc::new(Cursor {
            place: tokio::sync::Mutex::new(Place::Unread),
            log_line: Mutex::new(0),
            touched: Mutex::new(Instant::now()),
        });
        open.insert(operation.id(), Arc::clone(&cursor));
        tokio::spawn(watch(Arc::downgrade(self), operation.id(), self.idle));
        cursor
    }

    /// Closes the cursor of that operation, if there is one.
    pub(super) fn close(&self, id: &Handle) {
        self.lock().remove(id);
    }

    /// Whether nothing is left to be watched; closes what is idle.
    fn sweep(&self, id: &Handle) -> bool {
        let mut open = self.lock();
        let Some(cursor) = open.get(id) else {
            return true;
        };
        let over = cursor.idle() >= self.idle;
        if over {
            open.remove(id);
        }
        over
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Handle, Arc<Cursor>>> {
        // Single map calls: a panic elsewhere leaves the table whole.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Closes the cursor `id` when it is idle.
async fn watch(cursors: Weak<Cursors>, id: Handle, idle: Duration) {
    let mut tick = interval((idle / 4).clamp(Duration::from_millis(10), Duration::from_secs(15)));
    loop {
        tick.tick().await;
        match cursors.upgrade() {
            Some(cursors) if !cursors.sweep(&id) => {}
            _ => return,
        }
    }
}

/// How far one operation's rows and log have been fetched.
pub(super) struct Cursor {
    place: tokio::sync::Mutex<Place>,
    /// The first line of the log that was not fetched yet.
    log_line: Mutex<usize>,
    touched: Mutex<Instant>,
}

/// How far the rows have been fetched.
enum Place {
    Unread,
    Reading(Box<Reading>),
    End,
    /// A fetch was broken off: which rows arrived is not known.
    Broken,
}

struct Reading {
    opened: Opened,
    batches: Batches,
    /// The batch that was begun, and its next row.
    current: Option<(RecordBatch, usize)>,
}

/// Which rows are wanted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Orientation {
    Next,
    First,
}

impl Cursor {
    /// Gives the next rows to `take`, batch by batch, until it has enough or there are none.
    /// `take` gets a batch and its first row, and answers with the row after the last one taken
    /// and whether it wants more.
    ///
    /// # Errors
    /// What the operation's result fails with, and what `take` fails with; `Conflict` for the
    /// first rows after some were read, and after a fetch that was broken off.
    pub(super) async fn fetch<F>(
        &self,
        operation: &Arc<Operation>,
        orientation: Orientation,
        max_row_bytes: u64,
        take: F,
    ) -> Result<()>
    where
        F: FnMut(&RecordBatch, usize) -> Result<(usize, bool)> + Send,
    {
        self.touch();
        let mut place = self.place.lock().await;
        let mut reading = match std::mem::replace(&mut *place, Place::Broken) {
            Place::Unread => match Reading::begin(operation, max_row_bytes).await {
                Ok(reading) => reading,
                Err(error) => {
                    // Nothing was read: the next fetch may find more.
                    *place = Place::Unread;
                    return Err(error);
                }
            },
            other if orientation == Orientation::First => {
                *place = other;
                return Err(only_forward());
            }
            Place::Reading(reading) => reading,
            Place::End => {
                *place = Place::End;
                return Ok(());
            }
            Place::Broken => return Err(broken_off()),
        };
        // Dropped or failed in here, the place stays broken, and the result is given up.
        let more = reading.run(take).await?;
        *place = if more {
            Place::Reading(reading)
        } else {
            Place::End
        };
        self.touch();
        Ok(())
    }

    /// The next lines of `log`, at most `most`; from the start where that is asked.
    pub(super) fn log(&self, log: &[String], orientation: Orientation, most: usize) -> Vec<String> {
        self.touch();
        let mut line = lock(&self.log_line);
        let start = if orientation == Orientation::First {
            0
        } else {
            (*line).min(log.len())
        };
        let end = start.saturating_add(most).min(log.len());
        *line = end;
        log[start..end].to_vec()
    }

    fn touch(&self) {
        *lock(&self.touched) = Instant::now();
    }

    /// How long nobody has used it; zero while rows are being fetched.
    fn idle(&self) -> Duration {
        match self.place.try_lock() {
            Ok(_) => lock(&self.touched).elapsed(),
            Err(_) => Duration::ZERO,
        }
    }
}

impl Reading {
    async fn begin(operation: &Arc<Operation>, max_row_bytes: u64) -> Result<Box<Self>> {
        let stream = operation.result(&reader::own_wish(max_row_bytes))?;
        let opened = Opened::begin(stream).await?;
        let batches = Batches::new(&opened)?;
        Ok(Box::new(Self {
            opened,
            batches,
            current: None,
        }))
    }

    /// Whether rows may be left.
    async fn run<F>(&mut self, mut take: F) -> Result<bool>
    where
        F: FnMut(&RecordBatch, usize) -> Result<(usize, bool)> + Send,
    {
        loop {
            let (batch, row) = match self.current.take() {
                Some(current) => current,
                None => match self.batches.next(&mut self.opened).await? {
                    Some(batch) => (batch, 0),
                    None => return Ok(false),
                },
            };
            let (next, wants_more) = take(&batch, row)?;
            if next < batch.num_rows() {
                self.current = Some((batch, next));
            }
            if !wants_more {
                return Ok(true);
            }
        }
    }
}

fn only_forward() -> Error {
    let message = "rows are read forward only: FETCH_FIRST works before anything was read";
    Error::new(ErrorKind::Conflict, message).with_sqlstate("24000")
}

fn broken_off() -> Error {
    let message =
        "an earlier fetch was broken off, so rows may be missing; run the statement again";
    Error::new(ErrorKind::Conflict, message).with_sqlstate("24000")
}

fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    // Plain values: nothing in between can panic.
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cursor() -> Cursor {
        Cursor {
            place: tokio::sync::Mutex::new(Place::Unread),
            log_line: Mutex::new(0),
            touched: Mutex::new(Instant::now()),
        }
    }

    #[tokio::test]
    async fn the_log_is_read_on_and_again() {
        let cursor = cursor();
        let log: Vec<String> = ["a", "b", "c"].map(str::to_owned).to_vec();
        assert_eq!(cursor.log(&log, Orientation::Next, 2), ["a", "b"]);
        assert_eq!(cursor.log(&log, Orientation::Next, 2), ["c"]);
        assert!(cursor.log(&log, Orientation::Next, 2).is_empty());
        assert_eq!(cursor.log(&log, Orientation::First, 1), ["a"]);
        assert_eq!(cursor.log(&log, Orientation::Next, usize::MAX), ["b", "c"]);
        assert!(cursor.log(&[], Orientation::Next, 1).is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_cursor_in_use_is_not_idle() {
        let cursor = cursor();
        tokio::time::advance(Duration::from_secs(5)).await;
        assert_eq!(cursor.idle(), Duration::from_secs(5));
        let _fetch = cursor.place.lock().await;
        assert_eq!(cursor.idle(), Duration::ZERO);
    }
}
