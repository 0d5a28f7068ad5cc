//! Runs that hold, go back, stop or are resumed by hand, on real etcd under load.

mod back;
mod hold;
mod resume;

use tests::{ended::Ended, playbook::Upgrade, scene::Scene, skip::etcd_or_skip};

/// A cluster of 3.4 under load, and its upgrade to 3.5.
struct Case {
    scene: Scene,
    upgrade: Upgrade,
    old: String,
    new: String,
}

impl Case {
    async fn set(strategy: &[&str]) -> Option<Self> {
        let (old, new) = (etcd_or_skip("3.4")?, etcd_or_skip("3.5")?);
        let scene = Scene::set(&old, new.release.cluster_version()).await.expect("up");
        let mut upgrade = Upgrade::new(scene.layout(), &new);
        upgrade.strategy.extend(strategy.iter().map(|line| (*line).to_owned()));
        Some(Self { scene, upgrade, old: old.release.to_string(), new: new.release.to_string() })
    }

    /// How many members run the new release; the others run the old one.
    async fn upgraded(&self) -> usize {
        let releases = self.scene.releases().await.expect("they serve");
        assert!(releases.iter().all(|release| [&self.old, &self.new].contains(&release)), "{releases:?}");
        releases.iter().filter(|release| **release == self.new).count()
    }

    async fn is_still_at_3_4(&self) {
        assert_eq!(self.scene.cluster_versions().await.expect("they serve"), ["3.4.0"; 3]);
    }

    /// The end of every scenario: all members upgraded, nothing lost.
    async fn ends_upgraded(self) {
        assert_eq!(self.upgraded().await, 3);
        self.scene.has_settled().await.expect("the version rises");
        self.scene.end(1).await.expect("nothing lost");
    }
}

/// Exit code, reason and how far the cluster is, of each.
fn ends(ended: &[Ended]) -> Vec<(Option<i32>, &str, &str)> {
    ended.iter().map(|ended| (ended.exit, ended.reason(), said(ended, "cluster"))).collect()
}

fn said<'a>(ended: &'a Ended, field: &str) -> &'a str {
    ended.result.as_ref().and_then(|result| result[field].as_str()).unwrap_or_default()
}
