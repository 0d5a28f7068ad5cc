//! Real `etcdctl`, 3.5 and 3.6, on three members of which the leader dies.

use std::{process::Stdio, time::Duration};

use rustix::process::Signal;
use tests::{
    cluster::Cluster,
    etcdctl,
    skip::build_or_skip,
    system::System,
    wait::{self, GENEROUS},
};
use tokio::{
    io::{AsyncBufReadExt, BufReader, Lines},
    process::{Child, ChildStdout},
    time::timeout,
};

use crate::{QUICK, nobody_panicked, up};

/// An `etcdctl` that knows every member.
struct Etcdctl {
    etcdctl: etcdctl::Etcdctl,
    endpoints: Vec<String>,
}

/// One that goes on, and what it prints.
struct Going {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Etcdctl {
    /// What it prints; it must succeed.
    async fn run(&self, arguments: &[&str]) -> String {
        self.etcdctl.run(&self.endpoints, arguments).await
    }

    fn start(&self, arguments: &[&str]) -> Going {
        let mut command = self.etcdctl.command(&self.endpoints, arguments);
        let mut child = command.stdout(Stdio::piped()).spawn().expect("it runs");
        let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        Going { child, lines }
    }
}

impl Going {
    async fn line(&mut self) -> String {
        let line = timeout(GENEROUS, self.lines.next_line()).await.expect("it goes on");
        line.expect("text").expect("it has not ended")
    }

    /// As a person ends it: with Ctrl-C, after which it gives back what it holds.
    async fn end(mut self) {
        let process = tests::process::Process::open(self.child.id().expect("it runs") as i32).expect("it runs");
        process.signal(Signal::INT).expect("asked");
        let _ = timeout(GENEROUS, self.child.wait()).await.expect("it ends");
    }
}

/// Kills the leader, has this done without it, and starts it again.
async fn without_the_leader(cluster: &Cluster, work: impl Future<Output = ()>) {
    let leader = cluster.layout.leader().await.expect("a leader");
    leader.end(Signal::KILL).expect("killed");
    work.await;
    leader.start().expect("started");
    cluster.ready().await.expect("it is back");
}

async fn watches(cluster: &Cluster, etcdctl: &Etcdctl) {
    etcdctl.run(&["put", "w/0", "before"]).await;
    let mut watch = etcdctl.start(&["watch", "--prefix", "w/", "--rev=1"]);
    let mut told = Vec::new();
    for _ in 0..3 {
        told.push(watch.line().await);
    }
    assert_eq!(told, ["PUT", "w/0", "before"]);
    told.clear();
    without_the_leader(cluster, async {
        etcdctl.run(&["put", "w/1", "without"]).await;
    })
    .await;
    etcdctl.run(&["put", "w/2", "with"]).await;
    for _ in 0..6 {
        told.push(watch.line().await);
    }
    assert_eq!(told, ["PUT", "w/1", "without", "PUT", "w/2", "with"]);
    watch.end().await;
}

async fn locks(cluster: &Cluster, etcdctl: &Etcdctl) {
    let mut holder = etcdctl.start(&["lock", "l"]);
    assert!(holder.line().await.starts_with("l/"));
    let mut waiter = etcdctl.start(&["lock", "l"]);
    wait::until("the second to queue", GENEROUS, || async {
        let keys = etcdctl.run(&["get", "--prefix", "l/", "--keys-only"]).await;
        let count = keys.lines().filter(|line| !line.is_empty()).count();
        if count == 2 { Ok(()) } else { Err(keys) }
    })
    .await
    .expect("queued");
    without_the_leader(cluster, async {
        let early = timeout(Duration::from_millis(300), waiter.lines.next_line()).await;
        assert!(early.is_err(), "two hold one lock: {early:?}");
        holder.end().await;
        assert!(waiter.line().await.starts_with("l/"));
    })
    .await;
    waiter.end().await;
}

async fn elects(cluster: &Cluster, etcdctl: &Etcdctl) {
    let mut first = etcdctl.start(&["elect", "e", "one"]);
    assert!(first.line().await.starts_with("e/"));
    assert_eq!(first.line().await, "one");
    let mut second = etcdctl.start(&["elect", "e", "two"]);
    without_the_leader(cluster, first.end()).await;
    assert!(second.line().await.starts_with("e/"));
    assert_eq!(second.line().await, "two");
    second.end().await;
}

async fn moves_leader(cluster: &Cluster, etcdctl: &Etcdctl) {
    let leader = cluster.layout.leader().await.expect("a leader");
    let next = cluster.layout.members.iter().find(|member| member.name != leader.name).expect("three");
    let status = cluster.layout.client(next).expect("a client").status().await.expect("answered");
    let id = format!("{:x}", status.header.unwrap_or_default().member_id);
    let said = etcdctl.run(&["move-leader", &id]).await;
    assert!(said.starts_with("Leadership transferred from"), "{said}");
    assert_eq!(cluster.layout.leader().await.expect("a leader").name, next.name);
}

async fn works(version: &str) {
    let Some(etcd) = build_or_skip(System::Etcd, version) else { return };
    let Some(cluster) = up("3.6", &QUICK).await else { return };
    let etcdctl = Etcdctl { etcdctl: etcdctl::Etcdctl::new(&etcd, None), endpoints: cluster.layout.endpoints() };
    moves_leader(&cluster, &etcdctl).await;
    watches(&cluster, &etcdctl).await;
    locks(&cluster, &etcdctl).await;
    elects(&cluster, &etcdctl).await;
    nobody_panicked(&cluster.layout);
}

#[tokio::test(flavor = "multi_thread")]
async fn etcdctl_3_5_works_on_while_leaders_die() {
    works("3.5").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn etcdctl_3_6_works_on_while_leaders_die() {
    works("3.6").await;
}
