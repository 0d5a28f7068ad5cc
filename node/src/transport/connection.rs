//! Connections: taken in, served, and ended in time.

use std::{convert::Infallible, io, time::Duration};

use ::http::{Request, Response};
use futures_util::{StreamExt, stream::select_all};
use hyper::{body::Incoming, service::Service};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto::Builder,
};
use tokio::{
    net::{TcpListener, TcpStream},
    pin,
    task::JoinSet,
    time::{sleep, timeout},
};
use tokio_stream::wrappers::TcpListenerStream;
use tokio_util::sync::CancellationToken;
use tonic::body::Body;

use super::MAX_PENDING_RESETS;

/// How long requests under way have to finish, and streams to end.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(300);
/// For where the system has no more descriptors.
const ACCEPT_RETRY_INTERVAL: Duration = Duration::from_millis(50);
/// How long a client has until it says something, and until the head of an HTTP request is whole.
const FIRST_REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// A client behind a cut cable would be kept for ever.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(30);
/// As etcd's `--grpc-keepalive-timeout`.
const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(20);

/// What answers the requests of a connection.
pub trait Answering:
    Service<
        Request<Incoming>,
        Response = Response<Body>,
        Error = Infallible,
        Future: Future<Output = Result<Response<Body>, Infallible>> + Send + 'static,
    > + Clone
    + Send
    + 'static
{
}

/// Serves until `shutdown`, then cancels `stopping` and lets what is under way finish.
pub async fn serve(
    service: impl Answering,
    listeners: impl IntoIterator<Item = TcpListener>,
    shutdown: impl Future<Output = ()>,
    stopping: CancellationToken,
) {
    let mut sockets = select_all(listeners.into_iter().map(TcpListenerStream::new));
    let mut connections = JoinSet::new();
    pin!(shutdown);
    loop {
        tokio::select! {
            () = &mut shutdown => break,
            Some(socket) = sockets.next() => match socket {
                Ok(socket) => {
                    connections.spawn(connection(service.clone(), socket, stopping.clone()));
                }
                Err(error) => taken_in_no_more(error).await,
            },
            Some(_) = connections.join_next() => {}
        }
    }
    drop(sockets);
    stopping.cancel();
    // Whoever is not done by then is cut off: the set is dropped.
    let _ = timeout(DRAIN_TIMEOUT, async { while connections.join_next().await.is_some() {} }).await;
}

async fn taken_in_no_more(error: io::Error) {
    tracing::warn!(%error, "a client was not taken in");
    sleep(ACCEPT_RETRY_INTERVAL).await;
}

async fn connection(service: impl Answering, socket: TcpStream, stopping: CancellationToken) {
    let _ = socket.set_nodelay(true);
    // One that never says anything would be kept for ever; everybody else begins at once.
    let spoke = tokio::select! {
        spoke = timeout(FIRST_REQUEST_TIMEOUT, socket.readable()) => matches!(spoke, Ok(Ok(()))),
        () = stopping.cancelled() => false,
    };
    if !spoke {
        return;
    }
    let builder = builder();
    let served = builder.serve_connection(TokioIo::new(socket), service);
    pin!(served);
    let ended = tokio::select! {
        ended = &mut served => ended,
        () = stopping.cancelled() => {
            served.as_mut().graceful_shutdown();
            served.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(error, "a client's connection ended");
    }
}

/// HTTP/1 and HTTP/2 on one port, told apart by their first bytes.
fn builder() -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(FIRST_REQUEST_TIMEOUT);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(KEEPALIVE_INTERVAL)
        .keep_alive_timeout(KEEPALIVE_TIMEOUT)
        // As etcd, which sets no bound: a client has all its watches and requests on one connection.
        .max_concurrent_streams(None)
        .max_pending_accept_reset_streams(MAX_PENDING_RESETS);
    builder
}
