//! `agent run` at a terminal: the plan, then y or N; and who is never asked.

use rustix::process::Signal;
use tests::{
    case::Case,
    ended::{Ended, all_must_be},
    on_both,
    rollout::{Ends, Rollout},
    system::System,
    wait::{self, GENEROUS},
};

use crate::terminal::{END, INTERRUPT, Terminal};

on_both! {
    nothing_is_touched_unless_the_answer_is_yes, etcd #[ignore = "slow: the node's row shows the same"];
    yes_is_asked_for_once_and_a_script_never, etcd #[ignore = "slow: the node's row shows the same"];
    what_an_agent_left_in_the_middle_goes_on_unasked, etcd #[ignore = "slow: the node's row shows the same"];
    a_member_that_somebody_stopped_is_started_by_a_yes_alone, etcd #[ignore = "slow: the node's row shows the same"];
    the_only_member_is_started_by_a_yes_and_then_the_plan_is_asked_for, etcd #[ignore = "slow: the node's row shows the same"];
    #[ignore = "slow: one that somebody stopped is started by a yes alone by default"]
    of_two_members_only_the_one_in_hand_is_started_before_the_answer;
    a_decision_for_every_host_is_asked_for_too, etcd #[ignore = "slow: the node's row shows the same"];
}

const QUESTION: &str = "Go on as planned? [y/N] ";

async fn rollout(system: System) -> Option<Rollout> {
    Some(Case::of(system).await?.begin().await)
}

fn at_terminal(rollout: &Rollout, verb: &str, host: usize, more: &[&str]) -> Terminal {
    Terminal::start(verb, &rollout.playbooks[host], more)
}

async fn nothing_is_touched_unless_the_answer_is_yes(system: System) {
    let Some(rollout) = rollout(system).await else { return };
    let before = rollout.raft_status().await;
    for (typed, reason) in
        [("n\n", "declined"), ("\n", "declined"), ("yo\n", "declined"), (END, "declined"), (INTERRUPT, "interrupted")]
    {
        let mut terminal = at_terminal(&rollout, "run", 0, &[]);
        terminal.until_shown(QUESTION).await;
        let shown = terminal.shown();
        assert!(shown.contains("<- the point of no return"), "{shown}");
        assert!(shown.contains("then take m1 down") || shown.contains("wait for"), "{shown}");
        assert_eq!(rollout.raft_status().await, before, "nothing is held while it asks");
        // Whoever asks holds no lock: the same playbook is planned beside it.
        rollout.one("plan", 0).await.must_be(0, "planned");
        terminal.types(typed);
        let (exit, shown) = terminal.ended().await;
        assert_eq!(exit, Some(10), "{typed:?}: {shown}");
        assert!(shown.contains(&format!("reason {reason})")), "{typed:?}: {shown}");
        assert_eq!(rollout.raft_status().await, before, "{typed:?}");
    }
    assert!(!rollout.member(0).state_dir().exists(), "not even a folder was made");
    rollout.end(0).await;
}

async fn yes_is_asked_for_once_and_a_script_never(system: System) {
    let Some(rollout) = rollout(system).await else { return };
    // One asked, one with --yes, and one like any script's: they go in turn.
    let mut asked = at_terminal(&rollout, "run", 0, &[]);
    asked.until_shown(QUESTION).await;
    asked.types("y\n");
    let unasked = at_terminal(&rollout, "run", 1, &["--yes"]);
    let script = rollout.start(2);
    let ((first, shown), (second, silent)) = (asked.ended().await, unasked.ended().await);
    script.ends().await.must_be(0, "done");
    assert_eq!((first, second), (Some(0), Some(0)), "{shown}\n{silent}");
    assert_eq!(shown.matches("[y/N]").count(), 1, "{shown}");
    assert!(!silent.contains("[y/N]"), "{silent}");

    // All of it is done: there is nothing to ask for.
    let (exit, shown) = at_terminal(&rollout, "run", 0, &[]).ended().await;
    assert_eq!(exit, Some(0), "{shown}");
    assert!(shown.contains("nothing to do") && !shown.contains("[y/N]"), "{shown}");
    rollout.done().await;
}

