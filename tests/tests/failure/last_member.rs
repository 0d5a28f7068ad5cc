//! A new binary that fails on the last member, where the point of no return lies: once it has served, the
//! version may have risen, and then it must stay.

use std::path::{Path, PathBuf};

use tests::{
    ended::Ended,
    playbook::Upgrade,
    scene::Scene,
    sick::{self, Illness},
    skip::etcd_or_skip,
};

const SICK: &str = env!("CARGO_BIN_EXE_sick-etcd");

/// A run whose last member has a sick release.
struct Last {
    scene: Scene,
    upgrade: Upgrade,
    playbooks: Vec<PathBuf>,
    /// The leader's host, which goes last.
    last: usize,
    old: String,
    new: String,
}

impl Last {
    async fn set(illness: Illness, strategy: &[&str]) -> Option<Self> {
        let (old, new) = (etcd_or_skip("3.4")?, etcd_or_skip("3.5")?);
        let scene = Scene::set(&old, new.release.cluster_version()).await.expect("up");
        let last = scene.leader().await.expect("a leader");
        let mut upgrade = Upgrade::new(scene.layout(), &new);
        upgrade.strategy = strategy.iter().map(|line| (*line).to_owned()).collect();
        let mut playbooks = upgrade.write(scene.layout()).expect("playbooks");
        let file = scene.layout().dir.join("sick");
        let source = sick::make(Path::new(SICK), &new, illness, &file).expect("an executable");
        playbooks[last] = Upgrade { source, ..upgrade.clone() }.write_one(scene.layout(), last).expect("a playbook");
        let (old, new) = (old.release.to_string(), new.release.to_string());
        Some(Self { scene, upgrade, playbooks, last, old, new })
    }

    /// Runs all hosts; the last one's end comes first in the answer.
    async fn run(&self) -> (Ended, Vec<Ended>) {
        let mut ended = self.scene.all("run", &self.playbooks).await.expect("ends");
        (ended.remove(self.last), ended)
    }

    async fn is_marked(&self) {
        let run = self.scene.key("run").await.expect("a run");
        assert!(run["state"]["failed"]["member"].is_string(), "{run}");
    }

    fn others(&self) -> [usize; 2] {
        [(self.last + 1) % 3, (self.last + 2) % 3]
    }

    /// The artifact is corrected and the same commands are typed.
    async fn mended(mut self) {
        self.playbooks = self.upgrade.write(self.scene.layout()).expect("playbooks");
        let (last, others) = self.run().await;
        for ended in [&last].into_iter().chain(&others) {
            assert_eq!((ended.exit, ended.reason()), (Some(0), "done"), "{last:#?} {others:#?}");
        }
        assert_eq!(self.scene.releases().await.expect("they serve"), vec![self.new.clone(); 3]);
        assert!(self.scene.key("down").await.expect("readable").is_null());
        self.scene.has_settled().await.expect("the version rises");
        self.scene.end(1).await.expect("nothing lost");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_never_served_is_put_back() {
    let Some(run) = Last::set(Illness::Exits, &["soak: 0s"]).await else { return };
    let (last, others) = run.run().await;
    last.must_be(1, "put_back");
    for ended in &others {
        ended.must_be(1, "run_failed");
    }
    run.is_marked().await;
    let releases = run.scene.releases().await.expect("they serve");
    assert_eq!(releases[run.last], run.old);
    assert_eq!(run.others().map(|other| releases[other] == run.new), [true; 2], "{releases:?}");
    assert_eq!(run.scene.cluster_versions().await.expect("they serve"), ["3.4.0"; 3]);
    assert!(run.scene.key("down").await.expect("readable").is_null());
    run.mended().await;
}

/// Twelve seconds are three polls of the versions: they have risen for certain.
#[tokio::test(flavor = "multi_thread")]
async fn one_that_dies_after_the_version_rose_is_kept() {
    dies_late(12_000, Some("new_binary_kept")).await;
}

/// Whether the version has risen after three seconds is chance; what is done follows from it.
#[tokio::test(flavor = "multi_thread")]
async fn one_that_dies_after_three_seconds_is_put_back_or_kept_as_the_version_says() {
    dies_late(3_000, None).await;
}

async fn dies_late(after_ms: u64, expected: Option<&str>) {
    let soak = format!("soak: {}ms", after_ms + 2_000);
    let Some(run) = Last::set(Illness::Dies(after_ms), &[&soak]).await else { return };
    let (last, others) = run.run().await;
    assert_eq!(last.exit, Some(1), "{last:#?}");
    for ended in &others {
        ended.must_be(1, "run_failed");
    }
    run.is_marked().await;
    let has_risen =
        run.scene.client(run.others()[0]).expect("a client").versions().await.expect("serves").cluster != "3.4.0";
    let record = run.scene.key("down").await.expect("readable");
    match has_risen {
        true => {
            assert_eq!(last.reason(), "new_binary_kept", "{last:#?}");
            assert!(!record.is_null(), "its record stands");
            assert_eq!(run.scene.layout().members[run.last].release().expect("it says").to_string(), run.new);
        }
        false => {
            assert_eq!(last.reason(), "put_back", "{last:#?}");
            assert!(record.is_null());
            assert_eq!(run.scene.releases().await.expect("they serve")[run.last], run.old);
        }
    }
    assert!(expected.is_none_or(|expected| expected == last.reason()), "{last:#?}");
    run.mended().await;
}
