//! A new binary that fails on the last member, where the point of no return lies: once it has served, the
//! version may have risen, and then it must stay.

use tests::{
    case::Case,
    ended::{Ended, all_must_be},
    on_both,
    rollout::Rollout,
    sick::Illness,
    system::System,
};

use crate::SICK;

on_both! {
    one_that_never_served_is_put_back;
    one_that_dies_after_the_version_rose_is_kept;
}

/// A run whose last member has a sick release.
struct Last {
    rollout: Rollout,
    /// The leader's host, which goes last.
    last: usize,
    old: String,
    new: String,
}

impl Last {
    async fn set(system: System, illness: Illness, soak: &str) -> Option<Self> {
        let mut case = Case::of(system).await?;
        case.upgrade.strategy = vec![soak.into()];
        let rollout = case.begin().await;
        let last = rollout.leader().await;
        rollout.write_one(last, &rollout.sick(SICK, illness));
        let (old, new) = (rollout.from.release.to_string(), rollout.to.release.to_string());
        Some(Self { rollout, last, old, new })
    }

    /// Runs all hosts; the last one's end comes first in the answer.
    async fn run(&self) -> (Ended, Vec<Ended>) {
        let mut ended = self.rollout.all("run").await;
        (ended.remove(self.last), ended)
    }

    async fn is_marked(&self) {
        let keys = self.rollout.keys().await;
        assert!(keys["run"]["state"]["failed"]["member"].is_string(), "{keys:?}");
    }

    async fn has_record(&self) -> bool {
        self.rollout.keys().await.contains_key("down")
    }

    fn others(&self) -> [usize; 2] {
        [(self.last + 1) % 3, (self.last + 2) % 3]
    }

    /// The artifact is corrected and the same commands are typed.
    async fn mended(self) {
        self.rollout.write();
        all_must_be(&self.rollout.all("run").await, 0, "done");
        assert!(!self.has_record().await);
        self.rollout.done().await;
    }
}

async fn one_that_never_served_is_put_back(system: System) {
    let Some(run) = Last::set(system, Illness::Exits, "soak: 0s").await else { return };
    let (last, others) = run.run().await;
    last.must_be(1, "put_back");
    all_must_be(&others, 1, "run_failed");
    run.is_marked().await;
    let releases = run.rollout.releases().await;
    assert_eq!(releases[run.last], run.old);
    assert_eq!(run.others().map(|other| releases[other] == run.new), [true; 2], "{releases:?}");
    assert_eq!(run.rollout.cluster_versions().await, vec![run.rollout.old_version(); 3]);
    assert!(!run.has_record().await);
    run.mended().await;
}

/// Of etcd twelve seconds are three polls of the versions: they have risen for certain. The node does not poll.
async fn one_that_dies_after_the_version_rose_is_kept(system: System) {
    let after_ms = match system {
        System::Node => 3_000,
        System::Etcd => 12_000,
    };
    dies_late(system, after_ms, Some("new_binary_kept")).await;
}

/// Whether etcd's version has risen after three seconds is chance; what is done follows from it.
#[tokio::test(flavor = "multi_thread")]
async fn one_that_dies_after_three_seconds_is_put_back_or_kept_as_the_version_says() {
    dies_late(System::Etcd, 3_000, None).await;
}

async fn dies_late(system: System, after_ms: u64, expected: Option<&str>) {
    let soak = format!("soak: {}ms", after_ms + 2_000);
    let Some(run) = Last::set(system, Illness::Dies(after_ms), &soak).await else { return };
    let (last, others) = run.run().await;
    assert_eq!(last.exit, Some(1), "{last}");
    all_must_be(&others, 1, "run_failed");
    run.is_marked().await;
    let has_risen =
        run.rollout.client(run.others()[0]).versions().await.expect("serves").cluster != run.rollout.old_version();
    match has_risen {
        true => {
            assert_eq!(last.reason(), "new_binary_kept", "{last}");
            assert!(run.has_record().await, "its record stands");
            assert_eq!(run.rollout.member(run.last).release().expect("it says").to_string(), run.new);
        }
        false => {
            assert_eq!(last.reason(), "put_back", "{last}");
            assert!(!run.has_record().await);
            assert_eq!(run.rollout.releases().await[run.last], run.old);
        }
    }
    assert!(expected.is_none_or(|expected| expected == last.reason()), "{last}");
    run.mended().await;
}
