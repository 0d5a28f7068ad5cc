//! The side that calls: a member that reaches another one.

use std::{io, sync::Arc};

use rustls::{
    ClientConfig, RootCertStore,
    client::{Resumption, WebPkiServerVerifier},
    pki_types::ServerName,
};
use tokio_rustls::TlsConnector;

use super::{
    anybody::Anybody,
    files::{Contents, Renewed, TlsError, provider, unfit_key, unfit_list},
    secured::Secured,
    spoken,
    words::in_words,
};
use crate::{
    config::{TlsFlags, TlsSettings},
    host::Socket,
};

/// What this member shows to others, and whom it believes.
pub struct ClientTls {
    files: Renewed<ClientConfig>,
}

impl ClientTls {
    /// # Errors
    /// [`TlsError`]
    pub fn new(settings: TlsSettings, flags: TlsFlags) -> Result<Self, TlsError> {
        Ok(Self { files: Renewed::new(settings, flags, config)? })
    }

    /// Shakes hands with whoever must be this host, by name or address.
    ///
    /// # Errors
    /// It is not, or the connection broke.
    pub async fn connect(self: Arc<Self>, host: &str, socket: Box<dyn Socket>) -> io::Result<Box<dyn Socket>> {
        let name = ServerName::try_from(host.trim_matches(['[', ']']).to_owned()).map_err(io::Error::other)?;
        match TlsConnector::from(self.files.current()).connect(name, socket).await {
            Ok(stream) => {
                let host = host.to_owned();
                let failed = move |error: &io::Error| {
                    if error.get_ref().is_some_and(|inner| inner.is::<rustls::Error>()) {
                        self.say(&host, error);
                    }
                };
                Ok(Box::new(Secured { stream: stream.into(), has_spoken: false, failed: Some(Box::new(failed)) }))
            }
            Err(error) => Err(io::Error::new(error.kind(), self.say(host, &error))),
        }
    }

    fn say(&self, host: &str, error: &io::Error) -> String {
        let why = format!("{host}: {}", in_words(error));
        self.files.log_throttle.say("cannot shake hands with a member", &why);
        why
    }
}

fn config(read: &Contents, settings: &TlsSettings, flags: TlsFlags) -> Result<ClientConfig, TlsError> {
    let unfit = |flag| move |error: &dyn std::error::Error| TlsError::Unfit { flag, why: error.to_string() };
    let builder = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(spoken(settings.versions))
        .map_err(|error| unfit(flags.cert)(&error))?;
    let builder = match &read.authorities {
        // Nobody vouches for what members make themselves (etcd, `TLSInfo.selfCert`).
        None if settings.self_signed.is_some() => {
            builder.dangerous().with_custom_certificate_verifier(Arc::new(Anybody(provider())))
        }
        // Whom it is to believe nobody says: it believes nobody.
        None => builder.with_root_certificates(RootCertStore::empty()),
        Some(authorities) => {
            let verifier = WebPkiServerVerifier::builder_with_provider(authorities.clone(), provider())
                .with_crls(read.revoked.iter().cloned())
                .allow_unknown_revocation_status()
                .build()
                .map_err(|error| unfit_list(&error, settings.crl.as_deref(), flags.crl))?;
            builder.with_webpki_verifier(verifier)
        }
    };
    let of_its_own = read.client_identity.as_ref().zip(flags.client_identity);
    let shown = match (of_its_own, &read.identity) {
        (Some((shown, names)), _) => Some((shown, settings.client_identity.as_ref(), names)),
        (None, Some(shown)) => Some((shown, settings.identity.as_ref(), (flags.cert, flags.key))),
        (None, None) => None,
    };
    let mut config = match shown {
        None => builder.with_no_client_auth(),
        Some(((chain, key), files, names)) => {
            let shown = builder.with_client_auth_cert(chain.clone(), key.clone_key());
            shown.map_err(|error| unfit_key(&error, files, names))?
        }
    };
    config.resumption = Resumption::disabled();
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(config)
}
