//! A newcomer's certificate for its peers: whether they would let it in.
//!
//! It is judged as a peer judges whom it connects to, by the authorities that the newcomer itself names (etcd, "Transport security
//! model"). Only what no peer would take is objected to. What cannot be judged from here is left to its start.

use std::{
    io::ErrorKind,
    path::Path,
    sync::Arc,
    time::{Duration, SystemTime},
};

use rustls::{
    CertificateError, Error, RootCertStore,
    client::{WebPkiServerVerifier, danger::ServerCertVerifier},
    pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject},
};

use crate::{
    host::runtime::same_node::value,
    regular_file::{self, ReadError},
};

const CERTIFICATE: &str = "peer-cert-file";
const AUTHORITIES: &str = "peer-trusted-ca-file";
/// Of each of these files.
const MAX_BYTES: usize = 1 << 20;

/// Why no peer would take it for what its URLs say, with these arguments.
pub(super) fn objection(argv: &[String], peer_urls: &[String], now: SystemTime) -> Option<String> {
    let hosts: Vec<_> = peer_urls.iter().filter_map(|url| host(url)).collect();
    let path = value(argv, CERTIFICATE).map(Path::new).filter(|path| path.is_absolute() && !hosts.is_empty())?;
    let own = match certificates(path) {
        Ok(own) => own,
        Err(why) => return why.map(|why| format!("its `--{CERTIFICATE}` {} {why}", path.display())),
    };
    let (end, chain) = own.split_first()?;
    let authorities = value(argv, AUTHORITIES).map(Path::new).filter(|path| path.is_absolute())?;
    let roots = match certificates(authorities) {
        Ok(roots) => roots,
        Err(why) => return why.map(|why| format!("its `--{AUTHORITIES}` {} {why}", authorities.display())),
    };
    // One that vouches for itself is taken by etcd, and not by this verifier.
    if roots.contains(end) {
        return None;
    }
    let mut store = RootCertStore::empty();
    store.add_parsable_certificates(roots);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(store), provider).build().ok()?;
    let now = UnixTime::since_unix_epoch(now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO));
    hosts.into_iter().find_map(|(host, name)| {
        let verdict = verifier.verify_server_cert(end, chain, &name, &[], now);
        let why = verdict.err().as_ref().and_then(|error| refusal(error, &host))?;
        Some(format!("no member would let it in: its `--{CERTIFICATE}` {} {why}", path.display()))
    })
}

/// What makes every peer refuse it; of anything else this verifier may be the stricter one.
fn refusal(error: &Error, host: &str) -> Option<String> {
    let Error::InvalidCertificate(error) = error else { return None };
    match error {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => Some("has ended".to_owned()),
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            Some("is not valid yet, by this host's clock".to_owned())
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            Some(format!("is not for {host}, where `peer_urls` say that it is reached"))
        }
        // The second where an authority of the same name has another key.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            Some(format!("is by nobody whom its `--{AUTHORITIES}` names"))
        }
        _ => None,
    }
}

/// The host of a URL that is reached by TLS.
fn host(url: &str) -> Option<(String, ServerName<'static>)> {
    let parsed = reqwest::Url::parse(url).ok().filter(|url| url.scheme() == "https")?;
    let host = parsed.host_str()?.trim_matches(['[', ']']).to_owned();
    let name = ServerName::try_from(host.clone()).ok()?;
    Some((host, name))
}

/// `Err(None)` where it cannot be told from here what is in the file.
fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, Option<&'static str>> {
    let bytes = regular_file::read(path, MAX_BYTES).map_err(|error| match error {
        ReadError::System(error) if error.kind() == ErrorKind::NotFound => Some("is not there"),
        _ => None,
    })?;
    let found: Vec<_> = CertificateDer::pem_slice_iter(&bytes).collect::<Result<_, _>>().map_err(|_| None)?;
    if found.is_empty() { Err(Some("holds no certificate")) } else { Ok(found) }
}

#[cfg(test)]
mod tests {
    use lab::certificates::{Authority, Identity};

    use super::*;

    #[test]
    fn what_no_peer_would_take_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let authority = Authority::create(&folder.path().join("ours")).unwrap();
        let other = Authority::create(&folder.path().join("theirs")).unwrap();
        let good = authority.identity("good", &["10.0.0.4", "m4.example"], |_| {}).unwrap();
        let ended = authority.expired("ended").unwrap();
        let later = authority.later("later").unwrap();
        let foreign = other.identity("foreign", &["10.0.0.4"], |_| {}).unwrap();
        let missing = Identity { cert: folder.path().join("none.pem"), key: good.key.clone() };
        let itself = Identity { cert: authority.ca.clone(), key: good.key.clone() };
        for (identity, url, expected) in [
            (&good, "https://10.0.0.4:2380", None),
            (&good, "https://m4.example:2380", None),
            (&good, "https://10.0.0.5:2380", Some("is not for 10.0.0.5")),
            (&good, "https://[::1]:2380", Some("is not for ::1")),
            (&good, "http://10.0.0.5:2380", None),
            (&ended, "https://10.0.0.4:2380", Some("has ended")),
            (&later, "https://10.0.0.4:2380", Some("is not valid yet")),
            (&foreign, "https://10.0.0.4:2380", Some("is by nobody whom")),
            (&missing, "https://10.0.0.4:2380", Some("is not there")),
            (&itself, "https://10.0.0.4:2380", None),
        ] {
            let argv = [
                format!("--{CERTIFICATE}={}", identity.cert.display()),
                format!("--{AUTHORITIES}={}", authority.ca.display()),
            ];
            let found = objection(&argv, &[url.to_owned()], SystemTime::now());
            match expected {
                None => assert_eq!(found, None, "{url}"),
                Some(words) => assert!(found.as_ref().is_some_and(|found| found.contains(words)), "{url}: {found:?}"),
            }
        }
    }
}
