//! Over several releases in one command.

use rustix::process::Signal;
use tests::{
    case::Case,
    ended::all_must_be,
    on_both,
    rollout::{Ends, LIMIT, Rollout},
    system::System,
    wait,
};

on_both! {
    who_begins_later_or_alone_goes_on_where_the_others_are, etcd #[ignore = "slow: the node's row shows the same"];
    who_wants_another_way_is_refused, etcd #[ignore = "slow: the node's row shows the same"];
    what_a_later_hop_lacks_keeps_the_first_from_beginning, etcd #[ignore = "slow: the node's row shows the same"];
}

async fn case(system: System) -> Option<Case> {
    let (from, over, to) = match system {
        System::Node => ("3.5", "3.6", "3.7"),
        System::Etcd => ("3.4", "3.5", "3.6"),
    };
    Case::path(system, (from, to), |_| {}).await?.over(&[over])
}

async fn goes(case: Option<Case>, hops: usize) {
    let Some(case) = case else { return };
    let size = case.layout().members.len();
    let mut rollout = case.begin().await;
    let agents = rollout.together().await;
    all_must_be(&agents, 0, "done");
    for agent in &agents {
        let begun = agent.events.iter().filter(|event| event.event == "hop").count();
        assert_eq!(begun, hops, "{agent}");
        assert_eq!(agent.said("to"), rollout.to.release.to_string(), "{agent}");
    }
    let seen = rollout.done().await;
    assert_eq!(seen.observed.outages.len(), size * hops, "each member went down once a hop: {:?}", seen.observed);
}