async fn what_an_agent_left_in_the_middle_goes_on_unasked(system: System) {
    let Some(rollout) = rollout(system).await else { return };
    let killed = rollout.start(0);
    wait::until("its member to be down", GENEROUS, || async {
        let events = killed.events().map_err(|error| error.to_string())?;
        events.iter().find(|event| event.event == "member_stopping").map(drop).ok_or_else(|| killed.log())
    })
    .await
    .expect("it goes down");
    killed.process().expect("it runs").signal(Signal::KILL).expect("killed");
    killed.ends().await;

    let resumed = at_terminal(&rollout, "run", 0, &[]);
    let others = rollout.run([1, 2]);
    let (exit, shown) = resumed.ended().await;
    others.await.iter().for_each(Ended::must_succeed);
    assert_eq!(exit, Some(0), "{shown}");
    assert!(!shown.contains("[y/N]"), "{shown}");
    rollout.done().await;
}

async fn a_member_that_somebody_stopped_is_started_by_a_yes_alone(system: System) {
    let Some(rollout) = rollout(system).await else { return };
    rollout.member(0).end(Signal::TERM).expect("ended");
    // The plan foretells it, to people and to scripts.
    let planned = rollout.one("plan", 0).await;
    assert_eq!((planned.said("reason"), planned.said("now")), ("planned", "start m1"), "{planned}");
    let step = &planned.result.as_ref().expect("a result")["steps"][0];
    assert_eq!((&step["member"], &step["action"]), (&"m1".into(), &"start".into()), "{planned}");
    for (typed, reason) in [("n\n", "declined"), (END, "declined"), (INTERRUPT, "interrupted")] {
        let mut terminal = at_terminal(&rollout, "run", 0, &[]);
        terminal.until_shown(QUESTION).await;
        let shown = terminal.shown();
        assert!(shown.contains("m1  start: it is not running") && shown.contains("would now: start m1"), "{shown}");
        assert!(!rollout.keys().await.contains_key("baton"), "nothing is held");
        terminal.types(typed);
        let (exit, shown) = terminal.ended().await;
        assert_eq!(exit, Some(10), "{typed:?}: {shown}");
        assert!(shown.contains(&format!("reason {reason})")), "{typed:?}: {shown}");
        assert!(reason != "declined" || shown.contains("not running: m1"), "{typed:?}: {shown}");
        assert!(!rollout.member(0).is_running(), "{typed:?}: it was stopped, and stays so: {shown}");
    }
    assert!(!rollout.member(0).state_dir().exists(), "not even a folder was made");

    let mut terminal = at_terminal(&rollout, "run", 0, &[]);
    terminal.until_shown(QUESTION).await;
    terminal.types("y\n");
    let (exit, shown) = terminal.ended().await;
    assert_eq!(exit, Some(0), "{shown}");
    let id = planned.result.as_ref().expect("a result")["members"][0]["id"].as_str().expect("an id").to_owned();
    assert!(!shown.contains(&format!("{id}  ")), "members have names: {shown}");
    all_must_be(&rollout.run([1, 2]).await, 0, "done");
    rollout.done().await;
}

/// One was taken down by an agent that was killed, the other was stopped by a person.
async fn of_two_members_only_the_one_in_hand_is_started_before_the_answer(system: System) {
    let Some(mut case) = Case::of(system).await else { return };
    case.hosts = vec![vec![0, 1], vec![2]];
    let rollout = case.begin().await;
    let killed = rollout.start(0);
    let stopping = wait::until("a member to go down", GENEROUS, || async {
        let events = killed.events().map_err(|error| error.to_string())?;
        let stopping = events.into_iter().find(|event| event.event == "member_stopping");
        stopping.and_then(|event| event.member).ok_or_else(|| killed.log())
    });
    let in_hand = usize::from(stopping.await.expect("one goes down") == "m2");
    killed.process().expect("it runs").signal(Signal::KILL).expect("killed");
    killed.ends().await;
    let stopped = 1 - in_hand;
    rollout.member(stopped).end(Signal::TERM).expect("ended");

    let mut terminal = at_terminal(&rollout, "run", 0, &[]);
    terminal.until_shown("[y/N] ").await;
    let shown = terminal.shown();
    assert!(rollout.member(in_hand).is_running(), "the journal says that it is down by our hand: {shown}");
    assert!(!rollout.member(stopped).is_running(), "nobody knows why it is down: {shown}");
    terminal.types("n\n");
    let (exit, shown) = terminal.ended().await;
    assert_eq!(exit, Some(10), "{shown}");
    assert!(shown.contains(&format!("not running: m{}", stopped + 1)), "{shown}");
    assert!(!rollout.member(stopped).is_running(), "{shown}");
    for ended in rollout.all("run").await {
        ended.must_succeed();
    }
    rollout.arrives().await;
    rollout.end(2).await;
}

