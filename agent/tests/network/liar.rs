//! Somebody at a port who speaks gRPC and answers what a test likes, and notes what was asked.

use std::{
    convert::Infallible,
    future::Future,
    net::{Ipv4Addr, SocketAddr},
    pin::Pin,
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::{BufMut as _, Bytes, BytesMut};
use futures_util::{StreamExt as _, stream};
use http_body_util::{BodyExt as _, StreamBody, combinators::UnsyncBoxBody};
use hyper::{
    HeaderMap, Request, Response,
    body::{Frame, Incoming},
    service::service_fn,
};
use hyper_util::{rt::TokioExecutor, rt::TokioIo, server::conn::auto};
use tokio::{
    net::TcpListener,
    task::{AbortHandle, JoinSet},
};

/// What is answered to one call.
pub enum Reply {
    /// A message.
    Says(Vec<u8>),
    /// A message, so much later.
    Late(Duration, Vec<u8>),
    /// This message again and again.
    Endless(Vec<u8>),
    /// An error: gRPC's code, and words.
    Refuses(u16, &'static str),
    /// Nothing, though the connection stays open.
    Nothing,
}

/// One call as it was heard.
#[derive(Clone, Debug)]
pub struct Heard {
    /// The method, as `Maintenance/Status`.
    pub method: String,
    /// The token that came with it.
    pub token: Option<String>,
}

/// At work until it is dropped.
pub struct Liar {
    /// Where it listens.
    pub url: String,
    heard: Arc<Mutex<Vec<Heard>>>,
    connections: Connections,
    task: AbortHandle,
}

type Connections = Arc<tokio::sync::Mutex<JoinSet<()>>>;
type Answer = Pin<Box<dyn Future<Output = Result<Response<UnsyncBoxBody<Bytes, Infallible>>, Infallible>> + Send>>;

impl Liar {
    /// Listens on a free port and answers each call, named as `Maintenance/Status`, like this.
    pub async fn new(answer: impl Fn(&Heard) -> Reply + Send + Sync + 'static) -> Self {
        Self::at(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap(), answer)
    }

    /// The same on a port that is there already.
    pub fn at(listener: TcpListener, answer: impl Fn(&Heard) -> Reply + Send + Sync + 'static) -> Self {
        let address: SocketAddr = listener.local_addr().unwrap();
        let (heard, answer) = (Arc::<Mutex<Vec<Heard>>>::default(), Arc::new(answer));
        let notes = heard.clone();
        let connections = Connections::default();
        let open = connections.clone();
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (notes, answer) = (notes.clone(), answer.clone());
                open.lock().await.spawn(async move {
                    let service = service_fn(move |request: Request<Incoming>| -> Answer {
                        let (notes, answer) = (notes.clone(), answer.clone());
                        Box::pin(async move { Ok(served(request, &notes, &*answer).await) })
                    });
                    let connection = auto::Builder::new(TokioExecutor::new());
                    // Whoever hangs up has heard enough.
                    let _ = connection.serve_connection(TokioIo::new(stream), service).await;
                });
            }
        });
        Self { url: format!("http://{address}"), heard, connections, task: task.abort_handle() }
    }

    /// Closes every connection, and goes on listening.
    pub async fn hangs_up(&self) {
        self.connections.lock().await.shutdown().await;
    }

    /// What was asked so far.
    pub fn heard(&self) -> Vec<Heard> {
        self.heard.lock().unwrap().clone()
    }

    /// How often this method was called.
    pub fn calls(&self, method: &str) -> usize {
        self.heard().iter().filter(|heard| heard.method == method).count()
    }
}

impl Drop for Liar {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn served(
    request: Request<Incoming>,
    notes: &Mutex<Vec<Heard>>,
    answer: &(impl Fn(&Heard) -> Reply + Send + Sync),
) -> Response<UnsyncBoxBody<Bytes, Infallible>> {
    let method = request.uri().path().trim_start_matches("/etcdserverpb.").to_owned();
    let token = request.headers().get("token").and_then(|token| token.to_str().ok()).map(str::to_owned);
    // A stream of the client's may stay open: its first message is enough.
    drop(request.into_body().frame().await);
    let heard = Heard { method, token };
    let reply = answer(&heard);
    notes.lock().unwrap().push(heard);
    let (frames, code, words) = match reply {
        Reply::Says(message) => (stream::iter([framed(&message)]).boxed(), 0, ""),
        Reply::Late(by, message) => {
            tokio::time::sleep(by).await;
            (stream::iter([framed(&message)]).boxed(), 0, "")
        }
        Reply::Endless(message) => (stream::repeat(framed(&message)).boxed(), 0, ""),
        Reply::Refuses(code, words) => (stream::empty().boxed(), code, words),
        Reply::Nothing => {
            tokio::time::sleep(Duration::from_secs(600)).await;
            (stream::empty().boxed(), 14, "")
        }
    };
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", code.into());
    trailers.insert("grpc-message", words.parse().unwrap());
    let frames = frames.map(Frame::data).chain(stream::iter([Frame::trailers(trailers)]));
    let body = StreamBody::new(frames.map(Ok::<_, Infallible>));
    let response = Response::builder().header("content-type", "application/grpc");
    response.body(body.boxed_unsync()).unwrap()
}

fn framed(message: &[u8]) -> Bytes {
    let mut frame = BytesMut::with_capacity(message.len() + 5);
    frame.put_u8(0);
    frame.put_u32(u32::try_from(message.len()).unwrap());
    frame.put_slice(message);
    frame.freeze()
}
