//! An agent is frozen for longer than its leases last, and wakes up.

use std::collections::BTreeMap;

use serde_json::Value;
use tests::{
    agent::Agent,
    brake::Brake,
    fault,
    rollout::LIMIT,
    standing::{is_of, until_keys},
    wait,
};

use crate::{ended, leader, rollout};

/// Frozen before it put a record: its baton lapses, others do their part, and it finds the baton gone.
#[tokio::test(flavor = "multi_thread")]
async fn with_the_baton_in_its_hand() {
    let Some((cluster, rollout)) = rollout(3, |_, _| {}).await else { return };
    let brake = Brake::new(&cluster.layout);
    let last = leader(&rollout.layout).await;
    let (frozen, other) = ((last + 1) % 3, (last + 2) % 3);
    let playbook = std::fs::read_to_string(&rollout.playbooks[frozen]).expect("readable");
    std::fs::write(&rollout.playbooks[frozen], format!("{playbook}{}\n", brake.hook())).expect("written");

    let agent = rollout.start(frozen).expect("started");
    let holds = |keys: &BTreeMap<_, _>| is_of(keys.get("baton"), &agent).then_some(());
    until_keys("it to hold the baton", &rollout.layout, holds).await.expect("it holds it");
    let process = agent.process().expect("alive");
    fault::freeze(&process).expect("frozen");
    ended(&rollout.run([other, last]).await.expect("ended"), "partial", "partial");
    brake.release().expect("written");
    fault::thaw(&process).expect("thawed");
    ended(&[agent.ended(LIMIT).await.expect("ended")], "done", "done");
    let seen = rollout.done().await.expect("sound");
    assert_eq!(seen.observed.outages.len(), 3, "{:?}", seen.observed);
}

/// Frozen with its record put, perhaps between its last look and the stop: while the record stands nobody
/// else goes, however long ago the lease lapsed, and when it wakes it finishes what it had in hand.
#[tokio::test(flavor = "multi_thread")]
async fn with_its_record_put() {
    let Some((_cluster, rollout)) = rollout(3, |_, _| {}).await else { return };
    let agents: Vec<Agent> = (0..3).map(|host| rollout.start(host).expect("started")).collect();
    let frozen = wait::until("an agent to be frozen with its record put", LIMIT, || async {
        let of = |keys: &BTreeMap<String, Value>| agents.iter().position(|agent| is_of(keys.get("down"), agent));
        let found = until_keys("a record", &rollout.layout, of).await.map_err(|error| error.to_string())?;
        let process = agents[found].process().map_err(|error| error.to_string())?;
        fault::freeze(&process).map_err(|error| error.to_string())?;
        let stands = tests::standing::keys(&rollout.layout).await.map_err(|error| error.to_string())?;
        if is_of(stands.get("down"), &agents[found]) {
            return Ok(found);
        }
        // It was faster.
        fault::thaw(&process).map_err(|error| error.to_string())?;
        Err("its record was gone already".into())
    })
    .await
    .expect("frozen");
    let lapsed = |keys: &BTreeMap<String, Value>| (!is_of(keys.get("baton"), &agents[frozen])).then(|| keys.clone());
    let keys = until_keys("its lease to lapse", &rollout.layout, lapsed).await.expect("lapsed");
    assert!(is_of(keys.get("down"), &agents[frozen]), "its record stays: {keys:?}");
    assert!(agents.iter().all(Agent::is_at_work), "the others wait");
    fault::thaw(&agents[frozen].process().expect("alive")).expect("thawed");
    ended(&tests::rollout::ended(agents).await.expect("ended"), "done", "done");
    let seen = rollout.done().await.expect("sound");
    assert!(seen.observed.outages.len() >= 3, "{:?}", seen.observed);
}
