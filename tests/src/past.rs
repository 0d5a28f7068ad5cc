//! What people have done to a cluster in its life.

use std::fs;

use lab::{
    system::System,
    wait::{self, GENEROUS},
};
use rustix::process::Signal;

use crate::{case::Case, etcdctl::Etcdctl, newcomers::data, skip::build_or_skip};

/// All of it is made anew from a snapshot, by the tool of etcd 3.4.
///
/// # Panics
/// It did not come to pass; so of all of these.
pub async fn restored(case: &Case) {
    let old = build_or_skip(System::Etcd, "3.4").expect("it runs");
    let (tool, snapshot) = (Etcdctl::new(&old, None), case.layout().dir.join("snapshot"));
    let file = snapshot.to_str().expect("text");
    tool.run(&[case.member(0).client_url.clone()], &["snapshot", "save", file]).await;
    let members = &case.layout().members;
    members.iter().for_each(|member| member.end(Signal::TERM).expect("ended"));
    let all: Vec<_> = members.iter().map(|member| format!("{}={}", member.name, member.peer_url())).collect();
    for member in members {
        fs::remove_dir_all(data(member)).expect("it had data");
        let (own, data) = (member.peer_url(), data(member));
        let told = [
            &["snapshot", "restore", file, "--name", &member.name, "--data-dir", data.to_str().expect("text")][..],
            &["--initial-cluster", &all.join(","), "--initial-advertise-peer-urls", &own],
        ];
        tool.run(&[], &told.concat()).await;
        member.start().expect("started");
    }
    case.cluster.ready().await.expect("ready again");
}

/// A member is replaced by one of the same name and place, as a voter or by way of a learner.
///
/// # Panics
/// As of [`restored`].
pub async fn replaced(case: &Case, name: &str, as_learner: bool) {
    let member = case.layout().members.iter().find(|member| member.name == name).expect("it is there");
    case.remove_by_hand(name).await;
    member.end(Signal::TERM).expect("ended");
    fs::remove_dir_all(data(member)).expect("it had data");
    // It may have led, and a change that nobody leads is waited for without end.
    wait::until("the others to agree", GENEROUS, || async { case.client(0).newest().await.map_err(|s| s.to_string()) })
        .await
        .expect("they do");
    let mut newcomer = member.clone();
    newcomer.flags.retain(|flag| !flag.starts_with("--initial-cluster"));
    newcomer
        .flags
        .extend(["--initial-cluster={{initial_cluster}}", "--initial-cluster-state=existing"].map(str::to_owned));
    let newcomer = match as_learner {
        true => case.promote_by_hand(&newcomer).await,
        false => case.add_by_hand(&newcomer).await,
    };
    // Started once more as its playbook says.
    newcomer.end(Signal::TERM).expect("ended");
    member.start().expect("started");
    case.cluster.ready().await.expect("ready again");
}

/// Authentication is on for a while.
///
/// # Panics
/// As of [`restored`].
pub async fn had_users(case: &Case) {
    let tool = Etcdctl::new(&case.from, None);
    let endpoint = [case.member(0).client_url.clone()];
    for arguments in [
        &["user", "add", "root:pw"][..],
        &["user", "grant-role", "root", "root"],
        &["user", "add", "eve:pw"],
        &["role", "add", "reader"],
        &["role", "grant-permission", "reader", "read", "old"],
        &["user", "grant-role", "eve", "reader"],
        &["auth", "enable"],
        &["auth", "disable", "--user=root:pw"],
    ] {
        tool.run(&endpoint, arguments).await;
    }
}