#[tokio::test(flavor = "multi_thread")]
async fn three_members_of_etcd_go_from_3_4_to_3_6() {
    goes(case(System::Etcd).await, 2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn three_nodes_go_from_3_5_to_3_7() {
    goes(case(System::Node).await, 2).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "slow: 3.7 is built from source"]
async fn three_members_of_etcd_go_from_3_4_to_3_7() {
    let case = Case::path(System::Etcd, ("3.4", "3.7"), |_| {}).await;
    goes(case.and_then(|case| case.over(&["3.5", "3.6"])), 3).await;
}

/// A restart on 3.6 would not do: the log is longer than what is replayed in one batch (`hop-too-fast-37`).
#[tokio::test(flavor = "multi_thread")]
#[ignore = "slow: 3.7 is built from source"]
async fn a_member_with_a_long_log_of_3_5_has_a_snapshot_before_3_7() {
    let case = Case::path(System::Etcd, ("3.5", "3.7"), |_| {}).await.and_then(|case| case.over(&["3.6"]));
    let Some(case) = case else { return };
    let value = "x".repeat(50_000);
    for at in 0..100 {
        case.client(0).put(&format!("long/{at}"), &value).await.expect("a put");
    }
    goes(Some(case), 2).await;
}

/// A member that ends while it is to take its snapshot is started again; nothing is written without end.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "slow: 3.7 is built from source"]
async fn a_member_that_ends_before_it_has_its_snapshot_is_started_again() {
    let flags = |spec: &mut tests::cluster::Spec| spec.flags.push("--snapshot-count=40000".into());
    let case = Case::path(System::Etcd, ("3.5", "3.7"), flags).await.and_then(|case| case.over(&["3.6"]));
    let Some(case) = case else { return };
    let mut rollout = case.begin().await;
    rollout.upgrade.everybody_comes();
    rollout.write();
    let agents: Vec<_> = (0..3).map(|host| rollout.start(host)).collect();
    let is_at_it = wait::until("a snapshot to be wanted", LIMIT, || async {
        let log = agents[0].log();
        log.contains("has m1 take a snapshot").then_some(()).ok_or(log)
    });
    is_at_it.await.expect("it is");
    rollout.member(0).process().expect("it runs").signal(Signal::KILL).expect("killed");
    for agent in agents {
        agent.ends().await.must_succeed();
    }
    rollout.arrives().await;
    rollout.end(2).await;
}

/// Down over two minors.
#[tokio::test(flavor = "multi_thread")]
async fn three_nodes_go_from_3_7_to_3_5() {
    let case = Case::path(System::Node, ("3.7", "3.5"), |_| {}).await.and_then(|case| case.over(&["3.6"]));
    let Some(case) = case else { return };
    case.cluster.settled(case.from.release.cluster_version()).await.expect("there is a version to lower");
    goes(Some(case), 2).await;
}

/// One host after the other, again and again; each time the agent says how far it is.
async fn who_begins_later_or_alone_goes_on_where_the_others_are(system: System) {
    let Some(case) = case(system).await else { return };
    let rollout = case.strategy(&["join_window: 1s"]).begin().await;
    let first = rollout.one("run", 0).await;
    first.must_be(0, "partial");
    assert!(first.said("left").contains("hop 1 of 2"), "{first}");
    let (mut reasons, mut number) = (Vec::new(), 0);
    while reasons.last().is_none_or(|reason| reason != "done") {
        number += 1;
        assert!(number < 12, "{reasons:?}");
        let agent = rollout.one("run", number % 3).await;
        agent.must_succeed();
        reasons.push(agent.reason().to_owned());
    }
    rollout.done().await;
}

async fn who_wants_another_way_is_refused(system: System) {
    let Some(case) = case(system).await else { return };
    let mut rollout = case.begin().await;
    rollout.one("run", 0).await.must_be(0, "partial");
    // The first hop alone.
    let way = rollout.upgrade.clone();
    let over = way.between[0].clone();
    (rollout.upgrade.to, rollout.upgrade.source) = (over.release.clone(), over.executable());
    rollout.upgrade.between.clear();
    rollout.write();
    let other = rollout.one("run", 1).await;
    other.must_be(6, "other_run");
    let (to, over) = (&rollout.to.release, over.release);
    let differs = format!("to (there {to}, in this playbook {over}), hops (there {over}, in this playbook none)");
    assert!(other.message().ends_with(&differs), "{other}");
    rollout.upgrade = way;
    rollout.upgrade.everybody_comes();
    rollout.write();
    rollout.all("run").await.iter().for_each(|agent| agent.must_succeed());
    rollout.done().await;
}

async fn what_a_later_hop_lacks_keeps_the_first_from_beginning(system: System) {
    let Some(case) = case(system).await else { return };
    let mut rollout = case.begin().await;
    let sound = rollout.upgrade.clone();
    let before = rollout.raft_status().await;
    // The release in between, where the last one should be.
    rollout.upgrade.source = sound.between[0].executable();
    rollout.write();
    for verb in ["plan", "run"] {
        let refused = rollout.one(verb, 0).await;
        refused.must_be(3, "unprepared");
        let wrong = format!("for the hop to {}: the artifact is {}", sound.to, sound.between[0].release);
        assert!(refused.message().contains(&wrong), "{refused}");
    }
    rollout.upgrade.source = "/nowhere/etcd".into();
    rollout.write();
    rollout.one("run", 0).await.must_be(3, "unprepared");
    assert_eq!(rollout.raft_status().await, before);
    rollout.end(0).await;
}

/// Killed when the second hop has begun, all at once.
#[tokio::test(flavor = "multi_thread")]
async fn agents_that_die_between_two_hops_go_on() {
    let Some(case) = case(System::Node).await else { return };
    let mut rollout = case.begin().await;
    rollout.upgrade.everybody_comes();
    rollout.write();
    let agents: Vec<_> = (0..3).map(|host| rollout.start(host)).collect();
    let begun = wait::until("a second hop", LIMIT, || async {
        let hops = agents.iter().filter_map(|agent| agent.events().ok()).map(count_hops).max();
        hops.filter(|hops| *hops > 1).ok_or_else(|| format!("{hops:?}"))
    });
    begun.await.expect("it begins");
    for agent in &agents {
        agent.process().expect("it runs").signal(Signal::KILL).expect("killed");
    }
    for agent in agents {
        drop(agent.ends().await);
    }
    is_finished(&rollout).await;
    rollout.done().await;
}

fn count_hops(events: Vec<tests::events::Event>) -> usize {
    events.iter().filter(|event| event.event == "hop").count()
}

async fn is_finished(rollout: &Rollout) {
    rollout.all("run").await.iter().for_each(|agent| agent.must_succeed());
}
