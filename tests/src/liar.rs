//! A member that lies: whatever comes to its address is passed on to the real member, and what is answered to some calls
//! is changed on its way back. What it serves by HTTP/1 is passed on as it is.

use std::{
    convert::Infallible,
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::{BufMut as _, Bytes, BytesMut};
use http_body_util::{BodyExt as _, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::{
    HeaderMap, Request, Response,
    body::{Frame, Incoming},
    client::conn::http2::{SendRequest, handshake},
    server::conn::http2,
    service::service_fn,
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message;
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    task::{AbortHandle, JoinSet},
};

use crate::{
    Error,
    case::Case,
    cluster::{Cluster, Spec},
    playbook::Upgrade,
    skip::build_or_skip,
    system::System,
};

/// What becomes of one call.
pub enum Word {
    Truth,
    Late(Duration),
    /// This is answered, and nobody else hears of it.
    Says(Vec<u8>),
    /// The member's answer, changed.
    Twisted(Box<dyn FnOnce(Vec<u8>) -> Vec<u8> + Send>),
    /// An error: gRPC's code, and words.
    Refuses(u16, String),
}

pub struct Call {
    /// Which connection it came over.
    pub connection: u64,
    /// The method, as `KV/Txn`.
    pub method: String,
    pub message: Vec<u8>,
}

impl Word {
    /// The member's answer, changed by this.
    pub fn twisted<M: Message + Default>(twist: impl FnOnce(&mut M) + Send + 'static) -> Self {
        Self::Twisted(Box::new(move |answer| match M::decode(answer.as_slice()) {
            Ok(mut message) => {
                twist(&mut message);
                message.encode_to_vec()
            }
            Err(_) => answer,
        }))
    }
}

/// At work until it is dropped.
#[derive(Debug)]
pub struct Liar {
    task: AbortHandle,
}

type Body = UnsyncBoxBody<Bytes, hyper::Error>;
type Lie = dyn Fn(&Call) -> Word + Send + Sync;

/// Which calls a lie is asked about: those that are one message, and one answer.
const SINGLE: [&str; 7] = [
    "KV/Txn",
    "KV/Range",
    "Cluster/MemberList",
    "Maintenance/Status",
    "Auth/Authenticate",
    "Lease/LeaseGrant",
    "Lease/LeaseRevoke",
];

impl Liar {
    /// Listens at this port of 127.0.0.1, before the member at the other one.
    ///
    /// # Errors
    /// The port is taken.
    pub async fn start(
        port: u16,
        member: u16,
        lie: impl Fn(&Call) -> Word + Send + Sync + 'static,
    ) -> Result<Self, Error> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        let (lie, count): (Arc<Lie>, _) = (Arc::new(lie), AtomicU64::new(0));
        let task = tokio::spawn(async move {
            // Ended with the task, and its connections with it.
            let mut connections = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                let connection = count.fetch_add(1, Ordering::Relaxed);
                let lie = lie.clone();
                // A connection that breaks is the two ends' matter.
                connections.spawn(async move { drop(serve(client, member, connection, lie).await) });
            }
        });
        Ok(Self { task: task.abort_handle() })
    }
}

impl Drop for Liar {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(mut client: TcpStream, member: u16, connection: u64, lie: Arc<Lie>) -> Result<(), Error> {
    let mut member = TcpStream::connect(SocketAddr::from((Ipv4Addr::LOCALHOST, member))).await?;
    let mut first = [0; 3];
    while client.peek(&mut first).await? < first.len() {
        tokio::task::yield_now().await;
    }
    // HTTP/2 begins with `PRI *` (RFC 9113, 3.4).
    if &first != b"PRI" {
        copy_bidirectional(&mut client, &mut member).await?;
        return Ok(());
    }
    let (send, to_member) = handshake(TokioExecutor::new(), TokioIo::new(member)).await?;
    let service = service_fn(move |request: Request<Incoming>| {
        let (send, lie) = (send.clone(), lie.clone());
        async move { answered(request, connection, send, &*lie).await }
    });
    let from_client = http2::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(client), service);
    tokio::select! {
        done = from_client => done?,
        done = to_member => done?,
    }
    Ok(())
}

