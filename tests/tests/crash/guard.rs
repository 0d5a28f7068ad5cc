//! SIGKILL at every journal boundary of a guard; its host's next agent ends the step, and the command is never begun twice.

use std::fs;

use tests::{
    agent::Agent,
    case::Case,
    fault::Moment,
    journal::last_entry,
    on_both,
    rollout::{Ends as _, LIMIT, Rollout},
    system::System,
};

use crate::{
    boundary::{are_all_stages, boundary},
    kill::{cut, journal},
};

on_both! {
    a_guard_killed_at_any_journal_boundary_is_ended_by_the_next_agent, etcd #[ignore = "slow: the node's row shows the same"];
}

/// The last record of a guard's journal that was killed there, and how often its command began; `None` where it ended unkilled.
async fn killed(rollout: &Rollout, host: usize, nth: usize, moment: Moment) -> Option<(String, usize)> {
    let pid = rollout.pids()[host].expect("it runs");
    let begun = rollout.layout().dir.join(format!("begun-{host}-{nth}-{moment:?}"));
    let script = format!("echo x >> {}; kill -TERM {pid}", begun.display());
    let argv = ["--", "/bin/sh", "-c", &script];
    let cut = cut(rollout, host, nth, moment);
    let guard = Agent::start_under("guard", &rollout.playbooks[host], &argv, |argv| cut.wrap(&argv)).expect("an agent");
    let process = guard.process().expect("it runs");
    let was_cut = tokio::task::spawn_blocking(move || cut.carry_out(&process, LIMIT)).await.expect("no panic");
    let ended = guard.ends().await;
    let count = || fs::read_to_string(&begun).unwrap_or_default().lines().count();
    if !was_cut.expect("cut or ended") {
        ended.must_be(0, "guarded");
        assert_eq!(count(), 1);
        return None;
    }
    let last = last_entry(&journal(rollout, host));
    rollout.start_with("guard", host, &["--finish"]).ends().await.must_succeed();
    println!("guard of host {host}: killed {moment:?} fsync {nth}, last record: {last}, begun {}", count());
    Some((last, count()))
}

async fn a_guard_killed_at_any_journal_boundary_is_ended_by_the_next_agent(system: System) {
    let Some(case) = Case::of(system).await else { return };
    let rollout = case.begin().await;
    let mut seen = Vec::new();
    for number in 0.. {
        let (nth, moment) = boundary(number);
        // Its first agent makes a journal: each boundary is looked for on one host.
        let Some((last, count)) = killed(&rollout, 0, nth, moment).await else { break };
        assert!(count <= 1, "begun {count} times");
        assert!(count == 0 || !last.starts_with("planned"), "begun without a note: {last}");
        let (now, keys) = (rollout.pids(), rollout.keys().await);
        assert!(now.iter().all(Option::is_some) && !keys.contains_key("step"), "{now:?} {keys:?}");
        seen.push(last);
    }
    are_all_stages(&seen, &["planned", "runs", "forgotten"]);
    rollout.end(1).await;
}
