//! What all of a gateway shares: its engines, the tables of sessions and operations, and when an
//! entry leaves them. Must not know who calls.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::engine::Engine;
use crate::error::{Error, ErrorKind};
use crate::handle::Handle;
use crate::operation::{Means, Operation};
use crate::quota::Quota;
use crate::result::RowBound;
use crate::service::Limits;
use crate::session::Session;
use crate::settings::{Defaults, Frozen, Policy};
use crate::statement::{self, literal_limit};

/// Operations that are over and still answer for themselves, at most.
const RECORDS: usize = 4096;

/// The shared state behind [`Gateway`](crate::service::Gateway).
pub(crate) struct Shared {
    pub(crate) engines: HashMap<String, Arc<dyn Engine>>,
    pub(crate) default_engine: String,
    pub(crate) defaults: Arc<Defaults>,
    pub(crate) policy: Arc<Policy>,
    pub(crate) limits: Limits,
    pub(crate) means: Arc<Means>,
    pub(crate) sessions: Mutex<HashMap<Handle, Arc<Session>>>,
    pub(crate) operations: Mutex<HashMap<Handle, Arc<Operation>>>,
    pub(crate) session_quota: Arc<Quota>,
    pub(crate) operation_quota: Arc<Quota>,
    /// No new sessions and statements from now on.
    pub(crate) draining: CancellationToken,
    /// The root of every session's token.
    pub(crate) cancellation: CancellationToken,
}

impl Shared {
    /// The engine that a statement with `settings` goes to.
    pub(crate) fn engine_name<'a>(&'a self, settings: &'a Frozen) -> &'a str {
        settings.engine.as_deref().unwrap_or(&self.default_engine)
    }

    /// The bound on the rows of `query`: its own literal `LIMIT`, and what settings and caller ask.
    pub(crate) fn row_bound(
        &self,
        query: &statement::Query,
        settings: &Frozen,
        asked: Option<u64>,
    ) -> RowBound {
        let dialect = self
            .engines
            .get(self.engine_name(settings))
            .map(|engine| engine.dialect());
        RowBound {
            literal: dialect.and_then(|dialect| literal_limit(&query.text, dialect)),
            told: [asked, Some(settings.max_rows)]
                .into_iter()
                .flatten()
                .filter(|rows| *rows > 0)
                .min(),
        }
    }

    /// Closes `session` and stops what runs in it.
    pub(crate) fn forget_session(&self, session: &Arc<Session>) {
        if lock(&self.sessions).remove(&session.id()).is_none() {
            return;
        }
        let running: Vec<_> = lock(&self.operations)
            .values()
            .filter(|operation| operation.session() == session.id())
            .cloned()
            .collect();
        for operation in running {
            operation.cancel();
        }
        session.cancellation().cancel();
        self.means.observer.session_closed(session);
    }

    /// Closes what is idle, gives up what nobody fetches, forgets what was over long ago.
    pub(crate) fn sweep(&self) {
        let idle: Vec<_> = lock(&self.sessions)
            .values()
            .filter(|session| session.idle() >= self.limits.session_idle)
            .cloned()
            .collect();
        for session in idle {
            self.forget_session(&session);
        }
        let all: Vec<_> = lock(&self.operations).values().cloned().collect();
        for operation in &all {
            if operation.unread_for() >= self.limits.result_idle {
                operation.finish(Some(unread(self.limits.result_idle)));
            }
        }
        let mut over: Vec<_> = all
            .iter()
            .filter_map(|operation| operation.over_for().map(|age| (age, operation.id())))
            .collect();
        over.sort_unstable_by_key(|(age, _)| *age);
        let mut operations = lock(&self.operations);
        for (index, (age, id)) in over.into_iter().enumerate() {
            if age >= self.limits.operation_retention || index >= RECORDS {
                operations.remove(&id);
            }
        }
    }
}

fn unread(after: Duration) -> Error {
    Error::new(
        ErrorKind::Gone,
        format!(
            "nobody fetched the result within limits.result_idle_timeout ({} s); run the statement again",
            after.as_secs()
        ),
    )
}

/// What callers of a stopping gateway are told.
pub(crate) fn stopping() -> Error {
    Error::new(
        ErrorKind::Overloaded,
        "the gateway is stopping; try again at another one",
    )
    .with_sqlstate("57P01")
}

/// A table, locked.
pub(crate) fn lock<K: Eq + Hash, V>(table: &Mutex<HashMap<K, V>>) -> MutexGuard<'_, HashMap<K, V>> {
    // Single map calls: a panic elsewhere leaves the table whole.
    table.lock().unwrap_or_else(PoisonError::into_inner)
}
