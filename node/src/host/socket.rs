//! Connections as they are had from a machine, whatever carries them.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use futures_util::{StreamExt, stream, stream::BoxStream};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    time::sleep,
};
use tonic::transport::server::Connected;

/// For where the system has no more descriptors.
const ACCEPT_RETRY_INTERVAL: Duration = Duration::from_millis(50);

/// A connection.
pub trait Socket: AsyncRead + AsyncWrite + Send + Sync + Unpin {
    /// Whether there is something to read, or nothing any more.
    fn poll_readable(&self, context: &mut Context<'_>) -> Poll<io::Result<()>>;
}

impl Socket for TcpStream {
    fn poll_readable(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_read_ready(context)
    }
}

impl Connected for Box<dyn Socket> {
    type ConnectInfo = ();

    fn connect_info(&self) {}
}

/// Connections as they come in.
pub type Listener = BoxStream<'static, io::Result<Box<dyn Socket>>>;

/// What comes in at a TCP port, while there are places: whoever comes then waits until another has gone, as with etcd. It ends
/// when the places are closed.
pub fn tcp(listener: TcpListener, places: Arc<Semaphore>) -> Listener {
    stream::unfold((listener, places), |(listener, places)| async {
        let place = places.clone().acquire_owned().await.ok()?;
        Some((accept(&listener, place).await, (listener, places)))
    })
    .boxed()
}

async fn accept(listener: &TcpListener, place: OwnedSemaphorePermit) -> io::Result<Box<dyn Socket>> {
    match listener.accept().await {
        Ok((stream, _)) => {
            // Without it only slower.
            let _ = stream.set_nodelay(true);
            Ok(Box::new(Accepted { stream, _place: place }))
        }
        Err(error) => {
            // Whoever asks for the next one at once would turn round and round while the system has no more descriptors.
            sleep(ACCEPT_RETRY_INTERVAL).await;
            Err(error)
        }
    }
}

/// A connection that came in, and its place.
struct Accepted {
    stream: TcpStream,
    _place: OwnedSemaphorePermit,
}

impl Socket for Accepted {
    fn poll_readable(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream.poll_read_ready(context)
    }
}

impl AsyncRead for Accepted {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_read(context, into)
    }
}

impl AsyncWrite for Accepted {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write_vectored(context, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}
