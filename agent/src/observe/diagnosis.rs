//! Why nobody answers where somebody listens: looked into once nobody at all answered.
//!
//! etcd hangs up on whoever comes with TLS to a plain port, without TLS to the other, or without a certificate that it
//! wants, and what a call then says is "broken pipe". So a handshake alone is made, which tells them apart: its alert
//! is read before anything is written. Nothing secret is sent.

use std::{
    collections::BTreeMap,
    io::{self, ErrorKind, Read as _, Write as _},
    net::{TcpStream, ToSocketAddrs as _},
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::future::join_all;
use rustls::{ClientConfig, ClientConnection, RootCertStore, Stream, pki_types::ServerName};

use super::{access::Access, error::CallError, fault, tls::TlsFiles};

/// How long a handshake may take, however slowly it comes.
const HANDSHAKE: Duration = Duration::from_secs(3);
/// How long each word of the other side is waited for.
const WORD: Duration = Duration::from_secs(1);
/// How long one address may take in all.
const IN_ALL: Duration = Duration::from_secs(5);

impl Access {
    /// Puts a cause in the place of a broken connection, where there is one to be found.
    pub(super) async fn diagnose(&self, failed: &mut BTreeMap<String, CallError>) {
        let (tls, _) = self.tls();
        let broken = failed.iter_mut().filter(|(_, error)| matches!(error, CallError::Broken(_)));
        let causes = broken.map(|(address, error)| {
            let (address, tls) = (address.clone(), tls.clone());
            async move {
                let looked = tokio::task::spawn_blocking(move || cause(&address, tls.as_ref()));
                if let Ok(Ok(Some(cause))) = tokio::time::timeout(IN_ALL, looked).await {
                    *error = CallError::Untrusted(cause);
                }
            }
        });
        join_all(causes).await;
    }
}

fn cause(address: &str, tls: Option<&TlsFiles>) -> Option<String> {
    let url = reqwest::Url::parse(address).ok()?;
    let (host, port) = (url.host_str()?.trim_matches(['[', ']']).to_owned(), url.port_or_known_default()?);
    match (tls, handshake(&host, port, tls)) {
        (Some(_), Err(error)) if fault::is_tls(&error) => fault::in_words(&error),
        (Some(_), Err(_)) => speaks_plainly(&host, port),
        (Some(_), Ok(())) => None,
        (None, Err(error)) if !fault::is_tls(&error) => None,
        (None, _) => Some("it speaks TLS, which needs `cluster.tls`".into()),
    }
}

/// A handshake, and the first word after it: a certificate of ours is refused only then.
fn handshake(host: &str, port: u16, tls: Option<&TlsFiles>) -> io::Result<()> {
    let config = match tls {
        Some(files) => files.for_handshake()?,
        None => client().with_root_certificates(RootCertStore::empty()).with_no_client_auth(),
    };
    let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
    let mut connection = ClientConnection::new(Arc::new(config), name).map_err(io::Error::other)?;
    let mut socket = connect(host, port)?;
    let deadline = Instant::now() + HANDSHAKE;
    while connection.is_handshaking() {
        // A record may come a byte at a time: each byte is in time, and all of them never.
        if Instant::now() > deadline {
            return Err(ErrorKind::TimedOut.into());
        }
        match connection.is_handshaking() && connection.wants_write() {
            true => connection.write_tls(&mut socket).map(drop)?,
            false => {
                if connection.read_tls(&mut socket)? == 0 {
                    return Err(ErrorKind::UnexpectedEof.into());
                }
                connection.process_new_packets().map_err(io::Error::other)?;
            }
        }
    }
    match Stream::new(&mut connection, &mut socket).read(&mut [0]) {
        Err(error) if !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => Err(error),
        _ => Ok(()),
    }
}

/// TLS as the agent speaks it.
pub(super) fn client() -> rustls::ConfigBuilder<ClientConfig, rustls::WantsVerifier> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("ring has what the default versions of TLS need")
}

fn speaks_plainly(host: &str, port: u16) -> Option<String> {
    let mut socket = connect(host, port).ok()?;
    socket.write_all(b"GET /version HTTP/1.0\r\n\r\n").ok()?;
    let mut word = [0; 5];
    socket.read_exact(&mut word).ok()?;
    (&word == b"HTTP/").then(|| "it speaks plain http, not TLS".into())
}

fn connect(host: &str, port: u16) -> io::Result<TcpStream> {
    let address = (host, port).to_socket_addrs()?.next().ok_or(ErrorKind::NotFound)?;
    let socket = TcpStream::connect_timeout(&address, WORD)?;
    socket.set_read_timeout(Some(WORD))?;
    socket.set_write_timeout(Some(WORD))?;
    Ok(socket)
}
