//! Whatever comes in on the port, the member serves on.

use std::time::Duration;

use proto::etcdserverpb::{RangeRequest, RangeResponse};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};
use tonic::{Code, codegen::http::uri::PathAndQuery};

use crate::{real::PATIENCE, served::Served};

/// The beginning of HTTP/2.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

async fn connect(served: &Served) -> TcpStream {
    TcpStream::connect(served.url.strip_prefix("http://").unwrap()).await.unwrap()
}

async fn serves_on(served: &Served) {
    served.kv().range(RangeRequest { key: b"a".to_vec(), ..RangeRequest::default() }).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_request_ends_its_own_connection_alone() {
    let served = Served::start().await;
    let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    let endless = [&b"GET /"[..], &vec![b'x'; 1 << 20]].concat();
    for rubbish in [
        &b"\0\0\0\0\0\0\0\0\0\0\r\n\r\n"[..],
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 a client that speaks TLS\r\n\r\n",
        b"EHLO there\r\n\r\n",
        &endless,
        &[PREFACE, &settings, &[0xff; 64]].concat(),
        &[PREFACE, &[0xff; 64]].concat(),
    ] {
        let mut socket = connect(&served).await;
        // It may be cut off before it has said all of it.
        let _ = socket.write_all(rubbish).await;
        let mut answer = Vec::new();
        let ended = timeout(PATIENCE, socket.read_to_end(&mut answer)).await;
        assert!(ended.is_ok(), "{:?} is waited for", String::from_utf8_lossy(&rubbish[..20.min(rubbish.len())]));
        serves_on(&served).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn half_open_connections_keep_nobody_waiting() {
    let served = Served::start().await;
    let mut silent = Vec::new();
    for beginning in [&b""[..], b"P", b"PRI * HTTP/2", PREFACE, b"GET /health HTTP/1.1\r\n"] {
        for _ in 0..20 {
            let mut socket = connect(&served).await;
            socket.write_all(beginning).await.unwrap();
            silent.push(socket);
        }
    }
    let begun = std::time::Instant::now();
    serves_on(&served).await;
    assert!(begun.elapsed() < Duration::from_secs(10));
}

/// A call of any path, with a message that is a range and nothing else.
pub async fn call_path(served: &Served, path: &'static str) -> tonic::Status {
    let mut grpc = tonic::client::Grpc::new(served.channel());
    grpc.ready().await.unwrap();
    let codec = tonic_prost::ProstCodec::<RangeRequest, RangeResponse>::default();
    let request = tonic::Request::new(RangeRequest { key: vec![0xff; 8], ..RangeRequest::default() });
    grpc.unary(request, PathAndQuery::from_static(path), codec).await.unwrap_err()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_there_is_not_is_unimplemented() {
    let served = Served::start().await;
    for path in ["/etcdserverpb.KV/None", "/etcdserverpb.None/Range", "/v3electionpb.Election/Leader", "/none", "/"] {
        assert_eq!(call_path(&served, path).await.code(), Code::Unimplemented, "{path}");
    }
    let status = call_path(&served, "/etcdserverpb.KV/Txn").await;
    assert!(status.code() == Code::Internal && status.message().contains("decode"), "{status:?}");
    serves_on(&served).await;
}
