//! A connection with TLS around it, to whoever reads and writes like any other.

use std::{
    io,
    net::SocketAddr,
    pin::Pin,
    task::{Context, Poll},
};

use tokio::io::{AsyncRead, ReadBuf};
use tokio_rustls::TlsStream;

use crate::host::{Socket, writes_through};

pub(super) struct Secured {
    pub(super) stream: TlsStream<Box<dyn Socket>>,
    /// What came behind the handshake was read with it.
    pub(super) has_spoken: bool,
    /// Told of the first error in reading: of TLS 1.3 a refusal comes only behind the handshake.
    pub(super) failed: Option<Failed>,
}

pub(super) type Failed = Box<dyn FnOnce(&io::Error) + Send + Sync>;

impl Socket for Secured {
    fn poll_readable(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.has_spoken {
            true => Poll::Ready(Ok(())),
            false => self.stream.get_ref().0.poll_readable(context),
        }
    }

    fn remote(&self) -> Option<SocketAddr> {
        self.stream.get_ref().0.remote()
    }
}

impl AsyncRead for Secured {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let read = Pin::new(&mut this.stream).poll_read(context, into);
        if let Poll::Ready(Err(error)) = &read
            && let Some(failed) = this.failed.take()
        {
            failed(error);
        }
        read
    }
}

writes_through!(stream of Secured);
