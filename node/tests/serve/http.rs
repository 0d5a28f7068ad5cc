//! etcd's HTTP paths, asked over a bare socket.

use proto::etcdserverpb::{AlarmType, PutRequest};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::{
    quota::raise,
    served::{ID, Served, Setup},
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

#[tokio::test(flavor = "multi_thread")]
async fn metrics_have_etcds_names() {
    let served = Served::start().await;
    served.kv().put(PutRequest { key: b"a".to_vec(), ..PutRequest::default() }).await.unwrap();
    raise(&served, AlarmType::Nospace).await;
    let (status, page) = get(&served, "/metrics").await;
    assert_eq!(status, 200);
    let applied = served.member.read(|state| state.applied);
    let size = served.member.read(|state| state.keys.size_bytes());
    for line in [
        "etcd_server_version{server_version=\"3.6.0\"} 1".to_owned(),
        "etcd_cluster_version{cluster_version=\"3.6\"} 1".to_owned(),
        format!("etcd_server_id{{server_id=\"{:x}\"}} 1", ID.0),
        "etcd_server_has_leader 1".to_owned(),
        "etcd_server_is_leader 1".to_owned(),
        "etcd_server_is_learner 0".to_owned(),
        format!("etcd_server_proposals_committed_total {applied}"),
        format!("etcd_server_proposals_applied_total {applied}"),
        "etcd_server_proposals_pending 0".to_owned(),
        "etcd_server_quota_backend_bytes 2147483648".to_owned(),
        format!("etcd_mvcc_db_total_size_in_bytes {size}"),
        "etcd_debugging_mvcc_current_revision 2".to_owned(),
        "etcd_debugging_mvcc_keys_total 1".to_owned(),
    ] {
        assert!(page.lines().any(|found| found == line), "no {line} in {page}");
    }
    for (name, least, most) in [
        ("process_resident_memory_bytes", 1e6, 1e10),
        ("process_start_time_seconds", 1.5e9, 1e10),
        ("process_open_fds", 5.0, 1e5),
    ] {
        let value = page.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<f64>().ok()).unwrap();
        assert!((least..most).contains(&value), "{name} {value}");
    }
    assert_is_prometheus(&page);
}

/// Each family's kind stands before its samples, and every sample belongs to it.
fn assert_is_prometheus(page: &str) {
    let mut family = "";
    for line in page.lines() {
        if let Some(kind) = line.strip_prefix("# TYPE ") {
            family = kind.split(' ').next().unwrap();
        } else if !line.starts_with("# HELP ") {
            let (series, value) = line.rsplit_once(' ').unwrap();
            assert_eq!(series.split('{').next().unwrap(), family, "{line}");
            assert!(value.parse::<f64>().is_ok(), "{line}");
        }
    }
}
