//! The step lock, read and changed from outside, and given up by `agent abandon`.

use serde_json::Value;
use tests::rollout::{Ends, Rollout};

/// The step lock that stands.
pub async fn record(rollout: &Rollout) -> Value {
    rollout.keys().await.remove("step").expect("a record stands")
}

/// Writes another record over the one that stands.
pub async fn put_record(rollout: &Rollout, through: usize, record: &Value) {
    rollout.client(through).put("/baton/step", &record.to_string()).await.expect("written");
}

/// `agent abandon MEMBER`, typed on another host; gives the name of the sign that stays.
pub async fn abandon(rollout: &Rollout, through: usize, member: &str, more: &[&str]) -> String {
    let record = record(rollout).await;
    let reason = if more.is_empty() { "abandoned" } else { "fenced" };
    rollout.start_with("abandon", through, &[&[member, "--yes"], more].concat()).ends().await.must_be(0, reason);
    format!("abandoned/{}", record["member"].as_str().expect("an id"))
}

/// Waits until the host that a sign is about has cleared it.
pub async fn is_cleared(rollout: &Rollout, sign: &str) {
    rollout.until_keys(&format!("{sign} to be cleared"), |keys| (!keys.contains_key(sign)).then_some(())).await;
}
