//! Runs one statement: what is the session's own is answered here, the rest goes to the engine.
//! A bare match over statements. Must not know tables of sessions or limits on them.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::{FutureExt, StreamExt};
use tokio::time::sleep_until;

use crate::answer;
use crate::engine::{EngineSession, Execution, MetadataRequest, Query};
use crate::error::{Error, ErrorKind, Result};
use crate::operation::{Operation, Parts};
use crate::result::{Form, source};
use crate::session::Session;
use crate::settings::{Change, Row, Source, Unknown};
use crate::shared::Shared;
use crate::statement::{self, Statement};

/// What an operation does.
pub(crate) enum Task {
    Metadata(MetadataRequest),
    Statement(Statement),
}

impl Task {
    /// Whether the gateway itself answers, with a few rows that no engine works for.
    fn is_ours(&self) -> bool {
        !matches!(
            self,
            Self::Metadata(_) | Self::Statement(Statement::Query(_))
        )
    }
}

/// Runs `task` for `operation` as far as its result, or its error. Ends early when the operation
/// is cancelled or its time is over; dropping the engine's future stops the engine.
pub(crate) async fn drive(
    shared: Arc<Shared>,
    session: Arc<Session>,
    operation: Arc<Operation>,
    task: Task,
) {
    operation.begin();
    let is_ours = task.is_ours();
    let over = async {
        match operation.deadline() {
            Some(at) => sleep_until(at).await,
            None => std::future::pending().await,
        }
    };
    let work = AssertUnwindSafe(run(&shared, &session, &operation, task)).catch_unwind();
    let cancellation = operation.cancellation();
    let outcome = tokio::select! {
        biased;
        () = cancellation.cancelled() => Err(operation.cancel_reason()),
        () = over => Err(operation.timed_out()),
        done = work => done.unwrap_or_else(|_| Err(source::panicked())),
    };
    match outcome {
        Ok(execution) => operation.ready(execution),
        Err(error) => operation.finish(Some(error)),
    }
    if is_ours {
        operation.give_back();
    }
}

async fn run(
    shared: &Arc<Shared>,
    session: &Arc<Session>,
    operation: &Arc<Operation>,
    task: Task,
) -> Result<Execution> {
    let statement = match task {
        Task::Metadata(request) => {
            return engine_session(shared, session, Some(operation))
                .await?
                .metadata(request)
                .await;
        }
        Task::Statement(statement) => statement,
    };
    match statement {
        Statement::Set(set) => set_and_show(shared, session, &set.key, &set.value).await,
        Statement::SetTimeZone(set) => {
            set_and_show(shared, session, "session.timeZone", &set.zone).await
        }
        Statement::Reset(reset) => reset_settings(shared, session, reset.key.as_deref()).await,
        Statement::Show(show) => {
            answer::settings(&[shown(shared, session, &show.key).await?], show.verbose)
        }
        Statement::ShowAll(show) => answer::settings(&session.settings().rows(), show.verbose),
        Statement::ShowDelivery => {
            let last = session.last_query().ok_or_else(|| {
                Error::invalid(
                    "55000",
                    "no statement of this session has delivered rows yet; run a query first",
                )
            })?;
            answer::delivery(&last.delivery())
        }
        Statement::ShowClient => answer::client(
            operation.client(),
            &operation.settings().choose_codec(operation.client()),
        ),
        Statement::Use(target) => {
            let engine = engine_session(shared, session, Some(operation)).await?;
            engine
                .use_schema(target.catalog.as_deref(), target.schema.as_deref())
                .await?;
            let (catalog, schema) = engine.current_schema().await?;
            answer::pairs(&[("catalog", catalog), ("schema", schema)])
        }
        Statement::ExplainDelivery(explain) => {
            explain_delivery(shared, session, operation, &explain.statement).await
        }
        Statement::Query(query) => {
            session.set_last_query(operation);
            let row_bound = operation.row_bound();
            let row_hint = [row_bound.literal, row_bound.told]
                .into_iter()
                .flatten()
                .min();
            let engine = engine_session(shared, session, Some(operation)).await?;
            engine
                .execute(Query {
                    text: query.text.into(),
                    row_hint,
                })
                .await
        }
    }
}

async fn set_and_show(
    shared: &Shared,
    session: &Session,
    key: &str,
    value: &str,
) -> Result<Execution> {
    let row = assign(
        shared,
        session,
        (key, value),
        Source::Session,
        Unknown::Refuse,
    )
    .await?;
    answer::settings(&[row], false)
}

