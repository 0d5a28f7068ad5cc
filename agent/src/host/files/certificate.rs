//! Certificates in PEM files, as a new Go would look at them: etcd is built with one, and each release of Go has refused more.

use std::{
    collections::BTreeSet,
    path::Path,
    sync::Arc,
    time::{Duration, SystemTime},
};

use rustls::{
    CertificateError, Error, InconsistentKeys, RootCertStore,
    pki_types::{CertificateDer, PrivateKeyDer, UnixTime, pem::PemObject},
    server::WebPkiClientVerifier,
    sign::CertifiedKey,
};
use x509_parser::{
    der_parser::{asn1_rs::Oid, oid},
    oid_registry::{OID_PKCS1_MD5WITHRSAENC, OID_PKCS1_SHA1WITHRSA},
    prelude::{ASN1Time, FromDer, X509Certificate},
    public_key::PublicKey,
};

use crate::regular_file;

/// Of each file; the authorities of a whole system take a quarter of a MiB.
const MAX_BYTES: usize = 8 << 20;
/// What each block of a PEM file begins with.
const BEGIN: &[u8] = b"-----BEGIN ";
/// In bits.
const SHORT_RSA: usize = 1024;
/// RFC 3279, 2.2.3.
const ECDSA_WITH_SHA1: Oid<'static> = oid!(1.2.840.10045.4.1);

/// What some Go refuses in a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// It names who it is for by its subject alone.
    NoNames,
    /// It is signed by SHA-1, or by what is weaker.
    Sha1,
    NegativeSerial,
    /// Its RSA key is shorter than 1024 bits.
    ShortKey,
}

/// What a file is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To show who serves.
    Server,
    /// To show who asks.
    Client,
    /// To know others by.
    Authorities,
}

/// What was found in one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificates {
    /// Of the first one, which is shown; of authorities what each of them has.
    pub faults: BTreeSet<Fault>,
    /// From when to when the first one is valid; `None` of authorities, of which one may do for another.
    pub valid: Option<(SystemTime, SystemTime)>,
}

/// Reads a file. Of authorities each must be readable, as etcd does not start otherwise (`NewCertPool` of its `pkg/tlsutil`); of what is
/// shown the first one: more may come behind it, that nobody needs.
///
/// # Errors
/// Why it could not be.
pub fn read(path: &Path, purpose: Purpose) -> Result<Certificates, String> {
    let bytes = regular_file::read(path, MAX_BYTES).map_err(|error| error.to_string())?;
    let shown = if purpose == Purpose::Authorities { usize::MAX } else { 1 };
    let all = CertificateDer::pem_slice_iter(&bytes).take(shown).collect::<Result<Vec<_>, _>>();
    let unreadable = || "it holds a certificate that cannot be read".to_owned();
    let all = all.map_err(|_| unreadable())?;
    let parsed = all.iter().map(|der| X509Certificate::from_der(der).map(|(_, certificate)| certificate));
    let parsed = parsed.collect::<Result<Vec<_>, _>>().map_err(|_| unreadable())?;
    // etcd takes authorities by other names, too, such as `X509 CERTIFICATE`.
    let may_be_named_otherwise = purpose == Purpose::Authorities && bytes.windows(BEGIN.len()).any(|at| at == BEGIN);
    let first = match parsed.first() {
        Some(first) => first,
        None if may_be_named_otherwise => return Ok(Certificates { faults: BTreeSet::new(), valid: None }),
        None => return Err("it holds no certificate".to_owned()),
    };
    if purpose == Purpose::Authorities {
        let each = parsed.iter().flat_map(faults).collect::<BTreeSet<_>>();
        // One that is refused leaves the others, but for what is not even read.
        let is_in_all = |fault: &Fault| parsed.iter().all(|one| faults(one).contains(fault));
        let faults = each.into_iter().filter(|fault| *fault == Fault::NegativeSerial || is_in_all(fault)).collect();
        return Ok(Certificates { faults, valid: None });
    }
    let mut found: BTreeSet<_> = faults(first).into_iter().collect();
    let has_names = first.subject_alternative_name().is_ok_and(|names| names.is_some());
    if purpose == Purpose::Server && !has_names {
        found.insert(Fault::NoNames);
    }
    let valid = time(first.validity().not_before).zip(time(first.validity().not_after));
    Ok(Certificates { faults: found, valid })
}

