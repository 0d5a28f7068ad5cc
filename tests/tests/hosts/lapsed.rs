//! A participant that registers and dies: the others wait for its lease, and go on without it.

use rustix::process::Signal;
use tests::{
    brake::Brake,
    rollout,
    standing::{is_of, keys, until_keys},
};

use crate::{ended, leader, rollout};

#[tokio::test(flavor = "multi_thread")]
async fn others_go_on_when_the_lease_of_a_dead_one_has_lapsed() {
    let Some((cluster, rollout)) = rollout(3, |_, _| {}).await else { return };
    let brake = Brake::new(&cluster.layout);
    let last = leader(&rollout.layout).await;
    let (dead, other) = ((last + 1) % 3, (last + 2) % 3);
    let playbook = std::fs::read_to_string(&rollout.playbooks[dead]).expect("readable");
    std::fs::write(&rollout.playbooks[dead], format!("{playbook}{}\n", brake.hook())).expect("written");

    let agent = rollout.start(dead).expect("started");
    let holds = |keys: &std::collections::BTreeMap<_, _>| is_of(keys.get("baton"), &agent).then_some(());
    until_keys("it to hold the baton", &rollout.layout, holds).await.expect("it holds it");
    agent.process().expect("alive").signal(Signal::KILL).expect("killed");
    assert_eq!(agent.ended(rollout::LIMIT).await.expect("ended").signal, Some(Signal::KILL.as_raw()));
    let left = keys(&rollout.layout).await.expect("keys");
    assert!(
        left.contains_key("baton") && left.keys().any(|key| key.starts_with("agents/")),
        "it is still there: {left:?}"
    );

    // Neither has anything but the dead one's lease to wait for.
    ended(&rollout.run([other, last]).await.expect("ended"), "partial", "partial");
    brake.release().expect("written");
    ended(&rollout.run([dead]).await.expect("ended"), "done", "done");
    let seen = rollout.done().await.expect("sound");
    assert_eq!(seen.observed.outages.len(), 3, "{:?}", seen.observed);
}
