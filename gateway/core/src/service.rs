//! The one thing that front ends call: open a session, execute, find, cancel, close. Owns the
//! tables of sessions and operations and the limits on both. Must not know who calls, nor how a
//! statement is run (that is `run`).

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sluice_ipc::Pool;
use tokio_util::sync::CancellationToken;

use crate::auth::Identity;
use crate::client::Client;
use crate::delivery::Report;
use crate::engine::{Engine, MetadataRequest};
use crate::error::{Error, ErrorKind, Result};
use crate::handle::Handle;
use crate::operation::{Means, Operation, Parts, State};
use crate::quota::Quota;
use crate::result::RowBound;
use crate::run::{self, Task};
pub use crate::session::OpenSession;
use crate::session::Session;
use crate::settings::{Defaults, Frozen, Policy, Settings, Source, Unknown};
use crate::shared::{Shared, lock, stopping};
use crate::statement::{self, Statement, redact};

/// How long an engine has to say that it would take a statement.
const PROBE: Duration = Duration::from_secs(2);

/// What a statement is executed with.
#[derive(Clone, Debug, Default)]
pub struct ExecuteOptions {
    /// Rows after which the result is cut, which is told.
    pub max_rows: Option<u64>,
    /// Settings for this statement alone.
    pub settings: Vec<(String, String)>,
    /// A time-out for this statement alone.
    pub timeout: Option<Duration>,
    /// Whether to return only when there is a result, and to fail when the statement fails.
    pub wait: bool,
    /// What the reader takes, where that differs from the session's client.
    pub client: Option<Client>,
}

/// Told what happens; counts and logs it. No call may block.
pub trait Observer: Send + Sync {
    /// A session was opened.
    fn session_opened(&self, session: &Session);
    /// A session is gone.
    fn session_closed(&self, session: &Session);
    /// A statement came in.
    fn operation_started(&self, operation: &Operation);
    /// A statement is over, its delivery included.
    fn operation_ended(&self, operation: &Operation, report: &Report);
}

/// The bounds of a gateway.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Sessions in all.
    pub sessions: usize,
    /// Sessions of one user.
    pub sessions_per_user: usize,
    /// Statements that run or stream, in all.
    pub operations: usize,
    /// Statements of one user that run or stream.
    pub operations_per_user: usize,
    /// A session on which nothing ran, streamed or was asked for so long is closed.
    pub session_idle: Duration,
    /// A result that nobody fetches for so long is given up.
    pub result_idle: Duration,
    /// How long an operation that is over still answers for itself.
    pub operation_retention: Duration,
    /// Bytes that one operation may hold on their way.
    pub operation_memory: u64,
}

/// What a gateway is built from.
pub struct GatewayParts {
    /// Engines by name.
    pub engines: HashMap<String, Arc<dyn Engine>>,
    /// The name of the engine that sessions use unless they choose.
    pub default_engine: String,
    /// Server and user defaults of settings.
    pub defaults: Defaults,
    /// What may not be set, and how high.
    pub policy: Policy,
    /// The bounds.
    pub limits: Limits,
    /// Where batches are encoded.
    pub pool: Arc<Pool>,
    /// Who is told.
    pub observer: Arc<dyn Observer>,
}

/// The gateway. A cheap handle: clones share everything.
#[derive(Clone)]
pub struct Gateway {
    pub(crate) shared: Arc<Shared>,
}

impl Gateway {
    /// A gateway without sessions.
    pub fn new(parts: GatewayParts) -> Self {
        let limits = parts.limits;
        let means = Means {
            pool: parts.pool,
            memory: limits.operation_memory,
            observer: parts.observer,
        };
        Self {
            shared: Arc::new(Shared {
                engines: parts.engines,
                default_engine: parts.default_engine,
                defaults: Arc::new(parts.defaults),
                policy: Arc::new(parts.policy),
                means: Arc::new(means),
                sessions: Mutex::default(),
                operations: Mutex::default(),
                session_quota: Quota::new("sessions", limits.sessions, limits.sessions_per_user),
                operation_quota: Quota::new(
                    "operations",
                    limits.operations,
                    limits.operations_per_user,
                ),
                limits,
                draining: CancellationToken::new(),
                cancellation: CancellationToken::new(),
            }),
        }
    }