/// Whether this key is the one of the certificate in that file. Of a kind of key that is not known here nothing is said.
///
/// # Errors
/// It is not, or cannot be read.
pub fn check_key(certificate: &Path, key: &Path) -> Result<(), String> {
    let read = |path| regular_file::read(path, MAX_BYTES).map_err(|error| error.to_string());
    let key = PrivateKeyDer::from_pem_slice(&read(key)?).map_err(|_| "it holds no key that can be read".to_owned())?;
    let chain: Vec<_> = CertificateDer::pem_slice_iter(&read(certificate)?).filter_map(Result::ok).collect();
    let Ok(key) = rustls::crypto::ring::sign::any_supported_type(&key) else { return Ok(()) };
    match CertifiedKey::new(chain, key).keys_match() {
        Err(rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch)) => {
            Err(format!("it is not the key of {}", certificate.display()))
        }
        _ => Ok(()),
    }
}

/// Whether one of these authorities has signed the certificate that is shown of this file, itself or by way of others within it. Of what
/// cannot be judged here, such as a signature of a kind that is not known, nothing is said.
///
/// # Errors
/// None of them has.
pub fn check_authority(certificate: &Path, authorities: &Path) -> Result<(), String> {
    let read = |path| regular_file::read(path, MAX_BYTES).unwrap_or_default();
    let pems = |bytes: &[u8]| CertificateDer::pem_slice_iter(bytes).filter_map(Result::ok).collect::<Vec<_>>();
    let (known, chain) = (pems(&read(authorities)), pems(&read(certificate)));
    let mut roots = RootCertStore::empty();
    let (_, unusable) = roots.add_parsable_certificates(known);
    let ([shown, more @ ..], 0, false) = (chain.as_slice(), unusable, roots.is_empty()) else { return Ok(()) };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let Ok(verifier) = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build() else {
        return Ok(());
    };
    match verifier.verify_client_cert(shown, more, UnixTime::now()) {
        Err(Error::InvalidCertificate(CertificateError::UnknownIssuer | CertificateError::BadSignature)) => {
            Err(format!("is signed by no authority in {}", authorities.display()))
        }
        _ => Ok(()),
    }
}

fn faults(certificate: &X509Certificate<'_>) -> Vec<Fault> {
    let algorithm = &certificate.signature_algorithm.algorithm;
    let weak = [OID_PKCS1_SHA1WITHRSA, ECDSA_WITH_SHA1, OID_PKCS1_MD5WITHRSAENC];
    // Nobody looks at who signed a root.
    let is_weak = weak.contains(algorithm) && certificate.issuer() != certificate.subject();
    let is_negative = certificate.raw_serial().first().is_some_and(|byte| byte & 0x80 != 0);
    let is_short = match certificate.public_key().parsed() {
        Ok(PublicKey::RSA(key)) => key.key_size() < SHORT_RSA,
        _ => false,
    };
    let found = [(is_weak, Fault::Sha1), (is_negative, Fault::NegativeSerial), (is_short, Fault::ShortKey)];
    found.into_iter().filter_map(|(is_so, fault)| is_so.then_some(fault)).collect()
}

