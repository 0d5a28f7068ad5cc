//! The take-down record, read and changed from outside, and given up by `agent abandon`.

use serde_json::Value;
use tests::{
    agent::Agent,
    wait::{self, GENEROUS},
};

use crate::rollout::Rollout;

const DOWN: &str = "/baton/down";

impl Rollout {
    /// The take-down record that stands.
    pub async fn record(&self, through: usize) -> Value {
        let kv = self.client(through).get(DOWN).await.expect("an answer").expect("a record stands");
        serde_json::from_slice(&kv.value).expect("JSON")
    }

    /// Writes another record over the one that stands.
    pub async fn put_record(&self, through: usize, record: &Value) {
        self.client(through).put(DOWN, &record.to_string()).await.expect("written");
    }

    /// `agent abandon MEMBER`, typed on another host; gives the key of the sign that stays.
    pub async fn abandon(&self, through: usize, member: &str, more: &[&str]) -> String {
        let record = self.record(through).await;
        let typed = [&[member], more].concat();
        let agent = Agent::start("abandon", &self.playbooks[through], &typed).expect("started");
        let ended = agent.ended(GENEROUS).await.expect("an end");
        let reason = if more.is_empty() { "abandoned" } else { "fenced" };
        ended.must_be(0, reason);
        format!("/baton/lost/{}", record["member"].as_str().expect("an id"))
    }

    /// Waits until this key is gone.
    pub async fn is_gone(&self, through: usize, key: &str) {
        let client = self.client(through);
        wait::until(&format!("{key} to be cleared"), GENEROUS, || async {
            match client.get(key).await {
                Ok(None) => Ok(()),
                Ok(Some(_)) => Err("it stands".to_owned()),
                Err(status) => Err(status.to_string()),
            }
        })
        .await
        .expect("its own host clears it");
    }
}
