//! A backup before anything is changed.

use std::{
    fs,
    path::{Path, PathBuf},
};

use rustix::process::Signal;
use tests::{
    case::Case,
    ended::{Ended, all_must_be},
    on_both,
    restored::restored,
    rollout::{Ends, LIMIT, Rollout},
    system::System,
    wait,
};

on_both! {
    the_hosts_make_one_backup_before_the_first_stop;
    an_agent_killed_while_it_backs_up_leaves_nothing_behind, etcd #[ignore = "slow: the node's row shows the same"];
    without_its_backup_nothing_is_touched, etcd #[ignore = "slow: the node's row shows the same"];
    hosts_that_do_not_all_want_one_do_not_agree, etcd #[ignore = "slow: the node's row shows the same"];
}

/// Each host has a folder of its own.
fn folder(rollout: &Rollout, host: usize) -> PathBuf {
    rollout.member(host).dir.join("backups")
}

async fn with_backup(case: Case) -> Rollout {
    let mut rollout = case.begin().await;
    rollout.upgrade.extra.push("backup: { dir: backups, keep: 3 }".into());
    for host in 0..rollout.hosts.len() {
        fs::create_dir(folder(&rollout, host)).expect("made");
    }
    rollout.upgrade.everybody_comes();
    rollout.write();
    rollout
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).expect("a folder").map(|entry| entry.expect("an entry").path());
    entries.collect()
}

fn all_files(rollout: &Rollout) -> Vec<PathBuf> {
    (0..rollout.hosts.len()).flat_map(|host| files(&folder(rollout, host))).collect()
}

/// When this happened on any host, for the first time.
fn first(agents: &[Ended], name: &str) -> Option<String> {
    let of = agents.iter().flat_map(|agent| &agent.events).filter(|event| event.event == name);
    of.map(|event| event.time.clone()).min()
}

async fn the_hosts_make_one_backup_before_the_first_stop(system: System) {
    let Some(case) = Case::of(system).await else { return };
    for number in 0..20 {
        case.client(0).put(&format!("before/{number}"), "value").await.expect("put");
    }
    let rollout = with_backup(case).await;
    let agents = rollout.all("run").await;
    all_must_be(&agents, 0, "done");
    let files = all_files(&rollout);
    assert_eq!(files.len(), 1, "one host has one: {files:?}");
    let file = &files[0];
    for agent in &agents {
        let said = &agent.result.as_ref().expect("an object")["backup"];
        assert_eq!(said["file"], file.to_string_lossy().as_ref(), "every host says where it is: {agent}");
        assert_eq!(said["bytes"], fs::metadata(file).expect("a file").len(), "{agent}");
    }
    let saved = first(&agents, "backed_up").expect("one host says that it has made it");
    assert!(saved < first(&agents, "member_stopping").expect("members were stopped"), "{agents:?}");
    let shown = rollout.one("status", 0).await;
    assert!(shown.stderr.is_empty(), "{shown}");
    let by = if system == System::Etcd { &rollout.to } else { &rollout.from };
    let output = restored(&rollout, by, file, &rollout.layout().dir.join("restored"));
    assert!(output.status.success(), "{output:?}");
    // No old binary would start any more, and what leads back all the same is said.
    let past = rollout.one("rollback", 0).await;
    past.must_be(3, "nothing_to_roll_back");
    let restore = format!("--from {}", file.display());
    assert!(past.said("left").contains(&restore) && past.said("left").contains("is lost"), "{past}");
    // What is done is not saved again.
    all_must_be(&rollout.all("run").await, 0, "nothing_to_do");
    assert_eq!(all_files(&rollout).len(), 1);
    rollout.done().await;
}

async fn an_agent_killed_while_it_backs_up_leaves_nothing_behind(system: System) {
    let Some(case) = Case::of(system).await else { return };
    let value = "x".repeat(500_000);
    for number in 0..60 {
        case.client(0).put(&format!("large/{number}"), &value).await.expect("put");
    }
    let rollout = with_backup(case).await;
    for kills in 0..3 {
        let agent = rollout.start(0);
        let is_at_it = wait::until("a backup to begin", LIMIT, || async {
            let events = agent.events().map_err(|error| error.to_string())?;
            let has = |name| events.iter().any(|event| event.event == name);
            (has("backing_up") || has("member_stopping")).then_some(()).ok_or_else(|| agent.log())
        });
        is_at_it.await.expect("it begins");
        agent.process().expect("it runs").signal(Signal::KILL).expect("killed");
        drop(agent.ends().await);
        println!("after kill {kills}: {:?}", files(&folder(&rollout, 0)));
    }
    all_must_be(&rollout.all("run").await, 0, "done");
    let left: Vec<_> = all_files(&rollout);
    let is_whole = |file: &&PathBuf| file.file_name().is_some_and(|name| !name.to_string_lossy().starts_with('.'));
    assert!(left.iter().all(|file| is_whole(&file)), "nothing that is half done is left: {left:?}");
    assert!(!left.is_empty(), "one is there");
    rollout.done().await;
}

async fn without_its_backup_nothing_is_touched(system: System) {
    let Some(case) = Case::of(system).await else { return };
    let rollout = with_backup(case).await;
    let pids = rollout.pids();
    for host in 0..3 {
        fs::remove_dir(folder(&rollout, host)).expect("gone");
    }
    rollout.one("plan", 0).await.must_be(3, "not_backed_up");
    for agent in rollout.all("run").await {
        agent.must_be(3, "not_backed_up");
        assert!(agent.message().contains("backups: No such file or directory"), "{agent}");
    }
    assert_eq!(rollout.pids(), pids);
    // The run stands, and goes on where a folder is there.
    (0..3).for_each(|host| fs::create_dir(folder(&rollout, host)).expect("made"));
    all_must_be(&rollout.all("run").await, 0, "done");
    assert_eq!(all_files(&rollout).len(), 1);
    rollout.done().await;
}

async fn hosts_that_do_not_all_want_one_do_not_agree(system: System) {
    let Some(case) = Case::of(system).await else { return };
    let mut rollout = with_backup(case).await;
    rollout.one("run", 0).await.must_be(0, "partial");
    rollout.upgrade.extra.clear();
    rollout.write();
    let other = rollout.one("run", 1).await;
    other.must_be(6, "other_run");
    assert!(other.message().contains("backup"), "{other}");
    rollout.end(1).await;
}
