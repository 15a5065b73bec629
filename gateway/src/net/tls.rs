//! TLS 1.2 and 1.3 with ring: certificates from files or made in memory, a reload that keeps the
//! old one when the new one is bad. Must not know who uses the bytes.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

use chrono::{DateTime, Utc};
use rustls::ServerConfig;
use rustls::crypto::CryptoProvider;
use rustls::server::{Acceptor, ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::version::{TLS12, TLS13};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio_rustls::LazyConfigAcceptor;
use tokio_rustls::server::TlsStream;
use tracing::{info, warn};

use super::validity::not_after;

/// Handshakes whose costly step may be in the runtime's queue at one time. More of them would
/// only make results that stream already wait longer.
const HANDSHAKES_AT_ONCE: usize = 8;

/// Days that a certificate made in memory is valid.
const IN_MEMORY_DAYS: i64 = 397;

/// A certificate that ends within so many days is warned of.
const WARN_DAYS: i64 = 14;

/// Where certificate and key come from.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// Made when the gateway starts, for `localhost` and the loopback addresses.
    InMemory,
    /// PEM files, read again on [`Tls::reload`].
    Files {
        /// The chain, the server's own certificate first.
        certificate: PathBuf,
        /// The private key: PKCS#8, PKCS#1 or SEC1.
        key: PathBuf,
    },
}

/// What is wrong with a certificate or its key.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum Error {
    #[error("cannot read {path}: {cause}")]
    Read {
        path: PathBuf,
        cause: rustls_pki_types::pem::Error,
    },
    #[error("{path} holds no PEM certificate")]
    Empty { path: PathBuf },
    #[error(
        "the key in {key} does not belong to the certificate in {certificate}, or cannot be used: {cause}"
    )]
    Mismatch {
        certificate: PathBuf,
        key: PathBuf,
        cause: rustls::Error,
    },
    #[error("the certificate in {path} ended on {end}")]
    Expired { path: PathBuf, end: DateTime<Utc> },
    #[error("cannot make a certificate: {0}")]
    Make(#[from] rcgen::Error),
    #[error("cannot set up TLS: {0}")]
    Tls(#[from] rustls::Error),
}

/// The certificate in force.
#[derive(Clone, Debug, PartialEq)]
pub struct Certificate {
    /// The server's own certificate.
    pub der: CertificateDer<'static>,
    /// When it ends, where that can be read.
    pub not_after: Option<DateTime<Utc>>,
}

impl Certificate {
    fn of(key: &CertifiedKey) -> Self {
        let der = key
            .cert
            .first()
            .cloned()
            .unwrap_or_else(|| CertificateDer::from(Vec::new()));
        let not_after = not_after(&der);
        Self { der, not_after }
    }

    /// SHA-256 of the certificate, for pinning: upper-case pairs with colons, as `openssl` writes.
    pub fn sha256(&self) -> String {
        let digest = ring::digest::digest(&ring::digest::SHA256, &self.der);
        let pairs: Vec<_> = digest
            .as_ref()
            .iter()
            .map(|byte| format!("{byte:02X}"))
            .collect();
        pairs.join(":")
    }

    /// The certificate as PEM text.
    pub fn pem(&self) -> String {
        use base64::Engine as _;
        let text = base64::engine::general_purpose::STANDARD.encode(&self.der);
        let mut pem = String::from("-----BEGIN CERTIFICATE-----\n");
        for line in text.as_bytes().chunks(64) {
            // Base64 is ASCII.
            pem.push_str(&String::from_utf8_lossy(line));
            pem.push('\n');
        }
        pem + "-----END CERTIFICATE-----\n"
    }

    fn warn_of_end(&self) {
        let Some(end) = self.not_after else { return };
        let days = (end - Utc::now()).num_days();
        if end < Utc::now() {
            warn!(%end, "the TLS certificate has ended: clients will refuse it");
        } else if days < WARN_DAYS {
            warn!(%end, days, "the TLS certificate ends soon");
        }
    }
}

/// The TLS side of a listener.
#[derive(Clone, Debug)]
pub struct Tls {
    source: Source,
    current: Arc<Current>,
    config: Arc<ServerConfig>,
}

impl Tls {
    /// Loads or makes a certificate.
    ///
    /// # Errors
    /// What is wrong with the files, by name.
    pub fn load(source: Source) -> Result<Self, Error> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let current = Arc::new(Current(RwLock::new(Arc::new(certified_key(
            &source, &provider,
        )?))));
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&TLS13, &TLS12])?
            .with_no_client_auth()
            .with_cert_resolver(Arc::clone(&current) as Arc<dyn ResolvesServerCert>);
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let tls = Self {
            source,
            current,
            config: Arc::new(config),
        };
        tls.certificate().warn_of_end();
        Ok(tls)
    }

    /// The certificate that new connections get.
    pub fn certificate(&self) -> Certificate {
        Certificate::of(&self.current.key())
    }

    /// Reads the files again. New connections get the new certificate, those that are open keep
    /// theirs.
    ///
    /// # Errors
    /// What is wrong with the new files; the certificate in force stays.
    pub fn reload(&self) -> Result<Certificate, Error> {
        let Source::Files {
            certificate: path, ..
        } = &self.source
        else {
            return Ok(self.certificate());
        };
        let key = certified_key(&self.source, self.config.crypto_provider())?;
        let certificate = Certificate::of(&key);
        if let Some(end) = certificate.not_after.filter(|end| *end < Utc::now()) {
            return Err(Error::Expired {
                path: path.clone(),
                end,
            });
        }
        self.current.replace(key);
        info!(sha256 = certificate.sha256(), not_after = ?certificate.not_after, "TLS certificate reloaded");
        certificate.warn_of_end();
        Ok(certificate)
    }

    /// What accepts handshakes with the certificate in force at that time.
    pub fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor {
            config: Arc::clone(&self.config),
            turns: Arc::new(Semaphore::new(HANDSHAKES_AT_ONCE)),
        }
    }
}