    /// Opens a session for `identity`. All of its settings are good, or there is no session.
    ///
    /// # Errors
    /// What is wrong with a setting, a catalog or a schema; `Overloaded` at a limit.
    pub async fn open_session(
        &self,
        identity: Identity,
        request: OpenSession,
    ) -> Result<Arc<Session>> {
        self.refuse_when_draining()?;
        let place = self.shared.session_quota.enter(identity.user())?;
        let wanted = request.settings.clone();
        let names_schema = request.catalog.is_some() || request.schema.is_some();
        let settings = Settings::new(
            Arc::clone(&self.shared.defaults),
            Arc::clone(&self.shared.policy),
            identity.user(),
            self.engine_prefixes(),
        );
        let cancellation = self.shared.cancellation.child_token();
        let session = Session::new(identity, request, settings, cancellation, place)?;
        for (key, value) in wanted {
            run::assign(
                &self.shared,
                &session,
                (&key, &value),
                Source::Connection,
                Unknown::Refuse,
            )
            .await?;
        }
        if names_schema {
            // Opened now, so that a wrong name is an error here and not at the first statement.
            run::engine_session(&self.shared, &session, None).await?;
        }
        lock(&self.shared.sessions).insert(session.id(), Arc::clone(&session));
        self.shared.means.observer.session_opened(&session);
        Ok(session)
    }

    /// The user's session of that name.
    ///
    /// # Errors
    /// `NotFound`, also for another user's session.
    pub fn session(&self, identity: &Identity, id: &Handle) -> Result<Arc<Session>> {
        let session = lock(&self.shared.sessions).get(id).cloned();
        let session = session
            .filter(|session| session.identity() == identity)
            .ok_or_else(|| Error::not_found("session"))?;
        session.touch();
        Ok(session)
    }

    /// The user's sessions, oldest first.
    pub fn sessions(&self, identity: &Identity) -> Vec<Arc<Session>> {
        let mut own: Vec<_> = lock(&self.shared.sessions)
            .values()
            .filter(|session| session.identity() == identity)
            .cloned()
            .collect();
        own.sort_by_key(|session| session.created());
        own
    }

    /// The session whose bearer token this is.
    ///
    /// # Errors
    /// `Unauthenticated`, alike for what was never a token and for a session that is gone.
    pub fn session_of_token(&self, token: &str) -> Result<Arc<Session>> {
        let refused = || {
            Error::new(
                ErrorKind::Unauthenticated,
                "the session token is not valid, or its session is over",
            )
        };
        let (id, secret) = token.split_once('.').ok_or_else(refused)?;
        let (id, secret) = (id.parse::<Handle>(), secret.parse::<Handle>());
        let (Ok(id), Ok(secret)) = (id, secret) else {
            return Err(refused());
        };
        let session = lock(&self.shared.sessions).get(&id).cloned();
        session
            .filter(|session| session.is_proved_by(&secret))
            .ok_or_else(refused)
    }

    /// Closes the user's session, and with it whatever runs in it.
    ///
    /// # Errors
    /// `NotFound`, also for another user's session.
    pub fn close_session(&self, identity: &Identity, id: &Handle) -> Result<()> {
        let session = self.session(identity, id)?;
        self.shared.forget_session(&session);
        Ok(())
    }

    /// Executes `text` in `session`. With `wait` it returns when there is a result; without, at
    /// once, and what goes wrong is in the operation's status.
    ///
    /// # Errors
    /// What is wrong with the text or its settings; `Overloaded` at a limit; with `wait` also the
    /// statement's own error.
    pub async fn execute(
        &self,
        session: &Arc<Session>,
        text: &str,
        options: ExecuteOptions,
    ) -> Result<Arc<Operation>> {
        let statement = statement::parse(text)?;
        let settings = self.frozen(session, &options)?;
        let bound = match &statement {
            Statement::Query(query) => self.shared.row_bound(query, &settings, options.max_rows),
            _ => RowBound::default(),
        };
        let operation = self.operation_of(session, redact(text), settings, bound, &options)?;
        self.start(
            session,
            &operation,
            Task::Statement(statement),
            options.wait,
        )
        .await
    }

