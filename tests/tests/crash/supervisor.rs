//! Somebody else starts the member while its agent is dead: a supervisor at boot, or a person.

use tests::fault::Moment;

use crate::rollout::{Change, Rollout};

#[tokio::test(flavor = "multi_thread")]
async fn a_member_that_somebody_else_started_meanwhile_is_taken_as_it_is_seen() {
    let Some(change) = Change::of_minor() else { return };
    let rollout = Rollout::begin(&change, &["gather: 1s"]).await;
    // The symlink leads to the old binary still, or to the new one already.
    for (index, nth, moment, last) in
        [(0, 3, Moment::Before, "switched forward"), (1, 3, Moment::After, "switched forward")]
    {
        let killed = rollout.kill_at(index, nth, moment).await.expect("killed while its member was down");
        assert_eq!((killed.last.as_str(), rollout.member(index).is_running()), (last, false));
        rollout.member(index).start().expect("started by hand");
        rollout.cluster.ready().await.expect("it serves");
        rollout.run(index).await.must_succeed();
    }
    let killed = rollout.kill_at(2, 2, Moment::After).await.expect("killed before its member was stopped");
    assert_eq!((killed.last.as_str(), rollout.member(2).is_running()), ("stopping forward", true));
    rollout.run_everywhere().await;
    rollout.end_one_at_a_time().await;
}
