//! An agent is frozen for longer than its leases last, and wakes up.

use std::collections::BTreeMap;

use serde_json::Value;
use tests::{
    agent::Agent,
    ended::all_must_leave,
    fault, on_both,
    raft_status::is_of,
    rollout::{Ends, LIMIT, all_end},
    system::System,
    wait,
};

use crate::{one_holds_the_baton, rollout};

on_both! {
    with_the_baton_in_its_hand, etcd #[ignore = "slow: a wait of the agent's own, which the node's row shows too"];
    with_its_record_put, etcd #[ignore = "slow: the node's row shows the same"];
}

/// Frozen before it put a record: its baton lapses, others do their part, and it finds the baton gone.
async fn with_the_baton_in_its_hand(system: System) {
    let Some((rollout, brake, (_, agent), others)) = one_holds_the_baton(system).await else { return };
    let process = agent.process().expect("alive");
    fault::freeze(&process).expect("frozen");
    all_must_leave(&rollout.run(others).await, 0, "partial", "partial");
    brake.release().expect("written");
    fault::thaw(&process).expect("thawed");
    all_must_leave(&[agent.ends().await], 0, "done", "done");
    let seen = rollout.done().await;
    assert_eq!(seen.observed.outages.len(), 3, "{:?}", seen.observed);
}

/// Frozen with its record put, perhaps between its last look and the stop: while the record stands nobody
/// else goes, however long ago the lease lapsed, and when it wakes it finishes what it had in hand.
async fn with_its_record_put(system: System) {
    let Some(rollout) = rollout(system, 3).await else { return };
    let agents: Vec<Agent> = (0..3).map(|host| rollout.start(host)).collect();
    let frozen = wait::until("an agent to be frozen with its record put", LIMIT, || async {
        let of = |keys: &BTreeMap<String, Value>| agents.iter().position(|agent| is_of(keys.get("step"), agent));
        let found = rollout.until_keys("a record", of).await;
        let process = agents[found].process().map_err(|error| error.to_string())?;
        fault::freeze(&process).map_err(|error| error.to_string())?;
        if is_of(rollout.keys().await.get("step"), &agents[found]) {
            return Ok(found);
        }
        // It was faster.
        fault::thaw(&process).map_err(|error| error.to_string())?;
        Err("its record was gone already".into())
    })
    .await
    .expect("frozen");
    let lapsed = |keys: &BTreeMap<String, Value>| (!is_of(keys.get("baton"), &agents[frozen])).then(|| keys.clone());
    let keys = rollout.until_keys("its lease to lapse", lapsed).await;
    assert!(is_of(keys.get("step"), &agents[frozen]), "its record stays: {keys:?}");
    assert!(agents.iter().all(Agent::is_at_work), "the others wait");
    fault::thaw(&agents[frozen].process().expect("alive")).expect("thawed");
    all_must_leave(&all_end(agents).await, 0, "done", "done");
    let seen = rollout.done().await;
    assert!(seen.observed.outages.len() >= 3, "{:?}", seen.observed);
}
