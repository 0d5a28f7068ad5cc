//! One of three members answers late, all the time: what the last look read first is seconds old at its end. Meanwhile
//! another member dies, or somebody takes the record away. No member is stopped then (I-1, I-2).

use std::time::Duration;

use proto::etcdserverpb::{DeleteRangeRequest, kv_client::KvClient};
use rustix::process::Signal;
use serde_json::Value;
use tests::{
    case::Case,
    liar::{Call, Liar, Word},
    on_both,
    ports::Ports,
    rollout::{Ends as _, Rollout},
    system::System,
};
use tokio::time::sleep;

on_both! {
    a_member_that_dies_in_the_last_look_keeps_the_next_one_up, etcd #[ignore = "slow: the node's row shows the same"];
    #[ignore = "slow: a minute; one that dies in the last look shows more by default"]
    a_record_that_is_deleted_in_the_last_look_stops_nobody;
}

/// How late each list of members comes, so that a look takes as long; shorter than a call may.
const LATE: Duration = Duration::from_secs(3);
/// When all but the late one have answered in the last look, and it is far from its end.
const IN_THE_LOOK: Duration = Duration::from_millis(1500);

struct Slow {
    rollout: Rollout,
    _doors: Vec<Liar>,
    _ports: Ports,
}

impl Slow {
    async fn new(system: System) -> Option<Self> {
        let ports = Ports::lease(3).expect("ports");
        let case = Case::advertised_at(system, &ports.numbers).await?.strategy(&["join_window: 1s"]);
        let mut doors = Vec::new();
        for (index, port) in ports.numbers.iter().enumerate() {
            let word = move |call: &Call| match call.method.as_str() {
                "Cluster/MemberList" if index == 2 => Word::Late(LATE),
                _ => Word::Truth,
            };
            doors.push(Liar::start(*port, case.member(index).client_port, word).await.expect("it listens"));
        }
        case.layout().make_leader(case.member(2)).await.expect("it leads");
        Some(Self { rollout: case.begin().await, _doors: doors, _ports: ports })
    }

    /// Waits for a record of another attempt than this, and into the look that follows it.
    async fn is_in_the_last_look(&self, before: Option<&Value>) -> Value {
        let record = self.rollout.until_keys("a record", |keys| {
            keys.get("step").map(|down| down["attempt"].clone()).filter(|attempt| Some(attempt) != before)
        });
        let attempt = record.await;
        sleep(IN_THE_LOOK).await;
        attempt
    }
}

async fn a_member_that_dies_in_the_last_look_keeps_the_next_one_up(system: System) {
    let Some(slow) = Slow::new(system).await else { return };
    let rollout = &slow.rollout;
    let before = rollout.member(0).process().expect("up").pid;
    let agent = rollout.start(0);
    slow.is_in_the_last_look(None).await;
    rollout.member(1).end(Signal::KILL).expect("ended");
    let agent = agent.ends().await;
    agent.must_be(3, "member_not_ready");
    assert_eq!(rollout.member(0).process().map(|process| process.pid), Some(before), "it was stopped: {agent}");
    assert!(agent.warnings().contains("right before the stop m2 did not answer"), "{agent}");
    rollout.member(1).start().expect("started");
    slow.rollout.end(1).await;
}

async fn a_record_that_is_deleted_in_the_last_look_stops_nobody(system: System) {
    let Some(slow) = Slow::new(system).await else { return };
    let rollout = &slow.rollout;
    let before = rollout.member(0).process().expect("up").pid;
    let agent = rollout.start(0);
    let attempt = slow.is_in_the_last_look(None).await;
    let question = DeleteRangeRequest { key: b"/baton/step".to_vec(), ..Default::default() };
    KvClient::new(rollout.client(1).channel()).delete_range(question).await.expect("deleted");
    slow.is_in_the_last_look(Some(&attempt)).await;
    assert_eq!(rollout.member(0).process().map(|process| process.pid), Some(before), "it was stopped without a record");
    let agent = agent.ends().await;
    agent.must_be(0, "partial");
    assert!(agent.warnings().contains("did not show the record of this step"), "{agent}");
    slow.rollout.end(1).await;
}
