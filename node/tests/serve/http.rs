//! etcd's HTTP paths, asked over a bare socket.

use proto::etcdserverpb::AlarmType;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::{
    quota::raise,
    served::{Served, Setup},
};

/// An answer: its status and its content.
pub async fn call(served: &Served, method: &str, path: &str, content: &str) -> (u16, String) {
    let address = served.url.strip_prefix("http://").unwrap();
    let mut socket = TcpStream::connect(address).await.unwrap();
    let length = content.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{content}"
    );
    socket.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).await.unwrap();
    let (head, content) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), content.to_owned())
}

/// `GET`.
pub async fn get(served: &Served, path: &str) -> (u16, String) {
    call(served, "GET", path, "").await
}

fn ok(content: &str) -> (u16, String) {
    (200, content.to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_versions_are_told() {
    let served = Served::start().await;
    let told = ok(r#"{"etcdserver":"3.6.0","etcdcluster":"3.6.0","storage":"3.6.0"}"#);
    assert_eq!(get(&served, "/version").await, told);
    let served = Served::set_up(Setup { has_version: false, ..Setup::default() }).await;
    let told = ok(r#"{"etcdserver":"3.6.0","etcdcluster":"not_decided","storage":"unknown"}"#);
    assert_eq!(get(&served, "/version").await, told);
}

#[tokio::test(flavor = "multi_thread")]
async fn probes_are_answered_in_etcds_words() {
    let served = Served::start().await;
    let healthy = ok(r#"{"health":"true","reason":""}"#);
    assert_eq!(get(&served, "/health").await, healthy);
    assert_eq!(get(&served, "/health?serializable=true").await, healthy);
    for path in ["/livez", "/readyz", "/readyz/linearizable_read", "/readyz?exclude=non_learner&exclude=unknown"] {
        assert_eq!(get(&served, path).await, ok("ok\n"), "{path}");
    }
    assert_eq!(get(&served, "/livez?verbose").await, ok("[+]serializable_read ok\nok\n"));
    let ready = "[+]data_corruption ok\n[+]serializable_read ok\n[+]linearizable_read ok\n[+]non_learner ok\nok\n";
    assert_eq!(get(&served, "/readyz?verbose").await, ok(ready));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_alarm_is_no_health() {
    let served = Served::start().await;
    raise(&served, AlarmType::Nospace).await;
    let (status, content) = get(&served, "/health").await;
    assert_eq!((status, content.trim()), (503, r#"{"health":"false","reason":"ALARM NOSPACE"}"#));
    assert_eq!(get(&served, "/health?exclude=NOSPACE").await.0, 200);
    assert_eq!(get(&served, "/readyz").await.0, 200, "it may still be read");
    raise(&served, AlarmType::Corrupt).await;
    assert_eq!(get(&served, "/health?exclude=NOSPACE").await.0, 503);
    let (status, content) = get(&served, "/readyz").await;
    assert!(status == 503 && content.contains("[-]data_corruption failed: alarm activated: CORRUPT\n"), "{content}");
    assert_eq!(get(&served, "/livez").await.0, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_there_is_not_is_said_so() {
    let served = Served::start().await;
    for path in ["/", "/v2/keys", "/readyz/none", "/livez/linearizable_read", "/metrics2"] {
        assert_eq!(get(&served, path).await, (404, "404 page not found\n".into()), "{path}");
    }
    for (method, path) in [("POST", "/health"), ("PUT", "/version"), ("DELETE", "/readyz"), ("GET", GATE)] {
        assert_eq!(call(&served, method, path, "").await.0, 405, "{method} {path}");
    }
}

pub const GATE: &str = "/v3/maintenance/featuregate";
