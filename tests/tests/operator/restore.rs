//! `agent restore`: a cluster made anew, on every host, from what was saved.

mod judged;

use std::{
    ffi::OsString,
    fs,
    ops::RangeInclusive,
    path::{Path, PathBuf},
};

use rustix::process::Signal;
use serde_json::Value;
use tests::{
    agent::{self, Agent},
    case::Case,
    chance::Chance,
    client::Client,
    ended::{Ended, all_must_be},
    on_both,
    rollout::{Ends, LIMIT, all_end},
    system::System,
    wait,
};

on_both! {
    a_cluster_that_lost_two_disks_is_made_anew_from_its_backup, node #[ignore = "slow: etcd's row shows the same"];
    a_cluster_that_serves_is_not_replaced_unasked, node #[ignore = "slow: etcd's row shows the same"];
    restores_that_are_killed_anywhere_go_on, node #[ignore = "slow: some are killed by default, each time at another place"], etcd #[ignore = "slow: the node's row shows the same"];
    some_that_are_killed_anywhere_go_on, etcd #[ignore = "slow: the node's row shows the same"];
    what_stands_in_the_way_is_found_before_anything_is_stopped, node #[ignore = "slow: etcd's row shows the same"];
}

/// Three members of one release, five keys of which a backup has been made, and one that was written since.
struct Saved {
    case: Case,
    playbooks: Vec<PathBuf>,
    file: PathBuf,
}

async fn saved(system: System) -> Option<Saved> {
    let release = match system {
        System::Node => "3.6",
        System::Etcd => "3.5",
    };
    let mut case = Case::path(system, (release, release), |_| {}).await?;
    for number in 0..5 {
        case.client(0).put(&format!("key-{number}"), "value").await.expect("put");
    }
    let dir = case.layout().dir.join("backups");
    fs::create_dir(&dir).expect("made");
    case.upgrade.node = |member| vec![format!("data_dir: {}", member.dir.join("data").display())];
    case.upgrade.everybody_comes();
    if system == System::Etcd {
        case.upgrade.extra.push(format!("restore: {{ tool: {} }}", case.from.bin.join("etcdutl").display()));
    }
    let playbooks = case.write();
    let output = std::process::Command::new(agent::executable().expect("an agent"))
        .args(["backup", "--output", "json"])
        .arg(&playbooks[0])
        .arg("--dir")
        .arg(&dir)
        .output()
        .expect("run");
    let said: Value = serde_json::from_slice(&output.stdout).expect("an object");
    let file = PathBuf::from(said["backup"]["file"].as_str().expect("a file"));
    case.client(0).put("since", "value").await.expect("put");
    Some(Saved { case, playbooks, file })
}

impl Saved {
    fn data(&self, index: usize) -> PathBuf {
        self.case.member(index).dir.join("data")
    }

    fn start(&self, host: usize, more: &[&str]) -> Agent {
        let more: Vec<_> =
            ["--from", self.file.to_str().expect("text")].into_iter().chain(more.iter().copied()).collect();
        Agent::start("restore", &self.playbooks[host], &more).expect("started")
    }

    async fn all(&self, more: &[&str]) -> Vec<Ended> {
        all_end((0..3).map(|host| self.start(host, more))).await
    }

    /// It has what was saved and nothing else, and its clients can see that time went back.
    async fn must_be_as_saved(&self) {
        for index in 0..3 {
            let client = self.case.client(index);
            for number in 0..5 {
                let key = format!("key-{number}");
                assert!(until_read(&client, &key).await, "{key} through member {index}");
            }
            assert!(!until_read(&client, "since").await, "written after the backup");
            assert!(client.newest().await.expect("a revision").0 > 1_000_000_000, "watchers must notice");
        }
    }
}

/// Whether it is there; asked until somebody answers.
async fn until_read(client: &Client, key: &str) -> bool {
    let read = wait::until("a read", LIMIT, || async { client.get(key).await.map_err(|error| error.to_string()) });
    read.await.expect("it serves").is_some()
}

fn archives(data: &Path) -> usize {
    let entries = fs::read_dir(data.parent().expect("a folder")).expect("read");
    entries
        .filter(|entry| {
            entry.as_ref().is_ok_and(|entry| entry.file_name().to_string_lossy().starts_with("data.archived-"))
        })
        .count()
}