/// Accepts handshakes.
#[derive(Clone, Debug)]
pub struct TlsAcceptor {
    config: Arc<ServerConfig>,
    turns: Arc<Semaphore>,
}

impl TlsAcceptor {
    /// The handshake of one connection. The time it may take is the caller's to bound.
    pub(crate) async fn accept(&self, socket: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        // A peer that is slow, or no TLS client at all, waits here, where it takes nobody's turn.
        let hello = LazyConfigAcceptor::new(Acceptor::default(), socket).await?;
        let handshake = {
            let _turn = self.turns.acquire().await.map_err(io::Error::other)?;
            // Key exchange and signature happen in this call. Whatever else is ready runs before
            // the turn passes on, so that a storm of handshakes does not starve it.
            let handshake = hello.into_stream(Arc::clone(&self.config));
            tokio::task::yield_now().await;
            handshake
        };
        handshake.await
    }
}

/// Hands out the certificate in force.
#[derive(Debug)]
struct Current(RwLock<Arc<CertifiedKey>>);

impl Current {
    fn key(&self) -> Arc<CertifiedKey> {
        // A single assignment is all that happens under the lock.
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn replace(&self, key: CertifiedKey) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(key);
    }
}

impl ResolvesServerCert for Current {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.key())
    }
}

fn certified_key(source: &Source, provider: &CryptoProvider) -> Result<CertifiedKey, Error> {
    match source {
        Source::InMemory => make(provider),
        Source::Files { certificate, key } => read(certificate, key, provider),
    }
}

fn read(
    certificate: &PathBuf,
    key: &PathBuf,
    provider: &CryptoProvider,
) -> Result<CertifiedKey, Error> {
    let unreadable = |path: &PathBuf| {
        let path = path.clone();
        move |cause| Error::Read { path, cause }
    };
    let chain = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(unreadable(certificate))?;
    if chain.is_empty() {
        return Err(Error::Empty {
            path: certificate.clone(),
        });
    }
    let private = PrivateKeyDer::from_pem_file(key).map_err(unreadable(key))?;
    CertifiedKey::from_der(chain, private, provider).map_err(|cause| Error::Mismatch {
        certificate: certificate.clone(),
        key: key.clone(),
        cause,
    })
}

