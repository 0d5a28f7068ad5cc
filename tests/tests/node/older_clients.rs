//! Real `etcdctl` 3.4, which says `:authority: http://HOST:PORT` where it asks each endpoint for itself. etcd takes it, and so does
//! the node.

use std::process::Stdio;

use tests::{
    certificates::Certificates,
    cluster::{Cluster, Spec},
    skip::build_or_skip,
    system::System,
    wait::GENEROUS,
};
use tokio::{process::Command, time::timeout};

use crate::nobody_panicked;

/// Of each of three endpoints, in the order in which they are given.
async fn answers_at_each_endpoint(system: System, tls: bool) {
    let Some(etcd) = build_or_skip(System::Etcd, "3.4") else { return };
    let Some(build) = build_or_skip(system, "3.6") else { return };
    let cluster = Cluster::up(&Spec { tls, ..Spec::new(build) }).await.expect("up");
    let mut endpoints = cluster.layout.endpoints();
    let run = async |endpoints: &[String], arguments: &[&str]| {
        let mut command = Command::new(etcd.bin.join("etcdctl"));
        command.env("ETCDCTL_API", "3").arg(format!("--endpoints={}", endpoints.join(",")));
        command.args(cluster.layout.certificates.iter().flat_map(shown)).args(arguments);
        let output = timeout(GENEROUS, command.kill_on_drop(true).stdin(Stdio::null()).output()).await;
        let output = output.expect("it ends").expect("it runs");
        assert!(output.status.success(), "{system}: etcdctl {arguments:?}: {output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    for first in 0..endpoints.len() {
        for arguments in [&["endpoint", "status"][..], &["endpoint", "hashkv"], &["endpoint", "health"], &["defrag"]] {
            let said = run(&endpoints, arguments).await;
            let named = endpoints.iter().filter(|endpoint| said.contains(*endpoint)).count();
            let count = if arguments == ["endpoint", "health"] { 0 } else { 3 };
            assert!(named >= count, "{system}: etcdctl {arguments:?} from {first}: {said}");
        }
        endpoints.rotate_left(1);
    }
    // It looks for the leader among all, and asks it.
    for _ in 0..2 {
        let leader = cluster.layout.leader().await.expect("a leader");
        let next = cluster.layout.members.iter().find(|member| member.name != leader.name).expect("three");
        let status = cluster.layout.client(next).expect("a client").status().await.expect("answered");
        let id = format!("{:x}", status.header.unwrap_or_default().member_id);
        endpoints.sort_by_key(|endpoint| *endpoint == leader.client_url);
        let said = run(&endpoints, &["move-leader", &id]).await;
        assert!(said.starts_with("Leadership transferred from"), "{system}: {said}");
        assert_eq!(cluster.layout.leader().await.expect("a leader").name, next.name);
    }
    nobody_panicked(&cluster.layout);
}

fn shown(files: &Certificates) -> Vec<String> {
    let [ca, cert, key] = [&files.ca, &files.client.cert, &files.client.key].map(|path| path.display().to_string());
    vec![format!("--cacert={ca}"), format!("--cert={cert}"), format!("--key={key}")]
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
