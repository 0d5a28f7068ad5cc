//! The state directory is damaged while its member is down: the run is refused, the member is not left down.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use tests::{fault::Moment, skip::skip};

use crate::rollout::{Change, Rollout, told};

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

impl Rollout {
    async fn is_refused_with_its_member_up(&self, index: usize, words: &str) {
        assert!(!self.member(index).is_running());
        let ended = self.run(index).await;
        assert_eq!((ended.exit, ended.reason()), (Some(3), "state_dir"), "{}", told(&ended));
        assert!(ended.message().contains(words), "{}", ended.message());
        assert!(self.member(index).is_running(), "{}", told(&ended));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_state_directory_leaves_no_member_down() {
    let Some(change) = Change::of_minor() else { return };
    let rollout = Rollout::begin(&change, &["gather: 1s"]).await;
    rollout.kill_at(0, 3, Moment::After).await.expect("killed while its member was down");
    let host_id = rollout.state_dir(0).join("host-id");
    let whole = fs::read(&host_id).expect("a host id");
    fs::write(&host_id, "zebra").expect("damaged");
    rollout.is_refused_with_its_member_up(0, "holds `zebra`").await;
    fs::write(&host_id, whole).expect("mended");

    rollout.run_everywhere().await;
    rollout.end_one_at_a_time().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_journal_that_takes_no_entry_leaves_no_member_down() {
    let Some(change) = Change::of_minor() else { return };
    let rollout = Rollout::begin(&change, &["gather: 1s"]).await;
    rollout.kill_at(0, 3, Moment::After).await.expect("killed while its member was down");
    let Some(immutable) = Immutable::make(rollout.journal(0)) else {
        return skip("nothing can be made immutable here");
    };
    rollout.is_refused_with_its_member_up(0, "cannot open").await;
    drop(immutable);

    rollout.run_everywhere().await;
    rollout.end_one_at_a_time().await;
}
