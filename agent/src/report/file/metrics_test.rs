use std::{
    collections::BTreeSet,
    sync::Arc,
    time::{Duration, SystemTime},
};

use proto::MemberId;

use super::*;
use crate::{
    keys::{Going, Pause},
    plan::samples,
};

const NOON: Duration = Duration::from_millis(1_795_262_581_250);

/// Member 2 is silent in its step, 4 is a learner that never started, and an agent is there.
fn seen() -> (ClusterView, Keys) {
    let mut view = samples::view("1+ 2. 3* 4?");
    view.members[0].name = "a\\b \"c\"\n\u{1b}[2J".into();
    let mut keys = samples::keys(None, true);
    keys.agents.values_mut().for_each(|agent| agent.value.waits_for = Some("the baton".into()));
    keys.baton = Some(samples::baton(2));
    (view, keys)
}

fn page_of(view: Option<&ClusterView>, keys: Option<&Keys>) -> String {
    let mut names = view.map(Names::of).unwrap_or_default();
    keys.iter().for_each(|keys| names.learn_hosts(keys));
    let at = SystemTime::UNIX_EPOCH + NOON;
    page(&Look {
        cluster: Some("orders"),
        at,
        view,
        keys,
        names: &names,
        agent: Some(("h1", AgentRun::Ended { exit: 6, reason: "stalled" })),
    })
}

#[test]
fn a_run_in_hand_has_every_metric() {
    let (view, keys) = seen();
    insta::assert_snapshot!(page_of(Some(&view), Some(&keys)));
}

#[test]
fn what_is_not_known_is_left_out() {
    let (view, keys) = seen();
    let nobody = page_of(None, None);
    assert!(
        nobody.contains("baton_look_success{cluster=\"orders\"} 0\n") && !nobody.contains("baton_member"),
        "{nobody}"
    );
    let unread = page_of(Some(&view), None);
    assert!(
        unread.contains("baton_keys_read_success{cluster=\"orders\"} 0\n") && !unread.contains("baton_run_"),
        "{unread}"
    );
    let idle = page_of(Some(&view), Some(&Keys { run: None, step: None, ..keys }));
    assert!(
        idle.contains("baton_run_in_progress{cluster=\"orders\"} 0\n") && !idle.contains("baton_run_state"),
        "{idle}"
    );
    let names = Names::default();
    let nameless = page(&Look {
        cluster: None,
        at: SystemTime::UNIX_EPOCH,
        view: Some(&view),
        keys: None,
        names: &names,
        agent: None,
    });
    assert!(
        nameless.contains("\nbaton_look_success 1\n") && nameless.contains("_up{member=\"3\",member_id=\"3\"} 1\n")
    );
}

#[test]
fn a_run_is_in_one_state_and_in_progress_until_it_is_done() {
    for (state, name, in_progress) in [
        (RunState::Rolling, "rolling", 1),
        (RunState::Failed { member: MemberId(2), why: "it".into(), was: Going::Rolling }, "failed", 1),
        (RunState::Held { member: MemberId(2) }, "held", 1),
        (RunState::Approved, "approved", 1),
        (RunState::RollingBack, "rolling_back", 1),
        (RunState::Approved, "paused", 1),
        (RunState::Done { result: RunResult::Reached }, "done", 0),
        (RunState::Done { result: RunResult::RolledBack }, "done_rolled_back", 0),
    ] {
        let pause = (name == "paused").then(|| Arc::new(Pause { by: "h1".into(), at: "".into(), why: None }));
        let keys = Keys { run: Some(samples::at(Run { pause, ..samples::run(state) })), ..Keys::default() };
        let page = page_of(Some(&samples::view("1+ 2+ 3+")), Some(&keys));
        let on: Vec<_> =
            page.lines().filter(|line| line.starts_with("baton_run_state{") && line.ends_with(" 1")).collect();
        assert_eq!(on, [format!("baton_run_state{{cluster=\"orders\",state=\"{name}\"}} 1")]);
        assert!(
            page.contains(&format!("baton_run_in_progress{{cluster=\"orders\"}} {in_progress}\n")),
            "{name}: {page}"
        );
    }
}

/// Prometheus takes no page in which a series stands twice.
#[test]
fn agents_of_hosts_of_one_name_are_one_series() {
    let (view, mut keys) = seen();
    let mut twin = keys.agents.values().next().unwrap().clone();
    twin.value.waits_for = None;
    keys.agents.insert(samples::host(3), twin);
    let page = page_of(Some(&view), Some(&keys));
    let series: Vec<_> =
        page.lines().filter(|line| !line.starts_with('#')).map(|line| line.rsplit_once(' ').unwrap().0).collect();
    assert_eq!(series.len(), series.iter().collect::<BTreeSet<_>>().len(), "{page}");
    assert!(page.contains("baton_agent_waits{cluster=\"orders\",host=\"h2\"} 1\n"), "one of them waits: {page}");
}

#[test]
fn a_step_is_told_without_its_seconds() {
    for (step, told) in
        [("soaking 3 of 8 s", "soaking"), ("given up", "given up"), ("going back: stopping", "going back: stopping")]
    {
        assert_eq!(stage(step), told);
    }
}
