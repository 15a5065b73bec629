//! From the file's shape to every module's own configuration: paths made whole, values checked
//! against each other. Must not start anything; it looks at files only to see that they are good.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sluice_core::profile::ClientProfiles;
use sluice_core::service::Limits;
use sluice_core::settings::{Defaults, Policy};

use super::bounds;
use super::clients;
use super::engines;
use super::mistake::Mistakes;
use super::raw::{self, Raw};
use super::show::Shown;
use super::values::Setting;
use crate::auth;
use crate::engine;
use crate::net::tls;
use crate::observe;

/// A configuration that is good.
#[derive(Debug)]
pub struct Config {
    /// The listener for clients.
    pub server: Server,
    /// The listener for administrators.
    pub admin: Admin,
    /// Certificate and key.
    pub tls: tls::Source,
    /// How callers prove who they are.
    pub auth: auth::Config,
    /// The bounds of the core.
    pub limits: Limits,
    /// Defaults of SQL settings.
    pub defaults: Defaults,
    /// What may not be set, and how high.
    pub policy: Policy,
    /// What programs are known to read.
    pub clients: ClientProfiles,
    /// The log.
    pub log: observe::LogConfig,
    /// The engines, by name.
    pub engines: Vec<(String, engine::Config)>,
    /// The engine that sessions use unless they choose.
    pub default_engine: String,
    /// Every key with its value in force and its origin.
    pub shown: Vec<Shown>,
}

/// The listener for clients.
#[derive(Clone, Debug, PartialEq)]
pub struct Server {
    /// Where it listens.
    pub listen: SocketAddr,
    /// Connections at one time.
    pub max_connections: usize,
    /// A TLS handshake may take so long.
    pub handshake_timeout: Duration,
    /// A request's head may take so long.
    pub header_timeout: Duration,
    /// A request's body may be so large.
    pub request_body_limit: u64,
    /// A single larger row is an error.
    pub max_row_bytes: u64,
    /// What runs when the gateway stops may run on for so long.
    pub drain_timeout: Duration,
    /// Threads that encode results.
    pub codec_threads: usize,
}

/// The listener for administrators.
#[derive(Clone, Debug, PartialEq)]
pub struct Admin {
    /// Where it listens.
    pub listen: SocketAddr,
}

/// What relative paths are relative to.
pub(super) struct Place {
    pub(super) base: PathBuf,
    pub(super) file: Option<PathBuf>,
}

impl Place {
    /// `path` as the process can open it.
    pub(super) fn path(&self, path: &str) -> PathBuf {
        std::path::absolute(self.base.join(path)).unwrap_or_else(|_| self.base.join(path))
    }
}

/// Checks `raw`. `None` when nothing useful could be made of it; the mistakes are in `mistakes`.
pub(super) fn resolve(raw: &Raw, place: &Place, mistakes: &mut Mistakes) -> Option<Config> {
    bounds::check(raw, mistakes);
    let tls = tls_source(raw, place, mistakes);
    let auth = auth_config(raw, place, mistakes);
    let clients = client_profiles(raw, place, mistakes);
    let log = log_config(&raw.log, mistakes);
    let engines = engines::resolve(raw, &own_files(raw, place), place, mistakes);
    let defaults = defaults(raw, &engines.setting_prefixes, mistakes);
    let policy = policy(&raw.policy, mistakes);
    Some(Config {
        server: server(raw),
        admin: Admin {
            listen: raw.admin.listen.0,
        },
        tls: tls?,
        auth: auth?,
        limits: limits(&raw.limits),
        defaults: defaults?,
        policy: policy?,
        clients: clients?,
        log,
        engines: engines.all,
        default_engine: engines.default?,
        shown: Vec::new(),
    })
}

fn server(raw: &Raw) -> Server {
    let server = &raw.server;
    Server {
        listen: server.listen.0,
        max_connections: server.max_connections,
        handshake_timeout: server.handshake_timeout.0,
        header_timeout: server.header_timeout.0,
        request_body_limit: server.request_body_limit.0,
        max_row_bytes: raw.limits.max_row_bytes.0,
        drain_timeout: server.drain_timeout.0,
        codec_threads: threads(server.codec_threads),
    }
}

/// 0 means a thread a processor.
pub(super) fn threads(asked: usize) -> usize {
    match asked {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        asked => asked,
    }
}

fn limits(limits: &raw::Limits) -> Limits {
    Limits {
        sessions: limits.sessions,
        sessions_per_user: limits.sessions_per_user,
        operations: limits.operations,
        operations_per_user: limits.operations_per_user,
        session_idle: limits.session_idle_timeout.0,
        result_idle: limits.result_idle_timeout.0,
        operation_retention: limits.operation_retention.0,
        operation_memory: limits.operation_memory.0,
    }
}

fn tls_source(raw: &Raw, place: &Place, mistakes: &mut Mistakes) -> Option<tls::Source> {
    let source = match (&raw.tls.certificate, &raw.tls.key) {
        (Some(certificate), Some(key)) => tls::Source::Files {
            certificate: place.path(certificate),
            key: place.path(key),
        },
        (Some(_), None) => {
            mistakes.add("tls.key", "missing; needed together with tls.certificate");
            return None;
        }
        (None, Some(_)) => {
            mistakes.add("tls.certificate", "missing; needed together with tls.key");
            return None;
        }
        (None, None) if raw.server.listen.0.ip().is_loopback() => {
            return Some(tls::Source::InMemory);
        }
        (None, None) => {
            let text = format!(
                "missing; {} is not loopback, and a certificate is made for loopback only",
                raw.server.listen
            );
            mistakes.add("tls.certificate", text);
            return None;
        }
    };
    if let Err(error) = tls::Tls::load(source.clone()) {
        let is_key = matches!(&error, tls::Error::Read { path, .. } if raw.tls.key.as_ref().is_some_and(|key| place.path(key) == *path));
        mistakes.add(
            if is_key { "tls.key" } else { "tls.certificate" },
            error.to_string(),
        );
    }
    Some(source)
}

