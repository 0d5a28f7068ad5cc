//! The state directory is lost in the middle of a step: journal, host id, and what was known of processes.

use std::fs;

use serde_json::json;
use tests::{fault::Moment, on_both, rollout::Rollout, skip::skip, system::System};

use crate::{
    is_finished,
    kill::{held_at, kill_at},
    rollout,
    step_lock::{put_record, record},
};

on_both! {
    a_lost_state_directory_is_made_up_for_by_the_same_command, etcd #[ignore = "slow: the node's row shows the same"];
    #[ignore = "slow: waits; twins of one host are refused by default in attack"]
    a_second_state_directory_is_refused_while_the_first_ones_agent_lives;
}

/// Without a machine id nobody can say that a record is this machine's.
fn has_machine_id() -> bool {
    fs::read_to_string("/etc/machine-id").is_ok_and(|id| id.trim().len() == 32)
}

async fn is_refused(rollout: &Rollout, index: usize, words: &[&str], next: &str) {
    let ended = rollout.one("run", index).await;
    ended.must_be(3, "step_of_another");
    assert!(words.iter().all(|word| ended.message().contains(word)) && ended.said("next").contains(next), "{ended}");
}

async fn a_lost_state_directory_is_made_up_for_by_the_same_command(system: System) {
    if !has_machine_id() {
        return skip("this machine has no /etc/machine-id");
    }
    let Some(rollout) = rollout(system, &[]).await else { return };
    let killed = kill_at(&rollout, 0, 4, Moment::Before).await.expect("killed while its member was down");
    assert_eq!((killed.as_str(), rollout.member(0).is_running()), ("starting forward", false));
    fs::remove_dir_all(rollout.member(0).state_dir()).expect("lost");

    let record = record(&rollout).await;
    let mut foreign = record.clone();
    let instance = record["host"].as_str().and_then(|host| host.split_once('-')).expect("a host id").1.to_owned();
    foreign["host"] = json!(format!("{:032x}-{instance}", 1));
    put_record(&rollout, 1, &foreign).await;
    is_refused(&rollout, 0, &["step of m1", "another state directory"], "abandon").await;
    assert!(rollout.member(0).is_running(), "starting a member needs nobody's leave");

    put_record(&rollout, 1, &record).await;
    is_finished(rollout).await;
}

async fn a_second_state_directory_is_refused_while_the_first_ones_agent_lives(system: System) {
    if !has_machine_id() {
        return skip("this machine has no /etc/machine-id");
    }
    let Some(rollout) = rollout(system, &[]).await else { return };
    let agent = held_at(&rollout, 0, 3).await;
    let pid = format!("pid {}", agent.pid());
    fs::rename(rollout.member(0).state_dir(), rollout.member(0).dir.join("moved away")).expect("moved");
    is_refused(&rollout, 0, &["step of m1", pid.as_str(), "still runs"], "status").await;

    drop(agent);
    is_finished(rollout).await;
}
