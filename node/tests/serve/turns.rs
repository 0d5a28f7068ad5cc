//! All calls of a connection take turns: a client that reads much hears what its watch is told all the same.

use std::{
    future::poll_fn,
    task::{Context, Poll},
};

use bytes::{BufMut, Bytes, BytesMut};
use h2::{
    RecvStream, SendStream,
    client::{Builder, ResponseFuture, SendRequest},
};
use http::Request;
use prost::Message;
use proto::etcdserverpb::{
    PutRequest, RangeRequest, WatchCreateRequest, WatchRequest, WatchResponse, watch_request::RequestUnion,
};
use tokio::{net::TcpStream, time::timeout};

use crate::{real::PATIENCE, served::Served, stream};

/// What the client lets the member send at once: on the connection, and for each call.
const CONNECTION_WINDOW: u32 = 4 << 20;
const CALL_WINDOW: u32 = 16 << 20;
/// As many read all keys at once, which are 4 MB.
const READERS: usize = 8;
const KEYS: usize = 40;
const VALUE_BYTES: usize = 100_000;

/// A connection of which the test itself says how much comes over it, and when.
struct Connection(SendRequest<Bytes>);

impl Connection {
    async fn to(served: &Served) -> Self {
        let socket = TcpStream::connect(served.url.trim_start_matches("http://")).await.unwrap();
        let mut builder = Builder::new();
        builder.initial_connection_window_size(CONNECTION_WINDOW).initial_window_size(CALL_WINDOW);
        let (requests, connection) = builder.handshake(socket).await.unwrap();
        tokio::spawn(connection);
        Self(requests)
    }

    fn ask(&mut self, path: &str, message: &impl Message) -> (ResponseFuture, SendStream<Bytes>) {
        let request = Request::post(format!("http://member{path}"))
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            .body(())
            .unwrap();
        let (response, mut body) = self.0.send_request(request, false).unwrap();
        let mut bytes = BytesMut::new();
        bytes.put_u8(0);
        bytes.put_u32(u32::try_from(message.encoded_len()).unwrap());
        message.encode(&mut bytes).unwrap();
        body.send_data(bytes.freeze(), false).unwrap();
        (response, body)
    }
}

/// An answer, and how much was read of it that the member does not know of yet.
struct Reader {
    answer: RecvStream,
    held: usize,
}

impl Reader {
    /// Lets the member send as much again.
    fn release(&mut self) {
        self.answer.flow_control().release_capacity(std::mem::take(&mut self.held)).unwrap();
    }
}

/// The next bytes of whichever has some, all in turn; how many.
fn poll_next(readers: &mut [Reader], context: &mut Context<'_>) -> Poll<usize> {
    for at in 0..readers.len() {
        if let Poll::Ready(Some(data)) = readers[at].answer.poll_data(context) {
            let length = data.unwrap().len();
            readers[at].held += length;
            readers[at..].rotate_left(1);
            return Poll::Ready(length);
        }
    }
    Poll::Pending
}

async fn next_response(answers: &mut RecvStream) -> WatchResponse {
    let data = timeout(PATIENCE, answers.data()).await.unwrap().unwrap().unwrap();
    answers.flow_control().release_capacity(data.len()).unwrap();
    WatchResponse::decode(&data[5..]).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_has_its_turn_among_reads_of_much() {
    let served = Served::start().await;
    for key in 0..KEYS {
        let put = PutRequest { key: format!("k{key}").into(), value: vec![7; VALUE_BYTES], ..PutRequest::default() };
        served.kv().put(put).await.unwrap();
    }
    let mut connection = Connection::to(&served).await;
    let create = WatchCreateRequest { key: b"watched".into(), ..WatchCreateRequest::default() };
    let create = WatchRequest { request_union: Some(RequestUnion::CreateRequest(create)) };
    let (opened, _requests) = connection.ask("/etcdserverpb.Watch/Watch", &create);
    let mut answers = opened.await.unwrap().into_body();
    assert!(next_response(&mut answers).await.created);
    let mut beside = stream::Stream::open(&served.channel());
    beside.created(stream::watch("watched", "", 0)).await;

    let all = RangeRequest { key: vec![0], range_end: vec![0], ..RangeRequest::default() };
    let (mut readers, mut requests) = (Vec::new(), Vec::new());
    for _ in 0..READERS {
        let (opened, mut request) = connection.ask("/etcdserverpb.KV/Range", &all);
        request.send_data(Bytes::new(), true).unwrap();
        readers.push(Reader { answer: opened.await.unwrap().into_body(), held: 0 });
        requests.push(request);
    }
    // Until nothing more can come.
    let (mut read, window) = (0, CONNECTION_WINDOW as usize);
    while read < window - 1000 {
        read += timeout(PATIENCE, poll_fn(|context| poll_next(&mut readers, context))).await.unwrap();
    }
    let put = PutRequest { key: b"watched".into(), value: b"1".into(), ..PutRequest::default() };
    served.kv().put(put).await.unwrap();
    assert_eq!(beside.next().await.events.len(), 1, "the member has told its watches");

    readers.iter_mut().for_each(Reader::release);
    let mut before = 0;
    let told = loop {
        let heard = poll_fn(|context| match answers.poll_data(context) {
            Poll::Ready(data) => Poll::Ready(Ok(data)),
            Poll::Pending => poll_next(&mut readers, context).map(Err),
        });
        match timeout(PATIENCE, heard).await.unwrap() {
            Ok(data) => break data.unwrap().unwrap(),
            Err(length) => {
                before += length;
                readers.iter_mut().for_each(Reader::release);
            }
        }
    };
    assert_eq!(WatchResponse::decode(&told[5..]).unwrap().events.len(), 1);
    assert!(before < 2 * window, "{before} bytes of others come before what the watch is told");
}
