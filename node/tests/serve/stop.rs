//! A member that stops: what is under way is answered, streams end in etcd's words, and nobody holds it up.

use std::{
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use proto::etcdserverpb::{LeaseKeepAliveRequest, PutRequest, RangeRequest};
use tokio::{io::AsyncWriteExt, net::TcpStream, time::timeout};
use tonic::Code;

use crate::{
    real::PATIENCE,
    served::Served,
    stream::{Stream, watch},
};

/// Well above the 300 ms that the member gives, for a machine that is busy.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);

fn put() -> PutRequest {
    PutRequest { key: b"a".to_vec(), ..PutRequest::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_end_in_etcds_words_and_no_new_client_is_let_in() {
    let mut served = Served::start().await;
    let mut watching = Stream::open(&served.channel());
    watching.created(watch("a", "", 0)).await;
    let (_requests, receiver) = tokio::sync::mpsc::channel::<LeaseKeepAliveRequest>(1);
    let requests = tokio_stream::wrappers::ReceiverStream::new(receiver);
    let mut alive = served.lease().lease_keep_alive(requests).await.unwrap().into_inner();
    timeout(STOP_TIMEOUT, served.stop()).await.expect("it does not stop");
    for end in [watching.message().await.map(drop), alive.message().await.map(drop)] {
        let status = end.unwrap_err();
        assert_eq!((status.code(), status.message()), (Code::Unavailable, "etcdserver: server stopped"));
    }
    let refused = served.kv().range(RangeRequest { key: b"a".to_vec(), ..RangeRequest::default() }).await;
    assert_eq!(refused.unwrap_err().code(), Code::Unavailable);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_write_that_is_under_way_is_answered() {
    let mut served = Served::start().await;
    let mut kv = served.kv();
    kv.put(put()).await.unwrap();
    // Whoever looks at the state holds up what is to be applied.
    let (holds, held) = mpsc::channel();
    let (release, released) = mpsc::channel::<()>();
    let looker = thread::spawn({
        let member = served.member.clone();
        move || {
            member.read(|_| {
                holds.send(()).unwrap();
                released.recv().unwrap();
            });
        }
    });
    held.recv().unwrap();
    let write = tokio::spawn(async move { kv.put(put()).await });
    let under_way = || served.member.machine().proposals().under_way().0 > 0;
    let deadline = Instant::now() + PATIENCE;
    while !under_way() {
        assert!(Instant::now() < deadline, "nothing is proposed");
        tokio::task::yield_now().await;
    }
    let stopped = tokio::spawn(served.stop());
    // It is on its way out once it takes nobody in.
    let address = served.url.strip_prefix("http://").unwrap().to_owned();
    while TcpStream::connect(&address).await.is_ok() {
        assert!(Instant::now() < deadline, "it takes clients in");
    }
    release.send(()).unwrap();
    let answer = write.await.unwrap().unwrap().into_inner();
    assert_eq!(answer.header.unwrap().revision, 3);
    timeout(STOP_TIMEOUT, stopped).await.expect("it does not stop").unwrap();
    looker.join().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_that_say_nothing_or_do_not_read_hold_nobody_up() {
    let mut served = Served::start().await;
    let address = served.url.strip_prefix("http://").unwrap().to_owned();
    let mut silent = Vec::new();
    for beginning in [&b""[..], b"GET /health HT", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"] {
        let mut socket = TcpStream::connect(&address).await.unwrap();
        socket.write_all(beginning).await.unwrap();
        silent.push(socket);
    }
    // More than its connection takes while nobody reads.
    let mut slow = Stream::open(&served.channel());
    slow.created(watch("a", "", 0)).await;
    for _ in 0..40 {
        served.kv().put(PutRequest { value: vec![7; 1 << 20], ..put() }).await.unwrap();
    }
    let begun = Instant::now();
    timeout(STOP_TIMEOUT, served.stop()).await.expect("it does not stop");
    println!("measured: stopped in {:?}", begun.elapsed());
}
