//! What the end says of members that are not well any more: how things stand then, or when they stood so.

use tests::{case::Case, on_both, sick::Illness, system::System};

use crate::SICK;

on_both! {
    a_member_that_does_not_run_is_said_to_be_down;
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
