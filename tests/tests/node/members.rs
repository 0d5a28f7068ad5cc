//! Members come and go while clients are at work, by real `etcdctl` of two releases (etcd, "Runtime reconfiguration"; KEP-4647, "Add
//! a New Member", "Remove a Member", "Learner").

use std::{fs, process::Output};

use rustix::process::Signal;
use tests::{
    cluster::{Cluster, Layout, Spec},
    etcdctl::Etcdctl,
    member::Member,
    skip::build_or_skip,
    system::System,
    wait::{self, GENEROUS},
};
use tokio::{process::Command, time::timeout};

use crate::{
    QUICK, nobody_panicked,
    refusal::refusal,
    trial::{Trial, agreed},
};

const REMOVED: &str = "the member has been permanently removed from the cluster";

/// Five are laid out, and the first runs, alone. Gives the others, too.
async fn alone() -> Option<(Cluster, Vec<Member>)> {
    let build = build_or_skip(System::Node, "3.6")?;
    let flags = QUICK.iter().map(ToString::to_string).collect();
    let mut cluster = Cluster::laid_out(&Spec { flags, size: 5, tls: false, ..Spec::new(build) }).expect("laid out");
    let others = cluster.layout.members.split_off(1);
    let first = &mut cluster.layout.members[0];
    first.flags = with(&first.flags, "initial-cluster", &format!("m1={}", peer_url(first)));
    cluster.begin().await.expect("up");
    Some((cluster, others))
}

/// A cluster that is laid out, of all members but the last, which it does not know of.
pub fn without_the_last(spec: &Spec) -> (Cluster, Member) {
    let mut cluster = Cluster::laid_out(spec).expect("laid out");
    let last = cluster.layout.members.pop().expect("there is one");
    let named = |member: &Member| format!("{}={}", member.name, peer_url(member));
    let list = cluster.layout.members.iter().map(named).collect::<Vec<_>>().join(",");
    cluster.layout.members.iter_mut().for_each(|member| member.flags = with(&member.flags, "initial-cluster", &list));
    (cluster, last)
}

pub fn peer_url(member: &Member) -> String {
    format!("http://127.0.0.1:{}", member.peer_port)
}

/// The same flags, but for this one.
pub fn with(flags: &[String], name: &str, value: &str) -> Vec<String> {
    let is_it = |flag: &String| flag.starts_with(&format!("--{name}="));
    let others = flags.iter().filter(|flag| !is_it(flag)).cloned();
    others.chain([format!("--{name}={value}")]).collect()
}

/// Again and again while a member is too slow for a cluster that counts as healthy.
async fn run(etcdctl: &Etcdctl, layout: &Layout, arguments: &[&str]) -> String {
    wait::until(&format!("etcdctl {arguments:?}"), GENEROUS, || async {
        let output = etcdctl.output(&layout.endpoints(), arguments).await;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success() || said.contains("unhealthy cluster"), "{arguments:?}: {said}");
        if output.status.success() { Ok(String::from_utf8_lossy(&output.stdout).into_owned()) } else { Err(said) }
    })
    .await
    .expect("it is healthy")
}

/// Adds one, as `etcdctl` does, and gives it the flags that this prints.
pub async fn add(etcdctl: &Etcdctl, layout: &Layout, member: &mut Member, more: &[&str]) {
    let peer_urls = format!("--peer-urls={}", peer_url(member));
    let mut arguments = vec!["member", "add", &member.name, &peer_urls];
    arguments.extend(more);
    let said = run(etcdctl, layout, &arguments).await;
    let line =
        said.lines().find_map(|line| line.strip_prefix("ETCD_INITIAL_CLUSTER=")).expect("it says how to start it");
    member.flags = with(&member.flags, "initial-cluster", line.trim_matches('"'));
    member.flags = with(&member.flags, "initial-cluster-state", "existing");
}

/// Starts what was added; gives its id.
pub async fn start(cluster: &mut Cluster, member: Member) -> u64 {
    member.start().expect("started");
    let client = cluster.layout.client(&member).expect("a client");
    let what = format!("{} to say who it is", member.name);
    let id = wait::until(&what, GENEROUS, || async {
        match client.status().await {
            Ok(status) => Ok(status.header.unwrap_or_default().member_id),
            Err(status) => Err(format!("{status}; {}", member.last_words())),
        }
    });
    let id = id.await.expect("it answers");
    cluster.layout.members.push(member);
    id
}

/// Promotes it once it has caught up.
pub async fn promote(etcdctl: &Etcdctl, layout: &Layout, id: u64) {
    wait::until("the learner to be promoted", GENEROUS, || async {
        let output = etcdctl.output(&layout.endpoints(), &["member", "promote", &format!("{id:x}")]).await;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        if output.status.success() { Ok(()) } else { Err(said) }
    })
    .await
    .expect("it is");
}