/// A self-signed certificate for this machine alone.
fn make(provider: &CryptoProvider) -> Result<CertifiedKey, Error> {
    let names = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
    let mut params = rcgen::CertificateParams::new(names)?;
    params
        .distinguished_name
        .push(rcgen::DnType::CommonName, "localhost");
    params
        .distinguished_name
        .push(rcgen::DnType::OrganizationName, "Sluice, made in memory");
    params.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ServerAuth];
    let (from, to) = (day(-1), day(IN_MEMORY_DAYS));
    params.not_before = rcgen::date_time_ymd(from.0, from.1, from.2);
    params.not_after = rcgen::date_time_ymd(to.0, to.1, to.2);
    let key = rcgen::KeyPair::generate()?;
    let certificate = params.self_signed(&key)?;
    let private = PrivateKeyDer::try_from(key.serialize_der())
        .map_err(|text| rustls::Error::General(text.to_owned()))?;
    Ok(CertifiedKey::from_der(
        vec![certificate.der().clone()],
        private,
        provider,
    )?)
}

/// Year, month and day, so many days from today.
fn day(offset: i64) -> (i32, u8, u8) {
    use chrono::Datelike as _;
    let day = Utc::now() + chrono::TimeDelta::days(offset);
    let part = |number: u32| u8::try_from(number).unwrap_or(1);
    (day.year(), part(day.month()), part(day.day()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::path::Path;

    use super::*;

    fn write_pair(folder: &Path, days: i64) -> (String, String) {
        let mut params = rcgen::CertificateParams::new(["localhost".to_owned()]).unwrap();
        let (from, to) = (day(-30), day(days));
        params.not_before = rcgen::date_time_ymd(from.0, from.1, from.2);
        params.not_after = rcgen::date_time_ymd(to.0, to.1, to.2);
        let key = rcgen::KeyPair::generate().unwrap();
        let pair = (params.self_signed(&key).unwrap().pem(), key.serialize_pem());
        std::fs::write(folder.join("cert.pem"), &pair.0).unwrap();
        std::fs::write(folder.join("key.pem"), &pair.1).unwrap();
        pair
    }

    fn files(folder: &Path) -> Source {
        Source::Files {
            certificate: folder.join("cert.pem"),
            key: folder.join("key.pem"),
        }
    }

    #[test]
    fn a_reload_swaps_the_certificate() {
        let folder = tempfile::tempdir().unwrap();
        write_pair(folder.path(), 90);
        let tls = Tls::load(files(folder.path())).unwrap();
        let before = tls.certificate();
        write_pair(folder.path(), 91);
        tls.reload().unwrap();
        assert_ne!(tls.certificate().sha256(), before.sha256());
        assert!(tls.certificate().not_after > before.not_after);
    }

    #[test]
    fn bad_files_keep_the_old_certificate_and_say_why() {
        let folder = tempfile::tempdir().unwrap();
        let (old, _) = write_pair(folder.path(), 90);
        let tls = Tls::load(files(folder.path())).unwrap();
        let before = tls.certificate();

        write_pair(folder.path(), 90);
        std::fs::write(folder.path().join("cert.pem"), old).unwrap();
        assert!(matches!(tls.reload().unwrap_err(), Error::Mismatch { .. }));
        std::fs::write(folder.path().join("cert.pem"), "no certificate").unwrap();
        assert!(matches!(tls.reload().unwrap_err(), Error::Empty { .. }));
        write_pair(folder.path(), -1);
        assert!(matches!(tls.reload().unwrap_err(), Error::Expired { .. }));
        std::fs::remove_file(folder.path().join("key.pem")).unwrap();
        let error = tls.reload().unwrap_err();
        assert!(error.to_string().contains("key.pem"), "{error}");
        assert_eq!(tls.certificate(), before);
    }

    #[test]
    fn a_certificate_in_memory_is_for_this_machine_and_ends_in_time() {
        let tls = Tls::load(Source::InMemory).unwrap();
        let certificate = tls.certificate();
        let days = (certificate.not_after.unwrap() - Utc::now()).num_days();
        assert!((395..=397).contains(&days), "{days}");
        assert_eq!(certificate.sha256().len(), 32 * 3 - 1);
        let back = CertificateDer::from_pem_slice(certificate.pem().as_bytes()).unwrap();
        assert_eq!(back, certificate.der);
        assert_eq!(
            tls.reload().unwrap(),
            certificate,
            "there is nothing to reload"
        );
    }
}
