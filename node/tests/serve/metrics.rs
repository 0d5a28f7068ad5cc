//! `/metrics`: that it is Prometheus' text, has what etcd-mixin asks for, and says what happened.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::TcpListener,
    path::Path,
    time::Instant,
};

use proto::etcdserverpb::{AlarmType, PutRequest, RangeRequest};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use tonic::Code;

use crate::{
    http::get,
    quota::raise,
    real::{self, Etcd, PATIENCE},
    rubbish::call_path,
    served::{ID, Served, Setup},
    stream::{Stream, watch},
};

/// A page, read as Prometheus reads it.
pub struct Page {
    /// The kind of each family.
    kinds: BTreeMap<String, String>,
    /// Each sample: its name, its labels as they stand there, its value.
    samples: Vec<(String, String, f64)>,
}

impl Page {
    /// That of a member of this process.
    pub async fn of(served: &Served) -> Self {
        let (status, text) = get(served, "/metrics").await;
        assert_eq!(status, 200);
        Self::read(&text)
    }

    /// Panics where it is not Prometheus' text (prometheus.io, "Exposition formats").
    fn read(text: &str) -> Self {
        let (mut kinds, mut samples) = (BTreeMap::new(), Vec::new());
        let (mut family, mut kind, mut helped) = ("", "", "");
        for line in text.lines() {
            if let Some(help) = line.strip_prefix("# HELP ") {
                helped = help.split_once(' ').unwrap().0;
            } else if let Some(head) = line.strip_prefix("# TYPE ") {
                (family, kind) = head.split_once(' ').unwrap();
                assert_eq!(helped, family, "its help stands before it");
                assert!(kinds.insert(family.to_owned(), kind.to_owned()).is_none(), "{family} is there twice");
            } else {
                let (series, value) = line.rsplit_once(' ').unwrap();
                let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
                let part = name.strip_prefix(family).unwrap_or_else(|| panic!("{line} in {family}"));
                match kind {
                    "gauge" | "counter" => assert_eq!(part, "", "{line}"),
                    "histogram" => assert!(["_bucket", "_sum", "_count"].contains(&part), "{line}"),
                    "summary" => assert!(["", "_sum", "_count"].contains(&part), "{line}"),
                    other => panic!("{family} is a {other}"),
                }
                samples.push((name.to_owned(), labels.strip_suffix('}').unwrap().to_owned(), value.parse().unwrap()));
            }
        }
        let series: BTreeSet<_> = samples.iter().map(|(name, labels, _)| (name, labels)).collect();
        assert_eq!(series.len(), samples.len(), "a series is there twice");
        let page = Self { kinds, samples };
        page.check_histograms();
        page
    }

    /// Of each series of each: buckets rise to `+Inf`, which is the count.
    fn check_histograms(&self) {
        for family in self.kinds.iter().filter(|(_, kind)| *kind == "histogram").map(|(family, _)| family) {
            let mut series: BTreeMap<&str, Vec<(f64, f64)>> = BTreeMap::new();
            for (_, labels, value) in self.samples.iter().filter(|(name, ..)| *name == format!("{family}_bucket")) {
                let (labels, bound) = labels.split_once("le=\"").unwrap();
                let bound = bound.strip_suffix('"').unwrap().parse().unwrap();
                series.entry(labels.trim_end_matches(',')).or_default().push((bound, *value));
            }
            for (labels, buckets) in series {
                assert!(buckets.is_sorted_by(|one, next| one.0 < next.0 && one.1 <= next.1), "{family} {labels}");
                let count = self.value(&format!("{family}_count"), labels);
                assert_eq!(buckets.last(), Some(&(f64::INFINITY, count)), "{family} {labels}");
                assert!(self.value(&format!("{family}_sum"), labels) >= 0.0);
            }
        }
    }

    fn has(&self, name: &str) -> bool {
        self.samples.iter().any(|sample| sample.0 == name)
    }

    /// The sample of this name and these labels.
    pub fn value(&self, name: &str, labels: &str) -> f64 {
        let found = self.samples.iter().find(|sample| sample.0 == name && sample.1 == labels);
        found.unwrap_or_else(|| panic!("no {name}{{{labels}}}")).2
    }

    /// The names of the labels that a sample can have.
    fn label_names(&self, name: &str) -> BTreeSet<&str> {
        let labels = self.samples.iter().filter(|sample| sample.0 == name).map(|sample| sample.1.as_str());
        labels.flat_map(|labels| labels.split("\",")).filter_map(|label| Some(label.split_once('=')?.0)).collect()
    }

