//! The TLS files of the playbook, read once and in the two forms that the two clients take.

use std::{fs, path::Path};

use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};
use tonic::transport::{Certificate, ClientTlsConfig, Identity};

use super::error::ObserveError;
use crate::playbook::cluster::Tls;

/// The authorities and, where there is one, our own certificate with its key.
#[derive(Debug, Clone)]
pub struct TlsFiles {
    authorities: Vec<u8>,
    own: Option<Own>,
}

#[derive(Clone)]
struct Own {
    certificate: Vec<u8>,
    key: Vec<u8>,
}

impl TlsFiles {
    /// Reads them, and looks whether each holds what it should.
    ///
    /// # Errors
    /// [`ObserveError::File`] and [`ObserveError::Pem`].
    pub fn read(files: &Tls) -> Result<Self, ObserveError> {
        let authorities = read(&files.ca, "certificates of authorities", holds_certificate)?;
        let own = match (&files.cert, &files.key) {
            (Some(certificate), Some(key)) => Some(Own {
                certificate: read(certificate, "certificate", holds_certificate)?,
                key: read(key, "private key", |pem| PrivateKeyDer::from_pem_slice(pem).is_ok())?,
            }),
            _ => None,
        };
        Ok(Self { authorities, own })
    }

    /// For tonic.
    pub fn for_grpc(&self) -> ClientTlsConfig {
        let config = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(&self.authorities));
        match &self.own {
            Some(own) => config.identity(Identity::from_pem(&own.certificate, &own.key)),
            None => config,
        }
    }

    /// The authorities, for reqwest.
    ///
    /// # Errors
    /// reqwest's own, for a certificate that it cannot read.
    pub fn authorities(&self) -> reqwest::Result<Vec<reqwest::Certificate>> {
        reqwest::Certificate::from_pem_bundle(&self.authorities)
    }

    /// Our own certificate with its key, for reqwest.
    ///
    /// # Errors
    /// reqwest's own, for a certificate or a key that it cannot read.
    pub fn identity(&self) -> Option<reqwest::Result<reqwest::Identity>> {
        let own = self.own.as_ref()?;
        let pem = [own.key.as_slice(), b"\n", own.certificate.as_slice()].concat();
        Some(reqwest::Identity::from_pem(&pem))
    }
}

impl std::fmt::Debug for Own {
    /// Without the key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Own { .. }")
    }
}

fn read(path: &Path, expected: &'static str, holds: impl Fn(&[u8]) -> bool) -> Result<Vec<u8>, ObserveError> {
    let pem = fs::read(path).map_err(|source| ObserveError::File { path: path.to_owned(), source })?;
    if holds(&pem) { Ok(pem) } else { Err(ObserveError::Pem { path: path.to_owned(), expected }) }
}

fn holds_certificate(pem: &[u8]) -> bool {
    let mut certificates = CertificateDer::pem_slice_iter(pem).peekable();
    certificates.peek().is_some() && certificates.all(|certificate| certificate.is_ok())
}
