//! A session: whose it is, its settings, its engine sessions, its idle clock. Must not know how a
//! statement is read or run.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use subtle::ConstantTimeEq;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::auth::Identity;
use crate::client::Client;
use crate::engine::{Engine, EngineSession, SessionOptions};
use crate::error::Result;
use crate::handle::Handle;
use crate::operation::Operation;
use crate::quota::Place;
use crate::settings::{Row, Settings};

/// What a session is opened with.
#[derive(Clone, Debug, Default)]
pub struct OpenSession {
    /// Settings from the connection, in the order in which they came.
    pub settings: Vec<(String, String)>,
    /// Default catalog; the engine's own when absent.
    pub catalog: Option<String>,
    /// Default schema; the engine's own when absent.
    pub schema: Option<String>,
    /// What the program at the other end reads.
    pub client: Client,
    /// A name for people.
    pub name: Option<String>,
    /// Where it comes from.
    pub peer: Option<IpAddr>,
}

/// A session of one user.
pub struct Session {
    id: Handle,
    /// The second half of the bearer token.
    secret: Handle,
    identity: Identity,
    name: Option<String>,
    peer: Option<IpAddr>,
    client: Client,
    created: SystemTime,
    /// Where engine sessions start.
    start: (Option<String>, Option<String>),
    cancellation: CancellationToken,
    settings: Mutex<Settings>,
    /// Engine sessions by engine name, made on first use. The lock is held while one is opened,
    /// so that two statements do not open two.
    engines: tokio::sync::Mutex<HashMap<String, Arc<dyn EngineSession>>>,
    activity: Mutex<Activity>,
    _place: Place,
}

struct Activity {
    running: usize,
    last: Instant,
    /// The last statement whose rows an engine gave.
    last_query: Option<Arc<Operation>>,
    operations: u64,
}

impl Session {
    pub(crate) fn new(
        identity: Identity,
        request: OpenSession,
        settings: Settings,
        cancellation: CancellationToken,
        place: Place,
    ) -> Result<Arc<Self>> {
        Ok(Arc::new(Self {
            id: Handle::random()?,
            secret: Handle::random()?,
            identity,
            name: request.name,
            peer: request.peer,
            client: request.client,
            created: SystemTime::now(),
            start: (request.catalog, request.schema),
            cancellation,
            settings: Mutex::new(settings),
            engines: tokio::sync::Mutex::default(),
            activity: Mutex::new(Activity {
                running: 0,
                last: Instant::now(),
                last_query: None,
                operations: 0,
            }),
            _place: place,
        }))
    }

    /// The session's name.
    pub fn id(&self) -> Handle {
        self.id
    }

    /// Whose it is.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Whose it is, by name.
    pub fn user(&self) -> &str {
        self.identity.user()
    }

    /// The bearer token that stands for the user while the session lives. A secret.
    pub fn token(&self) -> String {
        format!("{}.{}", self.id, self.secret)
    }

    /// The name that the client gave it.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Where it was opened from.
    pub fn peer(&self) -> Option<IpAddr> {
        self.peer
    }

    /// What the client reads.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// When it was opened.
    pub fn created(&self) -> SystemTime {
        self.created
    }

    /// How long nothing has run, streamed or been asked; zero while something runs.
    pub fn idle(&self) -> Duration {
        let activity = self.activity();
        match activity.running {
            0 => activity.last.elapsed(),
            _ => Duration::ZERO,
        }
    }

    /// Statements that it has seen.
    pub fn operations_seen(&self) -> u64 {
        self.activity().operations
    }

    /// The settings as rows of `SHOW ALL`.
    pub fn settings_rows(&self) -> Vec<Row> {
        self.settings().rows()
    }

    /// Whether `secret` is this session's, compared in constant time.
    pub(crate) fn is_proved_by(&self, secret: &Handle) -> bool {
        self.secret.as_bytes().ct_eq(secret.as_bytes()).into()
    }

    pub(crate) fn settings(&self) -> MutexGuard<'_, Settings> {
        // A change is checked before it is made, so a panic elsewhere leaves whole values.
        self.settings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn cancellation(&self) -> &CancellationToken {
        &self.cancellation
    }

    /// The session of `engine`, opened on first use in the session's catalog, schema and zone.
    pub(crate) async fn engine(
        &self,
        name: &str,
        engine: &Arc<dyn Engine>,
    ) -> Result<Arc<dyn EngineSession>> {
        let mut engines = self.engines.lock().await;
        if let Some(open) = engines.get(name) {
            return Ok(Arc::clone(open));
        }
        let (catalog, schema) = self.start.clone();
        let (time_zone, known) = {
            let settings = self.settings();
            (settings.freeze().time_zone, settings.engine_settings())
        };
        let opened = engine
            .open(SessionOptions {
                catalog,
                schema,
                time_zone,
            })
            .await?;
        for (key, value) in known
            .iter()
            .filter(|(key, _)| has_prefix(key, engine.setting_prefixes()))
        {
            opened.set(key, value).await?;
        }
        engines.insert(name.to_owned(), Arc::clone(&opened));
        Ok(opened)
    }

    /// The engine sessions that are open.
    pub(crate) async fn open_engines(&self) -> Vec<Arc<dyn EngineSession>> {
        self.engines.lock().await.values().map(Arc::clone).collect()
    }

    /// Marks the session as used now.
    pub(crate) fn touch(&self) {
        self.activity().last = Instant::now();
    }

    /// Marks the session as busy until the guard is dropped.
    pub(crate) fn busy(self: &Arc<Self>) -> Busy {
        let mut activity = self.activity();
        activity.running += 1;
        activity.operations += 1;
        drop(activity);
        Busy(Arc::clone(self))
    }

    pub(crate) fn set_last_query(&self, operation: &Arc<Operation>) {
        self.activity().last_query = Some(Arc::clone(operation));
    }

    pub(crate) fn last_query(&self) -> Option<Arc<Operation>> {
        self.activity().last_query.clone()
    }

    fn activity(&self) -> MutexGuard<'_, Activity> {
        self.activity.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn has_prefix(key: &str, prefixes: &[&str]) -> bool {
    prefixes.iter().any(|prefix| {
        key.get(..prefix.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(prefix))
    })
}

/// Keeps the idle clock of a session from running.
pub(crate) struct Busy(Arc<Session>);

impl Drop for Busy {
    fn drop(&mut self) {
        let mut activity = self.0.activity();
        activity.running -= 1;
        activity.last = Instant::now();
    }
}
