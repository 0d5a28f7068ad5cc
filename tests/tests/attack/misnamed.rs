//! A playbook whose node is another member than the process that it leads to: by its name, or as its endpoints lead to
//! another cluster. The member that is looked at may be well, or down; the process must not be stopped for it.

use std::{fs, path::PathBuf, process::Command};

use rustix::process::Signal;
use tests::{case::Case, cluster::Member, ended::Ended, on_both, playbook::quoted, rollout::Rollout, system::System};

on_both! {
    a_healthy_member_is_not_stopped_for_one_that_is_down, etcd #[ignore = "slow: the node's row shows the same"];
    a_member_is_not_stopped_for_one_that_is_well, etcd #[ignore = "slow: the node's row shows the same"];
    #[ignore = "slow: a healthy member is not stopped for one that is down by default"]
    a_frozen_member_is_known_by_its_name;
    a_member_swapped_before_the_stop_is_noticed;
    nobody_is_killed_whom_status_names_after_it_was_judged, etcd #[ignore = "slow: the node's row shows the same"];
    the_same_name_in_another_cluster_is_another_member, etcd #[ignore = "slow: the node's row shows the same"];
}

async fn begin(system: System) -> Option<Rollout> {
    Some(Case::of(system).await?.strategy(&["join_window: 0s"]).begin().await)
}

/// Everything is the first member's but the name.
fn misname(rollout: &Rollout) {
    let mut node = rollout.member(0).clone();
    node.name.clone_from(&rollout.member(1).name);
    rollout.upgrade.write_host(rollout.layout(), &[&node]).expect("written");
}

/// A refusal with all of these words.
fn must_say(ended: &Ended, words: &[&str]) {
    ended.must_be(3, "unprepared");
    words.iter().for_each(|words| assert!(ended.message().contains(words), "{words}: {ended}"));
}

async fn must_stop_nothing(rollout: &Rollout) {
    let before = rollout.pids();
    for verb in ["plan", "run"] {
        must_say(&rollout.one(verb, 0).await, &["m2 is member", "that it is m1 (member", "`name: m1`"]);
    }
    assert_eq!(rollout.pids(), before);
}

async fn a_healthy_member_is_not_stopped_for_one_that_is_down(system: System) {
    let Some(rollout) = begin(system).await else { return };
    misname(&rollout);
    rollout.member(1).end(Signal::KILL).expect("it ended");
    must_stop_nothing(&rollout).await;
    // What was typed wrongly is corrected, and nothing is left of it.
    rollout.write();
    rollout.member(1).start().expect("started");
    rollout.cluster.ready().await.expect("ready");
    assert!(rollout.run(0..3).await.iter().all(|ended| ended.exit == Some(0)));
    rollout.done().await;
}

async fn a_member_is_not_stopped_for_one_that_is_well(system: System) {
    let Some(rollout) = begin(system).await else { return };
    misname(&rollout);
    let before = rollout.pids();
    for verb in ["plan", "run"] {
        must_say(&rollout.one(verb, 0).await, &["answers for it at"]);
    }
    assert_eq!(rollout.pids(), before);
    rollout.end(0).await;
}

