//! The state directory is damaged while its member is down: the run is refused, the member is not left down.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
};

use tests::{fault::Moment, on_both, rollout::Rollout, skip::skip, system::System};

use crate::{
    is_finished,
    kill::{journal, kill_at},
    rollout,
};

on_both! {
    a_damaged_state_directory_leaves_no_member_down;
    a_damaged_journal_is_put_aside_by_the_command_that_is_printed;
    a_state_directory_that_others_may_write_to_is_named_with_the_member_that_is_down, etcd #[ignore = "slow: the node's row shows the same"];
    a_journal_that_takes_no_entry_leaves_no_member_down, etcd #[ignore = "slow: the node's row shows the same"];
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
    let Some(rollout) = rollout(system, &["gather: 1s"]).await else { return };
    kill_at(&rollout, 0, 3, Moment::After).await.expect("killed while its member was down");
    let host_id = rollout.member(0).state_dir().join("host-id");
    let whole = fs::read(&host_id).expect("a host id");
    fs::write(&host_id, "zebra").expect("damaged");
    is_refused_with_its_member_up(&rollout, 0, "holds `zebra`").await;
    fs::write(&host_id, whole).expect("mended");

    is_finished(rollout).await;
}

async fn a_journal_that_takes_no_entry_leaves_no_member_down(system: System) {
    let Some(rollout) = rollout(system, &["gather: 1s"]).await else { return };
    kill_at(&rollout, 0, 3, Moment::After).await.expect("killed while its member was down");
    let Some(immutable) = Immutable::make(journal(&rollout, 0)) else {
        return skip("nothing can be made immutable here");
    };
    is_refused_with_its_member_up(&rollout, 0, "cannot open").await;
    drop(immutable);

    is_finished(rollout).await;
}

async fn a_damaged_journal_is_put_aside_by_the_command_that_is_printed(system: System) {
    let Some(rollout) = rollout(system, &["gather: 1s"]).await else { return };
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
    let Some(rollout) = rollout(system, &["gather: 1s"]).await else { return };
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
