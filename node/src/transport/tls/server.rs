//! The side that is called.

use std::{
    collections::VecDeque,
    io::{self, BufRead},
    sync::Arc,
    time::Duration,
};

use futures_util::StreamExt;
use rustls::{
    ServerConfig,
    server::{Acceptor, NoServerSessionStorage, WebPkiClientVerifier, danger::ClientCertVerifier},
};
use tokio::{
    sync::mpsc,
    task::{AbortHandle, JoinSet},
    time::timeout,
};
use tokio_rustls::{LazyConfigAcceptor, server::TlsStream};
use tokio_stream::wrappers::ReceiverStream;

use super::{
    allowed::Admitted,
    files::{Contents, Renewed, TlsError, provider, unfit_key, unfit_list},
    secured::Secured,
    spoken,
    words::{in_words, in_words_of_etcd},
};
use crate::{
    config::{TlsFlags, TlsSettings},
    host::{Listener, Socket},
};

/// How long a handshake may take (etcd, `tlsHandshakeTimeout`).
const HANDSHAKE: Duration = Duration::from_secs(10);

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

    /// What comes in at a port, once it has shaken hands. Who does not is sent away, and said in the log. As many as `most` shake hands
    /// at once: where one more comes the oldest is given up. Whoever means it is done in milliseconds; so nobody who takes
    /// places and says nothing holds up others.
    pub fn secure(self: Arc<Self>, mut listener: Listener, most: usize) -> Listener {
        let (ready, secured) = mpsc::channel(1);
        tokio::spawn(async move {
            let (mut shaking, mut oldest) = (JoinSet::new(), VecDeque::<AbortHandle>::new());
            loop {
                let socket = tokio::select! {
                    socket = listener.next() => socket,
                    () = ready.closed() => return,
                };
                while shaking.try_join_next().is_some() {}
                let Some(socket) = socket else { return };
                oldest.retain(|handshake| !handshake.is_finished());
                if oldest.len() >= most
                    && let Some(handshake) = oldest.pop_front()
                {
                    handshake.abort();
                    let why = format!("more than {most} are in their handshake at once");
                    self.files.log_throttle.say("the oldest of many who have not shaken hands is given up", &why);
                }
                let (tls, ready) = (self.clone(), ready.clone());
                oldest.push_back(shaking.spawn(async move {
                    let socket = match socket {
                        Ok(socket) => tls.accept(socket).await.map(Ok),
                        Err(error) => Some(Err(error)),
                    };
                    if let Some(socket) = socket {
                        // Nobody takes it any more at the end.
                        let _ = ready.send(socket).await;
                    }
                }));
            }
        });
        ReceiverStream::new(secured).boxed()
    }

    async fn accept(&self, socket: Box<dyn Socket>) -> Option<Box<dyn Socket>> {
        let (remote, mut server_name) = (socket.remote(), String::new());
        let shaken = timeout(HANDSHAKE, shake_hands(self.files.current(), socket, &mut server_name)).await;
        let (why, error) = match shaken {
            Ok(Ok(mut stream)) => {
                let has_spoken = stream.get_mut().1.reader().fill_buf().is_ok_and(|bytes| !bytes.is_empty());
                return Some(Box::new(Secured { stream: stream.into(), has_spoken, failed: None }));
            }
            Ok(Err(error)) => (in_words(&error), in_words_of_etcd(&error)),
            Err(late) => (format!("it took more than {} s", HANDSHAKE.as_secs()), late.to_string()),
        };
        // In etcd's words (`setupLogging` in server/embed/config_logging.go), and why in ours.
        if self.files.log_throttle.is_news(&why) {
            let (side, remote_addr) = (self.files.flags.side, remote.map_or_else(String::new, |at| at.to_string()));
            tracing::warn!(remote_addr, server_name, error, why, "rejected connection on {side} endpoint");
        }
        None
    }
}

/// Notes the name of the server that was meant, once it was said.
async fn shake_hands(
    config: Arc<ServerConfig>,
    socket: Box<dyn Socket>,
    server_name: &mut String,
) -> io::Result<TlsStream<Box<dyn Socket>>> {
    let begun = LazyConfigAcceptor::new(Acceptor::default(), socket).await?;
    begun.client_hello().server_name().unwrap_or_default().clone_into(server_name);
    begun.into_stream(config).await
}

fn config(read: &Contents, settings: &TlsSettings, flags: TlsFlags) -> Result<ServerConfig, TlsError> {
    let Some((chain, key)) = &read.identity else {
        let why = "a port with TLS has nothing to show".into();
        return Err(TlsError::Unfit { flag: flags.cert, why });
    };
    let unfit = |flag| move |error: &dyn std::error::Error| TlsError::Unfit { flag, why: error.to_string() };
    let builder = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(spoken(settings.versions))
        .map_err(|error| unfit(flags.cert)(&error))?;
    let builder = match &read.authorities {
        None => builder.with_no_client_auth(),
        Some(authorities) => {
            let verifier = WebPkiClientVerifier::builder_with_provider(authorities.clone(), provider())
                .with_crls(read.revoked.iter().cloned())
                .allow_unknown_revocation_status()
                .build()
                .map_err(|error| unfit_list(&error, settings.crl.as_deref(), flags.crl))?;
            let verifier: Arc<dyn ClientCertVerifier> =
                Arc::new(Admitted { authority: verifier, allowed: settings.allowed.clone() });
            builder.with_client_cert_verifier(verifier)
        }
    };
    let names = (flags.cert, flags.key);
    let mut config = builder
        .with_single_cert(chain.clone(), key.clone_key())
        .map_err(|error| unfit_key(&error, settings.identity.as_ref(), names))?;
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}
