//! What a member is in the middle of is waited for before anybody is stopped.

use proto::etcdserverpb::{CompactionRequest, kv_client::KvClient};
use tests::{
    case::Case,
    ended::Ended,
    rollout::Ends as _,
    system::System,
    wait::{self, GENEROUS},
};

use crate::pause::until_it_waits;

/// Half a second for each of so many old revisions.
const OLD: usize = 60;

#[tokio::test(flavor = "multi_thread")]
async fn a_member_that_compacts_is_stopped_once_it_has_ended() {
    let slow = ["--experimental-compaction-batch-limit=1", "--experimental-compaction-sleep-interval=500ms"];
    let path = Case::path(System::Etcd, ("3.5", "3.6"), |spec| spec.flags = slow.map(str::to_owned).to_vec());
    let Some(case) = path.await else { return };
    let client = case.layout().client(case.member(0)).expect("a client");
    let mut newest = client.put("compacted", "0").await.expect("written");
    for value in 0..OLD {
        newest = client.put("compacted", &value.to_string()).await.expect("written");
    }
    let request = client.request(CompactionRequest { revision: newest.0, physical: false }).await.expect("a request");
    KvClient::new(client.channel()).compact(request).await.expect("it begins");
    let mut rollout = case.strategy(&["join_window: 1s"]).begin().await;
    let plan = rollout.one("plan", 0).await;
    plan.must_be(0, "planned");
    assert!(plan.said("now").contains("to end its compaction"), "{plan}");

    let pids = rollout.pids();
    let agent = rollout.start(0);
    until_it_waits(&agent, "to end its compaction").await;
    assert_eq!(rollout.pids(), pids, "nobody was stopped");
    wait::until("its step", GENEROUS, || async { (rollout.pids() != pids).then_some(()).ok_or("not yet".to_owned()) })
        .await
        .expect("it goes on by itself");
    agent.ends().await.must_be(0, "partial");
    rollout.together().await.iter().for_each(Ended::must_succeed);
    rollout.done().await;
}
