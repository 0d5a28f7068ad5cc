//! Keys below `/baton/` that no agent of this rollout wrote as they are: whoever may write there must not stop every agent
//! for ever, nor have one drop what another wrote.

use proto::MemberId;
use serde_json::{Value, json};
use tests::{
    case::Case,
    ended::{Ended, all_must_be},
    rollout::Rollout,
    system::System,
};

/// Nobody's host id.
const GHOST: &str = "agents/none-000000000000000000000000000000ab";

async fn rollout() -> Option<Rollout> {
    let strategy = ["gather: 1s", "health: { timeout: 30s }", "turn: { timeout: 40s }"];
    Some(Case::of(System::Node).await?.strategy(&strategy).begin().await)
}

async fn put(rollout: &Rollout, name: &str, value: &str) {
    rollout.client(0).put(&format!("/baton/{name}"), value).await.expect("written");
}

/// An agent that would have to go first, as far as its key says so.
async fn participant(rollout: &Rollout, member: usize) -> Value {
    let status = rollout.client(member).status().await.expect("it answers");
    let id = MemberId(status.header.unwrap_or_default().member_id);
    json!({ "format": 1, "host_name": "ghost", "owns": [id], "done": [], "waits_for": "nothing" })
}

/// A copy of all keys that was put back without their leases, say.
#[tokio::test(flavor = "multi_thread")]
async fn what_has_no_lease_is_nobody_and_goes_with_a_word() {
    let Some(rollout) = rollout().await else { return };
    let leader = rollout.leader().await;
    let follower = (leader + 1) % 3;
    let process = json!({ "boot_id": format!("{:032x}", 1), "pid": 1, "pid_namespace": 1, "start_time": 1 });
    let host = GHOST.split_once('/').expect("a host id").1;
    let baton =
        json!({ "format": 1, "host": host, "host_name": "ghost", "take": format!("{:032x}", 7), "process": process });
    put(&rollout, GHOST, &participant(&rollout, follower).await.to_string()).await;
    put(&rollout, "baton", &baton.to_string()).await;

    let status = rollout.one("status", 0).await;
    let stale = status.result.as_ref().map(|result| result["stale"].to_string()).unwrap_or_default();
    assert_eq!(stale, format!(r#"["/baton/{GHOST}","/baton/baton"]"#), "{status}");
    let ended = rollout.run(0..3).await;
    all_must_be(&ended, 0, "done");
    let warnings: String = ended.iter().map(Ended::warnings).collect();
    for name in [GHOST, "baton"] {
        let word = format!("the key /baton/{name} had no lease");
        assert_eq!(warnings.matches(&word).count(), 1, "{word}: {warnings}");
    }
    assert!(!rollout.keys().await.contains_key(GHOST));
    rollout.done().await;
}

/// Agents are upgraded, too, and some in the middle of a run.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_newer_agent_wrote_into_the_run_stays_there() {
    let Some(rollout) = rollout().await else { return };
    rollout.one("run", 0).await.must_be(0, "partial");
    let mut run = rollout.keys().await.remove("run").expect("a run stands");
    run["hold"] = json!({ "backup": ["s3://there", null] });
    put(&rollout, "run", &run.to_string()).await;
    rollout.one("run", 1).await.must_be(0, "partial");
    let after = rollout.keys().await.remove("run").expect("a run stands");
    assert_eq!((&after["hold"], &after["format"]), (&run["hold"], &run["format"]), "{after}");
    assert_ne!(after["done"], run["done"]);

    // Nobody joins a run whose intent it reads in part.
    let mut newer = after.clone();
    newer["intent"]["change"]["upgrade"]["unless"] = json!("a full moon");
    put(&rollout, "run", &newer.to_string()).await;
    rollout.one("run", 2).await.must_be(3, "newer_agent");
    put(&rollout, "run", &after.to_string()).await;
    all_must_be(&rollout.run(0..3).await, 0, "done");
    rollout.done().await;
}
