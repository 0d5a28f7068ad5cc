//! Connections as they are had from a machine, whatever carries them.

use std::{
    future::poll_fn,
    io,
    net::SocketAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use futures_util::{StreamExt, stream, stream::BoxStream};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream, UnixListener, UnixStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    time::sleep,
};
use tonic::transport::server::Connected;

use super::SocketFile;

/// For where the system has no more descriptors.
const ACCEPT_RETRY_INTERVAL: Duration = Duration::from_millis(50);

/// A connection.
pub trait Socket: AsyncRead + AsyncWrite + Send + Sync + Unpin {
    /// Whether there is something to read, or nothing any more.
    fn poll_readable(&self, context: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Who is at the other end, where that has an address.
    fn remote(&self) -> Option<SocketAddr> {
        None
    }
}

impl Socket for TcpStream {
    fn poll_readable(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_read_ready(context)
    }

    fn remote(&self) -> Option<SocketAddr> {
        self.peer_addr().ok()
    }
}

impl Socket for UnixStream {
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
    taken_in(listener, places, |listener, context| {
        listener.poll_accept(context).map_ok(|(stream, _)| {
            // Without it only slower.
            let _ = stream.set_nodelay(true);
            stream
        })
    })
}

/// What comes in at a Unix socket, as at a port.
pub fn unix(file: SocketFile, listener: UnixListener, places: Arc<Semaphore>) -> Listener {
    // They are dropped in this order.
    taken_in((file, listener), places, |(_, listener), context| {
        listener.poll_accept(context).map_ok(|(stream, _)| stream)
    })
}

fn taken_in<L: Send + Sync + 'static, S: Socket + 'static>(
    listener: L,
    places: Arc<Semaphore>,
    accept: fn(&L, &mut Context<'_>) -> Poll<io::Result<S>>,
) -> Listener {
    stream::unfold((listener, places), move |(listener, places)| async move {
        let place = places.clone().acquire_owned().await.ok()?;
        let socket = match poll_fn(|context| accept(&listener, context)).await {
            Ok(stream) => Ok(Box::new(Accepted { stream, _place: place }) as Box<dyn Socket>),
            Err(error) => {
                // Whoever asks for the next one at once would turn round and round while the system has no more descriptors.
                sleep(ACCEPT_RETRY_INTERVAL).await;
                Err(error)
            }
        };
        Some((socket, (listener, places)))
    })
    .boxed()
}

/// A connection that came in, and its place.
struct Accepted<S> {
    stream: S,
    _place: OwnedSemaphorePermit,
}

impl<S: Socket> Socket for Accepted<S> {
    fn poll_readable(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream.poll_readable(context)
    }

    fn remote(&self) -> Option<SocketAddr> {
        self.stream.remote()
    }
}

impl<S: Socket> AsyncRead for Accepted<S> {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_read(context, into)
    }
}

/// What wraps a connection only to read from it otherwise: it writes as the connection does.
macro_rules! writes_through {
    ($field:tt of $outer:ident $(<$inner:ident: $bound:path>)?) => {
        impl $(<$inner: $bound + Unpin>)? ::tokio::io::AsyncWrite for $outer $(<$inner>)? {
            fn poll_write(
                self: ::std::pin::Pin<&mut Self>,
                context: &mut ::std::task::Context<'_>,
                bytes: &[u8],
            ) -> ::std::task::Poll<::std::io::Result<usize>> {
                ::std::pin::Pin::new(&mut self.get_mut().$field).poll_write(context, bytes)
            }

            fn poll_write_vectored(
                self: ::std::pin::Pin<&mut Self>,
                context: &mut ::std::task::Context<'_>,
                bytes: &[::std::io::IoSlice<'_>],
            ) -> ::std::task::Poll<::std::io::Result<usize>> {
                ::std::pin::Pin::new(&mut self.get_mut().$field).poll_write_vectored(context, bytes)
            }

            fn is_write_vectored(&self) -> bool {
                self.$field.is_write_vectored()
            }

            fn poll_flush(
                self: ::std::pin::Pin<&mut Self>,
                context: &mut ::std::task::Context<'_>,
            ) -> ::std::task::Poll<::std::io::Result<()>> {
                ::std::pin::Pin::new(&mut self.get_mut().$field).poll_flush(context)
            }

            fn poll_shutdown(
                self: ::std::pin::Pin<&mut Self>,
                context: &mut ::std::task::Context<'_>,
            ) -> ::std::task::Poll<::std::io::Result<()>> {
                ::std::pin::Pin::new(&mut self.get_mut().$field).poll_shutdown(context)
            }
        }
    };
}
pub(crate) use writes_through;

writes_through!(stream of Accepted<S: Socket>);
