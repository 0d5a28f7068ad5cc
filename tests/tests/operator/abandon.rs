//! `agent abandon` at a terminal and in a script: who is asked, and that nobody is given up who is at work.

use rustix::process::Signal;
use tests::{
    case::Case,
    on_both,
    rollout::{Ends, Rollout},
    system::System,
    wait::{self, GENEROUS},
};

use crate::terminal::{END, INTERRUPT, Terminal};

on_both! {
    a_step_is_given_up_by_a_yes_and_never_while_its_agent_is_at_work, etcd #[ignore = "slow: a wait for a lease, which the node's row shows too"];
}

/// An agent that was killed when its record stood and its member was down; its lease is alive for a while.
async fn killed_in_a_step(system: System) -> Option<Rollout> {
    let rollout = Case::of(system).await?.begin().await;
    let agent = rollout.start(0);
    wait::until("its member to be down", GENEROUS, || async {
        let events = agent.events().map_err(|error| error.to_string())?;
        events.iter().find(|event| event.event == "member_stopping").map(drop).ok_or_else(|| agent.log())
    })
    .await
    .expect("it goes down");
    agent.process().expect("it runs").signal(Signal::KILL).expect("killed");
    agent.ends().await;
    Some(rollout)
}

async fn a_step_is_given_up_by_a_yes_and_never_while_its_agent_is_at_work(system: System) {
    let Some(rollout) = killed_in_a_step(system).await else { return };
    let typed = |more: &[&str]| Terminal::start("abandon", &rollout.playbooks[1], &[&["m1"], more].concat());
    let fenced = ["--host-is-fenced"];

    // Whoever has just died looks alive, and whoever looks alive is given up by nobody without --yes.
    for more in [&[][..], &fenced] {
        let script = rollout.start_with("abandon", 1, &[&["m1"], more].concat()).ends().await;
        script.must_be(3, "agent_at_work");
        assert!(script.said("left").contains("--yes"), "{script}");
        let (exit, shown) = typed(more).ended().await;
        assert_eq!(exit, Some(3), "{shown}");
        assert!(shown.contains("reason agent_at_work") && !shown.contains("[y/N]"), "{shown}");
    }
    assert!(rollout.keys().await.contains_key("step"));

    rollout
        .until_keys("its lease to run out", |keys| {
            (!keys.keys().any(|key| key.starts_with("agents/") || key == "baton")).then_some(())
        })
        .await;
    let before = rollout.raft_status().await;
    for (more, words) in [(&[][..], "Give it up? [y/N] "), (&fenced, "dead for good? [y/N] ")] {
        for (answer, reason) in [("n\n", "declined"), ("\n", "declined"), (END, "declined"), (INTERRUPT, "interrupted")]
        {
            let mut terminal = typed(more);
            terminal.until_shown(words).await;
            terminal.types(answer);
            let (exit, shown) = terminal.ended().await;
            assert_eq!(exit, Some(10), "{answer:?}: {shown}");
            assert!(shown.contains(&format!("reason {reason})")), "{answer:?}: {shown}");
        }
    }
    assert_eq!(rollout.raft_status().await, before, "nothing was given up");

    let yes = async |more: &[&str], words: &str| {
        let mut terminal = typed(more);
        terminal.until_shown(words).await;
        terminal.types("y\n");
        let (exit, shown) = terminal.ended().await;
        assert_eq!(exit, Some(0), "{shown}");
    };
    yes(&[], "nobody takes a member down until").await;
    assert!(rollout.keys().await.keys().any(|key| key.starts_with("abandoned/")));
    // Once more changes nothing, so nothing is asked.
    let (exit, shown) = typed(&[]).ended().await;
    assert!(exit == Some(0) && !shown.contains("[y/N]"), "{shown}");
    yes(&fenced, "is believed without a proof").await;
    assert!(!rollout.keys().await.keys().any(|key| key.starts_with("abandoned/")));
    rollout.end(1).await;
}
