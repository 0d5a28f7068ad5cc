//! Connections: taken in, served, and ended in time.

use std::{convert::Infallible, error::Error, future::poll_fn, net::SocketAddr, time::Duration};

use ::http::{Request, Response};
use bytes::Bytes;
use futures_util::{StreamExt, stream::select_all};
use hyper::{
    body::{Body, Incoming},
    service::Service,
};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto::Builder,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    pin,
    task::JoinSet,
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use super::{
    authority::Mended,
    gathering::gathering,
    log_throttle::LogThrottle,
    silent::{Asked, Noting, Silent},
};
use crate::{
    config::Keepalive,
    host::{Listener, Socket},
};

/// How long requests under way have to finish, and streams to end.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(300);
/// How long a client has until it says something, and until the head of an HTTP request is whole.
const FIRST_REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// What a client may say of a request beside it. etcd takes 16 MiB, more than anybody has had.
const LONGEST_HEADERS_BYTES: u32 = 1 << 20;
/// A member behind a cut cable would be kept for ever.
const PEER_KEEPALIVE: Keepalive =
    Keepalive { interval: Some(Duration::from_secs(30)), timeout: Duration::from_secs(20) };

/// As many requests of one connection can be given up before they were looked at: a program whose member stood still for a
/// moment is not cut off with all that it has on it.
const MAX_PENDING_RESETS: usize = 1024;

/// As much of one answer waits for its connection. What waits has a claim on all that the client lets a connection send, and who
/// has less to say stands behind it (h2, `assign_connection_capacity`): with whole answers of many megabytes a watch was silent for
/// as long as those took.
const MOST_WAITING_BYTES: usize = 64 << 10;

/// Who connects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caller {
    /// By HTTP/1 or HTTP/2, told apart by the first bytes; with as many calls at once on one connection.
    Client { max_concurrent_streams: u32, keepalive: Keepalive },
    /// By HTTP/2, with entries and snapshots that are to be on their way at once, in bytes a request and a connection.
    Peer { request_window: u32, connection_window: u32 },
}

impl Caller {
    /// As many connections may be open on which nothing was asked yet. A member asks at once.
    fn most_silent(self) -> usize {
        match self {
            Self::Client { .. } => 256,
            Self::Peer { .. } => 24,
        }
    }
}

/// What an answer says.
pub trait Content: Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static {}

impl<B: Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static> Content for B {}

/// What answers the requests of a connection.
pub trait Answering<B>:
    Service<Request<Incoming>, Response = Response<B>, Error = Infallible, Future: Send + 'static> + Clone + Send + 'static
{
}

impl<B, S> Answering<B> for S where
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible, Future: Send + 'static>
        + Clone
        + Send
        + 'static
{
}

/// Serves with what `service` gives for whoever calls from there, until `shutdown`, then cancels `stopping` and lets what is under way finish.
pub async fn serve<B: Content, A: Answering<B>>(
    caller: Caller,
    service: impl Fn(Option<SocketAddr>) -> A,
    listeners: impl IntoIterator<Item = Listener>,
    shutdown: impl Future<Output = ()>,
    stopping: CancellationToken,
) {
    let mut sockets = select_all(listeners);
    let (mut connections, mut silent) = (JoinSet::new(), Silent::at_most(caller.most_silent()));
    let log_throttle = LogThrottle::default();
    pin!(shutdown);
    loop {
        tokio::select! {
            () = &mut shutdown => break,
            Some(socket) = sockets.next() => match socket {
                Ok(socket) => {
                    let asked = Asked::default();
                    let is_anybody_answered = matches!(caller, Caller::Client { .. });
                    let service = Noting { service: service(socket.remote()), asked: asked.clone(), is_anybody_answered };
                    let taken_in = connections.spawn(gathering(connection(caller, service, socket, stopping.clone())));
                    if silent.add(asked, taken_in) {
                        let why = format!("there are more than {}", caller.most_silent());
                        log_throttle.say("the oldest of many connections on which nothing was asked is given up", &why);
                    }
                }
                Err(error) => log_throttle.say("a connection was not taken in", &error.to_string()),
            },
            Some(_) = connections.join_next() => {}
        }
    }
    drop(sockets);
    stopping.cancel();
    // Whoever is not done by then is cut off: the set is dropped.
    let _ = timeout(DRAIN_TIMEOUT, async { while connections.join_next().await.is_some() {} }).await;
}

async fn connection<B: Content>(
    caller: Caller,
    service: impl Answering<B>,
    socket: Box<dyn Socket>,
    stopping: CancellationToken,
) {
    // One that never says anything would be kept for ever; everybody else begins at once.
    let spoke = tokio::select! {
        spoke = timeout(FIRST_REQUEST_TIMEOUT, poll_fn(|context| socket.poll_readable(context))) => matches!(spoke, Ok(Ok(()))),
        () = stopping.cancelled() => false,
    };
    if !spoke {
        return;
    }
    let ended = match caller {
        Caller::Client { .. } => requests(caller, service, Mended::new(socket), stopping).await,
        Caller::Peer { .. } => requests(caller, service, socket, stopping).await,
    };
    if let Err(error) = ended {
        tracing::debug!(error, ?caller, "a connection ended");
    }
}

