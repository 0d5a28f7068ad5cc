//! The cluster's gate, as clients see it: its status, what a request may require, and who wants what.

use node::{
    cluster::{
        entry::Entry,
        gate::Gate,
        member::{Attributes, Proposal, Starts},
    },
    entry::EntryKind,
    features::{COUNTERS, Feature, Features, LEASE_CHECKPOINT, Level, Registry, Spec, Stage},
    state::State,
};
use proto::{
    ClusterVersion, Release,
    etcdserverpb::{
        FeatureGateStatusRequest, LeaseGrantRequest, MemberListRequest, PutRequest, RangeRequest, TxnRequest,
    },
    gates::{REQUIRE_FEATURE, require_feature},
};
use serde_json::{Value, json};
use tonic::{Code, Request, Status};

use crate::{
    http::{GATE, call, get},
    served::{ID, Served, Setup},
    stream::{Stream, watch},
};

/// A later process of the member wants this of the feature, and the leader decides by it.
async fn decide(served: &Served, is_on: bool) {
    let version = ClusterVersion { major: 3, minor: 6 };
    let features: Features = [(LEASE_CHECKPOINT.to_owned(), is_on)].into_iter().collect();
    let proposal = Some(Proposal { version, features: features.clone() });
    let attributes = Attributes { name: "m1".into(), client_urls: vec![served.url.clone()], proposal };
    let (incarnation, start_id) = (served.member.identity().incarnation, None);
    served
        .apply(EntryKind::Cluster(Entry::Publish { member: ID, starts: Starts(2), start_id, incarnation, attributes }))
        .await;
    let mut changes = served.member.applied();
    while served.member.read(|state: &State| state.cluster.gate != Gate::Decided(features.clone())) {
        changes.changed().await.unwrap();
    }
}

