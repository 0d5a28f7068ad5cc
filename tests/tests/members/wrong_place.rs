//! Playbooks whose `data_dir` is another member's: no process is stopped for that, and no data moved.

use std::{fs, path::Path, process::Command};

use rustix::process::Signal;
use tests::{
    agent::Agent,
    case::Case,
    newcomers::{Change, aside, data},
    on_both,
    rollout::Ends as _,
    system::System,
    wait,
};

on_both! {
    a_wrong_data_dir_stops_nobody_and_moves_nothing, etcd #[ignore = "slow: the node's row shows the same"];
}

/// etcd deletes whatever lies where it makes a log anew, and takes up any log that it finds.
#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_wal_dir_deletes_nothing_and_starts_nobody() {
    let release = System::Etcd.main_job().0;
    let Some(case) = Case::path(System::Etcd, (release, release), |_| {}).await else { return };
    let follower = (case.leader().await + 1) % 3;
    let (lost, other) = (case.member(follower), case.member((follower + 1) % 3));
    lost.end(Signal::KILL).expect("ended");

    // The log of another member, which this one would take up.
    let mut wrong = lost.clone();
    wrong.flags.push(format!("--wal-dir={}", data(other).join("member/wal").display()));
    let same = case.scale(&["m1", "m2", "m3"]);
    let ended = same.start(&case, &wrong).ends().await;
    ended.must_be(1, "member_sick");
    assert!(ended.message().contains("`wal-dir`") && !wrong.is_running(), "{ended}");

    // Data and notes of others, where its own would begin.
    fs::remove_dir_all(data(lost)).expect("emptied");
    let back = case.replace(&lost.name, &lost.name);
    let notes = lost.dir.join("notes");
    fs::create_dir(&notes).expect("made");
    fs::write(notes.join("note"), "kept").expect("written");
    for folder in [data(other), notes.clone(), lost.dir.clone()] {
        let mut wrong = lost.as_newcomer();
        wrong.flags.push(format!("--wal-dir={}", folder.display()));
        let ended = back.start(&case, &wrong).ends().await;
        ended.must_be(3, "newcomer_unfit");
        assert!(ended.message().contains("`wal-dir`"), "{ended}");
        assert!(data(other).join("member/wal").exists() && notes.join("note").exists(), "{ended}");
        assert_eq!(case.listed(&case.client((follower + 1) % 3)).await.len(), 3, "nobody was removed");
    }
    // Whole data of another, with the log told elsewhere, where none is: its own, which has lost its log, looks much the same.
    let foreign = lost.dir.join("foreign");
    let copied = Command::new("cp").arg("-a").args([data(other), foreign.clone()]).status().expect("it runs");
    assert!(copied.success());
    let mut wrong = lost.as_newcomer();
    wrong.flags.push(format!("--wal-dir={}", lost.dir.join("nowhere").display()));
    let [own, theirs] = [data(lost), foreign.clone()].map(|folder| folder.display().to_string());
    let ended = start(&case, &back, &wrong, (&own, &theirs)).ends().await;
    ended.must_be(3, "newcomer_unfit");
    assert!(ended.message().contains("holds data of") && foreign.join("member/wal").exists(), "{ended}");
    assert_eq!(case.listed(&case.client((follower + 1) % 3)).await.len(), 3, "nobody was removed");

    back.start(&case, &lost.as_newcomer()).ends().await.must_be(0, "done");
}

