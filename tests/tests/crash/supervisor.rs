//! Somebody else starts the member while its agent is dead: a supervisor at boot, or a person.

use tests::{fault::Moment, on_both, system::System};

use crate::{is_finished, kill::kill_at, rollout};

on_both! {
    #[ignore = "slow: the hosts with systemd have it by default"]
    a_member_that_somebody_else_started_meanwhile_is_taken_as_it_is_seen;
}

async fn a_member_that_somebody_else_started_meanwhile_is_taken_as_it_is_seen(system: System) {
    let Some(rollout) = rollout(system, &["join_window: 1s"]).await else { return };
    // The symlink leads to the old binary still, or to the new one already.
    for (index, nth, moment, last) in
        [(0, 3, Moment::Before, "switched forward"), (1, 3, Moment::After, "switched forward")]
    {
        let killed = kill_at(&rollout, index, nth, moment).await.expect("killed while its member was down");
        assert_eq!((killed.as_str(), rollout.member(index).is_running()), (last, false));
        rollout.member(index).start().expect("started by hand");
        rollout.cluster.ready().await.expect("it serves");
        rollout.one("run", index).await.must_succeed();
    }
    let killed = kill_at(&rollout, 2, 2, Moment::After).await.expect("killed before its member was stopped");
    assert_eq!((killed.as_str(), rollout.member(2).is_running()), ("stopping forward", true));
    is_finished(rollout).await;
}