fn auth_config(raw: &Raw, place: &Place, mistakes: &mut Mistakes) -> Option<auth::Config> {
    match (raw.auth.method, &raw.auth.users_file) {
        (raw::Method::None, _) => {
            let listen = raw.server.listen;
            if !listen.0.ip().is_loopback() && !raw.server.insecure_listen_without_auth {
                let text = format!(
                    "{listen} can be reached from other machines while auth.method is `none`; allowed: a loopback \
                     address, auth.method = \"file\", or server.insecure_listen_without_auth = true"
                );
                mistakes.add("server.listen", text);
            }
            Some(auth::Config::None)
        }
        (raw::Method::File, None) => {
            mistakes.add(
                "auth.users_file",
                "missing; needed with auth.method = \"file\"",
            );
            None
        }
        (raw::Method::File, Some(path)) => {
            let users_file = place.path(path);
            if let Err(error) = auth::file::check(&users_file) {
                mistakes.add("auth.users_file", error.to_string());
            }
            Some(auth::Config::File(auth::file::Config {
                users_file,
                max_concurrent_checks: raw.auth.max_concurrent_checks,
                check_queue: raw.auth.check_queue,
                remember: raw.auth.cache.0,
            }))
        }
    }
}

fn client_profiles(raw: &Raw, place: &Place, mistakes: &mut Mistakes) -> Option<ClientProfiles> {
    let Some(path) = &raw.server.clients_file else {
        return Some(clients::built_in());
    };
    let path = place.path(path);
    let text = std::fs::read_to_string(&path).map_err(|error| error.to_string());
    match text.and_then(|text| clients::read(&text)) {
        Ok(profiles) => Some(profiles),
        Err(error) => {
            mistakes.add(
                "server.clients_file",
                format!("{}: {error}", path.display()),
            );
            None
        }
    }
}

fn log_config(log: &raw::Log, mistakes: &mut Mistakes) -> observe::LogConfig {
    if let Err(error) = observe::check_filter(&log.filter) {
        mistakes.add("log.filter", format!("{error}; allowed: a level (error, warn, info, debug, trace) or target=level, with commas"));
    }
    let format = match log.format {
        raw::LogFormat::Text => observe::LogFormat::Text,
        raw::LogFormat::Json => observe::LogFormat::Json,
    };
    observe::LogConfig {
        format,
        filter: log.filter.clone(),
    }
}

fn defaults(raw: &Raw, prefixes: &[&str], mistakes: &mut Mistakes) -> Option<Defaults> {
    let users: Vec<_> = raw
        .users
        .iter()
        .map(|(name, user)| (name.clone(), pairs(&user.defaults)))
        .collect();
    let server = pairs(&raw.settings);
    for (place, (key, value)) in engine_choices(&server, &users) {
        if !raw.engines.contains_key(value) {
            let known: Vec<_> = raw.engines.keys().map(String::as_str).collect();
            mistakes.add(
                format!("{place}.{key}"),
                format!(
                    "there is no engine `{value}`; allowed: {}",
                    known.join(", ")
                ),
            );
        }
    }
    match Defaults::try_new(&server, &users, prefixes) {
        Ok(defaults) => Some(defaults),
        Err(wrong) => {
            wrong
                .into_iter()
                .for_each(|(key, text)| mistakes.add(key, text));
            None
        }
    }
}

type Pair = (String, String);

/// The defaults that choose an engine, with the place where they stand.
fn engine_choices<'a>(
    server: &'a [Pair],
    users: &'a [(String, Vec<Pair>)],
) -> Vec<(String, &'a Pair)> {
    let of_users = users.iter().flat_map(|(user, pairs)| {
        pairs
            .iter()
            .map(move |pair| (format!("users.{user}.defaults"), pair))
    });
    let all = server
        .iter()
        .map(|pair| ("settings".to_owned(), pair))
        .chain(of_users);
    all.filter(|(_, (key, _))| key.eq_ignore_ascii_case("gateway.engine"))
        .collect()
}

fn policy(policy: &raw::Policy, mistakes: &mut Mistakes) -> Option<Policy> {
    match Policy::try_new(&policy.restrict, &policy.ignore, &pairs(&policy.max)) {
        Ok(policy) => Some(policy),
        Err(wrong) => {
            wrong
                .into_iter()
                .for_each(|(key, text)| mistakes.add(format!("policy.{key}"), text));
            None
        }
    }
}

fn pairs<'a>(table: impl IntoIterator<Item = (&'a String, &'a Setting)>) -> Vec<Pair> {
    table
        .into_iter()
        .map(|(key, value)| (key.clone(), value.0.clone()))
        .collect()
}

/// The gateway's own files, which SQL may not touch.
fn own_files(raw: &Raw, place: &Place) -> Vec<PathBuf> {
    let named = [
        &raw.tls.certificate,
        &raw.tls.key,
        &raw.auth.users_file,
        &raw.server.clients_file,
    ];
    let named = named.into_iter().flatten().map(|path| place.path(path));
    let file = place
        .file
        .as_deref()
        .map(|file| std::path::absolute(file).unwrap_or_else(|_| file.to_path_buf()));
    named.chain(file).collect()
}

/// Whether a local file or folder is there and can be opened.
pub(super) fn check_readable(path: &Path) -> Result<(), String> {
    std::fs::File::open(path)
        .map(drop)
        .map_err(|error| format!("cannot read {}: {error}", path.display()))
}
