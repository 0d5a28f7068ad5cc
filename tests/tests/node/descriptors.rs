//! Clients' connections leave a member the descriptors that its log, its snapshots and the other members need.

use std::net::TcpStream;

use rustix::process::Signal;
use tests::process::Process;

use crate::{QUICK, nobody_panicked, trial::agreed, up};

/// Fewer than connect.
const LIMIT: &str = "ulimit -n 128 && exec \"$@\"";
const CONNECTIONS: usize = 200;
/// In all more than a segment of the log.
const VALUES: usize = 20;
const VALUE: usize = 1 << 20;

#[tokio::test(flavor = "multi_thread")]
async fn idle_connections_of_clients_end_no_member() {
    let flags = [&QUICK[..], &["--snapshot-count=10"]].concat();
    let Some(cluster) = up("3.6", &flags).await else { return };
    let layout = &cluster.layout;
    agreed(&cluster).await;
    let member = &layout.members[2];
    member.end(Signal::KILL).expect("killed");
    let mut argv = ["sh", "-c", LIMIT, "sh"].map(String::from).to_vec();
    argv.push(member.binary().display().to_string());
    argv.extend(member.flags.clone());
    Process::start(&argv, &member.log()).expect("started");
    cluster.ready().await.expect("it is back");
    // One that was there before the others.
    let old = layout.client(member).expect("a client");
    old.put("before", "1").await.expect("written");
    let connect = |_| TcpStream::connect(("127.0.0.1", member.client_port)).expect("the kernel takes it in");
    let idle: Vec<_> = (0..CONNECTIONS).map(connect).collect();
    let writer = layout.client(&layout.members[0]).expect("a client");
    let value = "v".repeat(VALUE);
    for number in 0..VALUES {
        writer.put(&format!("large{number}"), &value).await.expect("written");
    }
    old.put("after", "2").await.expect("it serves on");
    drop(idle);
    cluster.ready().await.expect("it takes in new ones");
    agreed(&cluster).await;
    let said = std::fs::read_to_string(member.log()).expect("a log");
    assert!(!said.contains("Too many open files"), "{said}");
    nobody_panicked(layout);
}
