//! Signals and pipes: an end that was asked for leaves every member serving, a closed terminal changes nothing.

use std::{ffi::OsString, time::Duration};

use rustix::process::Signal;
use tests::{
    agent::Agent,
    case::Case,
    ended::Ended,
    fault::{self, Moment},
    on_both,
    rollout::Ends,
    system::System,
};

use crate::{
    is_finished,
    kill::{cut, held_at, is_held},
    rollout,
};

on_both! {
    agents_asked_to_end_at_any_moment_leave_every_member_serving, etcd #[ignore = "slow: the node's row shows the same"];
    a_second_signal_ends_an_agent_at_once_and_the_same_command_goes_on, etcd #[ignore = "slow: the node's row shows the same"];
    #[ignore = "slow: agents are asked to end at any moment by default"]
    what_whoever_starts_it_ignores_or_blocks_changes_nothing;
    #[ignore = "slow: agents are asked to end at any moment by default"]
    a_closed_terminal_changes_nothing;
}

/// Rounds of signals before the job is finished in peace.
const ROUNDS: u64 = 4;
/// The latest moment of a signal, after the start.
const LATEST_MS: u64 = 4_000;

/// SplitMix64: the seed is printed, and the same one gives the same moments.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }
}

fn seed() -> u64 {
    let given = std::env::var("BATON_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = given.unwrap_or_else(|| u64::from(std::process::id()));
    println!("BATON_SEED={seed}");
    seed
}

async fn signalled(agent: Agent, signal: Signal, after: Duration) -> Ended {
    tokio::time::sleep(after).await;
    // One that has ended already is not there to be told.
    agent.process().and_then(|process| Ok(process.signal(signal)?)).ok();
    agent.ends().await
}

async fn agents_asked_to_end_at_any_moment_leave_every_member_serving(system: System) {
    let Some(rollout) = rollout(system, &[]).await else { return };
    let (mut chance, mut interrupted) = (Chance(seed()), 0);
    for _ in 0..ROUNDS {
        let mut next = |index| {
            let signal = if chance.below(2) == 0 { Signal::INT } else { Signal::TERM };
            signalled(rollout.start(index), signal, Duration::from_millis(chance.below(LATEST_MS)))
        };
        let (first, second, third) = tokio::join!(next(0), next(1), next(2));
        for ended in [first, second, third] {
            // Before the agent listens to signals there is nothing to leave behind.
            let is_early = ended.signal.is_some() && ended.result.is_none();
            let is_asked = (ended.exit, ended.reason()) == (Some(10), "interrupted");
            assert!(is_early || is_asked || ended.exit == Some(0), "{ended}");
            interrupted += u32::from(is_asked);
        }
        rollout.cluster.ready().await.expect("every member serves");
    }
    println!("{interrupted} agents were interrupted");
    is_finished(rollout).await;
}

async fn a_second_signal_ends_an_agent_at_once_and_the_same_command_goes_on(system: System) {
    let Some(rollout) = rollout(system, &[]).await else { return };
    for (index, nth) in [(0, 3), (1, 4)] {
        // Held while its member is down, it is told twice before it can do anything about the first time.
        let agent = held_at(&rollout, index, nth).await;
        let told_twice = agent.process().expect("it runs");
        assert!(!rollout.member(index).is_running());
        told_twice.signal(Signal::INT).expect("told");
        told_twice.signal(Signal::TERM).expect("told again, by another signal, since equal ones that wait are one");
        fault::thaw(&told_twice).expect("thawed");
        agent.ends().await.must_be(10, "interrupted_at_once");
        rollout.one("run", index).await.must_succeed();
    }
    is_finished(rollout).await;
}

/// SIGCHLD ignored, SIGTERM and SIGCHLD blocked: both are inherited through execve(2).
const DEAF: &str = "import os, signal, sys\n\
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)\n\
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGCHLD})\n\
    os.execvp(sys.argv[1], sys.argv[1:])\n";

/// A hook is waited for, and the member has nothing of it.
async fn what_whoever_starts_it_ignores_or_blocks_changes_nothing(system: System) {
    let Some(mut case) = Case::of(system).await else { return };
    case.upgrade.extra = vec!["hooks: { before_node: [[/bin/sh, -c, \"exit 0\"]] }".into()];
    let rollout = case.strategy(&["join_window: 1s"]).begin().await;
    let deaf = |argv: Vec<OsString>| ["python3", "-c", DEAF].map(OsString::from).into_iter().chain(argv).collect();
    let agent = Agent::start_under("run", &rollout.playbooks[0], &[], deaf).expect("an agent");
    agent.ends().await.must_succeed();
    let pid = rollout.member(0).process().expect("it runs").pid;
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let has = |field: &str, signal: Signal| {
        let bits = status.lines().find_map(|line| line.strip_prefix(field)).expect("a field").trim();
        u64::from_str_radix(bits, 16).expect("a mask") & 1 << (signal.as_raw() - 1) != 0
    };
    assert!(
        !has("SigIgn:", Signal::CHILD) && !has("SigBlk:", Signal::CHILD) && !has("SigBlk:", Signal::TERM),
        "{status}"
    );
    for host in [1, 2] {
        rollout.one("run", host).await.must_succeed();
    }
    is_finished(rollout).await;
}

async fn a_closed_terminal_changes_nothing(system: System) {
    let Some(rollout) = rollout(system, &[]).await else { return };
    let agents: Vec<_> = (0..3)
        .map(|index| {
            let cut = cut(&rollout, index, 3, Moment::After);
            (Agent::start_deaf(&rollout.playbooks[index], |argv| cut.wrap(&argv)).expect("an agent"), cut)
        })
        .collect();
    let hung_up = agents.into_iter().map(|(agent, cut)| async move {
        is_held(&agent, cut).await;
        let process = agent.process().expect("it runs");
        process.signal(Signal::HUP).expect("hung up");
        fault::thaw(&process).expect("thawed");
        agent.ends().await.must_succeed();
    });
    let [first, second, third] = hung_up.collect::<Vec<_>>().try_into().ok().expect("three of them");
    tokio::join!(first, second, third);
    rollout.done().await;
}
