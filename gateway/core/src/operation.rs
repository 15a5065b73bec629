//! The life of one statement: its states, its one result, how it ends. Owns cancellation and the
//! record that stays when the statement is over. Must not know how a statement is run.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use arrow_schema::SchemaRef;
use sluice_ipc::Pool;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use crate::auth::Identity;
use crate::client::Client;
use crate::delivery::{Meter, Report};
use crate::engine::Execution;
use crate::error::{Error, ErrorKind, Result};
use crate::handle::Handle;
use crate::result::{Form, Pipeline, ResultStream, RowBound, pipeline_of};
use crate::service::Observer;
use crate::settings::Frozen;

/// Lines that an operation's log keeps.
const LOG_LINES: usize = 64;

/// Where a statement stands.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[allow(missing_docs)]
pub enum State {
    Pending,
    /// The engine plans or runs it, and there are no rows to fetch yet.
    Running,
    /// The result can be fetched, or was.
    Finished,
    Timeout,
    Cancelled,
    Closed,
    Error,
}

impl State {
    /// Whether it is over, with or without a result.
    pub fn is_final(self) -> bool {
        !matches!(self, Self::Pending | Self::Running)
    }
}

/// A snapshot of where a statement stands.
#[derive(Clone, Debug)]
pub struct Status {
    /// The state.
    pub state: State,
    /// What went wrong, if something did.
    pub error: Option<Error>,
    /// When the statement came in.
    pub created: SystemTime,
    /// When the engine got it.
    pub started: Option<SystemTime>,
    /// When it was over, its rows included.
    pub completed: Option<SystemTime>,
    /// Rows handed over so far.
    pub rows: u64,
}

/// What an operation is made of, by the service.
pub(crate) struct Parts {
    pub(crate) session: Handle,
    pub(crate) identity: Identity,
    /// With secrets redacted.
    pub(crate) statement: String,
    pub(crate) settings: Frozen,
    pub(crate) client: Client,
    pub(crate) row_bound: RowBound,
    pub(crate) cancellation: CancellationToken,
    pub(crate) means: Arc<Means>,
    /// What is held until the statement is over: places under limits, the session's activity.
    pub(crate) held: Box<dyn Send>,
}

/// What all operations of a gateway share.
pub(crate) struct Means {
    pub(crate) pool: Arc<Pool>,
    /// Bytes that one operation may hold on their way.
    pub(crate) memory: u64,
    pub(crate) observer: Arc<dyn Observer>,
}

/// One statement of a session.
pub struct Operation {
    id: Handle,
    session: Handle,
    identity: Identity,
    statement: String,
    settings: Frozen,
    client: Client,
    row_bound: RowBound,
    cancellation: CancellationToken,
    means: Arc<Means>,
    created: SystemTime,
    deadline: Option<Instant>,
    meter: Arc<Meter>,
    state: watch::Sender<State>,
    inner: Mutex<Inner>,
}

struct Inner {
    error: Option<Error>,
    started: Option<SystemTime>,
    completed: Option<SystemTime>,
    schema: Option<SchemaRef>,
    result: Slot,
    held: Option<Box<dyn Send>>,
    log: Vec<String>,
    /// When the state last changed or a result was taken; for time-outs.
    touched: Instant,
}

/// The one result.
enum Slot {
    Awaited,
    Ready(Execution),
    Opening,
    Read(Pipeline),
    Over,
}

impl Operation {
    /// A statement that has not begun.
    pub(crate) fn new(parts: Parts) -> Result<Arc<Self>> {
        let now = Instant::now();
        Ok(Arc::new(Self {
            id: Handle::random()?,
            session: parts.session,
            identity: parts.identity,
            statement: parts.statement,
            // A time-out too far away for the clock is none.
            deadline: parts
                .settings
                .timeout
                .and_then(|after| now.checked_add(after)),
            settings: parts.settings,
            client: parts.client,
            row_bound: parts.row_bound,
            cancellation: parts.cancellation,
            means: parts.means,
            created: SystemTime::now(),
            meter: Arc::new(Meter::new()),
            state: watch::Sender::new(State::Pending),
            inner: Mutex::new(Inner {
                error: None,
                started: None,
                completed: None,
                schema: None,
                result: Slot::Awaited,
                held: Some(parts.held),
                log: Vec::new(),
                touched: now,
            }),
        }))
    }