    /// Opens a session, executes `text` in it and returns when there is a result. The session
    /// ends with its one operation.
    ///
    /// # Errors
    /// Those of [`open_session`](Self::open_session) and [`execute`](Self::execute).
    pub async fn query(
        &self,
        identity: Identity,
        request: OpenSession,
        text: &str,
        options: ExecuteOptions,
    ) -> Result<Arc<Operation>> {
        let session = self.open_session(identity, request).await?;
        let failed = Abandoned::then(|| self.shared.forget_session(&session));
        let operation = self
            .execute(
                &session,
                text,
                ExecuteOptions {
                    wait: true,
                    ..options
                },
            )
            .await?;
        let (shared, watched) = (Arc::clone(&self.shared), Arc::clone(&session));
        let over = operation.cancellation();
        failed.disarm();
        tokio::spawn(async move {
            over.cancelled().await;
            shared.forget_session(&watched);
        });
        Ok(operation)
    }

    /// Answers a question about what the session's engine holds.
    ///
    /// # Errors
    /// `Overloaded` at a limit, and what the engine says.
    pub async fn metadata(
        &self,
        session: &Arc<Session>,
        request: MetadataRequest,
    ) -> Result<Arc<Operation>> {
        let options = ExecuteOptions {
            wait: true,
            ..ExecuteOptions::default()
        };
        let settings = self.frozen(session, &options)?;
        let name = format!("-- {}", request.name());
        let operation =
            self.operation_of(session, name, settings, RowBound::default(), &options)?;
        self.start(session, &operation, Task::Metadata(request), true)
            .await
    }

    /// The user's operation of that name.
    ///
    /// # Errors
    /// `NotFound`, also for another user's operation and for one that was over long ago.
    pub fn operation(&self, identity: &Identity, id: &Handle) -> Result<Arc<Operation>> {
        let operation = lock(&self.shared.operations).get(id).cloned();
        let operation = operation
            .filter(|operation| operation.user() == identity.user())
            .ok_or_else(|| Error::new(ErrorKind::NotFound, "operation not found"))?;
        if let Some(session) = lock(&self.shared.sessions).get(&operation.session()) {
            session.touch();
        }
        Ok(operation)
    }

    /// The operations of `session` that still answer for themselves, oldest first.
    pub fn operations(&self, session: &Session) -> Vec<Arc<Operation>> {
        let mut own: Vec<_> = lock(&self.shared.operations)
            .values()
            .filter(|operation| operation.session() == session.id())
            .cloned()
            .collect();
        own.sort_by_key(|operation| operation.status().created);
        own
    }

    /// Sessions that are open.
    pub fn open_sessions(&self) -> usize {
        self.shared.session_quota.in_use()
    }

    /// Statements that run or stream.
    pub fn running_operations(&self) -> usize {
        self.shared.operation_quota.in_use()
    }

    /// Whether every engine would take a statement, by name.
    pub async fn probe(&self) -> Vec<(String, Result<()>)> {
        let probes = self.shared.engines.iter().map(|(name, engine)| async {
            let probed = tokio::time::timeout(PROBE, engine.probe()).await;
            (name.clone(), probed.unwrap_or_else(|_| Err(silent())))
        });
        let mut answers = futures::future::join_all(probes).await;
        answers.sort_by(|a, b| a.0.cmp(&b.0));
        answers
    }

    /// From now on refuses new sessions and statements; what runs goes on.
    pub fn begin_drain(&self) {
        self.shared.draining.cancel();
    }

    /// Whether new sessions and statements are refused.
    pub fn is_draining(&self) -> bool {
        self.shared.draining.is_cancelled()
    }

