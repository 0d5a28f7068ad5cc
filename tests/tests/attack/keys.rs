//! Keys below `/baton/` that no agent of this rollout wrote as they are: whoever may write there must not stop every agent
//! for ever, nor have one drop what another wrote.

use proto::{
    MemberId,
    etcdserverpb::{DeleteRangeRequest, LeaseGrantRequest, PutRequest, kv_client::KvClient, lease_client::LeaseClient},
};
use serde_json::{Value, json};
use tests::{
    case::Case,
    ended::Ended,
    rollout::{Ends, Rollout},
    system::System,
};

/// Nobody's host id.
const GHOST: &str = "agents/none-000000000000000000000000000000ab";

async fn rollout() -> Option<Rollout> {
    let strategy = ["join_window: 1s", "health: { timeout: 30s }", "stall_timeout: 40s", "on_failure: stop"];
    Some(Case::of(System::Node).await?.strategy(&strategy).begin().await)
}

/// However late some of them come.
async fn finish(rollout: Rollout) {
    for _ in 0..2 {
        rollout.run(0..3).await.iter().for_each(Ended::must_succeed);
    }
    rollout.done().await;
}

async fn put(rollout: &Rollout, name: &str, value: &str) {
    rollout.client(0).put(&format!("/baton/{name}"), value).await.expect("written");
}

async fn delete(rollout: &Rollout, name: &str) {
    let request = DeleteRangeRequest { key: format!("/baton/{name}").into(), ..DeleteRangeRequest::default() };
    KvClient::new(rollout.client(0).channel()).delete_range(request).await.expect("deleted");
}

/// An agent that would have to go first, as far as its key says so.
async fn participant(rollout: &Rollout, member: usize) -> Value {
    let status = rollout.client(member).status().await.expect("it answers");
    let id = MemberId(status.header.unwrap_or_default().member_id);
    let process = json!({ "boot_id": format!("{:032x}", 1), "pid": 1, "pid_namespace": 1, "start_time": 1 });
    json!({ "format": 1, "host_name": "ghost", "process": process, "seats": [{ "name": "m", "member": id }], "done": [], "waits_for": "nothing" })
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
    assert_eq!(stale, format!(r#"["/baton/baton","/baton/{GHOST}"]"#), "{status}");
    let ended = rollout.run(0..3).await;
    ended.iter().for_each(Ended::must_succeed);
    let warnings: String = ended.iter().map(Ended::warnings).collect();
    for name in [GHOST, "baton"] {
        let word = format!("the key /baton/{name} had no lease");
        assert_eq!(warnings.matches(&word).count(), 1, "{word}: {warnings}");
    }
    assert!(!rollout.keys().await.contains_key(GHOST));
    finish(rollout).await;
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
    finish(rollout).await;
}

/// More than one answer may hold, by default, below the same prefix: none of it is an agent's.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "slow: the rules of keys have tables of their own"]
async fn what_others_put_beside_the_keys_is_not_read() {
    let Some(rollout) = rollout().await else { return };
    for number in 0..4 {
        put(&rollout, &format!("backup-{number}"), &"x".repeat(1_400_000)).await;
    }
    rollout.one("plan", 0).await.must_be(0, "planned");
    finish(rollout).await;
}

/// A key of ours that is too large is named with its size, and nothing is stopped.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "slow: the rules of keys have tables of their own"]
async fn a_key_that_no_agent_makes_so_large_is_named() {
    let Some(rollout) = rollout().await else { return };
    put(&rollout, "run", &"x".repeat(300_000)).await;
    for verb in ["plan", "run"] {
        let ended = rollout.one(verb, 0).await;
        ended.must_be(3, "keys_too_large");
        assert!(ended.message().contains("/baton/run holds 300000 bytes"), "{ended}");
        assert!(ended.said("next").starts_with("agent keys "), "{ended}");
    }
    // More than one answer is taken to hold, together.
    delete(&rollout, "run").await;
    for number in 0..13 {
        put(&rollout, &format!("abandoned/{number:016x}"), &"x".repeat(1_400_000)).await;
    }
    let ended = rollout.one("run", 0).await;
    ended.must_be(3, "keys_too_large");
    assert!(ended.message().contains("/baton/abandoned/0000000000000000 holds 1400000 bytes"), "{ended}");
    for number in 0..13 {
        delete(&rollout, &format!("abandoned/{number:016x}")).await;
    }
    for number in 0..257 {
        put(&rollout, &format!("abandoned/{number:016x}"), "{}").await;
    }
    let ended = rollout.one("run", 0).await;
    ended.must_be(3, "keys_too_large");
    assert!(ended.message().contains("more than 256 keys lie below /baton/abandoned/"), "{ended}");
    for number in 0..257 {
        delete(&rollout, &format!("abandoned/{number:016x}")).await;
    }
    finish(rollout).await;
}

/// What `agent keys` says of one key.
fn listed<'e>(ended: &'e Ended, name: &str) -> &'e Value {
    let keys = ended.result.as_ref().and_then(|result| result["keys"].as_array()).expect("keys");
    keys.iter().find(|key| key["key"] == format!("/baton/{name}")).unwrap_or(&Value::Null)
}

