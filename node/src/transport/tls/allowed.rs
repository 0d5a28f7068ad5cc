//! Whose certificates are taken, of those that an authority vouches for.

use std::sync::Arc;

use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, SignatureScheme,
    client::{danger::HandshakeSignatureValid, verify_server_name},
    pki_types::{CertificateDer, ServerName, UnixTime},
    server::{
        ParsedCertificate,
        danger::{ClientCertVerified, ClientCertVerifier},
    },
};
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::config::Allowed;

/// Asks an authority first, and then whether it is somebody who is allowed.
#[derive(Debug)]
pub(super) struct Admitted {
    pub(super) authority: Arc<dyn ClientCertVerifier>,
    pub(super) allowed: Allowed,
}

fn is_allowed(allowed: &Allowed, shown: &CertificateDer<'_>) -> bool {
    match allowed {
        Allowed::All => true,
        Allowed::CommonNames(names) => {
            let Ok((_, certificate)) = X509Certificate::from_der(shown) else { return false };
            let shown = certificate.subject().iter_common_name().filter_map(|name| name.as_str().ok());
            // As Go reads a certificate: the last one counts.
            shown.last().is_some_and(|shown| names.iter().any(|name| name == shown))
        }
        Allowed::Hosts(hosts) => ParsedCertificate::try_from(shown).is_ok_and(|certificate| {
            let names = hosts.iter().filter_map(|host| ServerName::try_from(host.as_str()).ok());
            names.into_iter().any(|name| verify_server_name(&certificate, &name).is_ok())
        }),
    }
}

impl ClientCertVerifier for Admitted {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.authority.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        shown: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let verified = self.authority.verify_client_cert(shown, chain, now)?;
        match is_allowed(&self.allowed, shown) {
            true => Ok(verified),
            // The alert of this error is `bad_certificate`, Go's for it.
            false => Err(CertificateError::NotValidForName.into()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.authority.verify_tls12_signature(message, cert, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.authority.verify_tls13_signature(message, cert, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.authority.supported_verify_schemes()
    }
}
