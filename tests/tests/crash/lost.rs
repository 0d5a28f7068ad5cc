//! The state directory is lost in the middle of a step: journal, host id, and what was known of processes.

use std::fs;

use serde_json::{Value, json};
use tests::{agent::Agent, fault::Moment, skip::skip};

use crate::rollout::{Change, LIMIT, Rollout};

/// Without a machine id nobody can say that a record is this machine's.
fn has_machine_id() -> bool {
    fs::read_to_string("/etc/machine-id").is_ok_and(|id| id.trim().len() == 32)
}

impl Rollout {
    async fn is_refused(&self, index: usize, words: &[&str], next: &str) {
        let ended = self.run(index).await;
        ended.must_be(3, "record_of_another");
        let result = ended.result.unwrap_or(Value::Null);
        let message = result["message"].as_str().unwrap_or_default();
        assert!(words.iter().all(|word| message.contains(word)), "{message}");
        assert!(result["next"].as_str().is_some_and(|text| text.contains(next)), "{result}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_state_directory_is_made_up_for_by_the_same_command() {
    let Some(change) = Change::of_minor() else { return };
    if !has_machine_id() {
        return skip("this machine has no /etc/machine-id");
    }
    let rollout = Rollout::begin(&change, &[]).await;
    let killed = rollout.kill_at(0, 4, Moment::Before).await.expect("killed while its member was down");
    assert_eq!((killed.last.as_str(), rollout.member(0).is_running()), ("starting forward", false));
    fs::remove_dir_all(rollout.state_dir(0)).expect("lost");

    let record = rollout.record(1).await;
    let mut foreign = record.clone();
    let instance = record["host"].as_str().and_then(|host| host.split_once('-')).expect("a host id").1.to_owned();
    foreign["host"] = json!(format!("{:032x}-{instance}", 1));
    rollout.put_record(1, &foreign).await;
    rollout.is_refused(0, &["take-down of m1", "another state directory"], "abandon").await;
    assert!(rollout.member(0).is_running(), "starting a member needs nobody's leave");

    rollout.put_record(1, &record).await;
    rollout.run_everywhere().await;
    rollout.end_one_at_a_time().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_state_directory_is_refused_while_the_first_ones_agent_lives() {
    let Some(change) = Change::of_minor() else { return };
    if !has_machine_id() {
        return skip("this machine has no /etc/machine-id");
    }
    let rollout = Rollout::begin(&change, &[]).await;
    let cut = rollout.cut(0, 3, Moment::After);
    let agent = Agent::start_under("run", &rollout.playbooks[0], &[], |argv| cut.wrap(&argv)).expect("an agent");
    let process = agent.process().expect("it runs");
    let pid = format!("pid {}", process.pid);
    let held = tokio::task::spawn_blocking(move || cut.hold(&process, LIMIT)).await.expect("no panic");
    assert!(held.expect("held"), "its member is down");
    fs::rename(rollout.state_dir(0), rollout.member(0).dir.join("moved away")).expect("moved");
    rollout.is_refused(0, &["take-down of m1", pid.as_str(), "still runs"], "status").await;

    drop(agent);
    rollout.run_everywhere().await;
    rollout.end_one_at_a_time().await;
}
