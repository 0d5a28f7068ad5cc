//! The side that is called.

use std::{io, io::BufRead, sync::Arc, time::Duration};

use futures_util::{StreamExt, future::ready};
use rustls::{
    ServerConfig,
    server::{NoServerSessionStorage, WebPkiClientVerifier, danger::ClientCertVerifier},
    version::{TLS12, TLS13},
};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use super::{
    allowed::Admitted,
    files::{Contents, Renewed, TlsError, provider, unfit_key},
    secured::Secured,
    words::in_words,
};
use crate::{
    config::{TlsFlags, TlsSettings},
    host::{Listener, Socket},
};

/// How long a handshake may take (etcd, `tlsHandshakeTimeout`).
const HANDSHAKE: Duration = Duration::from_secs(10);
/// As many are under way at once: one that takes its time holds up nobody.
const HANDSHAKES: usize = 1024;

/// What a port shows, and whom it takes.
pub struct ServerTls {
    files: Renewed<ServerConfig>,
}

impl ServerTls {
    /// # Errors
    /// [`TlsError`]
    pub fn new(settings: TlsSettings, flags: TlsFlags) -> Result<Self, TlsError> {
        Ok(Self { files: Renewed::new(settings, flags, config)? })
    }

    /// What comes in at a port, once it has shaken hands. Who does not is sent away, and said in the log.
    pub fn secure(self: Arc<Self>, listener: Listener) -> Listener {
        let shaking = move |socket: io::Result<Box<dyn Socket>>| {
            let tls = self.clone();
            async move {
                match socket {
                    Ok(socket) => tls.accept(socket).await.map(Ok),
                    Err(error) => Some(Err(error)),
                }
            }
        };
        listener.map(shaking).buffer_unordered(HANDSHAKES).filter_map(ready).boxed()
    }

    async fn accept(&self, socket: Box<dyn Socket>) -> Option<Box<dyn Socket>> {
        let why = match timeout(HANDSHAKE, TlsAcceptor::from(self.files.current()).accept(socket)).await {
            Ok(Ok(mut stream)) => {
                let has_spoken = stream.get_mut().1.reader().fill_buf().is_ok_and(|bytes| !bytes.is_empty());
                return Some(Box::new(Secured { stream: stream.into(), has_spoken, failed: None }));
            }
            Ok(Err(error)) => in_words(&error),
            Err(_) => format!("it took more than {} s", HANDSHAKE.as_secs()),
        };
        self.files.log_throttle.say("somebody who called has not shaken hands", &why);
        None
    }
}

fn config(read: &Contents, settings: &TlsSettings, flags: TlsFlags) -> Result<ServerConfig, TlsError> {
    let Some((chain, key)) = &read.identity else {
        let why = "a port with TLS has nothing to show".into();
        return Err(TlsError::Unfit { flag: flags.cert, why });
    };
    let unfit = |flag| move |error: &dyn std::error::Error| TlsError::Unfit { flag, why: error.to_string() };
    let versions = if settings.only_1_3 { &[&TLS13][..] } else { &[&TLS13, &TLS12] };
    let builder = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(versions)
        .map_err(|error| unfit(flags.cert)(&error))?;
    let builder = match &read.authorities {
        None => builder.with_no_client_auth(),
        Some(authorities) => {
            let verifier = WebPkiClientVerifier::builder_with_provider(authorities.clone(), provider())
                .with_crls(read.revoked.iter().cloned())
                .allow_unknown_revocation_status()
                .build()
                .map_err(|error| unfit(flags.crl)(&error))?;
            let verifier: Arc<dyn ClientCertVerifier> =
                Arc::new(Admitted { authority: verifier, allowed: settings.allowed.clone() });
            builder.with_client_cert_verifier(verifier)
        }
    };
    let mut config =
        builder.with_single_cert(chain.clone(), key.clone_key()).map_err(|error| unfit_key(&error, flags))?;
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}
