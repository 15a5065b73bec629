//! The way in: what a client is built from. Owns its options and their defaults. Must not know
//! sessions beyond opening one.

use std::path::PathBuf;
use std::time::Duration;

use sluice_ipc::{Codec, Limits};
use sluice_wire::http::media;
use tokio_util::task::TaskTracker;

use crate::address::Address;
use crate::blocking;
use crate::error::{Error, Result};
use crate::session::Session;
use crate::tls::Trust;
use crate::transport::{Credentials, HttpVersions, Transport};

/// How long a connection may take unless somebody says otherwise.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// What results may be like, in this client's words and bounds.
#[derive(Clone, Debug)]
pub(crate) struct Abilities {
    /// The value of `Accept`.
    pub(crate) accept: String,
    pub(crate) limits: Limits,
}

/// A gateway that sessions can be opened at. Connections are made when they are needed, and
/// shared; clones share them too.
#[derive(Clone, Debug)]
pub struct Client {
    pub(crate) transport: Transport,
    pub(crate) credentials: Credentials,
    pub(crate) catalog: Option<String>,
    pub(crate) schema: Option<String>,
    pub(crate) settings: Vec<(String, String)>,
    pub(crate) abilities: Abilities,
    pub(crate) parting: TaskTracker,
}

impl Client {
    /// Begins a client for `sluice://host:port/catalog.schema?setting=value`, or the same with
    /// `https://`. Port, catalog, schema and settings may be left out.
    pub fn builder(url: impl Into<String>) -> ClientBuilder {
        ClientBuilder {
            url: url.into(),
            user: None,
            password: None,
            trust: Trust::default(),
            pins: Vec::new(),
            settings: Vec::new(),
            connect_timeout: CONNECT_TIMEOUT,
            versions: HttpVersions::Any,
            codecs: vec![Codec::Zstd, Codec::Lz4],
            types: media::Types {
                views: true,
                dictionaries: true,
            },
            limits: Limits::default(),
        }
    }

    /// Opens a session. To be called within a Tokio runtime, which then also serves what is left
    /// to do when the session is dropped.
    ///
    /// # Errors
    /// When the gateway is not reached or not trusted, when it does not know the user, and what is
    /// wrong with a setting, a catalog or a schema.
    pub async fn session(&self) -> Result<Session> {
        Session::open(self).await
    }
}

/// The options of a [`Client`].
#[derive(Clone)]
#[must_use = "a builder does nothing before build()"]
pub struct ClientBuilder {
    url: String,
    user: Option<String>,
    password: Option<String>,
    trust: Trust,
    pins: Vec<String>,
    settings: Vec<(String, String)>,
    connect_timeout: Duration,
    versions: HttpVersions,
    codecs: Vec<Codec>,
    types: media::Types,
    limits: Limits,
}

impl std::fmt::Debug for ClientBuilder {
    /// Without the password.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClientBuilder")
            .field("user", &self.user)
            .finish_non_exhaustive()
    }
}

impl ClientBuilder {
    /// Who is calling. Wins over a user in the URL; without either, nobody in particular.
    pub fn user(mut self, user: impl Into<String>) -> Self {
        self.user = Some(user.into());
        self
    }

    /// The user's password.
    pub fn password(mut self, password: impl Into<String>) -> Self {
        self.password = Some(password.into());
        self
    }