    /// The upper bounds of a histogram's buckets.
    fn bounds(&self, name: &str) -> BTreeSet<String> {
        let labels = self.samples.iter().filter(|sample| sample.0 == name).map(|sample| sample.1.as_str());
        let bounds =
            labels.filter_map(|labels| labels.split_once("le=\"")?.1.trim_end_matches('"').parse::<f64>().ok());
        bounds.map(|bound| bound.to_string()).collect()
    }

    /// All samples of a name.
    pub fn sum(&self, name: &str) -> f64 {
        self.samples.iter().filter(|sample| sample.0 == name).map(|sample| sample.2).sum()
    }
}

/// The labels of a method.
fn method(service: &str, name: &str, kind: &str) -> String {
    format!("grpc_method=\"{name}\",grpc_service=\"etcdserverpb.{service}\",grpc_type=\"{kind}\"")
}

/// A page of which this is true, once there is one: a call is counted a moment after its client has its end.
async fn page_where(served: &Served, what: &str, is_true: impl Fn(&Page) -> bool) -> Page {
    let begun = Instant::now();
    loop {
        let page = Page::of(served).await;
        if is_true(&page) {
            return page;
        }
        assert!(begun.elapsed() < PATIENCE, "{what}");
    }
}

fn put(key: &str) -> PutRequest {
    PutRequest { key: key.into(), value: vec![7; 1000], ..PutRequest::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_have_etcds_names() {
    let served = Served::start().await;
    served.kv().put(PutRequest { key: b"a".to_vec(), ..PutRequest::default() }).await.unwrap();
    raise(&served, AlarmType::Nospace).await;
    let page = Page::of(&served).await;
    let (applied, size) = served.member.read(|state| (state.applied.0 as f64, state.keys.size_bytes() as f64));
    let id = format!("server_id=\"{:x}\"", ID.0);
    for (name, labels, value) in [
        ("etcd_server_version", "server_version=\"3.6.0\"", 1.0),
        ("etcd_cluster_version", "cluster_version=\"3.6\"", 1.0),
        ("etcd_server_id", &id, 1.0),
        ("etcd_server_has_leader", "", 1.0),
        ("etcd_server_is_leader", "", 1.0),
        ("etcd_server_is_learner", "", 0.0),
        ("etcd_server_leader_changes_seen_total", "", 1.0),
        ("etcd_server_proposals_committed_total", "", applied),
        ("etcd_server_proposals_applied_total", "", applied),
        ("etcd_server_proposals_pending", "", 0.0),
        ("etcd_server_proposals_failed_total", "", 0.0),
        ("etcd_server_quota_backend_bytes", "", 2_147_483_648.0),
        ("etcd_mvcc_db_total_size_in_bytes", "", size),
        ("etcd_debugging_mvcc_current_revision", "", 2.0),
        ("etcd_debugging_mvcc_keys_total", "", 1.0),
    ] {
        assert_eq!(page.value(name, labels), value, "{name}");
    }
    for (name, least, most) in [
        ("process_resident_memory_bytes", 1e6, 1e10),
        ("process_start_time_seconds", 1.5e9, 1e10),
        ("process_open_fds", 5.0, 1e5),
        // Every put waits for one.
        ("etcd_disk_wal_fsync_duration_seconds_count", 1.0, 1e4),
        ("etcd_disk_wal_fsync_duration_seconds_sum", 1e-9, 1e3),
    ] {
        let value = page.value(name, "");
        assert!((least..most).contains(&value), "{name} {value}");
    }
    for (name, kind) in [
        ("etcd_server_proposals_committed_total", "gauge"), // as with etcd, for all its name
        ("etcd_server_leader_changes_seen_total", "counter"),
        ("process_cpu_seconds_total", "counter"),
        ("grpc_server_handling_seconds", "histogram"),
    ] {
        assert_eq!(page.kinds[name], kind, "{name}");
    }
}

fn names_of_mixin() -> impl Iterator<Item = &'static str> {
    include_str!("etcd-mixin.txt").lines().filter(|line| !line.starts_with('#'))
}

/// The page of one of two founders: it has called the other.
async fn page_of_founder() -> Page {
    let served = Served::set_up(Setup { has_version: false, ..Setup::default() }).await;
    page_where(&served, "it calls nobody", |page| page.has("etcd_network_peer_sent_failures_total")).await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_etcd_mixin_asks_for_is_there() {
    let page = page_of_founder().await;
    let missing: Vec<_> = names_of_mixin().filter(|name| !page.has(name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
    assert_eq!(names_of_mixin().count(), 20);
}

/// etcd with all its metrics, and their port.
pub async fn measured_etcd(folder: &Path) -> (Etcd, u16) {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let url = format!("http://127.0.0.1:{port}");
    (Etcd::start(folder, &["--listen-metrics-urls", &url, "--metrics", "extensive"]).await, port)
}

/// The page that etcd serves on a port for metrics alone; in HTTP/1.0, which has no chunks.
pub async fn page_of_etcd(port: u16) -> Page {
    let mut socket = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    socket.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).await.unwrap();
    Page::read(answer.split_once("\r\n\r\n").unwrap().1)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_etcd_mixin_asks_for_is_as_etcd_has_it() {
    let Some(folder) = real::folder("3_6") else { return };
    let (_etcd, port) = measured_etcd(&folder).await;
    let (ours, theirs) = (page_of_founder().await, page_of_etcd(port).await);
    let mut alone = Vec::new();
    for name in names_of_mixin() {
        let family = name.trim_end_matches("_bucket");
        match theirs.has(name) {
            true => assert_eq!(ours.kinds[family], theirs.kinds[family], "{family}"),
            false => alone.push(name),
        }
        if theirs.has(name) {
            assert_eq!(ours.label_names(name), theirs.label_names(name), "{name}");
            assert_eq!(ours.bounds(name), theirs.bounds(name), "{name}");
        }
    }
    // It has no other members.
    assert!(alone.iter().all(|name| name.starts_with("etcd_network_peer_")), "{alone:?}");
    // Later than 3.6, and KEP-4647's.
    let newer = ["RangeStream", "FeatureGateStatus"];
    for (name, labels, _) in ours.samples.iter().filter(|sample| sample.0.starts_with("grpc_server_")) {
        let is_theirs = theirs.samples.iter().any(|sample| (&sample.0, &sample.1) == (name, labels));
        let is_newer = newer.iter().any(|method| labels.contains(&format!("grpc_method=\"{method}\"")));
        assert!(is_theirs || is_newer || name.contains("_handling_"), "{name}{{{labels}}}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_are_counted_by_method_and_by_how_they_end() {
    let served = Served::start().await;
    let mut kv = served.kv();
    kv.put(put("a")).await.unwrap();
    kv.put(put("b")).await.unwrap();
    assert_eq!(kv.put(put("")).await.unwrap_err().code(), Code::InvalidArgument);
    let all = RangeRequest { key: vec![0], range_end: vec![0], serializable: true, ..RangeRequest::default() };
    kv.range(all).await.unwrap();
    let mut stream = Stream::open(&served.channel());
    stream.created(watch("a", "", 0)).await;

    let (puts, ranges) = (method("KV", "Put", "unary"), method("KV", "Range", "unary"));
    let watches = method("Watch", "Watch", "bidi_stream");
    let count = |page: &Page, labels: &str| page.value("grpc_server_handling_seconds_count", labels);
    let page = page_where(&served, "a call that does not end", |page| count(page, &ranges) == 1.0).await;
    for (labels, code, started, handled) in [
        (&puts, "OK", 3.0, 2.0),
        (&puts, "InvalidArgument", 3.0, 1.0),
        (&puts, "Canceled", 3.0, 0.0),
        (&ranges, "OK", 1.0, 1.0),
        (&watches, "OK", 1.0, 0.0),
        (&watches, "Canceled", 1.0, 0.0), // it is open
        (&method("Lease", "LeaseKeepAlive", "bidi_stream"), "OK", 0.0, 0.0),
    ] {
        assert_eq!(page.value("grpc_server_started_total", labels), started, "{labels}");
        let handled_labels = format!("grpc_code=\"{code}\",{labels}");
        assert_eq!(page.value("grpc_server_handled_total", &handled_labels), handled, "{handled_labels}");
    }
    assert_eq!((count(&page, &puts), count(&page, &watches)), (3.0, 0.0));
    for (name, least) in [
        ("etcd_network_client_grpc_received_bytes_total", 3000.0), // three values
        ("etcd_network_client_grpc_sent_bytes_total", 2000.0),     // two
    ] {
        let bytes = page.value(name, "");
        assert!((least..least + 1000.0).contains(&bytes), "{name} {bytes}");
    }

    drop(stream);
    let cancelled = format!("grpc_code=\"Canceled\",{watches}");
    let is_over = |page: &Page| page.value("grpc_server_handled_total", &cancelled) == 1.0;
    let page = page_where(&served, "a watch that does not end", is_over).await;
    assert_eq!(page.sum("grpc_server_started_total"), page.sum("grpc_server_handled_total"));
}

/// As with etcd: else whoever asks could make as many series as he likes.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_method_is_not_counted() {
    let served = Served::start().await;
    for path in ["/etcdserverpb.KV/None", "/none.None/Put"] {
        assert_eq!(call_path(&served, path).await.code(), Code::Unimplemented, "{path}");
    }
    let page = Page::of(&served).await;
    assert_eq!((page.sum("grpc_server_started_total"), page.sum("grpc_server_handled_total")), (0.0, 0.0));
    assert!(page.samples.iter().all(|(_, labels, _)| !labels.contains("None")));
}
