//! The sockets of a process: all are bound at once, so that an address that is not to be had is told before anything else
//! happens; clients' are listened at only when there is somebody to answer.

use std::{io, net::SocketAddr, sync::Arc};

use tokio::{
    net::{TcpSocket, UnixSocket, lookup_host},
    sync::Semaphore,
};

use crate::{
    config::Url,
    host::{Address, Listener, SocketFile, tcp, unix},
    transport::tls::ServerTls,
};

/// As many connections wait to be accepted.
const BACKLOG: u32 = 1024;

/// Why nothing listens there.
#[derive(Debug, thiserror::Error)]
#[error("--{setting}: cannot listen at {url}: {source}")]
pub struct ListenError {
    /// The setting that has the address.
    setting: &'static str,
    url: Url,
    source: io::Error,
}

/// Sockets that have their addresses, and refuse connections.
#[derive(Debug)]
pub struct Bound {
    setting: &'static str,
    sockets: Vec<(Url, BoundSocket)>,
}

#[derive(Debug)]
enum BoundSocket {
    Tcp(TcpSocket),
    /// They are dropped in this order.
    Unix(SocketFile, UnixSocket),
}

impl BoundSocket {
    fn address(&self) -> Option<String> {
        match self {
            Self::Tcp(socket) => Some(socket.local_addr().ok()?.to_string()),
            Self::Unix(file, _) => Some(file.path().display().to_string()),
        }
    }

    /// What comes in, and where: of a port that the system chose nobody knows but by this.
    fn listen(self, places: Arc<Semaphore>) -> io::Result<(Listener, String)> {
        match self {
            Self::Tcp(socket) => {
                let listener = socket.listen(BACKLOG)?;
                let address = listener.local_addr()?.to_string();
                Ok((tcp(listener, places), address))
            }
            Self::Unix(file, socket) => {
                let (address, listener) = (file.path().display().to_string(), socket.listen(BACKLOG)?);
                match file.is_own() {
                    true => Ok((unix(file, listener, places), address)),
                    false => Err(io::Error::new(io::ErrorKind::AddrInUse, "another process has taken its place")),
                }
            }
        }
    }
}

impl Bound {
    /// Takes the addresses of a setting.
    ///
    /// # Errors
    /// One is no address of this host, or another process listens there.
    pub async fn at(setting: &'static str, urls: &[Url]) -> Result<Self, ListenError> {
        let mut sockets = Vec::new();
        for url in urls {
            let bound = bind(url).await;
            let failed = |source| ListenError { setting, url: url.clone(), source };
            sockets.push((url.clone(), bound.map_err(failed)?));
        }
        Ok(Self { setting, sockets })
    }

    /// Where it listens, and whether by TLS.
    pub fn addresses(&self) -> Vec<(String, bool)> {
        let address = |(url, socket): &(Url, BoundSocket)| Some((socket.address()?, url.is_tls()));
        self.sockets.iter().filter_map(address).collect()
    }

    /// Takes connections from now on, so many at once; with TLS where the URL says so.
    ///
    /// # Errors
    /// Another process was quicker.
    pub fn listen(self, most: usize, tls: Option<&Arc<ServerTls>>) -> Result<Vec<Listener>, ListenError> {
        let Self { setting, sockets } = self;
        let places = Arc::new(Semaphore::new(most));
        let listen = |(url, socket): (Url, BoundSocket)| match socket.listen(places.clone()) {
            Ok((listener, address)) => {
                tracing::info!(%url, address, "listens (--{setting})");
                Ok(match tls.filter(|_| url.is_tls()) {
                    // The other half is for those who have shaken hands.
                    Some(tls) => tls.clone().secure(listener, most.div_ceil(2)),
                    None => listener,
                })
            }
            Err(source) => Err(ListenError { setting, url, source }),
        };
        sockets.into_iter().map(listen).collect()
    }
}

/// A name may stand for several addresses: the first that can be had.
async fn bind(url: &Url) -> io::Result<BoundSocket> {
    if let Address::Unix(path) = url.address() {
        return SocketFile::bind(path).await.map(|(file, socket)| BoundSocket::Unix(file, socket));
    }
    let mut failed = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in lookup_host(url.address().to_string()).await? {
        match bind_at(address) {
            Ok(socket) => return Ok(BoundSocket::Tcp(socket)),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

fn bind_at(address: SocketAddr) -> io::Result<TcpSocket> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // Connections of the process before this one may not be over yet.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    Ok(socket)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use tokio::net::UnixStream;

    use super::*;

    /// Neither process that starts at the same time listens yet, so each takes the other's file for one that was left.
    #[tokio::test]
    async fn of_two_that_bind_a_socket_s_file_before_either_listens_the_first_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m1.sock");
        let url: Url = format!("unix://{}", path.display()).parse().unwrap();
        let bind = async || Bound::at("listen-client-urls", std::slice::from_ref(&url)).await.unwrap();
        let (first, second) = (bind().await, bind().await);
        let Err(error) = first.listen(1, None) else { panic!("nobody comes to the first") };
        assert!(error.to_string().ends_with("another process has taken its place"), "{error}");
        let listeners = second.listen(1, None).unwrap();
        UnixStream::connect(&path).await.unwrap();
        drop(listeners);
        assert!(!path.exists(), "it is gone with its listener");
    }
}