pub async fn remove(etcdctl: &Etcdctl, layout: &Layout, at: &Member, member: &Member) {
    let listed = layout.client(at).expect("a client").members().await.expect("listed");
    let id = listed.iter().find(|listed| listed.name == member.name).expect("it is one").id;
    run(etcdctl, layout, &["member", "remove", &format!("{id:x}")]).await;
}

/// Started once more, it ends as one that somebody has stopped.
async fn is_told_that_it_was_removed(member: &Member) {
    let mut command = Command::new(member.binary());
    let ended = timeout(GENEROUS, command.args(&member.flags).kill_on_drop(true).output()).await;
    let Output { status, stderr, .. } = ended.expect("it ends").expect("it starts");
    let said = String::from_utf8_lossy(&stderr);
    assert_eq!(status.code(), Some(0), "{said}");
    assert!(said.contains(REMOVED) && !said.contains("error:") && !said.contains("panicked"), "{said}");
}

async fn is_refused(etcdctl: &Etcdctl, layout: &Layout, arguments: &[&str], words: &str) {
    let output = etcdctl.output(&layout.endpoints(), arguments).await;
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains(words), "{arguments:?}: {words}: {output:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_grows_from_one_to_five_and_shrinks_to_three_under_load() {
    let (Some(etcd_3_5), Some(etcd_3_6)) = (build_or_skip(System::Etcd, "3.5"), build_or_skip(System::Etcd, "3.6"))
    else {
        return;
    };
    let (by_3_5, by_3_6) = (Etcdctl::new(&etcd_3_5, None), Etcdctl::new(&etcd_3_6, None));
    let Some((mut cluster, others)) = alone().await else { return };
    let [mut second, mut third, mut fourth, mut fifth] = <[Member; 4]>::try_from(others).expect("four");
    // It waits for the second from here on, and can be asked for nothing until that is there.
    add(&by_3_6, &cluster.layout, &mut second, &[]).await;
    start(&mut cluster, second).await;
    cluster.ready().await.expect("two");
    add(&by_3_5, &cluster.layout, &mut third, &["--learner"]).await;
    let id = start(&mut cluster, third).await;
    promote(&by_3_5, &cluster.layout, id).await;
    cluster.ready().await.expect("three");
    let mut trial = Trial::begin(cluster).await;

    add(&by_3_6, &trial.cluster.layout, &mut fourth, &["--learner"]).await;
    let layout = trial.cluster.layout.clone();
    let url = format!("--peer-urls={}", peer_url(&fifth));
    is_refused(&by_3_6, &layout, &["member", "add", "m5", &url, "--learner"], "too many learner members").await;
    let url = format!("--peer-urls={}", peer_url(&fourth));
    is_refused(&by_3_5, &layout, &["member", "add", "m5", &url], "Peer URLs already exists").await;
    is_refused(&by_3_5, &layout, &["member", "remove", "4711"], "member not found").await;
    let listed = layout.client(&layout.members[0]).expect("a client").members().await.expect("listed");
    let learner = listed.iter().find(|member| member.is_learner).expect("one learns").id;
    is_refused(&by_3_6, &layout, &["member", "promote", &format!("{learner:x}")], "in sync with leader").await;
    let id = start(&mut trial.cluster, fourth).await;
    assert_eq!(id, learner, "it has found itself");
    let leader = layout.leader().await.expect("one leads").clone();
    leader.end(Signal::KILL).expect("killed");
    promote(&by_3_6, &trial.cluster.layout, id).await;
    leader.start().expect("started");
    trial.cluster.ready().await.expect("four");
    add(&by_3_5, &trial.cluster.layout, &mut fifth, &[]).await;
    start(&mut trial.cluster, fifth).await;
    trial.cluster.ready().await.expect("five");
    // Two are gone a moment ago: a third must stay.
    let layout = trial.cluster.layout.clone();
    let leader = layout.leader().await.expect("one leads").clone();
    let others: Vec<_> = layout.members.iter().filter(|member| member.name != leader.name).collect();
    let listed = layout.client(&leader).expect("a client").members().await.expect("listed");
    let third = listed.iter().find(|listed| listed.name == others[2].name).expect("it is one").id;
    others[..2].iter().for_each(|member| member.end(Signal::KILL).expect("killed"));
    let at_leader = Layout { members: vec![leader.clone()], ..layout.clone() };
    is_refused(&by_3_6, &at_leader, &["member", "remove", &format!("{third:x}")], "unhealthy cluster").await;
    others[..2].iter().for_each(|member| drop(member.start().expect("started")));
    trial.cluster.ready().await.expect("five again");
    trial.load.more(50).await.expect("the load goes on");

    let layout = trial.cluster.layout.clone();
    let leader = layout.leader().await.expect("one leads").clone();
    remove(&by_3_6, &layout, &leader, &leader).await;
    wait::until("the leader to end", GENEROUS, || async {
        if leader.is_running() { Err("it runs".to_owned()) } else { Ok(()) }
    })
    .await
    .expect("it was told");
    is_told_that_it_was_removed(&leader).await;
    trial.cluster.layout.members.retain(|member| member.name != leader.name);
    trial.load.more(50).await.expect("the load goes on");
    let down = trial.cluster.layout.members[3].clone();
    down.end(Signal::KILL).expect("killed");
    trial.cluster.layout.members.truncate(3);
    let layout = &trial.cluster.layout;
    remove(&by_3_5, layout, &layout.members[0], &down).await;
    // Each applies it in its own time.
    let client = layout.client(&layout.members[0]).expect("a client");
    let three = wait::until("three to be listed", GENEROUS, || async {
        let listed = client.members().await.map_err(|status| status.to_string())?;
        if listed.len() == 3 { Ok(()) } else { Err(format!("{listed:?}")) }
    });
    three.await.expect("the other is gone");
    trial.end().await;
}

