//! Certificates that a member makes for itself: `--auto-tls`, `--peer-auto-tls` (etcd, `transport.SelfCert`).
//!
//! They lie where etcd has them, and are shown until they have ended. Nobody vouches for them: they encrypt, and say nothing of who
//! shows them. None is the certificate of an authority, as etcd's are in 3.6 and 3.7: who trusts one trusts this member alone.

use std::{
    fs, io,
    net::IpAddr,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use disk::Folder;
use rcgen::{CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, KeyPair, KeyUsagePurpose};
use rustls::{
    client::verify_server_name,
    pki_types::{CertificateDer, ServerName},
    server::ParsedCertificate,
    sign::CertifiedKey,
};
use x509_parser::prelude::{FromDer, X509Certificate};

use super::files::{TlsError, pair, provider, unfit_key};
use crate::config::{FIXTURES, Identity, SelfSigned, TlsFlags, TlsSettings};

/// As many seconds etcd counts for a year.
const YEAR_SECONDS: u64 = 365 * 24 * 3600;
/// Who else may write there, as bits of a mode; and for a key, who else may read it.
const WRITTEN_BY_OTHERS: u32 = 0o022;
const SEEN_BY_OTHERS: u32 = 0o077;

/// Why there is no certificate of the member's own.
#[derive(Debug, thiserror::Error)]
pub enum SelfSignedError {
    #[error(
        "--{flag}: {}: {why}. What lies there is what this member shows, and nobody else may have a hand in it: move it away, and \
         another certificate is made",
        path.display()
    )]
    NotOurs { flag: &'static str, path: PathBuf, why: &'static str },
    #[error("--{flag}: {} is in use: another process makes a certificate there", path.display())]
    Busy { flag: &'static str, path: PathBuf },
    #[error("--{flag}: cannot {doing} {}: {source}", path.display())]
    Io {
        flag: &'static str,
        /// A verb: `make`, `read`, `write`.
        doing: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    #[error("--{flag}: cannot make a certificate for {hosts}: {source}")]
    Unmade { flag: &'static str, hosts: String, source: rcgen::Error },
}

/// Makes the certificate of a port, where its flags say so and there is none that is valid.
///
/// # Errors
/// [`SelfSignedError`]: what is there is as it was.
pub fn make_where_needed(settings: &TlsSettings, flags: TlsFlags) -> Result<(), SelfSignedError> {
    match (&settings.self_signed, &settings.identity) {
        (Some(own), Some(files)) => Making { own, files, flag: flags.auto }.where_needed(now()),
        _ => Ok(()),
    }
}

fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

struct Making<'a> {
    own: &'a SelfSigned,
    files: &'a Identity,
    flag: &'static str,
}

/// What is wrong with a certificate that is there.
#[derive(Debug, thiserror::Error)]
enum Unusable {
    #[error(transparent)]
    Files(#[from] TlsError),
    #[error("it has ended")]
    Ended,
}

impl Making<'_> {
    fn where_needed(&self, now: Duration) -> Result<(), SelfSignedError> {
        let fixtures = self.folder(&self.own.data_dir.join(FIXTURES))?;
        let folder = self.folder(&fixtures.path(self.own.folder))?;
        folder.lock().map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => SelfSignedError::Busy { flag: self.flag, path: folder.path("") },
            _ => self.io("lock", &folder.path(""), error),
        })?;
        let has_cert = self.is_there(&self.files.cert, WRITTEN_BY_OTHERS)?;
        let has_key = self.is_there(&self.files.key, SEEN_BY_OTHERS)?;
        match self.usable(now) {
            Ok(shown) => {
                self.warn_of_hosts(&shown);
                return Ok(());
            }
            // What cannot be read now may be good.
            Err(Unusable::Files(TlsError::Read { path, source, .. })) if source.kind() != io::ErrorKind::NotFound => {
                return Err(self.io("read", &path, source));
            }
            Err(error) if has_cert || has_key => {
                tracing::warn!(
                    %error,
                    cert = %self.files.cert.display(),
                    "this certificate cannot be used: another one is made in its place"
                );
            }
            Err(_) => {}
        }
        self.make(&*folder, now)
    }

    /// A folder that is there, or is made; this user's, and nobody else's to write in.
    fn folder(&self, path: &Path) -> Result<Arc<dyn Folder>, SelfSignedError> {
        let folder = disk::real(path).map_err(|error| self.io("make", path, error))?;
        let found = fs::symlink_metadata(path).map_err(|error| self.io("read", path, error))?;
        match found.is_dir() {
            true => self.is_ours(path, &found, WRITTEN_BY_OTHERS).map(|()| folder),
            false => Err(self.not_ours(path, "it is no folder, or a link to one")),
        }
    }

    /// A file, and nobody else's. What another has put there is neither shown nor replaced.
    fn is_there(&self, path: &Path, denied: u32) -> Result<bool, SelfSignedError> {
        match fs::symlink_metadata(path) {
            Ok(found) if found.is_file() => self.is_ours(path, &found, denied).map(|()| true),
            Ok(_) => Err(self.not_ours(path, "it is no regular file")),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(self.io("read", path, error)),
        }
    }

    fn is_ours(&self, path: &Path, found: &fs::Metadata, denied: u32) -> Result<(), SelfSignedError> {
        if found.uid() != rustix::process::geteuid().as_raw() {
            return Err(self.not_ours(path, "it belongs to another user"));
        }
        match found.mode() & denied {
            0 => Ok(()),
            _ if denied == SEEN_BY_OTHERS => Err(self.not_ours(path, "other users may read or write it")),
            _ => Err(self.not_ours(path, "other users may write it")),
        }
    }

    /// The certificate, where it is whole, has its key and has not ended.
    fn usable(&self, now: Duration) -> Result<CertificateDer<'static>, Unusable> {
        let names = (self.flag, self.flag);
        let (chain, key) = pair(self.files, names)?;
        let unfit = |error| unfit_key(&error, Some(self.files), names);
        let shown = CertifiedKey::from_der(chain, key, &provider()).map_err(unfit)?.cert.swap_remove(0);
        let is_over = X509Certificate::from_der(&shown).is_ok_and(|(_, read)| {
            read.validity().not_after.timestamp() <= i64::try_from(now.as_secs()).unwrap_or(i64::MAX)
        });
        if is_over { Err(Unusable::Ended) } else { Ok(shown) }
    }

    /// Those whom a certificate can be for: the file of a socket need not be a name, and an address with a zone is none.
    fn hosts(&self) -> impl Iterator<Item = (&str, ServerName<'_>)> {
        self.own.hosts.iter().filter_map(|host| Some((host.as_str(), ServerName::try_from(host.as_str()).ok()?)))
    }

    /// Where the member listens and this is not for.
    fn missing_in(&self, shown: &CertificateDer<'_>) -> Vec<&str> {
        let Ok(shown) = ParsedCertificate::try_from(shown) else { return Vec::new() };
        // Nobody calls what stands for all addresses.
        let is_called = |host: &str| host.parse::<IpAddr>().map_or(true, |address| !address.is_unspecified());
        let hosts = self.hosts().filter(|(host, _)| is_called(host));
        hosts.filter(|(_, name)| verify_server_name(&shown, name).is_err()).map(|(host, _)| host).collect()
    }

    /// As with etcd, the certificate stays when the addresses of the member change.
    fn warn_of_hosts(&self, shown: &CertificateDer<'_>) {
        let missing = self.missing_in(shown);
        if !missing.is_empty() {
            tracing::warn!(
                cert = %self.files.cert.display(),
                hosts = missing.join(","),
                "this certificate is not for where the member listens now: remove it, and the next start makes another one"
            );
        }
    }

    fn make(&self, folder: &dyn Folder, now: Duration) -> Result<(), SelfSignedError> {
        let (cert, key, ends) = self.new_pair(now).map_err(|source| SelfSignedError::Unmade {
            flag: self.flag,
            hosts: self.own.hosts.join(", "),
            source,
        })?;
        // etcd's words.
        tracing::warn!(
            "certificate-validity-bound-not-after" = ends,
            cert = %self.files.cert.display(),
            "automatically generate certificates"
        );
        // A crash between the two leaves a certificate without its key, which is found out.
        for (name, text) in [("key.pem", key), ("cert.pem", cert)] {
            disk::write_whole(folder, name, &format!("{name}.tmp"), text.as_bytes())
                .map_err(|error| self.io("write", &folder.path(name), error))?;
        }
        Ok(())
    }

    /// Certificate and key in PEM, and when the certificate ends.
    fn new_pair(&self, now: Duration) -> Result<(String, String, String), rcgen::Error> {
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::new(self.hosts().map(|(host, _)| host.to_owned()).collect::<Vec<_>>())?;
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::OrganizationName, "etcd");
        params.not_before = rcgen::date_time_ymd(1970, 1, 1) + now;
        params.not_after = params.not_before + Duration::from_secs(self.own.years * YEAR_SECONDS);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let ends = params.not_after.to_string();
        Ok((params.self_signed(&key)?.pem(), key.serialize_pem(), ends))
    }

    fn not_ours(&self, path: &Path, why: &'static str) -> SelfSignedError {
        SelfSignedError::NotOurs { flag: self.flag, path: path.to_owned(), why }
    }

    fn io(&self, doing: &'static str, path: &Path, source: io::Error) -> SelfSignedError {
        SelfSignedError::Io { flag: self.flag, doing, path: path.to_owned(), source }
    }
}

#[cfg(test)]
#[path = "self_signed_test.rs"]
mod tests;
