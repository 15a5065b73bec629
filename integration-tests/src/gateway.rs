//! A whole gateway in the test's own process, on free ports of loopback, with TLS, two users and
//! whatever engines the test brings. Owns its files. Must not know what is tested.

use std::fmt::Write as _;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use argon2::password_hash::PasswordHasher;
use argon2::{Algorithm, Argon2, Params, Version};
use sluice::app::{App, Running};
use sluice::config::{self, Config, Sources};
use sluice_core::engine::Engine;
use sluice_core::service::Gateway;
use tempfile::TempDir;

use crate::engine::{FaultEngine, Reshape, Shape};
use crate::http::As;
use crate::tls;

/// The users that every test gateway knows, each with the password that [`password_of`] says.
pub const USERS: [&str; 2] = ["ada", "bob"];

/// Scale of the generated tables, unless a test says otherwise: 60,000 rows of `lineitem`.
pub const SCALE: f64 = 0.01;

/// A user's password.
pub fn password_of(user: &str) -> String {
    format!("{user}'s pass: wörd")
}

/// What a gateway is to be.
#[derive(Default)]
pub struct Builder {
    assignments: Vec<String>,
    toml: String,
    engines: Vec<(String, Arc<dyn Engine>)>,
    shapes: Vec<(String, Shape)>,
}

/// A gateway that runs until it is dropped.
pub struct TestGateway {
    running: Running,
    fault: FaultEngine,
    folder: TempDir,
}

impl TestGateway {
    /// One with nothing special about it.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// One with nothing special about it, that runs.
    pub async fn start() -> Self {
        Self::builder().start().await
    }

    /// Where clients connect.
    pub fn address(&self) -> SocketAddr {
        self.running.address
    }

    /// Where administrators connect, without TLS.
    pub fn admin_address(&self) -> SocketAddr {
        self.running.admin_address
    }

    /// The core.
    pub fn core(&self) -> &Gateway {
        self.running.gateway()
    }

    /// The gateway as the composition root gives it.
    pub fn running(&self) -> &Running {
        &self.running
    }

    /// The engine called `fault`.
    pub fn fault(&self) -> &FaultEngine {
        &self.fault
    }

    /// The first user, with the right password.
    pub fn user(&self) -> As {
        self.user_called(USERS[0])
    }

    /// A user, with the right password.
    pub fn user_called(&self, name: &str) -> As {
        As::user(name, &password_of(name))
    }

    /// The folder of its files: `gateway.toml`, `users.toml`, `cert.pem`, `key.pem`.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The certificate's file, for clients that want one.
    pub fn certificate_file(&self) -> String {
        self.folder
            .path()
            .join("cert.pem")
            .to_string_lossy()
            .into_owned()
    }
}

impl Builder {
    /// Sets a key, as `--set` does.
    #[must_use]
    pub fn set(mut self, assignment: impl Into<String>) -> Self {
        self.assignments.push(assignment.into());
        self
    }

    /// Adds sections to the file.
    #[must_use]
    pub fn toml(mut self, sections: &str) -> Self {
        self.toml += sections;
        self.toml.push('\n');
        self
    }

    /// Adds an engine.
    #[must_use]
    pub fn engine(mut self, name: &str, engine: Arc<dyn Engine>) -> Self {
        self.engines.push((name.to_owned(), engine));
        self
    }

    /// Adds an embedded engine whose results come in `shape`.
    #[must_use]
    pub fn reshaped(mut self, name: &str, shape: Shape) -> Self {
        self.shapes.push((name.to_owned(), shape));
        self
    }

    /// Builds the gateway and runs it on the present runtime.
    #[allow(clippy::expect_used)]
    pub async fn start(self) -> TestGateway {
        let folder = tempfile::tempdir().expect("a folder for the gateway's files");
        let config = self.config(folder.path());
        let fault = FaultEngine::new();
        let mut engines = self.engines;
        engines.push(("fault".to_owned(), Arc::new(fault.clone())));
        for (name, shape) in self.shapes {
            engines.push((name, Arc::new(Reshape::new(embedded(&config).await, shape))));
        }
        let app = App::build_with(config, engines)
            .await
            .expect("a gateway that starts");
        TestGateway {
            running: app.spawn(),
            fault,
            folder,
        }
    }

    #[allow(clippy::expect_used)]
    fn config(&self, folder: &Path) -> Config {
        write_files(folder, &self.toml);
        let scale = format!("engines.embedded.tpch.scale_factor={SCALE}");
        let mut sources = Sources::defaults()
            .with_file(folder.join("gateway.toml"))
            .with(scale);
        for assignment in &self.assignments {
            sources = sources.with(assignment.clone());
        }
        config::load(&sources).expect("a configuration that is good")
    }
}

/// The embedded engine of `config`, without a gateway around it.
///
/// # Panics
/// When it cannot be built.
#[allow(clippy::expect_used)]
pub async fn embedded(config: &Config) -> Arc<dyn Engine> {
    let configured = config.engines.clone();
    let built = tokio::task::spawn_blocking(move || sluice::engine::build(configured));
    let mut engines = built
        .await
        .expect("a build that ends")
        .expect("an engine that starts");
    engines
        .remove("embedded")
        .expect("an engine called embedded")
}

/// The embedded engine with generated tables at `scale`, without a gateway around it.
///
/// # Panics
/// When it cannot be built.
#[allow(clippy::expect_used)]
pub async fn embedded_at(scale: f64) -> Arc<dyn Engine> {
    let sources = Sources::defaults().with(format!("engines.embedded.tpch.scale_factor={scale}"));
    embedded(&config::load(&sources).expect("defaults that are good")).await
}

/// Writes what a gateway needs into `folder`: configuration, users, certificate and key.
///
/// # Panics
/// When a file cannot be written.
#[allow(clippy::expect_used)]
pub fn write_files(folder: &Path, more: &str) {
    let mut users = String::new();
    for user in USERS {
        let _ = writeln!(users, "{user} = {:?}", hash_of(&password_of(user)));
    }
    let certificate = tls::certificate();
    let configuration = format!("{CONFIGURATION}\n{more}");
    let files = [
        ("gateway.toml", configuration.as_str()),
        ("users.toml", &users),
        ("cert.pem", &certificate.pem),
        ("key.pem", &certificate.key_pem),
    ];
    for (name, text) in files {
        fs::write(folder.join(name), text).expect("a file that can be written");
    }
}

const CONFIGURATION: &str = r#"
[server]
listen = "127.0.0.1:0"
[admin]
listen = "127.0.0.1:0"
[tls]
certificate = "cert.pem"
key = "key.pem"
[auth]
method = "file"
users_file = "users.toml"
[limits]
sessions = 10000
sessions_per_user = 10000
operations = 1000
operations_per_user = 1000
[engines.embedded]
kind = "embedded"
default = true
"#;

/// A hash that is as cheap to check as argon2 allows: tests log in a thousand times.
#[allow(clippy::expect_used)]
fn hash_of(password: &str) -> String {
    let params = Params::new(Params::MIN_M_COST, 1, 1, None).expect("the least parameters");
    let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
    argon2
        .hash_password(password.as_bytes())
        .expect("a hash")
        .to_string()
}
