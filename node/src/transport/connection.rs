//! Connections: taken in, served, and ended in time.

use std::{convert::Infallible, future::poll_fn, time::Duration};

use ::http::{Request, Response};
use futures_util::{StreamExt, stream::select_all};
use hyper::{body::Incoming, service::Service};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto::Builder,
};
use tokio::{pin, task::JoinSet, time::timeout};
use tokio_util::sync::CancellationToken;
use tonic::body::Body;

use crate::host::{Listener, Socket};

/// How long requests under way have to finish, and streams to end.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(300);
/// How long a client has until it says something, and until the head of an HTTP request is whole.
const FIRST_REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// A client behind a cut cable would be kept for ever.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(30);
/// As etcd's `--grpc-keepalive-timeout`.
const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(20);

/// As many requests of one connection can be given up before they were looked at: a program whose member stood still for a
/// moment is not cut off with all that it has on it.
const MAX_PENDING_RESETS: usize = 1024;

/// Who connects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caller {
    /// By HTTP/1 or HTTP/2, told apart by the first bytes.
    Client,
    /// By HTTP/2, with entries and snapshots that are to be on their way at once, in bytes a request and a connection.
    Peer { request_window: u32, connection_window: u32 },
}

/// What answers the requests of a connection.
pub trait Answering:
    Service<Request<Incoming>, Response = Response<Body>, Error = Infallible, Future: Send + 'static>
    + Clone
    + Send
    + 'static
{
}

impl<S> Answering for S where
    S: Service<Request<Incoming>, Response = Response<Body>, Error = Infallible, Future: Send + 'static>
        + Clone
        + Send
        + 'static
{
}

/// Serves until `shutdown`, then cancels `stopping` and lets what is under way finish.
pub async fn serve(
    caller: Caller,
    service: impl Answering,
    listeners: impl IntoIterator<Item = Listener>,
    shutdown: impl Future<Output = ()>,
    stopping: CancellationToken,
) {
    let mut sockets = select_all(listeners);
    let mut connections = JoinSet::new();
    pin!(shutdown);
    loop {
        tokio::select! {
            () = &mut shutdown => break,
            Some(socket) = sockets.next() => match socket {
                Ok(socket) => {
                    connections.spawn(connection(caller, service.clone(), socket, stopping.clone()));
                }
                Err(error) => tracing::warn!(%error, ?caller, "a connection was not taken in"),
            },
            Some(_) = connections.join_next() => {}
        }
    }
    drop(sockets);
    stopping.cancel();
    // Whoever is not done by then is cut off: the set is dropped.
    let _ = timeout(DRAIN_TIMEOUT, async { while connections.join_next().await.is_some() {} }).await;
}

async fn connection(caller: Caller, service: impl Answering, socket: Box<dyn Socket>, stopping: CancellationToken) {
    // One that never says anything would be kept for ever; everybody else begins at once.
    let spoke = tokio::select! {
        spoke = timeout(FIRST_REQUEST_TIMEOUT, poll_fn(|context| socket.poll_readable(context))) => matches!(spoke, Ok(Ok(()))),
        () = stopping.cancelled() => false,
    };
    if !spoke {
        return;
    }
    let builder = builder(caller);
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
        tracing::debug!(error, ?caller, "a connection ended");
    }
}

fn builder(caller: Caller) -> Builder<TokioExecutor> {
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
    match caller {
        Caller::Client => builder,
        Caller::Peer { request_window, connection_window } => {
            builder
                .http2()
                .initial_stream_window_size(request_window)
                .initial_connection_window_size(connection_window);
            builder.http2_only()
        }
    }
}
