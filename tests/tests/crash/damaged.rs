//! The state directory is damaged while its member is down: the run is refused, the member is not left down.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
};

use tests::{
    case::Case,
    cluster::Member,
    fault::{self, Moment},
    mounted::Mounted,
    on_both,
    playbook::{quoted, started_by_the_agent},
    rollout::{Ends, Rollout},
    skip::skip,
    system::System,
};

use crate::{
    is_finished,
    kill::{held_at, journal, kill_at},
    rollout,
};

on_both! {
    a_damaged_state_directory_leaves_no_member_down, etcd #[ignore = "slow: the node's row shows the same"];
    a_damaged_journal_is_put_aside_by_the_command_that_is_printed, etcd #[ignore = "slow: the node's row shows the same"];
    a_state_directory_that_others_may_write_to_is_named_with_the_member_that_is_down, etcd #[ignore = "slow: the node's row shows the same"];
    #[ignore = "slow: one on a full disk leaves none down by default"]
    a_read_only_state_directory_leaves_no_member_down;
    #[ignore = "slow: a damaged state directory shows the same by default"]
    a_log_that_is_gone_leaves_no_member_down;
    #[ignore = "slow: one on a full disk shows the same by default"]
    a_journal_that_takes_no_entry_leaves_no_member_down;
}

/// A file that nobody may write to, until this is dropped.
struct Immutable(PathBuf);

impl Immutable {
    /// `None` where the file system has no such mark.
    fn make(path: PathBuf) -> Option<Self> {
        chattr("+i", &path).then_some(Self(path))
    }
}

impl Drop for Immutable {
    fn drop(&mut self) {
        chattr("-i", &self.0);
    }
}

fn chattr(mark: &str, path: &Path) -> bool {
    Command::new("chattr").arg(mark).arg(path).output().is_ok_and(|output| output.status.success())
}

async fn is_refused_with_its_member_up(rollout: &Rollout, index: usize, words: &str) {
    assert!(!rollout.member(index).is_running());
    let ended = rollout.one("run", index).await;
    ended.must_be(3, "state_dir");
    assert!(ended.message().contains(words), "{ended}");
    assert!(rollout.member(index).is_running(), "{ended}");
}

async fn a_damaged_state_directory_leaves_no_member_down(system: System) {
    let Some(rollout) = rollout(system, &["join_window: 1s"]).await else { return };
    kill_at(&rollout, 0, 3, Moment::After).await.expect("killed while its member was down");
    let host_id = rollout.member(0).state_dir().join("host-id");
    let whole = fs::read(&host_id).expect("a host id");
    fs::write(&host_id, "zebra").expect("damaged");
    is_refused_with_its_member_up(&rollout, 0, "holds `zebra`").await;
    fs::write(&host_id, whole).expect("repaired");

    is_finished(rollout).await;
}

async fn a_journal_that_takes_no_entry_leaves_no_member_down(system: System) {
    let Some(rollout) = rollout(system, &["join_window: 1s"]).await else { return };
    kill_at(&rollout, 0, 3, Moment::After).await.expect("killed while its member was down");
    let Some(immutable) = Immutable::make(journal(&rollout, 0)) else {
        return skip("nothing can be made immutable here");
    };
    is_refused_with_its_member_up(&rollout, 0, "cannot open").await;
    drop(immutable);

    is_finished(rollout).await;
}

/// While its member is down: for the agent that stopped it, and for the one that comes after it.
async fn a_read_only_state_directory_leaves_no_member_down(system: System) {
    let Some(rollout) = rollout(system, &["join_window: 1s"]).await else { return };
    let state_dir = |index| rollout.member(index).state_dir();
    kill_at(&rollout, 0, 3, Moment::After).await.expect("killed while its member was down");
    let Ok(read_only) = Mounted::read_only(&state_dir(0)) else { return skip("nothing can be mounted here") };
    is_refused_with_its_member_up(&rollout, 0, "Read-only file system").await;
    let ended = rollout.one("run", 0).await;
    assert!(!ended.said("left").contains("m1"), "it runs: {ended}");
    drop(read_only);
    rollout.one("run", 0).await.must_succeed();

    let agent = held_at(&rollout, 1, 3).await;
    assert!(!rollout.member(1).is_running());
    let read_only = Mounted::read_only(&state_dir(1)).expect("mounted");
    fault::thaw(&agent.process().expect("it runs")).expect("thawed");
    let ended = agent.ends().await;
    assert!(rollout.member(1).is_running(), "{ended}");
    drop(read_only);

    is_finished(rollout).await;
}

