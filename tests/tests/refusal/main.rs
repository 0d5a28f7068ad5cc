//! What is refused: each names who and what, and leaves every process, link and key as it was.

mod alarm;
mod balancer;
mod down;
mod locked;
mod misfit;
mod mistake;
mod other_run;
mod version;
mod voters;

use tests::{
    cluster::{Cluster, Layout, Spec},
    ended::Ended,
    etcd::Etcd,
    playbook::Upgrade,
    rollout::Rollout,
    skip::etcd_or_skip,
    standing::Standing,
};

/// A cluster, each member on a host of its own, and what it is to be upgraded to.
struct Case {
    cluster: Cluster,
    upgrade: Upgrade,
    to: Etcd,
}

impl Case {
    async fn set(from: &str, to: &str, change: impl FnOnce(&mut Spec)) -> Option<Self> {
        let (from, to) = (etcd_or_skip(from)?, etcd_or_skip(to)?);
        let mut spec = Spec::new(from);
        change(&mut spec);
        let cluster = Cluster::up(&spec).await.expect("up");
        let mut upgrade = Upgrade::new(&cluster.layout, &to);
        upgrade.strategy.push("gather: 2s".into());
        Some(Self { cluster, upgrade, to })
    }

    fn layout(&self) -> &Layout {
        &self.cluster.layout
    }

    /// Writes the playbooks as they are wanted now.
    fn write(&self) {
        self.upgrade.write(self.layout()).expect("playbooks");
    }

    async fn begin(&self) -> Rollout {
        let playbooks = self.upgrade.write(self.layout()).expect("playbooks");
        Rollout::begin(self.layout(), playbooks, &self.to.release).await.expect("under way")
    }
}

/// Runs agents on these hosts at once: each must be refused, with these words, and nothing touched.
async fn is_refused(
    rollout: &Rollout,
    hosts: impl IntoIterator<Item = usize>,
    (exit, reason): (i32, &str),
    words: &[&str],
) -> Vec<Ended> {
    let before = Standing::of(&rollout.layout).await.expect("seen");
    let agents = rollout.run(hosts).await.expect("ended");
    refused(&agents, (exit, reason), words);
    assert_eq!(Standing::of(&rollout.layout).await.expect("seen"), before);
    agents
}

fn refused(agents: &[Ended], (exit, reason): (i32, &str), words: &[&str]) {
    for agent in agents {
        agent.must_be(exit, reason);
        let missing: Vec<_> = words.iter().filter(|word| !agent.message().contains(**word)).collect();
        assert!(missing.is_empty(), "{missing:?} are missing in: {}", agent.message());
    }
}

/// The end of a rollout that was refused throughout: nobody ever went down, and no agent left a key.
async fn untouched(rollout: Rollout) {
    let left = Standing::of(&rollout.layout).await.expect("seen").keys;
    assert!(left.is_empty(), "{left:?}");
    assert_eq!(rollout.sound().await.expect("sound").observed.outages, []);
}

fn done(agents: &[Ended]) {
    for agent in agents {
        agent.must_be(0, "done");
    }
}

/// Who went down, in order.
fn down(seen: &tests::witness::Testimony) -> Vec<&str> {
    seen.observed.outages.iter().map(|outage| outage.member.as_str()).collect()
}