/// Not at an election: in this cluster there is none for longer than anybody waits here.
#[tokio::test(flavor = "multi_thread")]
async fn a_voter_that_is_removed_is_told_at_once() {
    let Some(etcd) = build_or_skip(System::Etcd, "3.6") else { return };
    let etcdctl = Etcdctl::new(&etcd, None);
    let Some(cluster) = crate::up("3.6", &["--heartbeat-interval=1000", "--election-timeout=50000"]).await else {
        return;
    };
    let layout = &cluster.layout;
    let leader = layout.leader().await.expect("one leads").clone();
    let follower = layout.members.iter().find(|member| member.name != leader.name).expect("one follows");
    remove(&etcdctl, layout, &leader, follower).await;
    // Less than an election takes to come.
    wait::until("the voter to end", GENEROUS / 2, || async {
        if follower.is_running() { Err(follower.last_words()) } else { Ok(()) }
    })
    .await
    .expect("it was told");
    says(follower, REMOVED).await;
    is_told_that_it_was_removed(follower).await;
    nobody_panicked(layout);
}

/// As the error says that a member without its data ends with.
#[tokio::test(flavor = "multi_thread")]
async fn a_member_that_lost_its_disk_is_replaced() {
    let Some(etcd) = build_or_skip(System::Etcd, "3.6") else { return };
    let etcdctl = Etcdctl::new(&etcd, None);
    let Some(mut cluster) = crate::up("3.6", &QUICK).await else { return };
    let layout = cluster.layout.clone();
    let mut third = layout.members[2].clone();
    layout.client(&third).expect("a client").put("before", "1").await.expect("written");
    third.end(Signal::KILL).expect("killed");
    fs::remove_dir_all(third.dir.join("data")).expect("removed");
    let said = refusal(&third, &third.flags).await;
    assert!(said.contains("remove the member, empty its data directory and add it again"), "{said}");
    let _ = fs::remove_dir_all(third.dir.join("data"));
    remove(&etcdctl, &layout, &layout.members[0], &third).await;
    let unadded = with(&third.flags, "initial-cluster-state", "existing");
    let said = refusal(&third, &unadded).await;
    assert!(said.contains(&format!("has no member at {}: add this one first", peer_url(&third))), "{said}");
    cluster.layout.members.truncate(2);
    add(&etcdctl, &cluster.layout, &mut third, &["--learner"]).await;
    let id = start(&mut cluster, third.clone()).await;
    promote(&etcdctl, &cluster.layout, id).await;
    cluster.ready().await.expect("three again");
    agreed(&cluster).await;
    let client = cluster.layout.client(&third).expect("a client");
    assert_eq!(client.get("before").await.expect("read").expect("there").value, b"1");
    // What `--initial-cluster` says is of no account any more.
    third.end(Signal::KILL).expect("killed");
    third.flags = with(&third.flags, "initial-cluster", &format!("m3={}", peer_url(&third)));
    third.start().expect("started");
    cluster.ready().await.expect("it is back");
    // Two of three without data found nothing beside the third, whom their flags know by another id.
    let lost = &cluster.layout.members[..2];
    for member in lost {
        member.end(Signal::KILL).expect("killed");
        fs::rename(member.dir.join("data"), member.dir.join("whole")).expect("put aside");
        fs::write(member.log(), "").expect("emptied");
        member.start().expect("started");
    }
    for member in lost {
        says(member, "founds no cluster: one is there, and does not call this member").await;
        assert!(!fs::read_to_string(member.log()).expect("a log").contains("\"leads\""), "{}", member.name);
        member.end(Signal::KILL).expect("killed");
        fs::remove_dir_all(member.dir.join("data")).expect("removed");
        fs::rename(member.dir.join("whole"), member.dir.join("data")).expect("brought back");
    }
    lost.iter().for_each(|member| drop(member.start().expect("started")));
    cluster.ready().await.expect("all are back");
    assert_eq!(client.get("before").await.expect("read").expect("there").value, b"1");
    nobody_panicked(&cluster.layout);
}