async fn status(served: &Served, names: &[&str]) -> Vec<(String, bool)> {
    let question = FeatureGateStatusRequest::of(names.iter().copied());
    let answer = served.maintenance().feature_gate_status(question).await.unwrap();
    let answer = answer.into_inner();
    assert_eq!(answer.header.unwrap().member_id, ID.0);
    answer.features.into_iter().map(|feature| (feature.name, feature.enabled)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_gate_is_told_by_name_or_whole_and_what_nobody_knows_is_off() {
    let served = Served::start().await;
    // The other one there is at 3.6, which nobody wants here but by its default.
    let is = |on| vec![(LEASE_CHECKPOINT.to_owned(), on), (COUNTERS.to_owned(), false)];
    assert_eq!(status(&served, &[]).await, is(false), "undecided");
    decide(&served, true).await;
    assert_eq!(status(&served, &[]).await, is(true));
    let asked = status(&served, &["Unheard", LEASE_CHECKPOINT]).await;
    assert_eq!(asked, [("Unheard".to_owned(), false), (LEASE_CHECKPOINT.to_owned(), true)]);
    decide(&served, false).await;
    assert_eq!(status(&served, &[]).await, is(false));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_gate_is_told_over_http_too() {
    let served = Served::start().await;
    decide(&served, true).await;
    for (content, expected) in [
        ("", json!([{"name": LEASE_CHECKPOINT, "enabled": true}, {"name": COUNTERS, "enabled": false}])),
        ("{}", json!([{"name": LEASE_CHECKPOINT, "enabled": true}, {"name": COUNTERS, "enabled": false}])),
        (r#"{"features":["Unheard"]}"#, json!([{"name": "Unheard", "enabled": false}])),
    ] {
        let (status, answer) = call(&served, "POST", GATE, content).await;
        assert_eq!(status, 200, "{answer}");
        let answer: Value = serde_json::from_str(&answer).unwrap();
        assert_eq!(answer["features"], expected, "{content}");
        assert_eq!(answer["header"]["member_id"], ID.0.to_string());
    }
    assert_eq!(call(&served, "POST", GATE, "{").await.0, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_say_what_is_on_and_who_wants_what() {
    for (is_on, value) in [(true, 1), (false, 0)] {
        let served = Served::set_up(Setup { wants: Some(is_on), ..Setup::default() }).await;
        let mut changes = served.member.applied();
        while served.member.read(|state: &State| state.cluster.gate == Gate::Undecided) {
            changes.changed().await.unwrap();
        }
        let page = get(&served, "/metrics").await.1;
        for line in [
            "etcd_cluster_feature_undecided 0".to_owned(),
            "etcd_cluster_feature_known{name=\"ClusterLeaseCheckpoint\",since=\"3.6\",locked=\"\"} 1".to_owned(),
            format!("etcd_cluster_feature_enabled{{name=\"ClusterLeaseCheckpoint\"}} {value}"),
            format!("etcd_cluster_feature_proposed{{member=\"{ID}\",name=\"ClusterLeaseCheckpoint\"}} {value}"),
            format!("etcd_server_feature_enabled{{name=\"ClusterLeaseCheckpoint\",stage=\"ALPHA\"}} {value}"),
        ] {
            assert!(page.lines().any(|found| found == line), "{line} in {page}");
        }
        // Undecided until the first decision, and never reset.
        let undecided = sample(&page, "etcd_cluster_feature_undecided_seconds_total").unwrap();
        assert!(undecided > 0.0, "{page}");
        assert_eq!(sample(&page, "etcd_cluster_feature_seconds_since_reset"), None, "{page}");

        let prepares = ClusterVersion { major: 3, minor: 7 };
        served.apply(EntryKind::Cluster(Entry::Reset { prepares })).await;
        while served.member.read(|state: &State| state.cluster.gate == Gate::Undecided) {
            changes.changed().await.unwrap();
        }
        let page = get(&served, "/metrics").await.1;
        assert!(sample(&page, "etcd_cluster_feature_seconds_since_reset").is_some(), "{page}");
        assert!(sample(&page, "etcd_cluster_feature_undecided_seconds_total").unwrap() > undecided, "{page}");
    }
}

/// The value of a metric without labels.
fn sample(page: &str, name: &str) -> Option<f64> {
    page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok())
}

/// Requests of each kind that require these features.
async fn require(served: &Served, names: &[&str]) -> Vec<Result<(), Status>> {
    fn with<T>(names: &[&str], message: T) -> Request<T> {
        let mut request = Request::new(message);
        for name in names {
            require_feature(&mut request, name).unwrap();
        }
        request
    }
    let key = b"a".to_vec();
    let (mut kv, mut lease, mut cluster) = (served.kv(), served.lease(), served.cluster());
    let range = RangeRequest { key: key.clone(), ..RangeRequest::default() };
    let metadata: Vec<_> = names.iter().map(|name| (REQUIRE_FEATURE, *name)).collect();
    let mut stream = Stream::open_with(&served.channel(), &metadata);
    stream.create(watch("a", "", 0)).await;
    vec![
        kv.range(with(names, range.clone())).await.map(drop),
        kv.range(with(names, RangeRequest { serializable: true, ..range })).await.map(drop),
        kv.put(with(names, PutRequest { key, ..PutRequest::default() })).await.map(drop),
        kv.txn(with(names, TxnRequest::default())).await.map(drop),
        lease.lease_grant(with(names, LeaseGrantRequest { ttl: 60, id: 0 })).await.map(drop),
        cluster.member_list(with(names, MemberListRequest::default())).await.map(drop),
        stream.message().await.map(drop),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_requires_a_feature_is_served_only_while_that_is_on() {
    let served = Served::start().await;
    for (is_on, names, missing) in [
        (true, &[][..], None),
        (true, &[LEASE_CHECKPOINT], None),
        (true, &[LEASE_CHECKPOINT, LEASE_CHECKPOINT], None),
        (true, &[LEASE_CHECKPOINT, "Unheard"], Some("Unheard")),
        (false, &[LEASE_CHECKPOINT], Some(LEASE_CHECKPOINT)),
        (false, &[], None),
    ] {
        decide(&served, is_on).await;
        let before = served.member.read(|state| state.keys.revision());
        for (kind, answer) in require(&served, names).await.into_iter().enumerate() {
            let place = format!("request {kind} that requires {names:?}, decided {is_on}");
            match missing {
                None => answer.unwrap_or_else(|status| panic!("{place}: {status}")),
                Some(name) => {
                    let status = answer.expect_err(&place);
                    let words = format!("etcdserver: required feature {name} is not enabled");
                    assert_eq!((status.code(), status.message()), (Code::FailedPrecondition, &*words), "{place}");
                }
            }
        }
        let is_written = served.member.read(|state| state.keys.revision()) > before;
        assert_eq!(is_written, missing.is_none(), "{names:?}");
    }
}

/// One that is on for everybody from the first release on, whatever a gate says.
const LOCKED: &[Feature] = &[Feature {
    name: "Locked",
    level: Level::Cluster,
    specs: &[Spec {
        since: ClusterVersion { major: 3, minor: 5 },
        patch: 0,
        default: true,
        stage: Stage::Ga,
        is_locked: true,
    }],
}];

/// Below 3.6 there may be members that do not see what an entry requires.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_can_be_required_before_there_are_gates() {
    for (minor, is_served) in [(5, false), (6, true)] {
        let release = Release::new(3, minor, 0);
        let registry = Registry::over(LOCKED, &release);
        let setup = Setup { release, registry, ..Setup::default() };
        let served = Served::set_up(setup).await;
        for answer in require(&served, &["Locked"]).await {
            let code = answer.err().map(|status| status.code());
            assert_eq!(code, (!is_served).then_some(Code::FailedPrecondition), "3.{minor}");
        }
        for answer in require(&served, &[]).await {
            answer.unwrap();
        }
    }
}