async fn a_cluster_that_lost_two_disks_is_made_anew_from_its_backup(system: System) {
    let Some(saved) = saved(system).await else { return };
    for index in [1, 2] {
        saved.case.member(index).end(Signal::KILL).expect("killed");
        fs::remove_dir_all(saved.data(index)).expect("gone");
    }
    let said = saved.start(0, &["--check"]).ends().await;
    said.must_be(0, "planned");
    assert!(saved.case.member(0).is_running(), "nothing was touched: {said}");

    let agents = saved.all(&[]).await;
    all_must_be(&agents, 0, "restored");
    let cluster = |agent: &Ended| agent.result.as_ref().expect("an object")["restore"]["cluster"].clone();
    assert!(
        agents.iter().all(|agent| cluster(agent) == cluster(&agents[0]) && cluster(agent).is_string()),
        "{agents:?}"
    );
    saved.must_be_as_saved().await;
    assert_eq!([0, 1, 2].map(|index| archives(&saved.data(index))), [1, 0, 0], "old data is kept, where there was any");
    // Done again it does nothing more.
    let pids = saved.case.pids();
    let again = saved.all(&[]).await;
    all_must_be(&again, 0, "restored");
    assert_eq!(saved.case.pids(), pids);
    assert!(again.iter().all(|agent| agent.result.as_ref().expect("an object")["changed"] == false), "{again:?}");

    // A member of the new cluster that loses its disk does not begin it once more.
    saved.case.member(2).end(Signal::KILL).expect("killed");
    fs::remove_dir_all(saved.data(2)).expect("gone");
    saved.start(2, &[]).ends().await.must_be(3, "data_gone");
    let release = saved.case.from.release.to_string();
    saved.start(2, &["--release", &release]).ends().await.must_be(3, "data_gone");
    fs::remove_file(saved.case.member(2).state_dir().join("restore")).expect("gone");
    saved.start(2, &[]).ends().await.must_be(3, "data_gone");

    // All of it may be made once more, by another name.
    let agents = saved.all(&["--again", "second", "--discard-cluster"]).await;
    all_must_be(&agents, 0, "restored");
    assert_ne!(cluster(&agents[0]), cluster(&again[0]), "members of the two must not meet");
    saved.must_be_as_saved().await;

    // The first one is not made a second time: somebody of it may stand with what was written there.
    let pids = saved.case.pids();
    // The third has lost all that it knew of it.
    for host in [0, 1] {
        let agent = saved.start(host, &["--discard-cluster"]).ends().await;
        agent.must_be(3, "unprepared");
        assert!(agent.message().contains("a name that was never used"), "{agent}");
    }
    assert_eq!(saved.case.pids(), pids);
}

async fn a_cluster_that_serves_is_not_replaced_unasked(system: System) {
    let Some(saved) = saved(system).await else { return };
    let pids = saved.case.pids();
    for agent in saved.all(&[]).await {
        agent.must_be(3, "cluster_serves");
    }
    assert_eq!(saved.case.pids(), pids);
    // The run that stood when the backup was made is not gone on with.
    let run = Agent::start("run", &saved.playbooks[0], &[]).expect("started").ends().await;
    run.must_succeed();
    let agents = saved.all(&["--discard-cluster"]).await;
    all_must_be(&agents, 0, "restored");
    saved.must_be_as_saved().await;
    let late = saved.start(0, &["--give-up"]).ends().await;
    late.must_be(3, "unprepared");
    assert!(late.message().contains("go back by hand"), "{late}");
    let left = saved.case.keys().await;
    assert!(!left.contains_key("run") && !left.contains_key("step"), "{left:?}");
    let run = Agent::start("run", &saved.playbooks[0], &[]).expect("started").ends().await;
    run.must_succeed();
}

/// What a restore makes durable, or moves, it does by one of these.
const CALLS: [&str; 5] = ["syncfs", "renameat", "renameat2", "fsync", "unlinkat"];
/// More of one kind than a restore of one member has.
const MOST: usize = 12;

/// The first host's agent is killed as it enters its nth call of a kind, n rising until it ends unkilled; then all go on, each time with
/// a cluster that is made once more.
async fn restores_that_are_killed_anywhere_go_on(system: System) {
    let killed = are_killed(system, &CALLS, 1..=MOST).await;
    // The copy, the record before and after, both data directories, the old one's new name, and the folders of all that.
    assert!(killed.is_none_or(|killed| killed >= 8));
}

/// One call of each kind, the first or the second.
async fn some_that_are_killed_anywhere_go_on(system: System) {
    let nth = 1 + Chance::of_this_run().below(2) as usize;
    let killed = are_killed(system, &CALLS, nth..=nth).await;
    assert!(killed.is_none_or(|killed| killed > 0));
}