/// The same where a configuration file says it, which alone counts then.
#[tokio::test(flavor = "multi_thread")]
async fn a_wal_dir_in_a_configuration_file_is_one_all_the_same() {
    let release = System::Etcd.main_job().0;
    let Some(case) = Case::path(System::Etcd, (release, release), |_| {}).await else { return };
    let mut newcomers = case.newcomers(1);
    let member = &mut newcomers.members[0];
    let [notes, log] = ["notes", "log"].map(|folder| member.dir.join(folder));
    fs::create_dir(&notes).expect("made");
    fs::write(notes.join("note"), "kept").expect("written");
    let listed = case.client(0).members().await.expect("a list");
    let listed = listed.iter().flat_map(|one| one.peer_urls.iter().map(|url| format!("{}={url}", one.name)));
    let cluster: Vec<_> = listed.chain([format!("{}={}", member.name, member.peer_url())]).collect();
    let settings: Vec<_> = member.flags.iter().filter(|flag| !flag.starts_with("--initial-cluster")).cloned().collect();
    let settings = settings.iter().filter_map(|flag| flag.strip_prefix("--")?.split_once('='));
    let mut text: String = settings.map(|(name, value)| format!("{name}: \"{value}\"\n")).collect();
    text += &format!("initial-cluster: \"{}\"\ninitial-cluster-state: existing\n", cluster.join(","));
    let urls = member.peer_url();
    member.flags = vec![format!("--config-file={}", member.config().display())];
    let change = case.replace("m1", &member.name).everybody_comes();
    let write = |folder: &Path| fs::write(member.config(), format!("{text}wal-dir: {}\n", folder.display()));

    let placed = |verb: &str| {
        let playbook = change.write(&case, &[member]);
        let text = fs::read_to_string(&playbook).expect("a playbook");
        // Of its flags the lab knows no address any more.
        fs::write(&playbook, text.replace("peer_urls: [\"\"]", &format!("peer_urls: [\"{urls}\"]"))).expect("written");
        Agent::start(verb, &playbook, &[]).expect("started")
    };
    write(&notes).expect("written");
    let refused = placed("plan").ends().await;
    refused.must_be(3, "newcomer_unfit");
    assert!(refused.message().contains("`wal-dir`") && notes.join("note").exists(), "{refused}");

    write(&log).expect("written");
    let going = change.start(&case, case.member(0));
    let coming = placed("run");
    going.ends().await.must_be(0, "done");
    coming.ends().await.must_be(0, "done");
    assert!(log.exists() && notes.join("note").exists());
}

/// Starts `agent run` on a member's host, with this in the place of that all over its playbook.
fn start(case: &Case, change: &Change, member: &tests::cluster::Member, (that, this): (&str, &str)) -> Agent {
    let playbook = change.write(case, &[member]);
    let text = fs::read_to_string(&playbook).expect("a playbook");
    assert!(text.contains(that), "{text}");
    fs::write(&playbook, text.replace(that, this)).expect("written");
    Agent::start("run", &playbook, &[]).expect("started")
}

async fn a_wrong_data_dir_stops_nobody_and_moves_nothing(system: System) {
    let release = system.main_job().0;
    let Some(case) = Case::path(system, (release, release), |_| {}).await else { return };
    let newcomers = case.newcomers(1);
    let newcomer = &newcomers.members[0];
    let path = |path: &Path| path.to_string_lossy().into_owned();
    let (own, other) = (path(&data(newcomer)), path(&data(case.member(0))));
    let before = case.raft_status().await.members;

    // A member's is that of one that was removed: its own process serves, and the folder is not its own.
    let former = case.add_by_hand(newcomer).await;
    case.remove_by_hand("m4").await;
    let has_ended = wait::until("a removed member to end", wait::GENEROUS, || async {
        (!former.is_running()).then_some(()).ok_or_else(|| former.last_words())
    });
    has_ended.await.expect("it ends by itself");
    let same = case.scale(&["m1", "m2", "m3"]);
    let line = |folder: &str| format!("data_dir: {}", tests::playbook::quoted(folder));
    let wrong = (&*line(&path(&data(case.member(1)))), &*line(&own));
    let ended = start(&case, &same, case.member(1), wrong).ends().await;
    ended.must_be(3, "unprepared");
    assert!(ended.message().contains("`data_dir` is "), "{ended}");
    assert_eq!(case.raft_status().await.members, before);
    assert!(data(newcomer).exists() && aside(newcomer).is_empty(), "{ended}");

    // A newcomer's is that of a member that serves, in its arguments, too.
    let up = case.scale(&["m1", "m2", "m3", "m4", "m5"]);
    let ended = start(&case, &up, newcomer, (&own, &other)).ends().await;
    ended.must_be(3, "newcomer_unfit");
    assert!(ended.message().contains("of m1"), "{ended}");
    let keys = tests::raft_status::keys(case.layout()).await.expect("the keys");
    assert!(!keys.contains_key("run"), "nothing was touched, and no run stands: {keys:?}");
    assert_eq!(case.raft_status().await.members, before);
    assert!([0, 1].into_iter().all(|at| data(case.member(at)).exists() && aside(case.member(at)).is_empty()));
    assert_eq!(case.listed(&case.client(0)).await.len(), 3);
    assert_eq!(case.leftovers().await, Vec::<String>::new());
}
