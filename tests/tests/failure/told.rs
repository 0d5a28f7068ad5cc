//! What the end says of members that are not well any more: how things stand then, or when they stood so.

use tests::{
    case::Case,
    cluster::Member,
    on_both,
    playbook::{quoted, started_by_the_agent},
    rollout::Ends,
    sick::Illness,
    system::System,
};

use crate::SICK;

on_both! {
    a_member_that_does_not_run_is_said_to_be_down, etcd #[ignore = "slow: the node's row shows the same"];
    a_member_that_ends_is_told_of_with_the_last_words_of_its_log;
}

async fn a_member_that_does_not_run_is_said_to_be_down(system: System) {
    let Some(case) = Case::with(system, |spec| spec.size = 1).await else { return };
    let mut rollout =
        case.strategy(&["allow_downtime: true", "on_failure: stop", "health: { timeout: 5s }"]).begin().await;
    rollout.upgrade = rollout.sick(SICK, Illness::Exits);
    rollout.write();
    let ended = rollout.one("run", 0).await;
    ended.must_be(1, "step_failed");
    assert!(!rollout.member(0).is_running(), "{ended}");
    let left = ended.said("left");
    assert!(left.contains("m1 is not running"), "{ended}");
    // Nobody answers, so it is said when somebody did.
    let (_, seen) = left.split_once("last seen at ").expect("it says when");
    let (time, _) = seen.split_once(" UTC: ").expect("it says what");
    assert!(time.len() == 8 && time.bytes().filter(|byte| *byte == b':').count() == 2, "{time}");
    let member = &ended.result.as_ref().expect("a result")["members"][0];
    assert_eq!((&member["state"], &member["trouble"]), (&"silent".into(), &"it is not running".into()), "{ended}");
    assert!(ended.result.as_ref().expect("a result")["seen_at"].is_string(), "{ended}");
}

/// With this it ends in the error that its last line of JSON has.
const FATAL: &str = "--auth-token=jwt,priv-key=/nowhere,sign-method=RS256";

#[tokio::test(flavor = "multi_thread")]
async fn of_an_etcd_that_ends_by_an_error_its_words_are_told() {
    let words = "problem loading JWT options: open /nowhere: no such file or directory | \
                 discovery failed: auth: invalid auth options";
    is_put_back_with_words(|member| with_argument(member, FATAL), words).await;
}

/// With this it ends in a panic.
const PANIC: &str = "--log-level=no-level";

#[tokio::test(flavor = "multi_thread")]
async fn of_an_etcd_that_ends_by_a_panic_its_words_are_told_and_no_stack() {
    let words = "panic: unrecognized level: \"no-level\"";
    is_put_back_with_words(|member| with_argument(member, PANIC), words).await;
}

fn with_argument(member: &Member, argument: &str) -> Vec<String> {
    let mut lines = started_by_the_agent(member);
    lines.push(format!("args: [{{ add: [{}], for: \">=3.6\" }}]", quoted(argument)));
    lines
}

/// etcd writes some KiB of JSON and of stacks before it ends. The member that is put back writes more behind that.
async fn is_put_back_with_words(runtime: fn(&Member) -> Vec<String>, words: &str) {
    let Some(case) = Case::path(System::Etcd, ("3.5", "3.6"), |_| {}).await else { return };
    let mut rollout = case.strategy(&["join_window: 0s"]).begin().await;
    rollout.upgrade.runtime = runtime;
    rollout.write();
    let ended = rollout.one("run", 0).await;
    ended.must_be(1, "put_back");
    assert!(rollout.member(0).is_running(), "{ended}");
    let told = format!("its log {} says last: {words}", rollout.member(0).log().display());
    assert!(ended.message().contains(&told), "{ended}");
    assert!(!ended.message().contains("goroutine") && !ended.message().contains("stacktrace"), "{ended}");
    let failed = ended.events.iter().find(|event| event.event == "member_failed").expect("the event");
    assert!(failed.why.as_deref().is_some_and(|why| why.contains(&told)), "{ended}");
}

/// What no release can start with, and none sees before it starts: a text where there should be keys.
const UNUSABLE: &str = "--config-file=/proc/sys/kernel/ostype";

async fn a_member_that_ends_is_told_of_with_the_last_words_of_its_log(system: System) {
    let Some(case) = Case::path(system, ("3.5", "3.6"), |_| {}).await else { return };
    let mut rollout = case.strategy(&["join_window: 0s", "on_failure: stop"]).begin().await;
    rollout.upgrade.runtime = |member| with_argument(member, UNUSABLE);
    rollout.write();
    let ended = rollout.one("run", 0).await;
    ended.must_be(1, "step_failed");
    let log = rollout.member(0).log();
    assert!(ended.message().contains(&format!("; it is set to run {}", rollout.to.release)), "{ended}");
    let (_, said) = ended.message().split_once(&format!("its log {} says last: ", log.display())).expect("it says so");
    let said = said.split("; it is set to run").next().expect("a line");
    let words = std::fs::read_to_string(&log).expect("readable");
    match system {
        System::Etcd => assert!(said.starts_with("failed to verify flags: error unmarshaling JSON"), "{ended}"),
        System::Node => assert!(!said.is_empty() && said.split(" | ").all(|line| words.contains(line)), "{ended}"),
    }
    assert!(ended.message().contains("its process ended: exit "), "{ended}");
    let failed = ended.events.iter().find(|event| event.event == "member_failed").expect("the event");
    let why = failed.why.as_deref().unwrap_or_default();
    assert!(why.contains(said) && why.contains("its process ended: exit "), "{why}");
    // The other hosts read it in the run's mark, and where that log lies.
    let other = rollout.one("run", 1).await;
    assert!(
        other.message().contains(said) && other.message().contains(&format!("its log {}", log.display())),
        "{other}"
    );
    let status = rollout.start_with("status", 1, &[]).ends().await;
    let shown = status.result.as_ref().expect("a result").to_string();
    assert!(shown.contains("its process ended: exit ") && shown.contains(&log.display().to_string()), "{shown}");
}
