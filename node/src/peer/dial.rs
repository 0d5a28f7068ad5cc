//! Connects to a member at whichever of its peer URLs lets it first: all are its own.

use std::{
    io,
    task::{Context, Poll},
};

use futures_util::{
    FutureExt,
    future::{BoxFuture, select_ok},
};
use http::Uri;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tonic::codegen::Service;

use crate::config::{Url, UrlError};

#[derive(Clone, Debug)]
pub(super) struct Dial {
    authorities: Vec<String>,
}

impl Dial {
    /// For URLs with commas between.
    pub(super) fn new(urls: &str) -> Result<Self, UrlError> {
        let authorities = urls.split(',').map(|url| url.parse().map(|url: Url| url.authority()));
        Ok(Self { authorities: authorities.collect::<Result<_, _>>()? })
    }
}

impl Service<Uri> for Dial {
    type Response = TokioIo<TcpStream>;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<Self::Response>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        // All at once: one that swallows what is sent to it would take all the time that there is for a vote.
        let tries = self.authorities.clone().into_iter().map(|authority| TcpStream::connect(authority).boxed());
        async move {
            let (socket, _) = select_ok(tries).await?;
            socket.set_nodelay(true)?;
            Ok(TokioIo::new(socket))
        }
        .boxed()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr};

    use tokio::net::TcpSocket;

    use super::*;

    async fn reached(at: &[SocketAddr]) -> io::Result<SocketAddr> {
        let urls: Vec<_> = at.iter().map(|address| format!("http://{address}")).collect();
        Dial::new(&urls.join(",")).unwrap().call(Uri::default()).await?.inner().peer_addr()
    }

    #[tokio::test]
    async fn a_member_is_reached_at_any_of_its_urls() {
        let bound = || {
            let socket = TcpSocket::new_v4().unwrap();
            socket.bind((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
            (socket.local_addr().unwrap(), socket)
        };
        // Where nobody listens, the port is held all the same, and whoever calls is turned away.
        let ((closed, _held), (open, socket)) = (bound(), bound());
        let _listens = socket.listen(8).unwrap();
        for urls in [&[open][..], &[closed, open], &[open, closed]] {
            assert_eq!(reached(urls).await.unwrap(), open);
        }
        assert_eq!(reached(&[closed, closed]).await.unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
    }
}