async fn a_log_that_is_gone_leaves_no_member_down(system: System) {
    let Some(mut case) = Case::of(system).await else { return };
    let log = |member: &Member| member.dir.join("log/node.log");
    case.upgrade.runtime = |member| {
        let mut lines = started_by_the_agent(member);
        lines.retain(|line| !line.starts_with("log: "));
        lines.push(format!("log: {}", quoted(&member.dir.join("log/node.log").to_string_lossy())));
        lines
    };
    let folders: Vec<_> = case.layout().members.iter().map(|member| member.dir.join("log")).collect();
    folders.iter().for_each(|folder| fs::create_dir(folder).expect("made"));
    let rollout = case.strategy(&["join_window: 1s"]).begin().await;

    // For the agent that stopped it.
    let agent = held_at(&rollout, 0, 3).await;
    assert!(!rollout.member(0).is_running());
    fs::remove_dir_all(&folders[0]).expect("gone");
    fault::thaw(&agent.process().expect("it runs")).expect("thawed");
    let ended = agent.ends().await;
    ended.must_succeed();
    let [file, folder] = [log(rollout.member(0)), folders[0].clone()].map(|path| path.display().to_string());
    assert!(ended.warnings().contains(&format!("cannot open the log {file}; type: mkdir -p {folder}")), "{ended}");

    // For the one that comes after it; and once the member runs the log is wanted again.
    kill_at(&rollout, 1, 3, Moment::After).await.expect("killed while its member was down");
    fs::remove_dir_all(&folders[1]).expect("gone");
    let ended = rollout.one("run", 1).await;
    assert!(rollout.member(1).is_running(), "{ended}");
    fs::remove_dir_all(&folders[2]).expect("gone");
    rollout.one("run", 2).await.must_be(3, "unprepared");
    folders.iter().for_each(|folder| fs::create_dir_all(folder).expect("made"));
    is_finished(rollout).await;
}

async fn a_damaged_journal_is_put_aside_by_the_command_that_is_printed(system: System) {
    let Some(rollout) = rollout(system, &["join_window: 1s"]).await else { return };
    kill_at(&rollout, 0, 4, Moment::After).await.expect("killed while its member was down");
    let journal = journal(&rollout, 0);
    let mut bytes = fs::read(&journal).expect("a journal");
    let second = bytes.iter().position(|byte| *byte == b'\n').expect("a line") + 12;
    bytes[second] ^= 1;
    fs::write(&journal, bytes).expect("damaged");

    let ended = rollout.one("run", 0).await;
    ended.must_be(3, "journal_damaged");
    assert_eq!(ended.said("left"), "no member was taken down by this command; not running: m1", "{ended}");
    let aside = Command::new("sh").args(["-c", ended.said("next")]).status().expect("a shell");
    assert!(aside.success() && !journal.exists(), "{ended}");

    is_finished(rollout).await;
}

async fn a_state_directory_that_others_may_write_to_is_named_with_the_member_that_is_down(system: System) {
    let Some(rollout) = rollout(system, &["join_window: 1s"]).await else { return };
    kill_at(&rollout, 0, 3, Moment::After).await.expect("killed while its member was down");
    let state_dir = rollout.member(0).state_dir();
    fs::set_permissions(&state_dir, fs::Permissions::from_mode(0o770)).expect("opened");
    let ended = rollout.one("run", 0).await;
    ended.must_be(3, "state_dir");
    assert!(
        ended.message().contains("chmod ") && ended.said("left").contains("not known whether they run: m1"),
        "{ended}"
    );
    fs::set_permissions(&state_dir, fs::Permissions::from_mode(0o700)).expect("closed");

    is_finished(rollout).await;
}
