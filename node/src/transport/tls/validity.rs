//! What a person should replace: a certificate that has ended or soon will, a revocation list whose next one is due. Both are used
//! all the same, as etcd does; others may refuse the certificate.

use std::time::{SystemTime, UNIX_EPOCH};

use rustls::pki_types::CertificateDer;
use x509_parser::{
    prelude::{FromDer, X509Certificate},
    revocation_list::CertificateRevocationList,
};

use super::files::Contents;
use crate::config::TlsFlags;

/// A certificate that ends sooner is spoken of, in seconds.
const SOON: i64 = 14 * 24 * 3600;

/// Warns of what is so now.
pub(super) fn warn(contents: &Contents, flags: TlsFlags) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs() as i64);
    for warning in warnings(contents, flags, now) {
        tracing::warn!("{warning}");
    }
}

/// `now`: seconds since 1970.
fn warnings(contents: &Contents, flags: TlsFlags, now: i64) -> Vec<String> {
    let chain =
        |own: &Option<(Vec<CertificateDer<'static>>, _)>| own.iter().flat_map(|(chain, _)| chain.clone()).collect();
    let own: Vec<CertificateDer<'static>> = chain(&contents.identity);
    let client: Vec<_> = chain(&contents.client_identity);
    let client_flag = flags.client_identity.map_or(flags.cert, |(cert, _)| cert);
    let certificates = own.iter().map(|one| (flags.cert, one)).chain(client.iter().map(|one| (client_flag, one)));
    let ends = certificates.filter_map(|(flag, certificate)| {
        let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
        let end = certificate.validity().not_after;
        match end.timestamp() - now {
            left if left <= 0 => {
                Some(format!("--{flag}: the certificate ended on {end}; whoever looks at it refuses it"))
            }
            left if left <= SOON => Some(format!("--{flag}: the certificate ends on {end}")),
            _ => None,
        }
    });
    let overdue = contents.revoked.iter().filter_map(|list| {
        let (_, list) = CertificateRevocationList::from_der(list).ok()?;
        let due = list.next_update().filter(|due| due.timestamp() <= now)?;
        let flag = flags.crl;
        Some(format!("--{flag}: the next list was due on {due}; what was revoked since then is let in"))
    });
    ends.chain(overdue).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use rcgen::{
        CertificateParams, CertificateRevocationListParams, Issuer, KeyIdMethod, KeyPair, KeyUsagePurpose,
        date_time_ymd,
    };
    use rustls::pki_types::{PrivateKeyDer, pem::PemObject};

    use super::*;
    use crate::config::PEER_TLS;

    #[test]
    fn what_has_ended_or_soon_will_is_said() {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.key_usages = vec![KeyUsagePurpose::CrlSign];
        params.not_after = date_time_ymd(2030, 1, 31);
        let certificate = params.self_signed(&key).unwrap();
        let list = CertificateRevocationListParams {
            this_update: date_time_ymd(2029, 1, 1),
            next_update: date_time_ymd(2030, 1, 25),
            crl_number: 1.into(),
            issuing_distribution_point: None,
            revoked_certs: Vec::new(),
            key_identifier_method: KeyIdMethod::Sha256,
        };
        let pem = key.serialize_pem();
        let list = list.signed_by(&Issuer::new(params, key)).unwrap();
        let contents = Contents {
            identity: Some((vec![certificate.der().clone()], PrivateKeyDer::from_pem_slice(pem.as_bytes()).unwrap())),
            client_identity: None,
            authorities: None,
            revoked: vec![list.der().clone()],
        };
        for (month, day, said) in [
            (1, 1, &[][..]),
            (1, 20, &["--peer-cert-file: the certificate ends on Jan 31"]),
            (
                1,
                26,
                &[
                    "--peer-cert-file: the certificate ends on Jan 31",
                    "--peer-crl-file: the next list was due on Jan 25",
                ],
            ),
            (
                2,
                1,
                &[
                    "--peer-cert-file: the certificate ended on Jan 31",
                    "--peer-crl-file: the next list was due on Jan 25",
                ],
            ),
        ] {
            let now = date_time_ymd(2030, month, day).unix_timestamp();
            let found = warnings(&contents, PEER_TLS, now);
            let fits = found.len() == said.len() && found.iter().zip(said).all(|(found, said)| found.starts_with(said));
            assert!(fits, "{month}-{day}: {found:?}");
        }
    }
}
