//! etcd's HTTP paths, asked over a bare socket.

use proto::etcdserverpb::{AlarmType, PutRequest, RangeRequest, kv_client::KvClient};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use tonic::{Code, transport::Channel};

use crate::{
    etcdctl::{self, Etcdctl},
    quota::raise,
    served::{Served, Setup},
};

/// An answer: its status and its content.
pub async fn call(served: &Served, method: &str, path: &str, content: &str) -> (u16, String) {
    call_at(&served.url, method, path, content).await
}

async fn call_at(url: &str, method: &str, path: &str, content: &str) -> (u16, String) {
    let address = url.strip_prefix("http://").unwrap();
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
async fn http_and_grpc_are_apart_where_each_has_its_port() {
    let mut served = Served::set_up(Setup { has_http_port: true, ..Setup::default() }).await;
    let http = served.http_url.clone().unwrap();
    for path in ["/version", "/health", "/livez", "/readyz", "/metrics"] {
        assert_eq!(call_at(&http, "GET", path, "").await.0, 200, "{path}");
        let (status, said) = get(&served, path).await;
        assert!(status == 415 && said.contains("--listen-client-http-urls"), "{path}: {status} {said}");
    }
    assert_eq!(call_at(&http, "POST", GATE, "").await.0, 200);
    served.kv().put(PutRequest { key: b"k".to_vec(), ..Default::default() }).await.unwrap();
    let mut by_http = KvClient::new(Channel::from_shared(http.clone()).unwrap().connect_lazy());
    let status = by_http.range(RangeRequest { key: b"k".to_vec(), ..Default::default() }).await.unwrap_err();
    assert_eq!(status.code(), Code::Unimplemented, "{status}");
    for folder in etcdctl::folders() {
        assert_eq!(Etcdctl::new(&folder, &served.url).run(&["put", "a", "1"]).await, "OK\n");
        Etcdctl::new(&folder, &http).fail(&["get", "a", "--command-timeout=2s"]).await;
    }
    served.stop().await;
    assert!(TcpStream::connect(http.strip_prefix("http://").unwrap()).await.is_err(), "it has stopped, too");
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