    /// The operation's name.
    pub fn id(&self) -> Handle {
        self.id
    }

    /// The session that it belongs to.
    pub fn session(&self) -> Handle {
        self.session
    }

    /// Whose it is.
    pub fn user(&self) -> &str {
        self.identity.user()
    }

    /// The statement, with secrets redacted.
    pub fn statement(&self) -> &str {
        &self.statement
    }

    /// What the client that sent it reads.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Where it stands.
    pub fn status(&self) -> Status {
        let inner = self.lock();
        Status {
            state: *self.state.borrow(),
            error: inner.error.clone(),
            created: self.created,
            started: inner.started,
            completed: inner.completed,
            rows: self.meter.rows.get(),
        }
    }

    /// Waits until there is a result or the statement is over, but not longer than `at_most`.
    pub async fn wait_ready(&self, at_most: Duration) -> Status {
        let mut state = self.state.subscribe();
        let ready = state.wait_for(|state| state.is_final());
        // Neither a time-out nor a sender that is gone changes what is answered: the state now.
        let _ = timeout(at_most, ready).await;
        self.status()
    }

    /// The schema of the result as the engine gave it, once there is one.
    pub fn schema(&self) -> Option<SchemaRef> {
        self.lock().schema.clone()
    }

    /// The result, once.
    ///
    /// # Errors
    /// `Conflict` while there is none yet and on a second call, `Gone` when it is over, and the
    /// statement's own error when that failed.
    pub fn result(self: &Arc<Self>, form: &Form) -> Result<ResultStream> {
        let execution = {
            let mut inner = self.lock();
            if let Some(error) = &inner.error {
                return Err(error.clone());
            }
            inner.touched = Instant::now();
            match std::mem::replace(&mut inner.result, Slot::Opening) {
                Slot::Ready(execution) => execution,
                other => {
                    let error = other.refusal();
                    inner.result = other;
                    return Err(error);
                }
            }
        };
        let opened = ResultStream::open(Arc::clone(self), execution, form);
        match &opened {
            Ok(stream) => self.note(format!("sending with codec {}", stream.codec())),
            Err(error) => self.finish(Some(error.clone())),
        }
        opened
    }

    /// Stops the statement, wherever it is.
    pub fn cancel(&self) {
        self.finish(Some(self.cancel_reason()));
    }

    /// Stops the statement if it runs, and gives up its result.
    pub fn close(&self) {
        self.cancel();
        self.lock().result = Slot::Over;
        self.state.send_replace(State::Closed);
    }

    /// How the result travelled so far.
    pub fn delivery(&self) -> Report {
        self.meter.report(self.id)
    }

    /// What the gateway did for this statement, a line a step.
    pub fn log(&self) -> Vec<String> {
        self.lock().log.clone()
    }

    /// The engine has got the statement.
    pub(crate) fn begin(&self) {
        self.lock().started = Some(SystemTime::now());
        self.advance(State::Running);
        self.note("running".to_owned());
    }

    /// The engine gave a result, which waits to be fetched.
    pub(crate) fn ready(&self, execution: Execution) {
        let mut inner = self.lock();
        if inner.completed.is_some() {
            return;
        }
        inner.schema = Some(Arc::clone(&execution.schema));
        inner.result = Slot::Ready(execution);
        inner.touched = Instant::now();
        drop(inner);
        self.meter.wait_for(crate::delivery::Cause::Network);
        self.advance(State::Finished);
        self.note("result ready".to_owned());
    }

    /// Gives back the places under limits before the result is read: nothing runs for it any more.
    pub(crate) fn give_back(&self) {
        let held = self.lock().held.take();
        drop(held);
    }

    /// Holds the stages of the result that is being read, to take them away at the end.
    pub(crate) fn attach(&self, pipeline: &Pipeline) {
        let mut inner = self.lock();
        if inner.completed.is_none() {
            inner.result = Slot::Read(Arc::clone(pipeline));
            return;
        }
        drop(inner);
        pipeline_of(pipeline).take();
    }

