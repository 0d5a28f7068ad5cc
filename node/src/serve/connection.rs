//! Connections: taken in, served, and ended in time.

use std::{io, time::Duration};

use futures_util::{StreamExt, stream::select_all};
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

use super::{front::Front, route::Routes};

/// How long requests under way have to finish, and streams to end.
const DRAIN: Duration = Duration::from_millis(300);
/// How long nobody is taken in where the system has no more descriptors: they are all in use.
const PAUSE: Duration = Duration::from_millis(50);
/// How long a client has until it says something, and until the head of an HTTP request is whole.
const FIRST_WORD: Duration = Duration::from_secs(30);
/// How often a client is asked whether it is still there; one behind a cut cable would be kept for ever.
const ARE_YOU_THERE: Duration = Duration::from_secs(30);
/// How long it has for the answer (etcd, `--grpc-keepalive-timeout`).
const I_AM: Duration = Duration::from_secs(20);
/// As many requests of one connection can be given up before they were looked at: a program whose member stood still for a
/// moment is not cut off with all that it has on it.
const GIVEN_UP: usize = 1024;

/// Serves until `shutdown`, then lets what is under way finish.
pub(super) async fn serve(
    front: Front,
    listeners: impl IntoIterator<Item = TcpListener>,
    shutdown: impl Future<Output = ()>,
) {
    let mut sockets = select_all(listeners.into_iter().map(TcpListenerStream::new));
    let mut connections = JoinSet::new();
    let routes = Routes::new(front.clone());
    pin!(shutdown);
    loop {
        tokio::select! {
            () = &mut shutdown => break,
            Some(socket) = sockets.next() => match socket {
                Ok(socket) => {
                    connections.spawn(connection(routes.clone(), socket, front.stopping.clone()));
                }
                Err(error) => taken_in_no_more(error).await,
            },
            Some(_) = connections.join_next() => {}
        }
    }
    drop(sockets);
    front.stopping.cancel();
    // Whoever is not done by then is cut off: the set is dropped.
    let _ = timeout(DRAIN, async { while connections.join_next().await.is_some() {} }).await;
}

async fn taken_in_no_more(error: io::Error) {
    tracing::warn!(%error, "a client was not taken in");
    sleep(PAUSE).await;
}

async fn connection(routes: Routes, socket: TcpStream, stopping: CancellationToken) {
    let _ = socket.set_nodelay(true);
    // One that never says anything would be kept for ever; everybody else begins at once.
    let spoke = tokio::select! {
        spoke = timeout(FIRST_WORD, socket.readable()) => matches!(spoke, Ok(Ok(()))),
        () = stopping.cancelled() => false,
    };
    if !spoke {
        return;
    }
    let builder = builder();
    let served = builder.serve_connection(TokioIo::new(socket), routes);
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
    builder.http1().timer(TokioTimer::new()).header_read_timeout(FIRST_WORD);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(ARE_YOU_THERE)
        .keep_alive_timeout(I_AM)
        // As etcd, which sets no bound: a client has all its watches and requests on one connection.
        .max_concurrent_streams(None)
        .max_pending_accept_reset_streams(GIVEN_UP);
    builder
}
