//! Whoever calls the peer port and is no member.

use std::convert::Infallible;

use bytes::Bytes;
use http_body_util::StreamBody;
use hyper::{Request, body::Frame, client::conn::http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tests::wait::GENEROUS;
use tokio::{net::TcpStream, time::timeout};
use tokio_stream::StreamExt as _;

use crate::{QUICK, nobody_panicked, up};

/// Else who waits with its last byte has the member keep all that it sent: each message up to its bound, and many at once.
#[tokio::test(flavor = "multi_thread")]
async fn it_is_refused_before_anything_of_its_message_is_waited_for() {
    let Some(cluster) = up("3.6", &QUICK).await else { return };
    let member = &cluster.layout.members[0];
    for call in ["Propose", "Ask", "Hash", "Install", "Append"] {
        let socket = TcpStream::connect(("127.0.0.1", member.peer_port)).await.expect("connected");
        let (mut sender, connection) =
            http2::handshake(TokioExecutor::new(), TokioIo::new(socket)).await.expect("it speaks HTTP/2");
        tokio::spawn(connection);
        // A message of a megabyte, of which a part comes.
        let part = Bytes::from_static(b"\0\0\x10\0\0and no more");
        let part = tokio_stream::once(Ok::<_, Infallible>(Frame::data(part)));
        let request = Request::post(format!("http://127.0.0.1:{}/baton.peer.Peer/{call}", member.peer_port))
            .header("content-type", "application/grpc")
            .body(StreamBody::new(part.chain(tokio_stream::pending())))
            .expect("a request");
        let answer = timeout(GENEROUS, sender.send_request(request)).await;
        let answer = answer.expect("nothing more is waited for").expect("an answer");
        let status = answer.headers().get("grpc-status").expect("it is refused");
        assert_ne!(status, "0", "{call}: {answer:?}");
    }
    nobody_panicked(&cluster.layout);
}
