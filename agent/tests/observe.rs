//! What the agent says when nobody answers, or somebody who is no etcd: it never hangs, never panics, names the address.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

use std::{
    collections::BTreeMap,
    io::Write as _,
    net::{SocketAddr, TcpListener},
    path::Path,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use agent::{
    boot_clock,
    observe::{HandOver, ObserveError, Observer},
    playbook::cluster::{Auth, Cluster, Tls},
    store::{Compare, KeepAlive, Lease, Op, Store, TxnAnswer, Watch, endpoint::Excluded},
};
use proto::{LeaseId, MemberId, Revision};

/// More than any one call may take, and less than two of them one after the other.
const ONE_CALL: Duration = Duration::from_secs(9);

fn cluster(endpoints: &[String]) -> Cluster {
    Cluster {
        name: "orders".to_owned(),
        endpoints: endpoints.to_vec(),
        election_timeout: Duration::from_secs(1),
        tls: None,
        auth: None,
        http: BTreeMap::new(),
    }
}

fn url(address: SocketAddr) -> String {
    format!("http://{address}")
}

/// A port that takes connections and never says a word: no one accepts them, so the system does.
fn silent() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = url(listener.local_addr().unwrap());
    (listener, url)
}

/// A port that says `words` to everybody and hangs up.
fn says(words: &'static [u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = url(listener.local_addr().unwrap());
    thread::spawn(move || {
        for mut connection in listener.incoming().flatten() {
            // Whoever has hung up already has heard enough.
            let _ = connection.write_all(words);
        }
    });
    url
}

/// A port that nobody listens on: it is bound, so that nobody else gets it either.
fn closed() -> (std::net::UdpSocket, String) {
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let url = url(socket.local_addr().unwrap());
    (socket, url)
}

async fn failure(endpoints: &[String]) -> (String, Duration) {
    let observer = Observer::connect(&cluster(endpoints)).unwrap();
    let began = Instant::now();
    match observer.look().await {
        Err(error @ (ObserveError::NobodyAnswered { .. } | ObserveError::NoClientPort { .. })) => {
            (error.to_string(), began.elapsed())
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn silent_ports_cost_one_time_out_in_all() {
    let (_one, first) = silent();
    let (_two, second) = silent();
    let (text, took) = failure(&[first.clone(), second.clone()]).await;
    assert!(text.contains(&format!("{first}: no answer within 5 s")), "{text}");
    assert!(text.contains(&format!("{second}: no answer within 5 s")), "{text}");
    assert!(took < ONE_CALL, "{took:?}");
}

#[tokio::test]
async fn a_closed_port_is_said_to_be_closed() {
    let (_port, url) = closed();
    let (text, took) = failure(std::slice::from_ref(&url)).await;
    assert!(text.contains(&format!("{url}: Connection refused")), "{text}");
    assert!(took < ONE_CALL, "{took:?}");
}

#[tokio::test]
async fn somebody_else_at_the_port_is_no_member() {
    let preface_then_junk: &[u8] = b"\x00\x00\x00\x04\x00\x00\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff";
    for words in [b"220 mail.example ESMTP\r\n".as_slice(), b"HTTP/1.1 400 Bad Request\r\n\r\n", preface_then_junk, b""]
    {
        let url = says(words);
        let (text, took) = failure(std::slice::from_ref(&url)).await;
        assert!(text.contains(&url), "{text}");
        assert!(took < ONE_CALL, "{took:?} for {words:?}");
    }
}

#[tokio::test]
async fn a_file_that_cannot_be_used_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let (missing, junk) = (folder.path().join("missing"), folder.path().join("junk"));
    std::fs::write(&junk, "-----BEGIN CERTIFICATE-----\nnot base64!\n-----END CERTIFICATE-----\n").unwrap();
    let tls = |ca: &Path| Some(Tls { ca: ca.to_owned(), cert: None, key: None });
    let auth = Some(Auth { user: "root".to_owned(), password_file: missing.clone() });
    let plain = cluster(&["http://127.0.0.1:1".to_owned()]);
    for (cluster, named) in [
        (Cluster { tls: tls(&missing), ..plain.clone() }, "missing"),
        (Cluster { tls: tls(&junk), ..plain.clone() }, "junk"),
        (Cluster { auth, ..plain.clone() }, "missing"),
        (Cluster { endpoints: vec!["https://10.0.0.1:2379".to_owned()], ..plain.clone() }, "needs `cluster.tls`"),
        (Cluster { endpoints: vec!["ftp://10.0.0.1".to_owned()], ..plain.clone() }, "ftp://10.0.0.1"),
        (Cluster { endpoints: vec!["not an address".to_owned()], ..plain }, "not an address"),
    ] {
        let error = Observer::connect(&cluster).unwrap_err().to_string();
        assert!(error.contains(named), "{error}");
    }
}

#[tokio::test]
async fn nobody_hands_over_who_was_never_seen() {
    let (_port, url) = closed();
    let observer = Observer::connect(&cluster(&[url])).unwrap();
    let answer = observer.move_leader(MemberId(1), MemberId(2)).await;
    assert!(matches!(answer, HandOver::Refused(_)), "{answer:?}");
}

#[tokio::test]
async fn without_an_answer_keys_are_unknown() {
    let ((_one, silent), (_two, closed)) = (silent(), closed());
    let observer = Observer::connect(&cluster(&[closed, silent])).unwrap();
    let store = Arc::new(Store::new(&observer, Arc::default()));
    let began = Instant::now();
    let compares = [Compare::Created("run".to_owned(), Revision(0))];
    let ops = [Op::Delete { key: "run".to_owned() }];
    let (read, answer, grant, revoke) = tokio::join!(
        store.read(),
        store.txn(&compares, &ops),
        store.grant(LeaseId(0), Duration::from_secs(30)),
        store.revoke(LeaseId(1)),
    );
    assert!(read.is_err() && grant.is_err() && revoke.is_err(), "{read:?} {grant:?} {revoke:?}");
    assert!(matches!(answer, TxnAnswer::Unknown(_)), "{answer:?}");
    assert!(began.elapsed() < ONE_CALL, "{:?}", began.elapsed());
}

#[tokio::test]
async fn without_a_watch_word_comes_by_the_clock() {
    let (_port, url) = closed();
    let observer = Observer::connect(&cluster(&[url])).unwrap();
    let changes = Watch::of(&Store::new(&observer, Arc::default()));
    for _ in 0..2 {
        tokio::time::timeout(ONE_CALL, changes.changed()).await.unwrap();
    }
}

#[tokio::test]
async fn a_lease_that_nobody_acknowledges_runs_out_but_is_not_called_lost() {
    let (_port, url) = closed();
    let observer = Observer::connect(&cluster(&[url])).unwrap();
    let lease = Lease { id: LeaseId(7), ttl: Duration::from_secs(60), asked_at: boot_clock::now() };
    let keep = |lease| KeepAlive::start(observer.access(), lease, Arc::new(Excluded::default())).unwrap();
    let fresh = keep(lease);
    assert!(fresh.remaining() > Duration::from_secs(30) && fresh.remaining() <= lease.ttl, "{:?}", fresh.remaining());
    assert_eq!(fresh.lease(), lease.id);
    let old = keep(Lease { ttl: Duration::from_millis(1), ..lease });
    let began = Instant::now();
    while !old.remaining().is_zero() {
        assert!(began.elapsed() < ONE_CALL, "it never runs out");
        tokio::task::yield_now().await;
    }
    assert!(!old.is_lost() && !fresh.is_lost());
    drop((fresh, old));
}