/// It holds its sockets and says nothing.
async fn a_frozen_member_is_known_by_its_name(system: System) {
    let Some(rollout) = begin(system).await else { return };
    rollout.member(0).process().expect("it runs").signal(Signal::STOP).expect("frozen");
    misname(&rollout);
    rollout.member(1).end(Signal::KILL).expect("it ended");
    must_say(&rollout.one("plan", 0).await, &["was started with the name m1", "`name: m1`"]);
    rollout.member(1).start().expect("started");
    // By its own name it can be taken, sick as it is.
    rollout.write();
    let planned = rollout.one("plan", 0).await;
    assert_eq!(planned.exit, Some(0), "{planned}");
    rollout.member(0).process().expect("it runs").signal(Signal::CONT).expect("thawed");
    rollout.cluster.ready().await.expect("ready");
    rollout.end(2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn with_certificates_a_member_says_who_it_is() {
    let Some(case) = Case::with(System::Etcd, |spec| spec.tls = true).await else { return };
    let rollout = case.strategy(&["join_window: 0s"]).begin().await;
    misname(&rollout);
    rollout.member(1).end(Signal::KILL).expect("it ended");
    must_stop_nothing(&rollout).await;
    rollout.member(1).start().expect("started");
    rollout.cluster.ready().await.expect("ready");
    rollout.end(1).await;
}

/// Since preflight hours may have passed; here a hook is what happens in between.
async fn a_member_swapped_before_the_stop_is_noticed(system: System) {
    let Some(mut case) = Case::of(system).await else { return };
    case.upgrade.runtime = by_commands;
    let mut rollout = case.strategy(&["join_window: 0s"]).begin().await;
    let before = rollout.pids();
    let pids: Vec<_> = before.iter().map(|pid| pid.expect("it runs").to_string()).collect();
    fs::write(pid_file(rollout.member(0)), &pids[0]).expect("written");
    let hook = format!("echo {} > '{}'", pids[1], pid_file(rollout.member(0)).display());
    rollout.upgrade.extra = vec![format!("hooks: {{ before_node: [[/bin/sh, -c, {}]] }}", quoted(&hook))];
    rollout.write();
    let ended = rollout.one("run", 0).await;
    assert!(ended.exit == Some(1) && ended.to_string().contains("that it is m2 (member"), "{ended}");
    assert_eq!(rollout.pids(), before, "nothing was stopped");
    rollout.end(0).await;
}

/// The member's user may own the pid file, and put any pid into it once the member was judged: the lock of a stop, which
/// is there from just before it, stands for that moment.
async fn nobody_is_killed_whom_status_names_after_it_was_judged(system: System) {
    let Some(mut case) = Case::of(system).await else { return };
    case.upgrade.runtime = by_commands_that_change_their_mind;
    case.upgrade.every_node = vec!["stop: { timeout: 1s, kill: true }".to_owned()];
    let rollout = case.strategy(&["join_window: 0s"]).begin().await;
    let before = rollout.pids();
    fs::write(pid_file(rollout.member(0)), before[0].expect("it runs").to_string()).expect("written");
    let mut victim = Command::new("sleep").arg("600").spawn().expect("started");
    fs::write(victim_file(rollout.member(0)), victim.id().to_string()).expect("written");
    let ended = rollout.one("run", 0).await;
    let lives = victim.try_wait().expect("a child of this test").is_none();
    let _ = victim.kill();
    let _ = victim.wait();
    assert!(lives, "{ended}");
    let named = format!("`status` names pid {} (", victim.id());
    assert!(ended.exit == Some(1) && ended.to_string().contains(&named), "{ended}");
    assert_eq!(rollout.pids(), before, "nothing was stopped");
    assert!(!rollout.member(0).dir.join("stopped").exists(), "{ended}");
    rollout.end(0).await;
}

fn victim_file(member: &Member) -> PathBuf {
    member.dir.join("victim")
}

fn by_commands_that_change_their_mind(member: &Member) -> Vec<String> {
    let [pid, victim] = [pid_file(member), victim_file(member)].map(|path| path.display().to_string());
    let lock = member.state_dir().join(format!("nodes/{}.stop", member.name));
    let script = |text: String| format!("[/bin/sh, -c, {}]", quoted(&text));
    vec![
        "kind: command".to_owned(),
        format!("start: {}", script(":".to_owned())),
        format!("stop: {}", script(format!("touch '{}'", member.dir.join("stopped").display()))),
        format!("status: {}", script(format!("[ -e '{}' ] && cat '{victim}' || cat '{pid}'", lock.display()))),
    ]
}

fn pid_file(member: &Member) -> PathBuf {
    member.dir.join("pid")
}

/// Nothing is started: the step must not come so far.
fn by_commands(member: &Member) -> Vec<String> {
    let pid = pid_file(member);
    let line = |verb: &str, script: String| format!("{verb}: [/bin/sh, -c, {}]", quoted(&script));
    let status = line("status", format!("cat '{}'", pid.display()));
    let stop = line("stop", format!("kill -9 $(cat '{}')", pid.display()));
    vec!["kind: command".to_owned(), line("start", ":".to_owned()), stop, status]
}

/// Each cluster has its own keys and its own record. Their programs differ, so that neither sees the other's processes as
/// its own kind: so it is where hosts are apart.
async fn the_same_name_in_another_cluster_is_another_member(system: System) {
    let another = match system {
        System::Node => System::Etcd,
        System::Etcd => System::Node,
    };
    let Some(rollout) = begin(system).await else { return };
    let Some(other) = Case::of(another).await else { return };
    let mut upgrade = rollout.upgrade.clone();
    upgrade.endpoints = other.layout().endpoints();
    rollout.write_one(0, &upgrade);
    let before = (rollout.pids(), other.pids());
    let expected = ["of cluster", "`endpoints` if they are another cluster's"];
    for verb in ["plan", "run"] {
        must_say(&rollout.one(verb, 0).await, &expected);
    }
    // Its own host is down there.
    other.member(0).end(Signal::KILL).expect("it ended");
    for verb in ["plan", "run"] {
        must_say(&rollout.one(verb, 0).await, &expected);
    }
    assert_eq!(rollout.pids(), before.0);
    assert_eq!(other.pids()[1..], before.1[1..]);
    rollout.end(0).await;
}