/// How many were; `None` where the test was skipped.
async fn are_killed(system: System, calls: &[&str], which: RangeInclusive<usize>) -> Option<usize> {
    let saved = saved(system).await?;
    let mut killed = Vec::new();
    for call in calls {
        for nth in which.clone() {
            let name = format!("{call}-{nth}");
            let more = ["--again", &name, "--discard-cluster"];
            if !saved.is_killed_at(call, nth, &more).await {
                break;
            }
            killed.push(name.clone());
            all_must_be(&saved.all(&more).await, 0, "restored");
            saved.must_be_as_saved().await;
            for index in 0..3 {
                let folder = &saved.case.member(index).dir;
                let names = fs::read_dir(folder).expect("read").map(|entry| entry.expect("an entry").file_name());
                let rest: Vec<_> = names.filter(|name| name.to_string_lossy().contains(".restored-")).collect();
                assert!(rest.is_empty(), "{name}: nothing half done is left: {rest:?}");
            }
        }
    }
    println!("killed at {killed:?}");
    assert_eq!(archives(&saved.data(1)), killed.len(), "each was exchanged once");
    assert!(archives(&saved.data(0)) >= killed.len(), "nothing was deleted");
    Some(killed.len())
}

impl Saved {
    /// The first host's agent, to which this is done as it enters such calls.
    fn start_under_strace(&self, call: &str, what: &str, more: &[&str]) -> Agent {
        let trace = self.case.layout().dir.join("trace");
        let inject = format!("inject={call}:{what}");
        let wrap = |argv: Vec<OsString>| {
            let strace = ["strace", "-D", "-f", "-q", "-b", "execve", "-o"].map(OsString::from);
            let which = ["-e".into(), format!("trace={call}").into(), "-e".into(), inject.into(), "--".into()];
            strace.into_iter().chain([trace.clone().into()]).chain(which).chain(argv).collect()
        };
        let more: Vec<_> =
            ["--from", self.file.to_str().expect("text")].into_iter().chain(more.iter().copied()).collect();
        Agent::start_under("restore", &self.playbooks[0], &more, wrap).expect("started")
    }

    /// Whether the first host's agent was killed there; one that was not has waited for the others in vain.
    async fn is_killed_at(&self, call: &str, nth: usize, more: &[&str]) -> bool {
        let agent = self.start_under_strace(call, &format!("signal=KILL:when={nth}"), more);
        let came_through = wait::until("the agent to be killed, or to wait", LIMIT, || {
            let log = agent.log();
            let waits = log.contains("waiting for the other members");
            std::future::ready((waits || !agent.is_at_work()).then_some(waits).ok_or(log))
        });
        let waits = came_through.await.expect("it comes that far");
        if waits && let Ok(process) = agent.process() {
            process.signal(Signal::KILL).expect("killed");
        }
        drop(agent.ends().await);
        !waits
    }
}

async fn what_stands_in_the_way_is_found_before_anything_is_stopped(system: System) {
    let Some(mut saved) = saved(system).await else { return };
    let pids = saved.case.pids();
    let whole = saved.file.clone();
    let bytes = fs::read(&whole).expect("read");
    saved.file = whole.with_file_name("torn.db");
    for torn in [&bytes[..bytes.len() / 2], &bytes[..bytes.len() - 32], &[]] {
        fs::write(&saved.file, torn).expect("written");
        saved.start(0, &["--discard-cluster"]).ends().await.must_be(3, "bad_backup");
    }
    saved.file = PathBuf::from("/dev/zero");
    saved.start(0, &["--discard-cluster"]).ends().await.must_be(3, "bad_backup");
    saved.file = whole;
    let absent = saved.start(0, &["--discard-cluster", "--release", "3.1.0"]).ends().await;
    absent.must_be(3, "unprepared");
    for restore in
        ["{ tool: /bin/true }", "{ tool: /no/such/etcdutl }", "{ members: { m9: [\"http://127.0.0.1:1\"] } }"]
    {
        let mut upgrade = saved.case.upgrade.clone();
        upgrade.extra.retain(|line| !line.starts_with("restore:"));
        upgrade.extra.push(format!("restore: {restore}"));
        saved.case.write_one(0, &upgrade);
        let refused = saved.start(0, &["--discard-cluster"]).ends().await;
        refused.must_be(3, "unprepared");
    }
    // Endpoints that lead to nobody do not show that nobody serves.
    let mut upgrade = saved.case.upgrade.clone();
    upgrade.endpoints = vec!["http://127.0.0.1:1".into()];
    saved.case.write_one(0, &upgrade);
    saved.start(0, &[]).ends().await.must_be(3, "cluster_serves");
    assert_eq!(saved.case.pids(), pids);
    assert_eq!(archives(&saved.data(0)), 0);
}