async fn requests<B: Content>(
    caller: Caller,
    service: impl Answering<B>,
    socket: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    stopping: CancellationToken,
) -> Result<(), Box<dyn Error + Send + Sync>> {
    let builder = builder(caller);
    let served = builder.serve_connection(TokioIo::new(socket), service);
    pin!(served);
    tokio::select! {
        ended = &mut served => ended,
        () = stopping.cancelled() => {
            served.as_mut().graceful_shutdown();
            served.await
        }
    }
}

fn builder(caller: Caller) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(FIRST_REQUEST_TIMEOUT);
    builder.http2().timer(TokioTimer::new()).max_pending_accept_reset_streams(MAX_PENDING_RESETS);
    match caller {
        Caller::Client { max_concurrent_streams, keepalive } => {
            // As etcd, which sets no bound by itself: a client has all its watches and requests on one connection.
            let bound = Some(max_concurrent_streams).filter(|most| *most < u32::MAX);
            builder
                .http2()
                .max_concurrent_streams(bound)
                .max_header_list_size(LONGEST_HEADERS_BYTES)
                .max_send_buf_size(MOST_WAITING_BYTES);
            keep_alive(&mut builder, keepalive);
            builder
        }
        Caller::Peer { request_window, connection_window } => {
            builder
                .http2()
                .max_concurrent_streams(None)
                .initial_stream_window_size(request_window)
                .initial_connection_window_size(connection_window);
            keep_alive(&mut builder, PEER_KEEPALIVE);
            builder.http2_only()
        }
    }
}

fn keep_alive(builder: &mut Builder<TokioExecutor>, keepalive: Keepalive) {
    builder.http2().keep_alive_interval(keepalive.interval).keep_alive_timeout(keepalive.timeout);
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::{
        net::Ipv4Addr,
        sync::{
            Arc,
            atomic::{AtomicBool, Ordering},
        },
    };

    use hyper::service::service_fn;
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::{TcpListener, TcpStream},
        sync::Semaphore,
    };

    use super::*;
    use crate::{host::tcp, transport::authority::fuzzing::PREFACE};

    /// `GET /` on the first stream, in HPACK's own table (RFC 7541, appendix A).
    const REQUEST: &[u8] = b"\0\0\x06\x01\x05\0\0\0\x01\x82\x86\x84\x01\x01a";
    const PLACES: usize = 40;

    /// Whether an answer's head comes, and not a refusal or an end.
    async fn is_answered(socket: &mut TcpStream) -> bool {
        loop {
            let mut head = [0; 9];
            if socket.read_exact(&mut head).await.is_err() {
                return false;
            }
            let mut body = vec![0; usize::from(head[1]) << 8 | usize::from(head[2])];
            socket.read_exact(&mut body).await.unwrap();
            // HEADERS; RST_STREAM, GOAWAY (RFC 9113, section 6).
            match head[3] {
                1 => return true,
                3 | 7 => return false,
                _ => {}
            }
        }
    }

    #[tokio::test]
    async fn who_takes_every_place_and_is_nobody_holds_up_nobody() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        // A member's questions, and those of whoever else can send one.
        let is_member = Arc::new(AtomicBool::new(true));
        let known = is_member.clone();
        let answers = service_fn(move |request: Request<Incoming>| {
            if known.load(Ordering::Relaxed) {
                request.extensions().get::<Asked>().unwrap().note();
            }
            async { Ok::<_, Infallible>(Response::new(tonic::body::Body::empty())) }
        });
        let caller = Caller::Peer { request_window: 1 << 16, connection_window: 1 << 16 };
        let listeners = [tcp(listener, Arc::new(Semaphore::new(PLACES)))];
        let answers = Arc::new(answers);
        let service = move |_| answers.clone();
        tokio::spawn(serve(caller, service, listeners, std::future::pending(), CancellationToken::new()));
        let connect = async || {
            let mut socket = TcpStream::connect(address).await.unwrap();
            socket.write_all(PREFACE).await.unwrap();
            socket
        };
        let mut first = connect().await;
        first.write_all(REQUEST).await.unwrap();
        assert!(is_answered(&mut first).await);
        let mut silent = Vec::new();
        is_member.store(false, Ordering::Relaxed);
        for number in 0..5 * PLACES {
            let mut socket = connect().await;
            if number % 2 == 0 {
                let _ = socket.write_all(REQUEST).await;
                timeout(Duration::from_secs(20), is_answered(&mut socket)).await.unwrap();
            }
            silent.push(socket);
        }
        is_member.store(true, Ordering::Relaxed);
        let mut last = connect().await;
        last.write_all(REQUEST).await.unwrap();
        assert!(timeout(Duration::from_secs(20), is_answered(&mut last)).await.unwrap(), "it has a place");
        first.write_all(&[REQUEST[..8].to_vec(), vec![3], REQUEST[9..].to_vec()].concat()).await.unwrap();
        assert!(is_answered(&mut first).await, "who has asked keeps its place");
    }
}