/// The session's engine session; for a statement, that of the engine that its settings name.
pub(crate) async fn engine_session(
    shared: &Shared,
    session: &Session,
    operation: Option<&Operation>,
) -> Result<Arc<dyn EngineSession>> {
    let name = match operation {
        Some(operation) => shared.engine_name(operation.settings()).to_owned(),
        None => shared.engine_name(&session.settings().freeze()).to_owned(),
    };
    let engine = shared
        .engines
        .get(&name)
        .ok_or_else(|| unknown_engine(shared, &name))?;
    session.engine(&name, engine).await
}

/// Sets `pair` in the session: our own keys here, the engine's through its API, where it is
/// checked at once. Answers with the row that `SHOW` would give.
pub(crate) async fn assign(
    shared: &Shared,
    session: &Session,
    pair: (&str, &str),
    source: Source,
    unknown: Unknown,
) -> Result<Row> {
    let (key, value) = pair;
    // Checked on a copy: an engine that refuses the value leaves the session as it was.
    let mut changed = session.settings().clone();
    match changed.set(key, value, source, unknown)? {
        Change::Engine { key, value } => {
            engine_session(shared, session, None)
                .await?
                .set(&key, &value)
                .await?;
            session.settings().record_engine(&key, &value, source);
        }
        Change::Ours { .. } => {
            let (before, after) = (session.settings().freeze(), changed.freeze());
            if let Some(name) = after
                .engine
                .as_deref()
                .filter(|name| !shared.engines.contains_key(*name))
            {
                return Err(unknown_engine(shared, name));
            }
            if after.time_zone != before.time_zone {
                for engine in session.open_engines().await {
                    engine.set_time_zone(&after.time_zone).await?;
                }
            }
            session.settings().set(key, value, source, unknown)?;
        }
        Change::Ignored { .. } | Change::Kept { .. } => {
            session.settings().set(key, value, source, unknown)?;
        }
    }
    session.settings().row(key)
}

async fn reset_settings(
    shared: &Shared,
    session: &Session,
    key: Option<&str>,
) -> Result<Execution> {
    let reset = session.settings().reset(key)?;
    if !reset.engine_keys.is_empty() || !reset.engine_pairs.is_empty() {
        let engine = engine_session(shared, session, None).await?;
        for key in &reset.engine_keys {
            engine.reset(key).await?;
        }
        for (key, value) in &reset.engine_pairs {
            engine.set(key, value).await?;
        }
    }
    let zone = session.settings().freeze().time_zone;
    for engine in session.open_engines().await {
        engine.set_time_zone(&zone).await?;
    }
    answer::reset(&reset)
}

/// The row of `key`: ours, or the engine's own with the value that is in force there.
async fn shown(shared: &Shared, session: &Session, key: &str) -> Result<Row> {
    let row = session.settings().row(key)?;
    if !row.is_engine {
        return Ok(row);
    }
    let own = engine_session(shared, session, None)
        .await?
        .settings()
        .await?;
    let own = own
        .into_iter()
        .find(|setting| setting.key.eq_ignore_ascii_case(key));
    Ok(match own {
        Some(own) => row.with_engine_value(&own.value, &own.description),
        None => row,
    })
}

/// Runs a statement without sending its rows, and answers with how they would have travelled.
async fn explain_delivery(
    shared: &Arc<Shared>,
    session: &Arc<Session>,
    outer: &Arc<Operation>,
    text: &str,
) -> Result<Execution> {
    let Statement::Query(query) = statement::parse(text)? else {
        return Err(Error::invalid(
            "42601",
            "EXPLAIN DELIVERY takes a query; for settings use SHOW",
        ));
    };
    let inner = Operation::new(Parts {
        session: session.id(),
        identity: session.identity().clone(),
        statement: outer.statement().to_owned(),
        settings: outer.settings().clone(),
        client: outer.client().clone(),
        row_bound: shared.row_bound(&query, outer.settings(), None),
        cancellation: outer.cancellation().child_token(),
        means: Arc::clone(outer.means()),
        held: Box::new(()),
    })?;
    outer.means().observer.operation_started(&inner);
    inner.begin();
    let engine = engine_session(shared, session, Some(outer)).await?;
    inner.ready(
        engine
            .execute(Query {
                text: query.text.into(),
                row_hint: None,
            })
            .await?,
    );
    let form = Form {
        codec: None,
        client: outer.client().clone(),
        max_batch_bytes: u64::MAX,
        max_row_bytes: u64::MAX,
    };
    let mut stream = inner.result(&form)?;
    while let Some(message) = stream.next().await {
        message?;
    }
    answer::delivery(&inner.delivery())
}

fn unknown_engine(shared: &Shared, name: &str) -> Error {
    let mut known: Vec<_> = shared.engines.keys().map(String::as_str).collect();
    known.sort_unstable();
    Error::new(
        ErrorKind::Invalid,
        format!(
            "no engine is called {name:?}; allowed values: {}",
            known.join(", ")
        ),
    )
    .with_sqlstate("22023")
}