async fn answered(
    request: Request<Incoming>,
    connection: u64,
    mut send: SendRequest<Body>,
    lie: &Lie,
) -> Result<Response<Body>, hyper::Error> {
    let method = request.uri().path().trim_start_matches("/etcdserverpb.").to_owned();
    if !SINGLE.contains(&method.as_str()) {
        return Ok(send.send_request(request.map(|body| body.boxed_unsync())).await?.map(|body| body.boxed_unsync()));
    }
    let (head, body) = request.into_parts();
    let asked = body.collect().await?.to_bytes();
    let word = lie(&Call { connection, method, message: asked.get(5..).unwrap_or_default().to_vec() });
    let twist = match word {
        Word::Truth => None,
        Word::Late(by) => {
            tokio::time::sleep(by).await;
            None
        }
        Word::Says(message) => return Ok(said(Some(&message), 0, "")),
        Word::Refuses(code, words) => return Ok(said(None, code, &words)),
        Word::Twisted(twist) => Some(twist),
    };
    let body = Full::new(asked).map_err(|never: Infallible| match never {}).boxed_unsync();
    let response = send.send_request(Request::from_parts(head, body)).await?;
    let Some(twist) = twist else { return Ok(response.map(|body| body.boxed_unsync())) };
    let (head, body) = response.into_parts();
    let body = body.collect().await?;
    let trailers = body.trailers().cloned();
    let body = body.to_bytes();
    let frames = match body.get(5..) {
        // An error: there is nothing to change.
        None => vec![],
        Some(message) => vec![framed(&twist(message.to_vec()))],
    };
    let frames = frames.into_iter().map(Frame::data).chain(trailers.map(Frame::trailers)).map(Ok);
    Ok(Response::from_parts(head, StreamBody::new(tokio_stream::iter(frames.collect::<Vec<_>>())).boxed_unsync()))
}

fn said(message: Option<&[u8]>, code: u16, words: &str) -> Response<Body> {
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", code.into());
    if let Ok(words) = words.parse() {
        trailers.insert("grpc-message", words);
    }
    let frames = message.map(framed).map(Frame::data).into_iter().chain([Frame::trailers(trailers)]).map(Ok);
    let body = StreamBody::new(tokio_stream::iter(frames.collect::<Vec<_>>())).boxed_unsync();
    let mut response = Response::new(body);
    response.headers_mut().insert("content-type", hyper::header::HeaderValue::from_static("application/grpc"));
    response
}

/// One message as gRPC sends it: not compressed, and how long it is.
fn framed(message: &[u8]) -> Bytes {
    let mut frame = BytesMut::with_capacity(message.len() + 5);
    frame.put_u8(0);
    frame.put_u32(u32::try_from(message.len()).unwrap_or(u32::MAX));
    frame.put_slice(message);
    frame.freeze()
}

impl Case {
    /// The main job, with members that advertise these ports, where nobody is yet: the playbooks name them as well.
    /// `None` is a skip.
    ///
    /// # Panics
    /// The cluster does not come up.
    pub async fn advertised_at(system: System, ports: &[u16]) -> Option<Self> {
        let (from, to) = system.main_job();
        let (from, to) = (build_or_skip(system, from)?, build_or_skip(system, to)?);
        let spec = Spec { size: ports.len(), ..Spec::new(from.clone()) };
        let mut cluster = crate::case::sure(Cluster::laid_out(&spec));
        let urls: Vec<_> = ports.iter().map(|port| format!("http://127.0.0.1:{port}")).collect();
        for (member, url) in cluster.layout.members.iter_mut().zip(&urls) {
            // A flag given twice counts as it was given last.
            member.flags.push(format!("--advertise-client-urls={url}"));
        }
        crate::case::sure(cluster.begin().await);
        let mut upgrade = Upgrade::new(&cluster.layout, &to);
        upgrade.endpoints = urls;
        let hosts = (0..spec.size).map(|index| vec![index]).collect();
        Some(Self { cluster, from, to, upgrade, hosts })
    }
}
