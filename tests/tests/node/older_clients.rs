//! Real `etcdctl` 3.4, which says `:authority: http://HOST:PORT` where it asks each endpoint for itself. etcd takes it, and so does
//! the node.

use tests::{
    cluster::{Cluster, Spec},
    etcdctl::Etcdctl,
    skip::build_or_skip,
    system::System,
};

use crate::nobody_panicked;

/// Of each of three endpoints, in the order in which they are given.
async fn answers_at_each_endpoint(system: System, tls: bool) {
    let Some(etcd) = build_or_skip(System::Etcd, "3.4") else { return };
    let Some(build) = build_or_skip(system, "3.6") else { return };
    let cluster = Cluster::up(&Spec { tls, ..Spec::new(build) }).await.expect("up");
    let mut endpoints = cluster.layout.endpoints();
    let etcdctl = Etcdctl::new(&etcd, cluster.layout.certificates.as_ref());
    for first in 0..endpoints.len() {
        for arguments in [&["endpoint", "status"][..], &["endpoint", "hashkv"], &["defrag"]] {
            let said = etcdctl.run(&endpoints, arguments).await;
            let is_named = |endpoint: &String| said.contains(endpoint);
            assert!(endpoints.iter().all(is_named), "{system}: etcdctl {arguments:?} from {first}: {said}");
        }
        // This alone it says as an error.
        let output = etcdctl.output(&endpoints, &["endpoint", "health"]).await;
        let said = String::from_utf8_lossy(&output.stderr);
        let is_well = |endpoint: &String| said.contains(&format!("{endpoint} is healthy"));
        assert!(endpoints.iter().all(is_well), "{system}: from {first}: {output:?}");
        endpoints.rotate_left(1);
    }
    // It looks for the leader among all, and asks it.
    for _ in 0..2 {
        let leader = cluster.layout.leader().await.expect("a leader");
        let next = cluster.layout.members.iter().find(|member| member.name != leader.name).expect("three");
        let status = cluster.layout.client(next).expect("a client").status().await.expect("answered");
        let id = format!("{:x}", status.header.unwrap_or_default().member_id);
        endpoints.sort_by_key(|endpoint| *endpoint == leader.client_url);
        let said = etcdctl.run(&endpoints, &["move-leader", &id]).await;
        assert!(said.starts_with("Leadership transferred from"), "{system}: {said}");
        assert_eq!(cluster.layout.leader().await.expect("a leader").name, next.name);
    }
    nobody_panicked(&cluster.layout);
}

#[tokio::test(flavor = "multi_thread")]
async fn etcdctl_3_4_asks_each_of_three_nodes() {
    answers_at_each_endpoint(System::Node, false).await;
}

/// There it says the name that it looks for in the certificate.
#[tokio::test(flavor = "multi_thread")]
async fn etcdctl_3_4_asks_each_of_three_nodes_with_tls() {
    answers_at_each_endpoint(System::Node, true).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn etcdctl_3_4_asks_each_of_three_etcds_the_same_way() {
    answers_at_each_endpoint(System::Etcd, false).await;
}
