//! Members that hold different data before anything is done. Of etcd alone: a read of a revision that is to come, in a transaction that
//! writes, fails where it is asked, and is applied elsewhere (etcd#18667).

use proto::etcdserverpb::{PutRequest, RangeRequest, RequestOp, TxnRequest, kv_client::KvClient, request_op::Request};
use tests::{
    case::Case,
    system::System,
    wait::{self, GENEROUS},
};

use crate::{is_refused, past::checked};

/// Its first member misses a write.
pub(crate) async fn a_write_is_missed(case: &Case) {
    let client = case.layout().client(case.member(0)).expect("a client");
    let put = Request::RequestPut(PutRequest { key: b"a".to_vec(), value: b"b".to_vec(), ..Default::default() });
    let read = Request::RequestRange(RangeRequest { key: b"a".to_vec(), revision: 1 << 40, ..Default::default() });
    let success = [put, read].map(|request| RequestOp { request: Some(request) }).to_vec();
    let request = client.request(TxnRequest { success, ..Default::default() }).await.expect("a request");
    let answer = KvClient::new(client.channel()).txn(request).await;
    assert!(answer.is_err(), "it fails where it is asked: {answer:?}");
    wait::until("the others to have it", GENEROUS, || async {
        let other = case.layout().client(case.member(1)).map_err(|error| error.to_string())?;
        let found = other.get("a").await.map_err(|status| status.to_string())?;
        found.map(drop).ok_or_else(|| "not yet".to_owned())
    })
    .await
    .expect("it is applied");
}

#[tokio::test(flavor = "multi_thread")]
async fn members_that_hold_different_data_are_not_taken_further() {
    let Some(case) = Case::path(System::Etcd, ("3.5", "3.6"), |_| {}).await else { return };
    a_write_is_missed(&case).await;
    let to = case.to.release.to_string();
    let (exit, refused, message) = checked(&case, &to, &[]).await;
    assert_eq!((exit, &refused[..]), (3, &["data-differs".to_owned()][..]), "{message}");
    let (exit, _, message) = checked(&case, &to, &["--accept-hazard", "data-differs"]).await;
    assert_eq!(exit, 0, "{message}");

    let mut rollout = case.strategy(&["join_window: 2s"]).begin().await;
    rollout.one("plan", 1).await.must_be(3, "hazard");
    for agent in is_refused(&rollout, [0, 1, 2], (3, "hazard"), &["data-differs: the members' ", " differ"]).await {
        assert!(
            agent.message().contains("differ: m1 is at ") || agent.message().contains(": m1 "),
            "who stands alone comes first: {agent}"
        );
        assert!(agent.said("left").contains("`strategy.accept_hazards: [data-differs]`"), "{agent}");
    }
    rollout.upgrade.strategy.push("accept_hazards: [data-differs]".into());
    rollout.write();
    let plan = rollout.one("plan", 1).await;
    plan.must_be(0, "planned");
    assert!(plan.warnings().contains("data-differs is accepted by the playbook"), "{plan}");
    // What clients have seen is not whole on such a cluster: the watch over it is not asked.
    drop(rollout);
}