pub async fn says(member: &Member, words: &str) {
    wait::until(&format!("{} to say: {words}", member.name), GENEROUS, || async {
        let log = fs::read_to_string(member.log()).map_err(|error| error.to_string())?;
        if log.contains(words) { Ok(()) } else { Err(member.last_words()) }
    })
    .await
    .expect("it says so");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_learner_becomes_the_second_voter_and_one_that_is_removed_ends() {
    let Some(etcd) = build_or_skip(System::Etcd, "3.6") else { return };
    let etcdctl = Etcdctl::new(&etcd, None);
    let Some((mut cluster, mut others)) = alone().await else { return };
    let (mut third, mut second) = (others.remove(1), others.remove(0));
    add(&etcdctl, &cluster.layout, &mut second, &["--learner"]).await;
    // Started by mistake as one that founds a cluster, it has nothing and is told what to do.
    let founding = with(&second.flags, "initial-cluster-state", "new");
    let process = second.clone().start_anew(founding).expect("started");
    says(&second, "If this member was added to that, start it with --initial-cluster-state=existing").await;
    process.signal(Signal::KILL).expect("killed");
    second.end(Signal::KILL).expect("killed");
    let said = refusal(&second, &second.flags).await;
    assert!(said.contains("empty the data directory") || said.contains("belongs to a member of cluster"), "{said}");
    fs::remove_dir_all(second.dir.join("data")).expect("removed");
    let id = start(&mut cluster, second).await;
    promote(&etcdctl, &cluster.layout, id).await;
    let listed = cluster.layout.client(&cluster.layout.members[0]).expect("a client").members().await.expect("listed");
    assert!(listed.len() == 2 && listed.iter().all(|member| !member.is_learner), "{listed:?}");
    cluster.ready().await.expect("two");
    add(&etcdctl, &cluster.layout, &mut third, &["--learner"]).await;
    // A feature that nobody has on it may not want, nor has it joined by asking.
    let wanting = with(&third.flags, "cluster-feature-gates", "ClusterLeaseCheckpoint=true");
    let said = refusal(&third, &wanting).await;
    assert!(said.contains("this learner may not join: ClusterLeaseCheckpoint is off for the whole cluster"), "{said}");
    start(&mut cluster, third).await;
    let third = cluster.layout.members.pop().expect("it is the last");
    wait::until("the learner to be listed by its name", GENEROUS, || async {
        let client = cluster.layout.client(&cluster.layout.members[0]).map_err(|error| error.to_string())?;
        let listed = client.members().await.map_err(|error| error.to_string())?;
        if listed.iter().any(|member| member.name == third.name) { Ok(()) } else { Err(format!("{listed:?}")) }
    })
    .await
    .expect("it is");
    remove(&etcdctl, &cluster.layout, &cluster.layout.members[0], &third).await;
    wait::until("the learner to end", GENEROUS, || async {
        if third.is_running() { Err(third.last_words()) } else { Ok(()) }
    })
    .await
    .expect("it was told");
    says(&third, REMOVED).await;
    agreed(&cluster).await;
    // The founder loses its disk. Its flags name nobody else, and it founds nothing beside the one that it does not know of.
    let first = cluster.layout.members[0].clone();
    first.end(Signal::KILL).expect("killed");
    fs::rename(first.dir.join("data"), first.dir.join("whole")).expect("put aside");
    fs::write(first.log(), "").expect("emptied");
    first.start().expect("started");
    says(&first, "founds no cluster: one is there, and does not call this member").await;
    assert!(!fs::read_to_string(first.log()).expect("a log").contains("\"leads\""));
    first.end(Signal::KILL).expect("killed");
    fs::remove_dir_all(first.dir.join("data")).expect("removed");
    fs::rename(first.dir.join("whole"), first.dir.join("data")).expect("brought back");
    first.start().expect("started");
    cluster.ready().await.expect("both are back");
    nobody_panicked(&cluster.layout);
}
