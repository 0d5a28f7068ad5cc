//! Why nobody answers where somebody listens: looked into once nobody at all answered.
//!
//! etcd hangs up on whoever comes with TLS to a plain port, without TLS to the other, or without a certificate that it
//! wants, and what a call then says is "broken pipe". So a handshake alone is made, which tells them apart: its alert
//! is read before anything is written. Nothing secret is sent.

use std::{
    collections::BTreeMap,
    io::{self, ErrorKind, Read as _},
    net::{TcpStream, ToSocketAddrs as _},
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::future::join_all;
use rustls::{ClientConfig, ClientConnection, RootCertStore, Stream, pki_types::ServerName};

use tonic::Code;

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
        let broken = failed.iter_mut().filter(|(_, error)| is_unclear(error));
        let causes = broken.map(|(address, error)| {
            let (address, tls) = (address.clone(), tls.clone());
            async move {
                let looked = tokio::task::spawn_blocking(move || cause(&address, tls.as_ref()));
                if let Ok(Ok(Some(cause))) = tokio::time::timeout(IN_ALL, looked).await {
                    *error = cause;
                }
            }
        });
        join_all(causes).await;
    }
}

/// Whether who answers may be no member at all: one says in words what it does not like.
fn is_unclear(error: &CallError) -> bool {
    match error {
        CallError::Broken(_) => true,
        CallError::Said(status) => status.message().is_empty() || status.code() == Code::Unimplemented,
        _ => false,
    }
}

fn cause(address: &str, tls: Option<&TlsFiles>) -> Option<CallError> {
    let url = reqwest::Url::parse(address).ok()?;
    let (host, port) = (url.host_str()?.trim_matches(['[', ']']).to_owned(), url.port_or_known_default()?);
    match (tls, handshake(&host, port, tls)) {
        (Some(_), Err(error)) if fault::is_tls(&error) => fault::in_words(&error).map(CallError::Untrusted),
        (Some(_), Err(_)) => match answer(&host, port)? {
            Plain::Http(_) => Some(CallError::Untrusted("it speaks plain http, not TLS".into())),
            Plain::Http2 | Plain::Other => None,
        },
        (Some(_), Ok(())) => None,
        (None, Err(error)) if !fault::is_tls(&error) => {
            is_no_client_port(&host, port).then_some(CallError::NoClientPort)
        }
        (None, _) => Some(CallError::Untrusted("it speaks TLS, which needs `cluster.tls`".into())),
    }
}

/// A handshake, and the first word after it: a certificate of ours is refused only then.
pub(super) fn handshake(host: &str, port: u16, tls: Option<&TlsFiles>) -> io::Result<()> {
    let (mut connection, mut socket) = shaken(host, port, tls)?;
    match Stream::new(&mut connection, &mut socket).read(&mut [0]) {
        Err(error) if !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => Err(error),
        _ => Ok(()),
    }
}

fn shaken(host: &str, port: u16, tls: Option<&TlsFiles>) -> io::Result<(ClientConnection, TcpStream)> {
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
    Ok((connection, socket))
}

/// TLS as the agent speaks it.
pub(super) fn client() -> rustls::ConfigBuilder<ClientConfig, rustls::WantsVerifier> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("ring has what the default versions of TLS need")
}

/// How somebody answers a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Plain {
    /// In HTTP; the beginning of it.
    Http(String),
    /// In HTTP/2, unasked, as the bundled node's peer port.
    Http2,
    Other,
}

/// What is answered to the question for etcd's version, its beginning.
fn answer(host: &str, port: u16) -> Option<Plain> {
    page(host, port, "/version", None).ok()?
}

