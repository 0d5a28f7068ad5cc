//! The files of a port: read, and read again when one has changed.

use std::{
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::SystemTime,
};

use rustls::{
    RootCertStore,
    crypto::CryptoProvider,
    pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer, pem::PemObject},
};

use x509_parser::{
    prelude::{FromDer, X509Certificate},
    revocation_list::CertificateRevocationList,
    x509::X509Version,
};

use super::validity;
use crate::{
    config::{Identity, TlsFlags, TlsSettings},
    transport::log_throttle::LogThrottle,
};

/// No such file is larger, in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// Of PEM that cannot be read.
const DAMAGED: &str = "it is cut off, damaged, or something else";

/// Of a revocation list without extensions (RFC 5280, section 5.1.2.1); rustls takes none, and etcd does.
const VERSION_1: &str =
    "it is of version 1; `openssl ca` writes version 2 where its configuration names `crlnumber` or `crl_extensions`";

/// Files that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("--{flag}: cannot read {}: {source}", path.display())]
    Read { flag: &'static str, path: PathBuf, source: io::Error },
    #[error("--{flag}: {} holds no {expected}{}", path.display(), if why.is_empty() { String::new() } else { format!(": {why}") })]
    Content { flag: &'static str, path: PathBuf, expected: &'static str, why: String },
    /// They do not fit each other.
    #[error("--{flag}: {why}")]
    Unfit { flag: &'static str, why: String },
}

/// What stands in the files.
pub(super) struct Contents {
    pub(super) identity: Option<Pair>,
    pub(super) client_identity: Option<Pair>,
    pub(super) authorities: Option<Arc<RootCertStore>>,
    pub(super) revoked: Vec<CertificateRevocationListDer<'static>>,
}

/// Why a certificate and a key cannot be shown, which these flags name.
pub(super) fn unfit_key(
    error: &rustls::Error,
    files: Option<&Identity>,
    (cert, key): (&'static str, &'static str),
) -> TlsError {
    let why = match (error, files) {
        (rustls::Error::InconsistentKeys(_), Some(files)) => {
            format!("{} is not the key of {}, which --{cert} names", files.key.display(), files.cert.display())
        }
        (other, _) => other.to_string(),
    };
    TlsError::Unfit { flag: key, why }
}

/// Why the revocation lists of this file cannot be used.
pub(super) fn unfit_list(error: &dyn std::error::Error, path: Option<&Path>, flag: &'static str) -> TlsError {
    TlsError::Unfit { flag, why: format!("{}: {error}", path.unwrap_or(Path::new("")).display()) }
}

pub(super) fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// What a file looks like from outside: another one after it was changed, or another took its place.
type Stamp = Option<(u64, u64, Option<SystemTime>)>;

fn stamp(path: &Path) -> Stamp {
    let found = fs::metadata(path).ok()?;
    Some((found.ino(), found.len(), found.modified().ok()))
}

/// What is made of a port's files, and made anew when they have changed.
pub(super) struct Renewed<T> {
    settings: TlsSettings,
    pub(super) flags: TlsFlags,
    make: fn(&Contents, &TlsSettings, TlsFlags) -> Result<T, TlsError>,
    made: Mutex<(Vec<Stamp>, Arc<T>)>,
    pub(super) log_throttle: LogThrottle,
}

impl<T> Renewed<T> {
    /// # Errors
    /// [`TlsError`]: at the start the files must be as they should.
    pub(super) fn new(
        settings: TlsSettings,
        flags: TlsFlags,
        make: fn(&Contents, &TlsSettings, TlsFlags) -> Result<T, TlsError>,
    ) -> Result<Self, TlsError> {
        let flags = flags.of(&settings);
        // Looked at before they are read: what is written meanwhile is seen the next time.
        let stamps = stamps(&settings);
        let made = Arc::new(make(&read(&settings, flags)?, &settings, flags)?);
        Ok(Self { settings, flags, make, made: Mutex::new((stamps, made)), log_throttle: LogThrottle::default() })
    }

    /// Of the files as they are now, or as they were when they could last be used.
    pub(super) fn current(&self) -> Arc<T> {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let stamps = stamps(&self.settings);
        if stamps != made.0 {
            made.0 = stamps;
            let again =
                read(&self.settings, self.flags).and_then(|read| (self.make)(&read, &self.settings, self.flags));
            match again {
                Ok(again) => {
                    let flag = self.flags.cert;
                    tracing::info!(
                        "files of --{flag}, or what goes with it, have changed: new connections use the new ones"
                    );
                    made.1 = Arc::new(again);
                }
                Err(error) => {
                    tracing::warn!(%error, "TLS files have changed and cannot be used: the old ones stay in use")
                }
            }
        }
        made.1.clone()
    }
}

fn stamps(settings: &TlsSettings) -> Vec<Stamp> {
    let identities = [&settings.identity, &settings.client_identity];
    let pairs = identities.into_iter().flatten().flat_map(|identity| [&identity.cert, &identity.key]);
    pairs.chain(&settings.trusted_ca).chain(&settings.crl).map(|path| stamp(path)).collect()
}

fn read(settings: &TlsSettings, flags: TlsFlags) -> Result<Contents, TlsError> {
    let own = settings.identity.as_ref().map(|own| pair(own, (flags.cert, flags.key))).transpose()?;
    let client = match (&settings.client_identity, flags.client_identity) {
        (Some(client), Some(names)) => Some(pair(client, names)?),
        _ => None,
    };
    let authorities = settings.trusted_ca.as_ref().map(|path| authorities(flags.trusted_ca, path)).transpose()?;
    let revoked = settings.crl.as_ref().map(|path| revoked(flags.crl, path)).transpose()?.unwrap_or_default();
    if let (Some(path), Some(ca)) = (&settings.crl, &settings.trusted_ca) {
        let authorities = certificates(flags.trusted_ca, ca)?;
        if !revoked.iter().all(|list| is_of(list, &authorities)) {
            let why = format!("{} is signed by no authority in --{}", path.display(), flags.trusted_ca);
            return Err(TlsError::Unfit { flag: flags.crl, why });
        }
    }
    let contents = Contents { identity: own, client_identity: client, authorities: authorities.map(Arc::new), revoked };
    validity::warn(&contents, flags);
    Ok(contents)
}

/// A certificate with those that vouch for it, and its key.
pub(super) type Pair = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

pub(super) fn pair(files: &Identity, (cert, key): (&'static str, &'static str)) -> Result<Pair, TlsError> {
    let chain = certificates(cert, &files.cert)?;
    let bytes = bytes(key, &files.key)?;
    let content = |why: String| TlsError::Content { flag: key, path: files.key.clone(), expected: "key in PEM", why };
    Ok((chain, PrivateKeyDer::from_pem_slice(&bytes).map_err(|_| content(DAMAGED.into()))?))
}

fn bytes(flag: &'static str, path: &Path) -> Result<Vec<u8>, TlsError> {
    let failed = |source| TlsError::Read { flag, path: path.to_owned(), source };
    let found = fs::metadata(path).map_err(failed)?;
    // A pipe would be waited for without end.
    if !found.is_file() || found.len() > MAX_BYTES {
        return Err(failed(io::Error::other("it is no file of at most 1 MiB")));
    }
    fs::read(path).map_err(failed)
}

fn certificates(flag: &'static str, path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let content = |why: String| TlsError::Content { flag, path: path.to_owned(), expected: "certificate in PEM", why };
    let bytes = bytes(flag, path)?;
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    let found = read.map_err(|_| content(DAMAGED.into()))?;
    if found.is_empty() { Err(content(String::new())) } else { Ok(found) }
}

fn authorities(flag: &'static str, path: &Path) -> Result<RootCertStore, TlsError> {
    let mut store = RootCertStore::empty();
    for authority in certificates(flag, path)? {
        let unfit = |error: rustls::Error| TlsError::Unfit { flag, why: format!("{}: {error}", path.display()) };
        store.add(authority).map_err(unfit)?;
    }
    Ok(store)
}

/// Whether one of these has signed the list. One of another authority revokes nothing here, and would be believed to.
fn is_of(list: &[u8], authorities: &[CertificateDer<'_>]) -> bool {
    let Ok((_, list)) = CertificateRevocationList::from_der(list) else { return false };
    authorities.iter().any(|authority| {
        X509Certificate::from_der(authority).is_ok_and(|(_, authority)| {
            authority.subject() == list.issuer() && list.verify_signature(authority.public_key()).is_ok()
        })
    })
}

/// etcd takes DER alone; openssl writes PEM.
fn revoked(flag: &'static str, path: &Path) -> Result<Vec<CertificateRevocationListDer<'static>>, TlsError> {
    let content = |why: &str| {
        let (path, expected) = (path.to_owned(), "usable revocation list in PEM or DER");
        TlsError::Content { flag, path, expected, why: why.into() }
    };
    let bytes = bytes(flag, path)?;
    let in_pem: Result<Vec<_>, _> = CertificateRevocationListDer::pem_slice_iter(&bytes).collect();
    let lists = match in_pem {
        Ok(lists) if !lists.is_empty() => lists,
        Ok(_) => vec![CertificateRevocationListDer::from(bytes)],
        Err(_) => return Err(content(DAMAGED)),
    };
    for list in &lists {
        match CertificateRevocationList::from_der(list) {
            Ok((_, list)) if list.version() == Some(X509Version::V2) => {}
            Ok(_) => return Err(content(VERSION_1)),
            Err(_) => return Err(content(DAMAGED)),
        }
    }
    Ok(lists)
}