/// Where nobody answers no plan can be made: the start alone is asked for, then the plan.
async fn the_only_member_is_started_by_a_yes_and_then_the_plan_is_asked_for(system: System) {
    let Some(case) = Case::with(system, |spec| spec.size = 1).await else { return };
    let rollout = case.strategy(&["allow_downtime: true"]).begin().await;
    rollout.member(0).end(Signal::TERM).expect("ended");
    let planned = rollout.one("plan", 0).await;
    planned.must_be(3, "unreachable");
    assert_eq!(planned.said("now"), "start m1", "{planned}");
    assert!(planned.said("left").contains("not running: m1"), "{planned}");
    let looked = rollout.one("status", 0).await;
    looked.must_be(3, "unreachable");
    assert!(looked.said("next").starts_with("agent run "), "another look shows no more: {looked}");

    let mut terminal = at_terminal(&rollout, "run", 0, &[]);
    terminal.until_shown("Start m1, and plan again? [y/N] ").await;
    terminal.types("n\n");
    let (exit, shown) = terminal.ended().await;
    assert_eq!(exit, Some(10), "{shown}");
    assert!(!rollout.member(0).is_running(), "{shown}");

    let events = rollout.layout().dir.join("asked.jsonl");
    let mut terminal = at_terminal(&rollout, "run", 0, &["--events", &events.display().to_string()]);
    terminal.until_shown("Start m1, and plan again? [y/N] ").await;
    terminal.types("y\n");
    terminal.until_shown(QUESTION).await;
    assert!(rollout.member(0).is_running(), "{}", terminal.shown());
    terminal.types("n\n");
    let (exit, shown) = terminal.ended().await;
    assert_eq!(exit, Some(10), "{shown}");
    assert_eq!(rollout.releases().await, [rollout.from.release.to_string()]);
    let told = std::fs::read_to_string(events).expect("events");
    let count = |name: &str| told.matches(&format!(r#""event":"{name}""#)).count();
    assert_eq!((count("node_started"), count("begun")), (1, 0), "no run was set up: {told}");
    rollout.one("run", 0).await.must_be(0, "done");
    rollout.done().await;
}

async fn a_decision_for_every_host_is_asked_for_too(system: System) {
    let Some(case) = Case::of(system).await else { return };
    // However slowly the others begin, none is taken for absent.
    let rollout = case.strategy(&["finalize: manual", "join_window: 60s"]).begin().await;
    all_must_be(&rollout.all("run").await, 0, "held");
    let before = rollout.raft_status().await;
    for (verb, shown) in [("rollback", "3.5.0"), ("finalize", "<- the point of no return")] {
        for host in 0..3 {
            let mut terminal = at_terminal(&rollout, verb, host, &[]);
            terminal.until_shown(QUESTION).await;
            assert!(system == System::Etcd || terminal.shown().contains(shown), "{verb}: {}", terminal.shown());
            terminal.types("\n");
            let (exit, shown) = terminal.ended().await;
            assert_eq!(exit, Some(10), "{verb} of {host}: {shown}");
            assert!(shown.contains(&format!("next:  agent {verb} ")), "{verb} of {host}: {shown}");
        }
    }
    assert_eq!(rollout.raft_status().await, before, "the run still holds");
    rollout.end(1).await;
}
