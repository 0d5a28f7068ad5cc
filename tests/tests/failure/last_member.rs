//! A new binary that fails on the last member, where the point of no return lies: once it has served, the
//! version may have risen, and then it must stay.

use std::fs;

use tests::{
    case::Case,
    ended::{Ended, all_must_be},
    on_both,
    playbook::Upgrade,
    rollout::{LIMIT, Rollout},
    sick::Illness,
    system::System,
    wait,
};

use crate::SICK;

on_both! {
    one_that_never_served_is_put_back, etcd #[ignore = "slow: the node's row shows the same"];
    #[ignore = "slow: two minutes; the model searches it by default"]
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
        // All take part, however slow the machine is.
        let together = "join_window: 30s";
        case.upgrade.strategy = vec!["soak: 0s".into(), together.into()];
        let rollout = case.begin().await;
        let last = rollout.leader().await;
        let sick = Upgrade { strategy: vec![soak.into(), together.into()], ..rollout.sick(SICK, illness) };
        rollout.write_one(last, &sick);
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
        self.rollout.keys().await.contains_key("step")
    }

    fn others(&self) -> [usize; 2] {
        [(self.last + 1) % 3, (self.last + 2) % 3]
    }

    /// The cluster version, as a member says that is not the last and may not serve just now.
    async fn version(&self) -> Result<String, String> {
        let versions = self.rollout.client(self.others()[0]).versions().await;
        Ok(versions.map_err(|error| error.to_string())?.cluster)
    }

    async fn has_risen(&self) -> bool {
        self.version().await.expect("serves") != self.rollout.old_version()
    }

    /// What was done with the last member must be what the cluster version says; returns the reason that was told.
    async fn is_judged<'e>(&self, (last, others): &'e (Ended, Vec<Ended>)) -> &'e str {
        assert_eq!(last.exit, Some(1), "{last}");
        all_must_be(others, 1, "run_failed");
        self.is_marked().await;
        match self.has_risen().await {
            true => {
                assert_eq!(last.reason(), "new_binary_kept", "{last}");
                assert!(self.has_record().await, "its record stands");
                assert_eq!(self.rollout.member(self.last).release().expect("it says").to_string(), self.new);
            }
            false => {
                assert_eq!(last.reason(), "put_back", "{last}");
                assert!(!self.has_record().await);
                assert_eq!(self.rollout.releases().await[self.last], self.old);
            }
        }
        last.reason()
    }

    /// The artifact is corrected and the same commands are typed.
    async fn repaired(self) {
        self.rollout.write();
        // One that comes late finds nothing to do.
        self.rollout.all("run").await.iter().for_each(Ended::must_succeed);
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
    run.repaired().await;
}

async fn one_that_dies_after_the_version_rose_is_kept(system: System) {
    let folder = tempfile::tempdir().expect("a folder");
    let order = folder.path().join("die");
    let Some(run) = Last::set(system, Illness::DiesOnceThereIs(order.clone()), "soak: 60s").await else { return };
    let has_risen = async {
        wait::until("the cluster version to rise", LIMIT, || async {
            let version = run.version().await?;
            if version != run.rollout.old_version() { Ok(()) } else { Err(format!("it is {version}")) }
        })
        .await
        .expect("it rises");
        fs::write(&order, "").expect("written");
    };
    let (ended, ()) = tokio::join!(run.run(), has_risen);
    assert_eq!(run.is_judged(&ended).await, "new_binary_kept", "{}", ended.0);
    run.repaired().await;
}

/// Whether etcd's version has risen after three seconds is chance; what is done follows from it.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "slow: more than a minute; both its outcomes are rows of their own"]
async fn one_that_dies_after_three_seconds_is_put_back_or_kept_as_the_version_says() {
    let Some(run) = Last::set(System::Etcd, Illness::Dies(3_000), "soak: 5s").await else { return };
    run.is_judged(&run.run().await).await;
    run.repaired().await;
}
