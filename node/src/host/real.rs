//! The machine that this process runs on.

use std::{io, net::IpAddr, path::Path, sync::Arc, time::Duration};

use disk::Folder;
use futures_util::{FutureExt, future::BoxFuture};
use rustix::time::{ClockId, clock_gettime};
use tokio::net::{TcpSocket, TcpStream, UnixStream, lookup_host};
use wal::{Options, Wal, WalError};

use super::{Address, Host, Socket};

#[derive(Clone, Copy, Debug, Default)]
pub struct RealHost {
    /// From where it calls others; the system chooses where there is none.
    from: Option<IpAddr>,
}

impl RealHost {
    pub fn calling_from(from: Option<IpAddr>) -> Self {
        Self { from }
    }
}

/// To whichever address of that name lets it in.
async fn call(from: Option<IpAddr>, to: String) -> io::Result<TcpStream> {
    let Some(from) = from else { return TcpStream::connect(to).await };
    let mut last =
        io::Error::new(io::ErrorKind::AddrNotAvailable, format!("{to} has no address of the kind of {from}"));
    for address in lookup_host(to).await?.filter(|address| address.is_ipv4() == from.is_ipv4()) {
        let socket = if from.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        socket.bind((from, 0).into())?;
        match socket.connect(address).await {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

impl Host for RealHost {
    fn data_dir(&self, path: &Path) -> io::Result<Arc<dyn Folder>> {
        disk::real(path)
    }

    fn open_log(&self, folder: Arc<dyn Folder>) -> Result<Wal, WalError> {
        Wal::open_in(folder, Options::default())
    }

    fn connect(&self, to: &Address) -> BoxFuture<'static, io::Result<Box<dyn Socket>>> {
        let (to, from) = (to.clone(), self.from);
        async move {
            if let Address::Unix(path) = to {
                return Ok(Box::new(UnixStream::connect(path).await?) as Box<dyn Socket>);
            }
            let socket = call(from, to.to_string()).await?;
            socket.set_nodelay(true)?;
            Ok(Box::new(socket) as Box<dyn Socket>)
        }
        .boxed()
    }

    fn uptime(&self) -> Duration {
        let now = clock_gettime(ClockId::Boottime);
        Duration::new(now.tv_sec.try_into().unwrap_or_default(), now.tv_nsec.try_into().unwrap_or_default())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn others_are_called_from_the_address_that_is_set() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let to = Address::Tcp { host: "127.0.0.1".into(), port: listener.local_addr().unwrap().port() };
        for (from, seen) in [(None, "127.0.0.1"), (Some("127.0.0.3"), "127.0.0.3")] {
            let host = RealHost::calling_from(from.map(|from: &str| from.parse().unwrap()));
            let (socket, accepted) = tokio::join!(host.connect(&to), listener.accept());
            let (_, peer) = accepted.unwrap();
            assert_eq!((socket.is_ok(), peer.ip().to_string().as_str()), (true, seen));
        }
        let error = RealHost::calling_from(Some("::1".parse().unwrap())).connect(&to).await.err().unwrap();
        assert_eq!(error.kind(), io::ErrorKind::AddrNotAvailable, "{error}");
        // No address of this machine.
        assert!(RealHost::calling_from(Some("192.0.2.1".parse().unwrap())).connect(&to).await.is_err());
    }
}
