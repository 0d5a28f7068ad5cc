//! A member that is down, or slow.

use rustix::process::Signal;
use tests::{
    fault,
    rollout::{self, Rollout},
    standing::{Standing, until_keys},
};

use crate::{Case, done, down, is_refused};

#[tokio::test(flavor = "multi_thread")]
async fn a_member_is_down_and_its_host_takes_no_part() {
    let Some(case) = Case::set("3.4", "3.5", |_| {}).await else { return };
    case.layout().members[2].end(Signal::TERM).expect("ended");
    let rollout = case.begin().await;
    let words = ["m3 (", "is not ready", "the host of m3 takes no part"];
    is_refused(&rollout, 0..2, (3, "member_not_ready"), &words).await;

    // With its host it is brought up first, and nobody else goes before.
    done(&rollout.run_all().await.expect("ended"));
    let seen = rollout.done().await.expect("sound");
    assert_eq!((down(&seen)[0], down(&seen).len()), ("m3", 4), "down before, and once each: {:?}", seen.observed);
}

/// A follower stands still when the first agents come, and its host comes late: nobody goes meanwhile, and it
/// is not restarted before its turn.
#[tokio::test(flavor = "multi_thread")]
async fn a_slow_member_is_waited_for() {
    let Some((case, rollout)) = with_a_follower_that_hangs(&["gather: 2m"]).await else { return };
    let slow = case.layout().members[2].process().expect("it runs");
    let before = Standing::of(case.layout()).await.expect("seen").members;
    let agents: Vec<_> = (0..2).map(|host| rollout.start(host).expect("started")).collect();
    until_keys("both to wait", case.layout(), |keys| {
        let agents = keys.iter().filter(|(name, _)| name.starts_with("agents/")).map(|(_, agent)| agent);
        (agents.filter(|agent| agent["waits_for"].is_string()).count() == 2).then_some(())
    })
    .await
    .expect("they wait");
    assert_eq!(Standing::of(case.layout()).await.expect("seen").members, before, "nobody went");
    fault::thaw(&slow).expect("thawed");
    let late = rollout.start(2).expect("started");
    done(&rollout::ended(agents.into_iter().chain([late]).collect()).await.expect("ended"));
    let seen = rollout.done().await.expect("sound");
    assert_eq!((down(&seen)[0], down(&seen).len()), ("m3", 4), "it hung, and once each: {:?}", seen.observed);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "slow: each look at a member that hangs takes its five seconds"]
async fn a_member_that_hangs_goes_first_with_its_host() {
    let Some((_case, rollout)) = with_a_follower_that_hangs(&[]).await else { return };
    done(&rollout.run_all().await.expect("ended"));
    let seen = rollout.done().await.expect("sound");
    assert_eq!(down(&seen)[..2], ["m3", "m3"], "it hung, and its turn was first: {:?}", seen.observed);
    assert_eq!(down(&seen).len(), 4, "{:?}", seen.observed);
}

/// The last member is stopped in its tracks; with these lines under `strategy`.
async fn with_a_follower_that_hangs(strategy: &[&str]) -> Option<(Case, Rollout)> {
    let mut case = Case::set("3.4", "3.5", |_| {}).await?;
    case.upgrade.strategy = ["soak: 0s"].iter().chain(strategy).map(ToString::to_string).collect();
    case.layout().make_leader(&case.layout().members[0]).await.expect("it leads");
    let rollout = case.begin().await;
    fault::freeze(&case.layout().members[2].process().expect("it runs")).expect("frozen");
    Some((case, rollout))
}
