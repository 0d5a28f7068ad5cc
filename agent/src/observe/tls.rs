//! The TLS files of the playbook, in the two forms that the two clients take, and read again when they have changed.
//!
//! A run may outlive a certificate. So the files are looked at again before connections are made; what is
//! unreadable or half written at that moment leaves the old ones in use, with a warning.

use std::{
    io,
    path::Path,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use rustls::{
    ClientConfig, ConfigBuilder, RootCertStore,
    client::WantsClientCert,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use tonic::transport::{Certificate, ClientTlsConfig, Endpoint, Identity};

use super::{
    diagnosis::client,
    error::ObserveError,
    secret_file::{Stamp, read},
    validity::Validity,
};
use crate::playbook::cluster::Tls;

/// How often the files are looked at.
const RECHECK_INTERVAL: Duration = Duration::from_secs(1);

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

/// The files as they are now.
#[derive(Debug)]
pub(super) struct Renewed {
    paths: Tls,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    files: TlsFiles,
    generation: u64,
    /// What the files looked like when they were last read, well or not.
    stamps: Vec<Option<Stamp>>,
    checked: Instant,
}

impl Renewed {
    /// Reads the files, and looks whether each holds what it should.
    ///
    /// # Errors
    /// [`ObserveError::File`], [`ObserveError::Pem`], [`ObserveError::KeyPair`] and [`ObserveError::Tls`].
    pub(super) fn read(paths: &Tls) -> Result<Self, ObserveError> {
        let stamps = stamps(paths);
        let files = TlsFiles::read(paths)?;
        let state = Mutex::new(State { files, generation: 0, stamps, checked: Instant::now() });
        Ok(Self { paths: paths.clone(), state })
    }

    /// The files, and a number that is another one after they have changed.
    pub(super) fn current(&self) -> (TlsFiles, u64) {
        // Nothing panics with the lock held, so what a poisoned lock guards is whole.
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.checked.elapsed() >= RECHECK_INTERVAL {
            state.check(&self.paths);
        }
        (state.files.clone(), state.generation)
    }

    pub(super) fn generation(&self) -> u64 {
        self.current().1
    }

    /// From when to when our own certificate is valid.
    pub(super) fn own_validity(&self) -> Option<Validity> {
        Validity::of(self.paths.cert.clone()?, &certificates(&self.current().0.own?.certificate).ok()?)
    }
}

impl State {
    fn check(&mut self, paths: &Tls) {
        self.checked = Instant::now();
        let stamps = stamps(paths);
        if stamps == self.stamps {
            return;
        }
        // Taken before the files are read: what is written meanwhile is seen at the next check.
        self.stamps = stamps;
        match TlsFiles::read(paths) {
            Ok(files) => {
                tracing::info!("the files of `cluster.tls` have changed: new connections use the new ones");
                self.files = files;
                self.generation += 1;
            }
            Err(error) => {
                let error = &error as &(dyn std::error::Error + 'static);
                tracing::warn!(
                    error,
                    "the files of `cluster.tls` have changed and cannot be used: the old ones stay in use"
                );
            }
        }
    }
}

fn stamps(paths: &Tls) -> Vec<Option<Stamp>> {
    [Some(&paths.ca), paths.cert.as_ref(), paths.key.as_ref()]
        .into_iter()
        .flatten()
        .map(|path| Stamp::of(path))
        .collect()
}

impl TlsFiles {
    fn read(files: &Tls) -> Result<Self, ObserveError> {
        let authorities = pem(&files.ca, "certificates of authorities", holds_certificate)?;
        let own = match (&files.cert, &files.key) {
            (Some(certificate), Some(key)) => {
                let own = Own {
                    certificate: pem(certificate, "certificate", holds_certificate)?,
                    key: pem(key, "private key", is_key)?,
                };
                let misfit = |source| ObserveError::KeyPair { cert: certificate.clone(), key: key.clone(), source };
                own.present_to(client().with_root_certificates(RootCertStore::empty())).map_err(misfit)?;
                Some(own)
            }
            _ => None,
        };
        let read = Self { authorities, own };
        let any = Endpoint::from_static("https://localhost").tls_config(read.for_grpc());
        any.map_err(|error| ObserveError::Tls(error.into()))?;
        Ok(read)
    }

    pub fn for_grpc(&self) -> ClientTlsConfig {
        let config = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(&self.authorities));
        match &self.own {
            Some(own) => config.identity(Identity::from_pem(&own.certificate, &own.key)),
            None => config,
        }
    }

    /// For a handshake alone.
    ///
    /// # Errors
    /// What is wrong with a certificate or a key.
    pub(super) fn for_handshake(&self) -> io::Result<ClientConfig> {
        let mut roots = RootCertStore::empty();
        for authority in certificates(&self.authorities)? {
            roots.add(authority).map_err(io::Error::other)?;
        }
        let config = client().with_root_certificates(roots);
        match &self.own {
            Some(own) => own.present_to(config),
            None => Ok(config.with_no_client_auth()),
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

impl Own {
    /// A certificate and a key of two generations are found out here.
    fn present_to(&self, config: ConfigBuilder<ClientConfig, WantsClientCert>) -> io::Result<ClientConfig> {
        let key = PrivateKeyDer::from_pem_slice(&self.key).map_err(io::Error::other)?;
        config.with_client_auth_cert(certificates(&self.certificate)?, key).map_err(io::Error::other)
    }
}

fn certificates(pem: &[u8]) -> io::Result<Vec<CertificateDer<'static>>> {
    CertificateDer::pem_slice_iter(pem).collect::<Result<_, _>>().map_err(io::Error::other)
}

impl std::fmt::Debug for Own {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Own { .. }")
    }
}

fn pem(path: &Path, expected: &'static str, holds: impl Fn(&[u8]) -> bool) -> Result<Vec<u8>, ObserveError> {
    let pem = read(path)?;
    match holds(&pem) {
        true => Ok(pem),
        false => Err(ObserveError::Pem { path: path.to_owned(), expected, instead: held(&pem) }),
    }
}

fn is_key(pem: &[u8]) -> bool {
    PrivateKeyDer::from_pem_slice(pem).is_ok()
}

/// What a file holds that should hold something else, as one whose name stands in another's place.
fn held(pem: &[u8]) -> &'static str {
    match (holds_certificate(pem), is_key(pem)) {
        (true, _) => "; it holds a certificate",
        (false, true) => "; it holds a private key",
        (false, false) => "",
    }
}

fn holds_certificate(pem: &[u8]) -> bool {
    let mut certificates = CertificateDer::pem_slice_iter(pem).peekable();
    certificates.peek().is_some() && certificates.all(|certificate| certificate.is_ok())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use lab::certificates::Certificates;

    use super::*;

    fn tls(files: &Certificates) -> Tls {
        let client = &files.client;
        Tls { ca: files.ca.clone(), cert: Some(client.cert.clone()), key: Some(client.key.clone()) }
    }

    fn look_again(renewed: &Renewed) -> u64 {
        renewed.state.lock().unwrap().checked -= RECHECK_INTERVAL;
        renewed.generation()
    }

    #[test]
    fn new_files_are_taken_over_and_broken_ones_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let (mine, newer) = (folder.path().join("mine"), folder.path().join("newer"));
        let files = tls(&Certificates::create(&mine).unwrap());
        let newer = tls(&Certificates::create(&newer).unwrap());
        let renewed = Renewed::read(&files).unwrap();
        let old = renewed.current().0.authorities;
        assert_eq!(look_again(&renewed), 0, "nothing has changed");

        // The certificate first: for a moment it is not of the key beside it.
        fs::copy(newer.cert.as_ref().unwrap(), files.cert.as_ref().unwrap()).unwrap();
        assert_eq!(look_again(&renewed), 0, "half written");
        let said = Renewed::read(&files).err().map(|error| error.to_string());
        let (cert, key) = (files.cert.as_ref().unwrap().display(), files.key.as_ref().unwrap().display());
        assert_eq!(said, Some(format!("the key {key} is not that of the certificate {cert}")));
        let swapped = Tls { cert: files.key.clone(), key: files.cert.clone(), ..files.clone() };
        let said = Renewed::read(&swapped).err().map(|error| error.to_string());
        assert_eq!(said, Some(format!("{key} is no usable PEM certificate; it holds a private key")));
        fs::remove_file(files.key.as_ref().unwrap()).unwrap();
        assert_eq!(look_again(&renewed), 0, "not readable");
        assert_eq!(renewed.current().0.authorities, old);

        fs::copy(newer.key.as_ref().unwrap(), files.key.as_ref().unwrap()).unwrap();
        assert_eq!(look_again(&renewed), 1);
        fs::rename(&newer.ca, &files.ca).unwrap();
        assert_eq!(look_again(&renewed), 2);
        assert_eq!(renewed.current().0.authorities, fs::read(&files.ca).unwrap());
        assert_ne!(renewed.current().0.authorities, old);
    }
}