/// What is answered where this page is asked for, its beginning; `None` where nothing is. With TLS, as the agent speaks it.
///
/// # Errors
/// No connection, or no handshake.
pub(super) fn page(host: &str, port: u16, path: &str, tls: Option<&TlsFiles>) -> io::Result<Option<Plain>> {
    let request = format!("GET {path} HTTP/1.0\r\n\r\n");
    match tls {
        None => said(&mut connect(host, port)?, &request),
        Some(_) => {
            let (mut connection, mut socket) = shaken(host, port, tls)?;
            said(&mut Stream::new(&mut connection, &mut socket), &request)
        }
    }
}

fn said(stream: &mut (impl io::Read + io::Write), request: &str) -> io::Result<Option<Plain>> {
    const MOST: usize = 4096;
    stream.write_all(request.as_bytes())?;
    let (deadline, mut said, mut word) = (Instant::now() + HANDSHAKE, Vec::new(), [0; 512]);
    while said.len() < MOST && Instant::now() < deadline {
        match stream.read(&mut word) {
            Ok(0) | Err(_) => break,
            Ok(read) => said.extend_from_slice(&word[..read]),
        }
    }
    Ok((!said.is_empty()).then(|| plain(&said)))
}

fn plain(said: &[u8]) -> Plain {
    let text = String::from_utf8_lossy(said);
    match () {
        () if text.starts_with("HTTP/") => Plain::Http(text.into_owned()),
        () if is_settings(said) => Plain::Http2,
        () => Plain::Other,
    }
}

/// Whether this is the frame that each side of HTTP/2 begins with: its length, its type, no flags, of no stream (RFC 9113, 3.4 and 6.5).
fn is_settings(said: &[u8]) -> bool {
    matches!(said, [0, _, length, 4, 0, 0, 0, 0, 0, ..] if length % 6 == 0)
}

/// Whether what answers is surely not where members serve clients. One that says its version may be a member in trouble; and
/// so may one that says nothing.
fn is_no_client_port(host: &str, port: u16) -> bool {
    answer(host, port).is_some_and(|answer| !is_etcds(&answer))
}

/// `etcdcluster` is not on a peer port, and `etcdserver` is on both.
fn is_etcds(answer: &Plain) -> bool {
    matches!(answer, Plain::Http(text) if text.contains("etcdserver"))
}

fn connect(host: &str, port: u16) -> io::Result<TcpStream> {
    let address = (host, port).to_socket_addrs()?.next().ok_or(ErrorKind::NotFound)?;
    let socket = TcpStream::connect_timeout(&address, WORD)?;
    socket.set_read_timeout(Some(WORD))?;
    socket.set_write_timeout(Some(WORD))?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use tonic::Status;

    use super::*;

    #[test]
    fn only_who_says_nothing_of_etcd_is_no_client_port() {
        for (said, is_etcd) in [
            (&b"HTTP/1.0 200 OK\r\n\r\n{\"etcdserver\":\"3.6.14\",\"etcdcluster\":\"3.6.0\"}"[..], true),
            (b"HTTP/1.0 404 Not Found\r\nServer: SimpleHTTP\r\n\r\n", false),
            (b"HTTP/1.1 400 Bad Request\r\n\r\n", false),
            (b"\x00\x00\x18\x04\x00\x00\x00\x00\x00", false), // HTTP/2 alone, as the bundled node's peer port
            (b"SSH-2.0-OpenSSH_9.2\r\n", false),
        ] {
            assert_eq!(is_etcds(&plain(said)), is_etcd, "{}", String::from_utf8_lossy(said));
        }
    }

    #[test]
    fn what_a_member_says_in_words_is_not_doubted() {
        for (error, is_it) in [
            (CallError::Broken(Status::unavailable("x")), true),
            (CallError::Said(Status::new(Code::Unknown, "")), true),
            (CallError::Said(Status::unimplemented("no such service")), true),
            (CallError::Said(Status::unavailable("etcdserver: no leader")), false),
            (CallError::TimedOut(WORD), false),
        ] {
            assert_eq!(is_unclear(&error), is_it, "{error}");
        }
    }
}