/// Before 1970 is 1970: no clock of a host that runs is earlier.
fn time(of: ASN1Time) -> Option<SystemTime> {
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(u64::try_from(of.timestamp()).unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use lab::certificates::Authority;

    use super::*;

    /// Each made by openssl(1), for `localhost`, for a hundred years.
    #[test]
    fn what_a_new_go_refuses_is_seen_in_a_certificate() {
        use Fault::{NegativeSerial, NoNames, Sha1, ShortKey};
        use Purpose::{Authorities, Client, Server};
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/host/files/certificates");
        for (name, purpose, expected) in [
            ("good", Server, vec![]),
            ("sha1", Server, vec![Sha1]),
            ("short768", Server, vec![ShortKey]),
            ("negative", Server, vec![NegativeSerial]),
            ("nosan", Server, vec![NoNames]),
            ("nosan", Client, vec![]),
            ("short768", Authorities, vec![ShortKey]),
        ] {
            let found = read(&folder.join(format!("{name}.pem")), purpose).unwrap();
            assert_eq!(found.faults, expected.into_iter().collect(), "{name} for {purpose:?}");
            let now = SystemTime::now();
            let is_valid = found.valid.is_some_and(|(from, end)| (from..end).contains(&now));
            assert_eq!(is_valid, purpose != Authorities, "{name}");
        }
    }

    #[test]
    fn a_key_is_held_against_its_certificate() {
        let folder = tempfile::tempdir().unwrap();
        let authority = Authority::create(folder.path()).unwrap();
        let [one, other] = ["one", "other"].map(|name| authority.identity(name, &["m1.example"], |_| {}).unwrap());
        assert_eq!(check_key(&one.cert, &one.key), Ok(()));
        assert!(check_key(&one.cert, &other.key).unwrap_err().contains("not the key of"));
        assert!(check_key(&one.cert, &one.cert).unwrap_err().contains("holds no key"));
        assert!(check_key(&one.cert, &folder.path().join("none")).is_err());
        let rubbish = folder.path().join("rubbish");
        fs::write(&rubbish, "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n").unwrap();
        assert_eq!(check_key(&one.cert, &rubbish), Ok(()), "of what kind it is is not known");
    }

    #[test]
    fn who_signed_a_certificate_is_held_against_the_authorities() {
        let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let [ours, others] = folders.each_ref().map(|folder| Authority::create(folder.path()).unwrap());
        let one = ours.identity("one", &["m1.example"], |_| {}).unwrap();
        let [ours, others] = [ours, others].map(|authority| authority.ca);
        assert_eq!(check_authority(&one.cert, &ours), Ok(()));
        assert!(check_authority(&one.cert, &others).unwrap_err().contains("no authority"));
        let both = folders[0].path().join("both.pem");
        fs::write(&both, [fs::read(&others).unwrap(), fs::read(&ours).unwrap()].concat()).unwrap();
        assert_eq!(check_authority(&one.cert, &both), Ok(()));
        assert_eq!(check_authority(&one.cert, &folders[0].path().join("none")), Ok(()), "that is another matter");
    }

    #[test]
    fn what_is_shown_is_judged_by_its_first_and_of_authorities_each_is_read() {
        use Purpose::{Authorities, Server};
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/host/files/certificates");
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file.pem");
        let part = |name: &str| match name {
            "torn" => "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n".to_owned(),
            "renamed" => "-----BEGIN X509 CERTIFICATE-----\nAAAA\n-----END X509 CERTIFICATE-----\n".to_owned(),
            name => fs::read_to_string(source.join(format!("{name}.pem"))).unwrap(),
        };
        for (parts, purpose, expected) in [
            ("good sha1", Server, Some(vec![])), // nobody needs it
            ("sha1 good", Server, Some(vec![Fault::Sha1])),
            ("good torn", Server, Some(vec![])),
            ("torn good", Server, None),
            ("good torn", Authorities, None),
            ("good negative", Authorities, Some(vec![Fault::NegativeSerial])),
            ("good short768", Authorities, Some(vec![])), // another one does
            ("short768 short768", Authorities, Some(vec![Fault::ShortKey])),
            ("", Server, None),
            ("", Authorities, None),
            ("renamed", Authorities, Some(vec![])),
            ("renamed", Server, None),
        ] {
            fs::write(&file, parts.split_whitespace().map(part).collect::<String>()).unwrap();
            let found = read(&file, purpose).ok().map(|found| found.faults);
            assert_eq!(found, expected.map(|faults| faults.into_iter().collect()), "{parts} for {purpose:?}");
        }
        fs::write(&file, "no certificate").unwrap();
        assert!(read(&file, Server).unwrap_err().contains("no certificate"));
        assert!(read(&folder.path().join("none"), Server).is_err());
    }
}