    /// Ends the operation; the first end counts.
    pub(crate) fn finish(&self, error: Option<Error>) {
        let mut inner = self.lock();
        if inner.completed.is_some() {
            return;
        }
        inner.completed = Some(SystemTime::now());
        inner.touched = Instant::now();
        inner.error.clone_from(&error);
        let result = std::mem::replace(&mut inner.result, Slot::Over);
        let held = inner.held.take();
        drop(inner);
        if let Slot::Read(pipeline) = &result {
            pipeline_of(pipeline).take();
        }

        let state = match error.as_ref().map(Error::kind) {
            None => State::Finished,
            Some(ErrorKind::Cancelled) => State::Cancelled,
            Some(ErrorKind::Timeout) => State::Timeout,
            Some(_) => State::Error,
        };
        self.note(match &error {
            None => format!("complete: {} rows", self.meter.rows.get()),
            Some(error) => format!("ended: {error}"),
        });
        self.meter.finish(error);
        // Whatever still runs for this statement ends with it.
        self.cancellation.cancel();
        // Observed before the places are given back: who waits for quiet sees every record.
        self.means.observer.operation_ended(self, &self.delivery());
        drop(held);
        self.state.send_replace(state);
    }

    /// How long nothing has happened to a result that waits to be fetched; zero otherwise.
    pub(crate) fn unread_for(&self) -> Duration {
        let inner = self.lock();
        match inner.result {
            Slot::Ready(_) => inner.touched.elapsed(),
            _ => Duration::ZERO,
        }
    }

    /// How long the operation has been over; `None` while it is not.
    pub(crate) fn over_for(&self) -> Option<Duration> {
        let inner = self.lock();
        inner.completed.is_some().then(|| inner.touched.elapsed())
    }

    pub(crate) fn settings(&self) -> &Frozen {
        &self.settings
    }

    pub(crate) fn row_bound(&self) -> RowBound {
        self.row_bound
    }

    pub(crate) fn meter(&self) -> &Arc<Meter> {
        &self.meter
    }

    pub(crate) fn pool(&self) -> &Arc<Pool> {
        &self.means.pool
    }

    pub(crate) fn means(&self) -> &Arc<Means> {
        &self.means
    }

    pub(crate) fn memory(&self) -> u64 {
        self.means.memory
    }

    pub(crate) fn cancellation(&self) -> CancellationToken {
        self.cancellation.clone()
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Whose turn it is in the pool: sessions share it fairly.
    pub(crate) fn tenant(&self) -> u64 {
        let [a, b, c, d, e, f, g, h, ..] = *self.session.as_bytes();
        u64::from_le_bytes([a, b, c, d, e, f, g, h])
    }

    pub(crate) fn timed_out(&self) -> Error {
        let after = self.settings.timeout.unwrap_or_default();
        Error::new(
            ErrorKind::Timeout,
            format!(
                "the statement did not end within query.timeout ({} s)",
                after.as_secs_f64()
            ),
        )
    }

    /// Why the operation's token was cancelled.
    pub(crate) fn cancel_reason(&self) -> Error {
        self.lock()
            .error
            .clone()
            .unwrap_or_else(|| Error::new(ErrorKind::Cancelled, "the statement was cancelled"))
    }

    fn advance(&self, to: State) {
        self.state.send_if_modified(|state| {
            let moves = !state.is_final();
            if moves {
                *state = to;
            }
            moves
        });
    }

    fn note(&self, line: String) {
        let at = self.created.elapsed().unwrap_or_default();
        let mut inner = self.lock();
        if inner.log.len() < LOG_LINES {
            inner.log.push(format!("+{:.3} s {line}", at.as_secs_f64()));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Every write leaves the fields consistent, so a panic elsewhere spoils nothing.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Slot {
    fn refusal(&self) -> Error {
        match self {
            Self::Awaited => Error::new(
                ErrorKind::Conflict,
                "the statement has no result yet; ask for its status",
            )
            .with_retryable(true),
            Self::Opening | Self::Read(_) => Error::new(
                ErrorKind::Conflict,
                "the result is being read already; it can be read once",
            ),
            Self::Ready(_) | Self::Over => Error::new(
                ErrorKind::Gone,
                "the result was read or given up; run the statement again",
            ),
        }
    }
}
