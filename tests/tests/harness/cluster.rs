//! Clusters start, with and without TLS, and leave nothing behind.

use tests::{
    cluster::{Cluster, Spec},
    process::Process,
    skip::etcd_or_skip,
};

async fn serves(version: &str, tls: bool) {
    let Some(etcd) = etcd_or_skip(version) else { return };
    let spec = Spec { tls, ..Spec::new(etcd) };
    let cluster = Cluster::up(&spec).await.expect("up");
    let dir = cluster.layout.dir.clone();
    for member in &cluster.layout.members {
        let client = cluster.layout.client(member).expect("a client");
        client.put("k", &member.name).await.expect("written");
        let versions = client.versions().await.expect("answered");
        assert_eq!(versions.server, spec.etcd.release.to_string());
        assert_eq!(client.members().await.expect("answered").len(), spec.size);
    }
    assert_eq!(Process::under(&dir).len(), spec.size);
    drop(cluster);
    assert!(Process::under(&dir).is_empty() && !dir.exists(), "nothing is left of it");
}

#[tokio::test]
async fn a_cluster_of_3_4_serves() {
    serves("3.4", false).await;
}

#[tokio::test]
async fn a_cluster_of_3_5_serves_with_tls() {
    serves("3.5", true).await;
}

#[tokio::test]
async fn a_folder_that_has_a_cluster_is_refused() {
    let Some(etcd) = etcd_or_skip("3.5") else { return };
    let home = tempfile::tempdir().expect("a folder");
    let spec = Spec { size: 1, dir: Some(home.path().into()), ..Spec::new(etcd) };
    let _cluster = Cluster::up(&spec).await.expect("up");
    let error = Cluster::up(&spec).await.expect_err("one is enough");
    assert!(error.to_string().contains("has a cluster already"), "{error}");
}