    /// Trusts the certificate authorities in a PEM file, instead of the system's.
    pub fn ca_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.trust.ca_files.push(path.into());
        self
    }

    /// Trusts the certificate authorities in a PEM text, instead of the system's.
    pub fn ca_pem(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.trust.ca_pem.push(pem.into());
        self
    }

    /// Trusts the system's certificate authorities, also beside others. So does a client that is
    /// told nothing.
    pub fn system_roots(mut self) -> Self {
        self.trust.system_roots = true;
        self
    }

    /// Trusts exactly the certificate with this SHA-256 (of its DER form): 64 hexadecimal digits,
    /// colons allowed. The gateway must still prove that it holds the certificate's key.
    pub fn pinned_certificate(mut self, sha256: impl Into<String>) -> Self {
        self.pins.push(sha256.into());
        self
    }

    /// A setting that every session begins with. Wins over the same one in the URL.
    pub fn setting(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.settings.push((key.into(), value.into()));
        self
    }

    /// How long it may take to connect: name, TCP and TLS together. The default is 10 seconds.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// Speaks HTTP/1.1 only. The default prefers HTTP/2.
    pub fn http1_only(mut self) -> Self {
        self.versions = HttpVersions::Http1;
        self
    }

    /// Speaks HTTP/2 only.
    pub fn http2_only(mut self) -> Self {
        self.versions = HttpVersions::Http2;
        self
    }

    /// The codecs that are declared to the gateway, the preferred one first. The default is zstd,
    /// then lz4. [`Codec::None`] needs no mention.
    pub fn codecs(mut self, codecs: impl IntoIterator<Item = Codec>) -> Self {
        self.codecs = codecs.into_iter().collect();
        self
    }

    /// Whether columns may come as `Utf8View` and `BinaryView`. The default is yes.
    pub fn views(mut self, taken: bool) -> Self {
        self.types.views = taken;
        self
    }

    /// Whether columns may come dictionary-encoded. The default is yes.
    pub fn dictionaries(mut self, taken: bool) -> Self {
        self.types.dictionaries = taken;
        self
    }

    /// Bounds on the messages of a result; what exceeds them is an error.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Checks the options. Nothing is connected yet.
    ///
    /// # Errors
    /// What is wrong with the URL, a file or a fingerprint.
    pub fn build(self) -> Result<Client> {
        let address = Address::parse(&self.url)?;
        let mut trust = self.trust;
        trust.pins = self
            .pins
            .iter()
            .map(|pin| pin.parse())
            .collect::<Result<_>>()?;
        let credentials = match self.user.or(address.user) {
            Some(user) => Credentials::basic(&user, &self.password.unwrap_or_default())?,
            None if self.password.is_some() => {
                return Err(Error::configuration("there is a password, but no user"));
            }
            None => Credentials::none(),
        };
        let tls = trust.client_config()?;
        let accept = media::arrow_accept(&declared(&self.codecs), self.types);
        let settings = with_precedence(address.settings, self.settings);
        Ok(Client {
            transport: Transport::new(address.authority, tls, self.versions, self.connect_timeout),
            credentials,
            catalog: address.catalog,
            schema: address.schema,
            settings,
            abilities: Abilities {
                accept,
                limits: self.limits,
            },
            parting: TaskTracker::new(),
        })
    }

    /// Checks the options and gives a client for threads that may block.
    ///
    /// # Errors
    /// As [`build`](Self::build), and when no runtime can be started.
    pub fn build_blocking(self) -> Result<blocking::Client> {
        blocking::Client::new(self.build()?)
    }
}

fn declared(codecs: &[Codec]) -> Vec<media::Codec> {
    let declared = |codec: &Codec| match codec {
        Codec::None => None,
        Codec::Lz4 => Some(media::Codec::Lz4),
        Codec::Zstd => Some(media::Codec::Zstd),
    };
    codecs.iter().filter_map(declared).collect()
}

/// A JSON object can have a key once: the last value counts, in any spelling of the key.
fn with_precedence(
    weak: Vec<(String, String)>,
    strong: Vec<(String, String)>,
) -> Vec<(String, String)> {
    let mut settings: Vec<(String, String)> = Vec::new();
    for (key, value) in weak.into_iter().chain(strong) {
        settings.retain(|(known, _)| !known.eq_ignore_ascii_case(&key));
        settings.push((key, value));
    }
    settings
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    fn pinned(url: &str) -> ClientBuilder {
        Client::builder(url).pinned_certificate("ab".repeat(32))
    }

    #[test]
    fn options_win_over_the_url() {
        let client = pinned("sluice://u@h/c.s?a.b=1&x=2")
            .setting("A.B", "3")
            .build()
            .unwrap();
        let expected = [("x", "2"), ("A.B", "3")].map(|(k, v)| (k.to_owned(), v.to_owned()));
        assert_eq!(client.settings, expected);
        assert_eq!(client.catalog.as_deref(), Some("c"));
        assert_eq!(
            client.abilities.accept,
            "application/vnd.apache.arrow.stream; codecs=\"zstd, lz4\"; types=\"views, dictionaries\""
        );
    }

    #[test]
    fn mistakes_are_found_before_anything_is_connected() {
        let wrong = [
            pinned("http://h"),
            pinned("sluice://h").password("x"),
            pinned("sluice://h").user("a:b"),
            pinned("sluice://h").system_roots(),
            Client::builder("sluice://h").pinned_certificate("abc"),
            Client::builder("sluice://h").ca_file("/nowhere/ca.pem"),
        ];
        for builder in wrong {
            assert_eq!(
                builder.build().unwrap_err().kind(),
                ErrorKind::Configuration
            );
        }
    }

    #[test]
    fn a_builder_does_not_show_the_password() {
        let shown = format!("{:?}", pinned("sluice://h").user("a").password("hunter2"));
        assert!(!shown.contains("hunter2"), "{shown}");
        let client = pinned("sluice://h")
            .user("a")
            .password("hunter2")
            .build()
            .unwrap();
        assert!(!format!("{client:?}").contains("YTpodW50ZXIy"));
    }
}
