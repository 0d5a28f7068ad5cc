//! Clusters start, with and without TLS, and leave nothing behind.

use tests::{
    cluster::{Cluster, Spec},
    on_both,
    process::Process,
    skip::build_or_skip,
    system::System,
};

on_both! {
    a_cluster_serves;
    a_folder_that_has_a_cluster_is_refused, etcd #[ignore = "slow: the node's row shows the same"];
}

async fn serves(system: System, version: &str, tls: bool) {
    let Some(build) = build_or_skip(system, version) else { return };
    let spec = Spec { tls, ..Spec::new(build) };
    let cluster = Cluster::up(&spec).await.expect("up");
    let dir = cluster.layout.dir.clone();
    for member in &cluster.layout.members {
        let client = cluster.layout.client(member).expect("a client");
        client.put("k", &member.name).await.expect("written");
        let versions = client.versions().await.expect("answered");
        assert_eq!(versions.server, spec.build.release.to_string());
        assert_eq!(client.members().await.expect("answered").len(), spec.size);
    }
    assert_eq!(Process::under(&dir).len(), spec.size);
    drop(cluster);
    assert!(Process::under(&dir).is_empty() && !dir.exists(), "nothing is left of it");
}

async fn a_cluster_serves(system: System) {
    serves(system, system.main_job().0, false).await;
}

#[tokio::test]
async fn a_cluster_of_3_5_serves_with_tls() {
    for system in [System::Node, System::Etcd] {
        serves(system, "3.5", true).await;
    }
}

async fn a_folder_that_has_a_cluster_is_refused(system: System) {
    let Some(build) = build_or_skip(system, "3.5") else { return };
    let home = tempfile::tempdir().expect("a folder");
    let spec = Spec { size: 1, dir: Some(home.path().into()), ..Spec::new(build) };
    let _cluster = Cluster::up(&spec).await.expect("up");
    let error = Cluster::up(&spec).await.expect_err("one is enough");
    assert!(error.to_string().contains("has a cluster already"), "{error}");
}
