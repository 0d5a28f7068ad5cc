//! Where members listen besides ports that somebody chose: Unix sockets, and ports that the system chooses.

use std::{fs, os::unix::fs::FileTypeExt, path::Path};

use rustix::process::Signal;
use tests::{
    cluster::{Cluster, Spec},
    etcdctl::Etcdctl,
    member::Member,
    skip::build_or_skip,
    system::{Build, System},
    wait::{self, GENEROUS},
};

use crate::nobody_panicked;

/// Two members, with these in the place of the same flags.
fn laid_out(build: Build, tls: bool, flags: impl Fn(&Path, &Member) -> Vec<(&'static str, String)>) -> Cluster {
    let mut cluster = Cluster::laid_out(&Spec { size: 2, tls, ..Spec::new(build) }).expect("laid out");
    let dir = cluster.layout.dir.clone();
    for member in &mut cluster.layout.members {
        for (name, value) in flags(&dir, member) {
            let flag = format!("--{name}=");
            member.flags.retain(|given| !given.starts_with(&flag));
            member.flags.push(flag + &value);
        }
    }
    cluster
}

fn socket(scheme: &str, dir: &Path, name: &str) -> String {
    format!("{scheme}://{}/localhost:{name}", dir.display())
}

/// Members reach each other over sockets alone, clients over sockets and ports.
async fn over_sockets(tls: bool) {
    let Some(build) = build_or_skip(System::Node, "3.6") else { return };
    let scheme = if tls { "unixs" } else { "unix" };
    let mut cluster = laid_out(build, tls, |dir, member| {
        let url = |name: &str| socket(scheme, dir, name);
        let client = socket(scheme, dir, &format!("{}-client", member.name));
        vec![
            ("listen-peer-urls", url(&member.name)),
            ("initial-advertise-peer-urls", url(&member.name)),
            ("initial-cluster", format!("m1={},m2={}", url("m1"), url("m2"))),
            ("listen-client-urls", format!("{},{client}", member.client_url)),
            ("advertise-client-urls", format!("{client},{}", member.client_url)),
        ]
    });
    cluster.begin().await.expect("up");
    let dir = cluster.layout.dir.clone();
    let endpoints = ["m1", "m2"].map(|name| socket(scheme, &dir, &format!("{name}-client")));
    // With TLS a client of 3.4 looks for the whole path in the member's certificate.
    for version in ["3.4", "3.5", "3.6"].into_iter().skip(usize::from(tls)) {
        let Some(etcd) = build_or_skip(System::Etcd, version) else { continue };
        let etcdctl = Etcdctl::new(&etcd, cluster.layout.certificates.as_ref());
        for endpoint in &endpoints {
            etcdctl.run(std::slice::from_ref(endpoint), &["put", version, endpoint]).await;
            assert_eq!(etcdctl.run(&endpoints, &["get", version, "--print-value-only"]).await.trim(), endpoint);
        }
        let said = etcdctl.run(&endpoints, &["endpoint", "status"]).await;
        assert!(endpoints.iter().all(|endpoint| said.contains(endpoint)), "{version}: {said}");
        let said = etcdctl.run(&endpoints[..1], &["member", "list"]).await;
        assert!(said.contains(&socket(scheme, &dir, "m2")) && said.contains(&endpoints[1]), "{version}: {said}");
    }
    // One that was killed leaves its files; one that ends removes them.
    let is_there = |name: &str| {
        fs::symlink_metadata(dir.join(format!("localhost:{name}"))).is_ok_and(|file| file.file_type().is_socket())
    };
    let member = cluster.layout.members.pop().expect("two");
    member.end(Signal::KILL).expect("killed");
    assert!(is_there("m2") && is_there("m2-client"));
    member.start().expect("started");
    cluster.layout.members.push(member);
    cluster.ready().await.expect("it is back");
    cluster.layout.members[1].end(Signal::TERM).expect("ended");
    assert!(!is_there("m2") && !is_there("m2-client") && is_there("m1"));
    nobody_panicked(&cluster.layout);
}

#[tokio::test(flavor = "multi_thread")]
async fn members_and_clients_meet_at_unix_sockets() {
    over_sockets(false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn members_and_clients_meet_at_unix_sockets_with_tls() {
    over_sockets(true).await;
}

/// What the log says of a port that was asked for as 0.
async fn chosen(member: &Member, setting: &str) -> String {
    let found = wait::until("an address in the log", GENEROUS, || async {
        let log = fs::read_to_string(member.log()).unwrap_or_default();
        // Its URL ends so; the time of the line may have `:0` in it.
        let is_it = |line: &&str| line.contains(&format!("listens (--{setting})")) && line.contains(":0\"");
        let line = log.lines().find(is_it);
        let address = line.and_then(|line| line.split("\"address\":\"").nth(1)?.split('"').next());
        address.map(str::to_owned).ok_or(log)
    });
    found.await.expect("it is said")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_that_the_system_chose_is_in_the_log() {
    let Some(build) = build_or_skip(System::Node, "3.6") else { return };
    const ANY: &str = "http://127.0.0.1:0";
    let cluster = laid_out(build, false, |_, member| {
        let peer = format!("http://127.0.0.1:{}", member.peer_port);
        vec![
            ("listen-client-urls", format!("{},{ANY}", member.client_url)),
            ("advertise-client-urls", ANY.into()),
            ("listen-peer-urls", format!("{peer},{ANY}")),
            ("listen-metrics-urls", format!("{ANY},{ANY}")),
        ]
    });
    cluster.begin().await.expect("up");
    let member = &cluster.layout.members[0];
    let listed = cluster.layout.client(member).expect("a client").members().await.expect("answered");
    assert!(listed.iter().all(|member| member.client_urls == [ANY]), "as it was told: {listed:?}");
    for setting in ["listen-client-urls", "listen-metrics-urls"] {
        let address = chosen(member, setting).await;
        let health = reqwest::get(format!("http://{address}/health")).await.expect("answered");
        assert!(health.status().is_success(), "{setting}: {address}");
    }
    let address = chosen(member, "listen-peer-urls").await;
    assert!(!address.ends_with(":0"), "{address}");
    std::net::TcpStream::connect(&address).expect("it listens there");
    nobody_panicked(&cluster.layout);
}
