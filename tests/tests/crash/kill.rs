//! SIGKILL or a standstill at an fsync of an agent's journal.

use std::path::PathBuf;

use tests::{
    agent::Agent,
    ended::Ended,
    fault::{Call, Cut, Moment},
    journal::last_entry,
    rollout::{Ends, LIMIT, Rollout},
};

pub fn journal(rollout: &Rollout, index: usize) -> PathBuf {
    rollout.member(index).state_dir().join("journal")
}

/// Where strace writes what it saw of this host's agent.
pub fn trace(rollout: &Rollout, index: usize) -> PathBuf {
    rollout.layout().dir.join(format!("trace-{index}"))
}

/// A cut of this host's agent at the nth fsync of its journal.
pub fn cut(rollout: &Rollout, index: usize, nth: usize, moment: Moment) -> Cut {
    let (file, trace) = (journal(rollout, index), trace(rollout, index));
    Cut { file, call: Call::Fdatasync, nth, moment, trace }
}

/// Starts this host's agent, and returns when it stands still right after the nth fsync of its journal.
pub async fn held_at(rollout: &Rollout, index: usize, nth: usize) -> Agent {
    let cut = cut(rollout, index, nth, Moment::After);
    let agent = Agent::start_under("run", &rollout.playbooks[index], &[], |argv| cut.wrap(&argv)).expect("an agent");
    is_held(&agent, cut).await;
    agent
}

/// Waits until an agent that this cut wraps stands still.
pub async fn is_held(agent: &Agent, cut: Cut) {
    let process = agent.process().expect("it runs");
    let held = tokio::task::spawn_blocking(move || cut.hold(&process, LIMIT)).await.expect("no panic");
    assert!(held.expect("held"), "it did not come that far");
}

/// Starts this host's agent and kills it there; `None` when it ended unkilled, and well.
pub async fn kill_at(rollout: &Rollout, index: usize, nth: usize, moment: Moment) -> Option<String> {
    kill_verb_at(rollout, "run", index, nth, moment).await.map_err(|ended| ended.must_succeed()).ok()
}

/// The same for any verb: the last record of its journal, by name; or how it ended, when it ended unkilled.
pub async fn kill_verb_at(
    rollout: &Rollout,
    verb: &str,
    index: usize,
    nth: usize,
    moment: Moment,
) -> Result<String, Ended> {
    let cut = cut(rollout, index, nth, moment);
    let agent = Agent::start_under(verb, &rollout.playbooks[index], &[], |argv| cut.wrap(&argv)).expect("an agent");
    let process = agent.process().expect("it runs");
    let was_cut = tokio::task::spawn_blocking(move || cut.carry_out(&process, LIMIT)).await.expect("no panic");
    let ended = agent.ends().await;
    if !was_cut.expect("cut or ended") {
        return Err(ended);
    }
    assert_eq!(ended.signal, Some(9), "{ended}");
    let last = last_entry(&journal(rollout, index));
    println!("{verb} of {}: killed {moment:?} fsync {nth}, last record: {last}", rollout.member(index).name);
    Ok(last)
}