/// However damaged and large the keys are, they are shown, and only what is nobody's goes.
#[tokio::test(flavor = "multi_thread")]
async fn the_keys_are_shown_and_what_is_nobodys_is_cleared() {
    let Some(rollout) = rollout().await else { return };
    rollout.one("run", 0).await.must_be(0, "partial");
    let run = rollout.keys().await.remove("run").expect("a run stands").to_string();
    let host = "none-000000000000000000000000000000";
    put(&rollout, GHOST, &participant(&rollout, 0).await.to_string()).await;
    put(&rollout, "baton", "no json").await;
    put(&rollout, &format!("agents/{host}ac"), &"x".repeat(1_400_000)).await;
    put(&rollout, "step", "{").await;
    put(&rollout, "abandoned/0000000000000001", r#"{"format":7,"host_name":"h7"}"#).await;
    put(&rollout, "notes", "of somebody").await;
    let mut leases = LeaseClient::new(rollout.client(0).channel());
    let lease = leases.lease_grant(LeaseGrantRequest { ttl: 86_400, id: 0 }).await.expect("granted").into_inner().id;
    let leased = format!("agents/{host}ad");
    let value = participant(&rollout, 1).await.to_string().into_bytes();
    let put_leased = PutRequest { key: format!("/baton/{leased}").into(), value, lease, ..PutRequest::default() };
    KvClient::new(rollout.client(0).channel()).put(put_leased).await.expect("written");
    let before = rollout.keys().await;
    // More than one answer holds: neither is it read.
    for number in 0..4 {
        put(&rollout, &format!("x{number}"), &"x".repeat(1_400_000)).await;
    }

    let shown = rollout.one("keys", 0).await;
    shown.must_be(0, "shown");
    for (name, is) in [
        ("run", "standing"),
        (GHOST, "stale"),
        ("baton", "stale"),
        (&format!("agents/{host}ac"), "stale"),
        (&leased, "alive"),
        ("step", "damaged"),
        ("abandoned/0000000000000001", "newer"),
        ("notes", "foreign"),
        ("x3", "foreign"),
    ] {
        assert_eq!(listed(&shown, name)["is"], is, "{name}: {}", listed(&shown, name));
    }
    assert_eq!(listed(&shown, GHOST)["by"]["host"], "ghost");
    assert_eq!(listed(&shown, &leased)["lease"]["granted_s"], 86_400);
    assert_eq!(listed(&shown, "abandoned/0000000000000001")["by"]["host"], "h7");

    let cleared = rollout.start_with("keys", 0, &["--clear"]).ends().await;
    cleared.must_be(0, "cleared");
    for number in 0..4 {
        delete(&rollout, &format!("x{number}")).await;
    }
    let after = rollout.keys().await;
    let gone: Vec<_> = before.keys().filter(|name| !after.contains_key(*name)).cloned().collect();
    let expected = [GHOST.to_owned(), format!("agents/{host}ac"), "baton".to_owned()];
    assert_eq!(gone, expected);
    assert_eq!(after["run"].to_string(), run, "a run that stands is left");
    rollout.start_with("keys", 0, &["--clear"]).ends().await.must_be(0, "cleared");
    assert_eq!(rollout.keys().await.len(), after.len());
    rollout.end(1).await;
}
