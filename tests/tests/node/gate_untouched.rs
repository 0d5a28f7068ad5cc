//! No call changes the gate, and a member reads its flags once, as it starts (KEP-4647, "Non-Goals": no feature is flipped while the
//! members run).

use std::{collections::BTreeMap, fs};

use proto::{
    ClusterVersion,
    batonpb::{AddRequest, ListRequest, counters_client::CountersClient, members_client::MembersClient},
    etcdserverpb::{
        AlarmRequest, AlarmType, AuthEnableRequest, AuthStatusRequest, AuthUserAddRequest, AuthUserListRequest,
        CompactionRequest, DefragmentRequest, DeleteRangeRequest, DowngradeRequest, HashKvRequest, HashRequest,
        LeaseGrantRequest, LeaseLeasesRequest, LeaseRevokeRequest, LeaseTimeToLiveRequest, MemberListRequest,
        MemberPromoteRequest, MemberUpdateRequest, PutRequest, RangeRequest, SnapshotRequest, StatusRequest,
        TxnRequest, alarm_request::AlarmAction, auth_client::AuthClient, cluster_client::ClusterClient,
        downgrade_request::DowngradeAction, kv_client::KvClient, lease_client::LeaseClient,
        maintenance_client::MaintenanceClient,
    },
    gates::feature_gate_status,
};
use rustix::process::Signal;
use tests::{client::Client, cluster::Cluster};

use crate::{QUICK, leader_killed::decided, nobody_panicked, up};

const V3_7: ClusterVersion = ClusterVersion { major: 3, minor: 7 };

async fn gate(client: &Client) -> BTreeMap<String, bool> {
    feature_gate_status(&mut MaintenanceClient::new(client.channel()), [""; 0]).await.expect("answered")
}

/// What each member proposes, and that nothing is undecided, as metrics say it.
async fn wishes(client: &Client) -> (BTreeMap<String, f64>, f64) {
    let page = client.metrics().await.expect("a page");
    (page.family("etcd_cluster_feature_proposed"), page.figure("etcd_cluster_feature_undecided").expect("there"))
}

/// One after the other, and after each the same gate from the same wishes. Whether a call is refused is not asked here.
macro_rules! after_each {
    ($client:expr, $said:expr, $($service:ident.$call:ident($request:expr);)+) => {
        $(
            let _ = $service::new($client.channel()).$call($request).await;
            assert_eq!((gate($client).await, wishes($client).await), $said, "after {}", stringify!($call));
        )+
    };
}

async fn every_call(client: &Client, own: u64) {
    let said = (gate(client).await, wishes(client).await);
    let alarm =
        |action: AlarmAction| AlarmRequest { action: action.into(), member_id: own, alarm: AlarmType::Nospace.into() };
    let downgrade =
        |action: DowngradeAction, version: &str| DowngradeRequest { action: action.into(), version: version.into() };
    let url = client.members().await.expect("listed")[0].clone();
    after_each! { client, said,
        KvClient.put(PutRequest { key: "k".into(), ..PutRequest::default() });
        KvClient.range(RangeRequest { key: "k".into(), ..RangeRequest::default() });
        KvClient.txn(TxnRequest::default());
        KvClient.delete_range(DeleteRangeRequest { key: "k".into(), ..DeleteRangeRequest::default() });
        KvClient.compact(CompactionRequest { revision: 2, physical: true });
        CountersClient.add(AddRequest { key: b"n".to_vec(), by: 1 });
        LeaseClient.lease_grant(LeaseGrantRequest { ttl: 60, id: 7 });
        LeaseClient.lease_time_to_live(LeaseTimeToLiveRequest { id: 7, keys: true });
        LeaseClient.lease_leases(LeaseLeasesRequest {});
        LeaseClient.lease_revoke(LeaseRevokeRequest { id: 7 });
        AuthClient.user_add(AuthUserAddRequest { name: "somebody".into(), ..AuthUserAddRequest::default() });
        AuthClient.user_list(AuthUserListRequest {});
        AuthClient.auth_status(AuthStatusRequest {});
        AuthClient.auth_enable(AuthEnableRequest {});
        ClusterClient.member_list(MemberListRequest::default());
        ClusterClient.member_update(MemberUpdateRequest { id: url.id, peer_urls: url.peer_urls.clone() });
        ClusterClient.member_promote(MemberPromoteRequest { id: url.id });
        MembersClient.list(ListRequest {});
        MaintenanceClient.alarm(alarm(AlarmAction::Activate));
        MaintenanceClient.alarm(alarm(AlarmAction::Deactivate));
        MaintenanceClient.status(StatusRequest::default());
        MaintenanceClient.defragment(DefragmentRequest {});
        MaintenanceClient.hash(HashRequest {});
        MaintenanceClient.hash_kv(HashKvRequest { revision: 0 });
        MaintenanceClient.snapshot(SnapshotRequest {});
        MaintenanceClient.downgrade(downgrade(DowngradeAction::Validate, "3.6.0"));
        MaintenanceClient.downgrade(downgrade(DowngradeAction::Cancel, ""));
    }
}

/// Its file says something else by now, and it has led, followed and been asked everything since.
#[tokio::test(flavor = "multi_thread")]
async fn neither_a_call_nor_a_file_that_is_written_anew_changes_the_gate() {
    let Some(mut cluster) = up("3.7", &QUICK).await else { return };
    let lines = cluster.layout.members[0].configure("cluster-feature-gates: ClusterCounters=true").expect("configured");
    cluster.ready().await.expect("it is back");
    let before = decided(&cluster, V3_7).await;
    assert!(before.iter().any(|name| name.contains("ClusterCounters")), "{before:?}");
    let first = cluster.layout.members[0].clone();
    fs::write(first.config(), format!("{lines}cluster-feature-gates: ClusterCounters=false\n")).expect("written");
    cluster.layout.make_leader(&first).await.expect("it leads");
    let clients: Vec<_> =
        cluster.layout.members.iter().map(|member| cluster.layout.client(member).expect("a client")).collect();
    for client in &clients {
        let own = client.status().await.expect("answered").header.unwrap_or_default().member_id;
        every_call(client, own).await;
    }
    cluster.layout.make_leader(&cluster.layout.members[1]).await.expect("it leads");
    assert_eq!(decided(&cluster, V3_7).await, before);
    // What it had to be kept from: the start after that reads the file.
    first.end(Signal::TERM).expect("ended");
    first.start().expect("started");
    cluster.ready().await.expect("it is back");
    is_without_counters(&cluster).await;
    nobody_panicked(&cluster.layout);
}

async fn is_without_counters(cluster: &Cluster) {
    tests::wait::until("the counters to be off", tests::wait::GENEROUS, || async {
        let gate = decided(cluster, V3_7).await;
        if gate.iter().any(|name| name.contains("ClusterCounters")) { Err(format!("{gate:?}")) } else { Ok(()) }
    })
    .await
    .expect("off");
}
