//! The one certificate of a test run, made in memory. Owns its key. Must not know who uses it.

use std::sync::OnceLock;

use rustls::pki_types::CertificateDer;

/// A self-signed certificate for loopback.
pub struct Certificate {
    /// The certificate.
    pub der: CertificateDer<'static>,
    /// The certificate as PEM.
    pub pem: String,
    /// Its key as PEM.
    pub key_pem: String,
}

/// The certificate of this run.
pub fn certificate() -> &'static Certificate {
    static CERTIFICATE: OnceLock<Certificate> = OnceLock::new();
    CERTIFICATE.get_or_init(another)
}

/// One that nobody trusts yet.
#[allow(clippy::expect_used)]
pub fn another() -> Certificate {
    let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
    let made =
        rcgen::generate_simple_self_signed(names).expect("names that a certificate can hold");
    Certificate {
        der: made.cert.der().clone(),
        pem: made.cert.pem(),
        key_pem: made.signing_key.serialize_pem(),
    }
}
