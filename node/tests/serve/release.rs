//! A release shows what it knew and nothing newer.

use proto::{
    Release,
    etcdserverpb::{FeatureGateStatusRequest, HashKvRequest, RangeRequest, SnapshotRequest, StatusRequest},
};
use tonic::Code;

use crate::{
    http::{GATE, call, get},
    served::{Served, Setup},
};

#[tokio::test(flavor = "multi_thread")]
async fn an_older_release_knows_nothing_of_gates_and_storage_versions() {
    for (minor, is_newer) in [(5, false), (6, true), (7, true)] {
        let served = Served::set_up(Setup { release: Release::new(3, minor, 0), ..Setup::default() }).await;
        let version = format!("3.{minor}.0");
        let status = served.maintenance().status(StatusRequest {}).await.unwrap().into_inner();
        let storage = if is_newer { &*version } else { "" };
        assert_eq!((&*status.version, &*status.storage_version), (&*version, storage));
        let gate = served.maintenance().feature_gate_status(FeatureGateStatusRequest::default()).await;
        assert_eq!(gate.map_err(|status| status.code()).err(), (!is_newer).then_some(Code::Unimplemented));
        assert_eq!(call(&served, "POST", GATE, "").await.0, if is_newer { 200 } else { 404 });
        let hash = served.maintenance().hash_kv(HashKvRequest { revision: 0 }).await.unwrap().into_inner();
        assert_eq!(hash.hash_revision, i64::from(is_newer));
        let mut snapshot = served.maintenance().snapshot(SnapshotRequest {}).await.unwrap().into_inner();
        assert_eq!(snapshot.message().await.unwrap().unwrap().version, storage);
        assert_eq!(get(&served, "/version").await.1.contains("storage"), is_newer);
        assert_eq!(get(&served, "/metrics").await.1.contains("feature"), is_newer);
        let range = RangeRequest { key: b"a".to_vec(), ..RangeRequest::default() };
        let streamed = served.kv().range_stream(range).await.map(drop).unwrap_err();
        assert_eq!(streamed.code(), Code::Unimplemented);
    }
}
