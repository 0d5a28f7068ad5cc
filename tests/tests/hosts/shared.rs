//! One host with two members of three: its agent takes them down one after the other, like anybody.

use tests::{
    cluster::{Cluster, Spec},
    playbook::Upgrade,
    rollout::Rollout,
    skip::etcd_or_skip,
};

use crate::ended;

#[tokio::test(flavor = "multi_thread")]
async fn a_host_with_two_members_of_three() {
    let (Some(from), Some(to)) = (etcd_or_skip("3.4"), etcd_or_skip("3.5")) else { return };
    let cluster = Cluster::up(&Spec::new(from)).await.expect("up");
    let layout = &cluster.layout;
    let upgrade = Upgrade::new(layout, &to);
    let [one, two, three] = &layout.members[..] else { panic!("three members") };
    let playbooks = [vec![one, two], vec![three]].map(|members| upgrade.write_host(layout, &members));
    let playbooks = playbooks.into_iter().collect::<Result<_, _>>().expect("playbooks");
    let rollout = Rollout::begin(layout, playbooks, &to.release).await.expect("under way");
    ended(&rollout.run_all().await.expect("ended"), "done", "done");
    let seen = rollout.done().await.expect("sound");
    assert_eq!(seen.observed.outages.len(), 3, "{:?}", seen.observed);
}