    /// Stops everything that runs.
    pub fn cancel_all(&self) {
        self.shared.cancellation.cancel();
        let running: Vec<_> = lock(&self.shared.operations).values().cloned().collect();
        for operation in running {
            operation.finish(Some(stopping()));
        }
    }

    /// Closes what is idle and forgets what is over, until the gateway is dropped or stopped.
    /// To be run beside it.
    pub async fn keep_house(&self) {
        let limits = &self.shared.limits;
        let shortest = limits
            .session_idle
            .min(limits.result_idle)
            .min(limits.operation_retention);
        let mut tick = tokio::time::interval(
            (shortest / 4).clamp(Duration::from_millis(50), Duration::from_secs(15)),
        );
        loop {
            tokio::select! {
                () = self.shared.cancellation.cancelled() => return,
                _ = tick.tick() => self.shared.sweep(),
            }
        }
    }

    fn refuse_when_draining(&self) -> Result<()> {
        if self.is_draining() {
            Err(stopping())
        } else {
            Ok(())
        }
    }

    fn engine_prefixes(&self) -> Vec<&'static str> {
        let mut prefixes: Vec<_> = self
            .shared
            .engines
            .values()
            .flat_map(|engine| engine.setting_prefixes())
            .copied()
            .collect();
        prefixes.sort_unstable();
        prefixes.dedup();
        prefixes
    }

    fn frozen(&self, session: &Session, options: &ExecuteOptions) -> Result<Frozen> {
        let mut frozen = session.settings().overlay(&options.settings)?.freeze();
        if let Some(timeout) = options.timeout.filter(|timeout| !timeout.is_zero()) {
            frozen.timeout = Some(frozen.timeout.map_or(timeout, |own| own.min(timeout)));
        }
        Ok(frozen)
    }

    fn operation_of(
        &self,
        session: &Arc<Session>,
        statement: String,
        settings: Frozen,
        row_bound: RowBound,
        options: &ExecuteOptions,
    ) -> Result<Arc<Operation>> {
        self.refuse_when_draining()?;
        let place = self.shared.operation_quota.enter(session.user())?;
        let operation = Operation::new(Parts {
            session: session.id(),
            identity: session.identity().clone(),
            statement,
            settings,
            client: options
                .client
                .clone()
                .unwrap_or_else(|| session.client().clone()),
            row_bound,
            cancellation: session.cancellation().child_token(),
            means: Arc::clone(&self.shared.means),
            held: Box::new((place, session.busy())),
        })?;
        lock(&self.shared.operations).insert(operation.id(), Arc::clone(&operation));
        self.shared.means.observer.operation_started(&operation);
        Ok(operation)
    }

    async fn start(
        &self,
        session: &Arc<Session>,
        operation: &Arc<Operation>,
        task: Task,
        wait: bool,
    ) -> Result<Arc<Operation>> {
        tokio::spawn(run::drive(
            Arc::clone(&self.shared),
            Arc::clone(session),
            Arc::clone(operation),
            task,
        ));
        if wait {
            let left = Abandoned::then(|| operation.cancel());
            let status = operation.wait_ready(Duration::MAX).await;
            left.disarm();
            if let (Some(error), true) = (status.error, status.state != State::Finished) {
                return Err(error.of_operation(operation.id()));
            }
        }
        Ok(Arc::clone(operation))
    }
}

fn silent() -> Error {
    let message = format!("the engine did not answer within {} s", PROBE.as_secs());
    Error::new(ErrorKind::Timeout, message)
}

/// Does something when its caller goes away, unless it was told that all went well.
struct Abandoned<F: FnMut()> {
    act: F,
    armed: bool,
}

impl<F: FnMut()> Abandoned<F> {
    fn then(act: F) -> Self {
        Self { act, armed: true }
    }

    fn disarm(mut self) {
        self.armed = false;
    }
}

impl<F: FnMut()> Drop for Abandoned<F> {
    fn drop(&mut self) {
        if self.armed {
            (self.act)();
        }
    }
}
