//! Whom to trust: certificate authorities, or one certificate by its hash. Owns the rustls
//! configuration. Must not know addresses or HTTP.

use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, ring, verify_tls12_signature, verify_tls13_signature,
};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

use crate::error::{Error, Result};

/// What proves that a gateway is the right one. Without anything: the system's authorities.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trust {
    pub(crate) ca_files: Vec<PathBuf>,
    pub(crate) ca_pem: Vec<Vec<u8>>,
    pub(crate) system_roots: bool,
    pub(crate) pins: Vec<Fingerprint>,
}

impl Trust {
    /// The configuration that holds connections to it.
    pub(crate) fn client_config(&self) -> Result<ClientConfig> {
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| {
                Error::configuration("the TLS provider has no usable version").with_source(error)
            })?;
        if self.pins.is_empty() {
            return Ok(builder
                .with_root_certificates(self.roots()?)
                .with_no_client_auth());
        }
        if self.system_roots || !self.ca_files.is_empty() || !self.ca_pem.is_empty() {
            return Err(Error::configuration(
                "a pinned certificate and certificate authorities exclude each other",
            ));
        }
        let verifier = PinnedCertificate::new(self.pins.clone(), &provider)?;
        let builder = builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier));
        Ok(builder.with_no_client_auth())
    }

    fn roots(&self) -> Result<RootCertStore> {
        let mut roots = RootCertStore::empty();
        for path in &self.ca_files {
            let pem = std::fs::read(path).map_err(|error| {
                Error::configuration(format!("{}: {error}", path.display())).with_source(error)
            })?;
            add_pem(&mut roots, &pem, &path.display().to_string())?;
        }
        for pem in &self.ca_pem {
            add_pem(&mut roots, pem, "the given PEM text")?;
        }
        if self.system_roots || (self.ca_files.is_empty() && self.ca_pem.is_empty()) {
            let found = rustls_native_certs::load_native_certs();
            // Systems carry certificates that nobody can read; one good one is enough to go on.
            let (added, _) = roots.add_parsable_certificates(found.certs);
            if added == 0 {
                return Err(Error::configuration(
                    "the system has no certificate authorities; name a CA file or pin a certificate",
                ));
            }
        }
        Ok(roots)
    }
}

fn add_pem(roots: &mut RootCertStore, pem: &[u8], origin: &str) -> Result<()> {
    let before = roots.len();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let certificate = certificate
            .map_err(|error| Error::configuration(format!("{origin}: not PEM: {error}")))?;
        roots
            .add(certificate)
            .map_err(|error| Error::configuration(format!("{origin}: {error}")))?;
    }
    if roots.len() == before {
        return Err(Error::configuration(format!(
            "{origin}: no certificate in it"
        )));
    }
    Ok(())
}

/// The SHA-256 of a certificate in DER.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Fingerprint([u8; 32]);

impl FromStr for Fingerprint {
    type Err = Error;

    /// Reads 64 hexadecimal digits, with or without colons, with or without `sha256:` before them.
    fn from_str(text: &str) -> Result<Self> {
        let wrong = || {
            Error::configuration(format!(
                "{text:?} is no SHA-256 fingerprint: 64 hexadecimal digits, colons allowed"
            ))
        };
        let digits = match text.trim().split_at_checked(7) {
            Some((prefix, rest)) if prefix.eq_ignore_ascii_case("sha256:") => rest,
            _ => text.trim(),
        };
        let digits: Vec<u32> = digits
            .chars()
            .filter(|digit| *digit != ':')
            .map(|digit| digit.to_digit(16).ok_or_else(wrong))
            .collect::<Result<_>>()?;
        let mut hash = [0; 32];
        if digits.len() != 2 * hash.len() {
            return Err(wrong());
        }
        for (byte, pair) in hash.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = u8::try_from(pair[0] << 4 | pair[1]).map_err(|_| wrong())?;
        }
        Ok(Self(hash))
    }
}

/// Accepts exactly the certificates with these hashes, if the peer holds their keys: the
/// handshake's signature is checked as for any other certificate. Names and dates are not, since
/// the pin says more than both.
struct PinnedCertificate {
    pins: Vec<Fingerprint>,
    sha256: &'static dyn rustls::crypto::hash::Hash,
    algorithms: WebPkiSupportedAlgorithms,
}

impl std::fmt::Debug for PinnedCertificate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PinnedCertificate")
            .field("pins", &self.pins)
            .finish_non_exhaustive()
    }
}

impl PinnedCertificate {
    fn new(pins: Vec<Fingerprint>, provider: &CryptoProvider) -> Result<Self> {
        // The provider's suites bring the hash, so that no second implementation is linked.
        let suite = ring::cipher_suite::TLS13_AES_128_GCM_SHA256.tls13();
        let suite = suite.ok_or_else(|| Error::configuration("the TLS provider has no SHA-256"))?;
        Ok(Self {
            pins,
            sha256: suite.common.hash_provider,
            algorithms: provider.signature_verification_algorithms,
        })
    }
}

impl ServerCertVerifier for PinnedCertificate {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> std::result::Result<ServerCertVerified, rustls::Error> {
        let hash = self.sha256.hash(end_entity);
        if self.pins.iter().any(|pin| pin.0 == hash.as_ref()) {
            return Ok(ServerCertVerified::assertion());
        }
        let shown: Vec<String> = hash
            .as_ref()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        Err(rustls::Error::General(format!(
            "the certificate is not the pinned one; its SHA-256 is {}",
            shown.concat()
        )))
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn fingerprints_are_read_with_and_without_colons() {
        let plain = "00".repeat(31) + "Af";
        let colons = "SHA256:".to_owned() + &"00:".repeat(31) + "af";
        assert_eq!(
            plain.parse::<Fingerprint>().unwrap(),
            colons.parse().unwrap()
        );
        for wrong in ["", "00", &"0".repeat(65), &"g".repeat(64), "sha256:ää"] {
            assert!(wrong.parse::<Fingerprint>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_file_without_certificates_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ca.pem");
        let trust = Trust {
            ca_files: vec![path.clone()],
            ..Trust::default()
        };
        assert!(
            trust
                .client_config()
                .unwrap_err()
                .message()
                .contains("ca.pem")
        );
        std::fs::write(&path, "nothing").unwrap();
        let error = trust.client_config().unwrap_err();
        assert!(error.message().contains("no certificate"), "{error}");
    }
}
