//! The composition root: a configuration becomes engines, core, doors and bound sockets; those
//! run, are reloaded and are stopped. Must not know how a request is served.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use sluice_core::engine::Engine;
use sluice_core::service::{Gateway, GatewayParts, Observer};
use sluice_ipc::Pool;
use tokio::time::sleep;
use tracing::{error, info, warn};

use crate::config::Config;
use crate::frontend::admin::Admin;
use crate::frontend::http::{Http, HttpSettings};
use crate::net::drain::Drain;
use crate::net::listener::Listener;
use crate::net::serve::{Security, ServeConnection, serve};
use crate::net::tls::{Certificate, Tls};
use crate::observe::{METRICS_TYPE, Metrics, Watched};
use crate::{auth, engine, net};

/// Connections of administrators at one time.
const ADMIN_CONNECTIONS: usize = 64;

/// What was cancelled has so long to end.
const AFTER_CANCEL: Duration = Duration::from_secs(3);

/// How often a stopping gateway looks whether statements still run.
const LOOK: Duration = Duration::from_millis(50);

/// Why a gateway cannot start.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum Error {
    #[error("{0}")]
    Listen(#[from] std::io::Error),
    #[error("{0}")]
    Tls(#[from] net::tls::Error),
    #[error("{0}")]
    Auth(#[from] auth::file::Error),
    #[error("{0}")]
    Engine(#[from] sluice_core::error::Error),
    #[error("the engines' start was interrupted: {0}")]
    Interrupted(#[from] tokio::task::JoinError),
}

/// A gateway that is bound and wired, and does not run yet.
pub struct App {
    listener: Listener,
    admin_listener: Listener,
    security: Security,
    door: Arc<dyn ServeConnection>,
    admin: Arc<dyn ServeConnection>,
    drain: Drain,
    parts: Parts,
}

/// What a running gateway needs for reloading and stopping.
struct Parts {
    gateway: Gateway,
    tls: Tls,
    auth: auth::Built,
    metrics: Arc<Metrics>,
    drain_timeout: Duration,
}

impl App {
    /// Binds the sockets and wires the parts that `config` names. Starts nothing.
    ///
    /// # Errors
    /// Whatever cannot be bound, read or built, by name.
    pub async fn build(config: Config) -> Result<Self, Error> {
        Self::build_with(config, Vec::new()).await
    }

    /// The same, with engines beyond those of the configuration.
    ///
    /// # Errors
    /// Those of [`build`](Self::build).
    pub async fn build_with(
        config: Config,
        extra: Vec<(String, Arc<dyn Engine>)>,
    ) -> Result<Self, Error> {
        let server = config.server;
        let listener = Listener::bind(server.listen, server.max_connections).await?;
        let admin_listener = Listener::bind(config.admin.listen, ADMIN_CONNECTIONS).await?;
        let (tls, auth) = (Tls::load(config.tls)?, auth::Built::new(config.auth)?);
        let (metrics, drain) = (Arc::new(Metrics::new()), Drain::new());
        let settings = HttpSettings {
            instance: listener.address().to_string(),
            clients: config.clients,
            operations: config.limits.operations,
            max_body: server.request_body_limit,
            header_timeout: server.header_timeout,
            max_row_bytes: server.max_row_bytes,
            fetch_idle: config.limits.result_idle,
            ..HttpSettings::default()
        };
        let gateway = Gateway::new(GatewayParts {
            engines: engines(config.engines, extra).await?,
            default_engine: config.default_engine,
            defaults: config.defaults,
            policy: config.policy,
            limits: config.limits,
            pool: Arc::new(Pool::new(server.codec_threads)),
            observer: Arc::clone(&metrics) as Arc<dyn Observer>,
        });
        let watched = Arc::new(Watched::new(auth.authenticator(), Arc::clone(&metrics)));
        let app = Self {
            listener,
            admin_listener,
            security: Security::Tls(tls.acceptor(), server.handshake_timeout),
            door: Arc::new(Http::new(gateway.clone(), watched, settings)),
            admin: Arc::new(admin_door(&gateway, &metrics, &drain)),
            drain,
            parts: Parts {
                gateway,
                tls,
                auth,
                metrics,
                drain_timeout: server.drain_timeout,
            },
        };
        app.parts.show_certificate();
        Ok(app)
    }

    /// Runs the gateway on the present runtime.
    pub fn spawn(self) -> Running {
        let admin_drain = Drain::new();
        let running = Running {
            address: self.listener.address(),
            admin_address: self.admin_listener.address(),
            parts: self.parts,
            drain: self.drain.clone(),
            admin_drain: admin_drain.clone(),
        };
        let gateway = running.parts.gateway.clone();
        tokio::spawn(async move { gateway.keep_house().await });
        self.drain.spawn(serve(
            self.listener,
            self.security,
            self.door,
            self.drain.clone(),
        ));
        // Health is answered until the very end, so its listener does not stop with the others.
        admin_drain.spawn(serve(
            self.admin_listener,
            Security::Plain,
            self.admin,
            admin_drain.clone(),
        ));
        info!(
            address = %running.address,
            admin = %running.admin_address,
            certificate_sha256 = running.certificate().sha256(),
            version = env!("CARGO_PKG_VERSION"),
            "gateway runs"
        );
        running
    }
}

/// The configured engines, which read files and wait for threads of their own, and `extra` ones.
async fn engines(
    configured: Vec<(String, engine::Config)>,
    extra: Vec<(String, Arc<dyn Engine>)>,
) -> Result<HashMap<String, Arc<dyn Engine>>, Error> {
    let mut engines = tokio::task::spawn_blocking(move || engine::build(configured)).await??;
    engines.extend(extra);
    Ok(engines)
}

fn admin_door(gateway: &Gateway, metrics: &Arc<Metrics>, drain: &Drain) -> Admin {
    let (metrics, drain) = (Arc::clone(metrics), drain.clone());
    // The accept loop itself is a task, not a connection.
    let exposition = move || {
        (
            metrics.text(drain.running().saturating_sub(1)),
            METRICS_TYPE,
        )
    };
    Admin::new(gateway.clone(), Box::new(exposition))
}

impl Parts {
    fn show_certificate(&self) {
        if let Some(end) = self.tls.certificate().not_after {
            self.metrics.certificate_ends(end.timestamp());
        }
    }
}

/// A gateway that runs. Dropping it stops it at once.
pub struct Running {
    /// Where clients connect.
    pub address: SocketAddr,
    /// Where administrators connect.
    pub admin_address: SocketAddr,
    parts: Parts,
    drain: Drain,
    admin_drain: Drain,
}

impl Running {
    /// The certificate that new connections get.
    pub fn certificate(&self) -> Certificate {
        self.parts.tls.certificate()
    }

    /// The core, for looking at it from inside the process.
    pub fn gateway(&self) -> &Gateway {
        &self.parts.gateway
    }

    /// Reads certificate, key and users again. What is bad is told and changes nothing.
    pub fn reload(&self) {
        let parts = &self.parts;
        let certificate = parts.tls.reload();
        if let Err(error) = &certificate {
            error!(%error, "TLS files are bad: the certificate in force stays");
        }
        parts.metrics.reloaded("tls", certificate.is_ok());
        parts.show_certificate();
        let users = parts.auth.reload();
        if let Err(error) = &users {
            error!(%error, "the file of users is bad: those known before stay in force");
        }
        parts.metrics.reloaded("users", users.is_ok());
    }

    /// Stops in three phases: take nothing new, let run, cancel. Returns when nothing runs.
    pub async fn shutdown(&self) {
        let patience = self.parts.drain_timeout;
        info!(
            ?patience,
            running = self.parts.gateway.running_operations(),
            "stopping: nothing new is taken"
        );
        self.parts.gateway.begin_drain();
        self.drain.stop();
        if tokio::time::timeout(patience, self.quiet()).await.is_err() {
            let running = self.parts.gateway.running_operations();
            warn!(
                running,
                connections = self.drain.running(),
                "cancelling what still runs"
            );
        }
        self.stop_now();
        if !self.drain.finished_within(AFTER_CANCEL).await {
            warn!(
                connections = self.drain.running(),
                "connections were dropped"
            );
        }
        self.admin_drain.cancel();
        info!("stopped");
    }

    /// Stops at once.
    pub fn stop_now(&self) {
        self.parts.gateway.begin_drain();
        self.parts.gateway.cancel_all();
        self.drain.cancel();
    }

    /// Completes when no connection is open and no statement runs.
    async fn quiet(&self) {
        self.drain.finished().await;
        while self.parts.gateway.running_operations() > 0 {
            sleep(LOOK).await;
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop_now();
        self.admin_drain.cancel();
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use async_trait::async_trait;
    use sluice_core::auth::Identity;
    use sluice_core::engine::{
        Dialect, EngineSession, EngineSetting, Execution, MetadataRequest, Query, SessionOptions,
    };
    use sluice_core::error::{ErrorKind, Result as CoreResult};
    use sluice_core::operation::{Operation, State};
    use sluice_core::service::{ExecuteOptions, OpenSession};
    use tokio::net::TcpStream;
    use tokio::time::Instant;

    use super::*;
    use crate::config::{self, Sources};

    /// Runs every statement for `.0`, and then fails it.
    #[derive(Clone, Copy)]
    struct Sleeper(Duration);

    #[async_trait]
    impl Engine for Sleeper {
        fn dialect(&self) -> Dialect {
            Dialect::DataFusion
        }

        fn setting_prefixes(&self) -> &'static [&'static str] {
            &[]
        }

        async fn open(&self, _: SessionOptions) -> CoreResult<Arc<dyn EngineSession>> {
            Ok(Arc::new(*self))
        }

        async fn probe(&self) -> CoreResult<()> {
            Ok(())
        }
    }

    #[async_trait]
    impl EngineSession for Sleeper {
        async fn execute(&self, _: Query) -> CoreResult<Execution> {
            sleep(self.0).await;
            Err(sluice_core::error::Error::new(ErrorKind::Engine, "woke up"))
        }

        async fn set(&self, _: &str, _: &str) -> CoreResult<()> {
            Ok(())
        }

        async fn reset(&self, _: &str) -> CoreResult<()> {
            Ok(())
        }

        async fn settings(&self) -> CoreResult<Vec<EngineSetting>> {
            Ok(Vec::new())
        }

        async fn set_time_zone(&self, _: &str) -> CoreResult<()> {
            Ok(())
        }

        async fn use_schema(&self, _: Option<&str>, _: Option<&str>) -> CoreResult<()> {
            Ok(())
        }

        async fn current_schema(&self) -> CoreResult<(String, String)> {
            Ok(("c".to_owned(), "s".to_owned()))
        }

        async fn metadata(&self, _: MetadataRequest) -> CoreResult<Execution> {
            Err(sluice_core::error::Error::not_found("metadata"))
        }
    }

    async fn start(work: Duration) -> Running {
        let sources = Sources::defaults()
            .with("server.listen=127.0.0.1:0")
            .with("admin.listen=127.0.0.1:0")
            .with("server.drain_timeout=30s");
        let mut config = config::load(&sources).unwrap();
        config.default_engine = "sleeper".to_owned();
        let sleeper: Arc<dyn Engine> = Arc::new(Sleeper(work));
        App::build_with(config, vec![("sleeper".to_owned(), sleeper)])
            .await
            .unwrap()
            .spawn()
    }

    async fn execute(running: &Running) -> CoreResult<Arc<Operation>> {
        let gateway = running.gateway();
        let session = gateway
            .open_session(Identity::new("ann"), OpenSession::default())
            .await?;
        gateway
            .execute(&session, "SELECT 1", ExecuteOptions::default())
            .await
    }

    #[tokio::test(start_paused = true)]
    async fn a_stop_takes_nothing_new_and_lets_run_what_ends_in_time() {
        let running = start(Duration::from_secs(20)).await;
        let operation = execute(&running).await.unwrap();
        let begun = Instant::now();
        let meanwhile = async {
            sleep(Duration::from_secs(1)).await;
            assert_eq!(
                execute(&running).await.err().unwrap().kind(),
                ErrorKind::Overloaded
            );
            TcpStream::connect(running.address).await.unwrap_err();
            // Who watches the stop can see it.
            TcpStream::connect(running.admin_address).await.unwrap();
            assert!(!operation.status().state.is_final());
        };
        tokio::join!(running.shutdown(), meanwhile);
        assert_eq!(operation.status().error.unwrap().message(), "woke up");
        assert!(
            begun.elapsed() < Duration::from_secs(25),
            "{:?}",
            begun.elapsed()
        );
    }

    #[tokio::test(start_paused = true)]
    async fn what_does_not_end_in_time_is_cancelled() {
        let running = start(Duration::MAX).await;
        let operation = execute(&running).await.unwrap();
        let begun = Instant::now();
        running.shutdown().await;
        assert!(operation.status().state.is_final());
        assert_ne!(operation.status().state, State::Finished);
        let took = begun.elapsed().as_secs();
        assert!((30..35).contains(&took), "{took} s");
        assert_eq!(running.gateway().running_operations(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_quiet_gateway_stops_at_once() {
        let running = start(Duration::ZERO).await;
        let begun = Instant::now();
        running.shutdown().await;
        assert!(
            begun.elapsed() < Duration::from_secs(1),
            "{:?}",
            begun.elapsed()
        );
    }
}
