//! How hosts take their turns: all at once, a few at a time, one by one, and when some of them die.

mod forks;
mod frozen;
mod lapsed;
mod serial;
mod shared;

use tests::{
    cluster::{Cluster, Layout, Spec},
    ended::Ended,
    playbook::Upgrade,
    rollout::Rollout,
    skip::etcd_or_skip,
};

/// A cluster of 3.4 under watch, each member on a host of its own, on the way to 3.5.
async fn rollout(size: usize, change: impl Fn(usize, &mut Upgrade)) -> Option<(Cluster, Rollout)> {
    let (from, to) = (etcd_or_skip("3.4")?, etcd_or_skip("3.5")?);
    let cluster = Cluster::up(&Spec { size, ..Spec::new(from) }).await.expect("up");
    let layout = &cluster.layout;
    let playbooks = layout.members.iter().enumerate().map(|(host, member)| {
        let mut upgrade = Upgrade::new(layout, &to);
        upgrade.strategy.push("gather: 2s".into());
        change(host, &mut upgrade);
        upgrade.write_host(layout, &[member]).expect("a playbook")
    });
    let rollout = Rollout::begin(layout, playbooks.collect(), &to.release).await.expect("under way");
    Some((cluster, rollout))
}

async fn leader(layout: &Layout) -> usize {
    let leader = layout.leader().await.expect("a leader");
    layout.members.iter().position(|member| member.name == leader.name).expect("a member")
}

fn ended(agents: &[Ended], reason: &str, cluster: &str) {
    for agent in agents {
        let said = agent.result.as_ref().and_then(|result| result["cluster"].as_str());
        assert_eq!((agent.exit, agent.reason(), said), (Some(0), reason, Some(cluster)), "{agent:#?}");
    }
}
