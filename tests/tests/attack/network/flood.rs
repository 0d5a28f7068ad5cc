//! Word of changes without end, below `/baton/` and of no key of ours, while somebody else has the baton: a waiting agent
//! neither asks for the baton at each word, nor looks at each.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use prost::Message as _;
use proto::etcdserverpb::{LeaseGrantRequest, PutRequest, TxnRequest, kv_client::KvClient, lease_client::LeaseClient};
use rustix::process::Signal;
use serde_json::json;
use tests::{
    agent::Agent,
    case::Case,
    liar::{Call, Liar, Word},
    on_both,
    ports::Ports,
    rollout::Ends as _,
    system::System,
    wait,
};

on_both! {
    a_flood_of_words_is_not_answered_word_by_word, etcd #[ignore = "slow: the node's row shows the same"];
}

/// How long the flood is watched.
const FLOOD: Duration = Duration::from_secs(8);

/// What agents asked of a member.
#[derive(Default)]
struct Asked {
    leases: AtomicUsize,
    /// Txns that only read.
    looks: AtomicUsize,
}

impl Asked {
    fn note(&self, call: &Call) -> Word {
        match call.method.as_str() {
            "Lease/LeaseGrant" => self.leases.fetch_add(1, Relaxed),
            "KV/Txn" if TxnRequest::decode(call.message.as_slice()).is_ok_and(|txn| txn.compare.is_empty()) => {
                self.looks.fetch_add(1, Relaxed)
            }
            _ => 0,
        };
        Word::Truth
    }
}

/// A baton in the hand of an agent that lives elsewhere.
async fn others_baton(case: &Case) {
    let process = json!({ "boot_id": format!("{:032x}", 1), "pid": 1, "pid_namespace": 1, "start_time": 1 });
    let (host, take) = (format!("none-{:032x}", 0xab), format!("{:032x}", 7));
    let baton = json!({ "format": 1, "host": host, "host_name": "ghost", "take": take, "process": process });
    let granted = LeaseClient::new(case.client(1).channel()).lease_grant(LeaseGrantRequest { ttl: 600, id: 0 }).await;
    let lease = granted.expect("granted").into_inner().id;
    let value = baton.to_string().into_bytes();
    let put = PutRequest { key: b"/baton/baton".to_vec(), value, lease, ..PutRequest::default() };
    KvClient::new(case.client(1).channel()).put(put).await.expect("written");
}

async fn a_flood_of_words_is_not_answered_word_by_word(system: System) {
    let leased = Ports::lease(3).expect("ports");
    let Some(case) = Case::advertised_at(system, &leased.numbers).await else { return };
    let case = case.strategy(&["join_window: 1s"]);
    let asked = Arc::new(Asked::default());
    let mut doors = Vec::new();
    for (index, port) in leased.numbers.iter().enumerate() {
        let asked = asked.clone();
        let note = move |call: &Call| asked.note(call);
        doors.push(Liar::start(*port, case.member(index).client_port, note).await.expect("it listens"));
    }
    others_baton(&case).await;
    let agent = Agent::start("run", &case.write()[0], &[]).expect("started");
    wait::until("the agent to wait for the baton", wait::GENEROUS, || async {
        let waits = case.keys().await.iter().any(|(_, value)| value["waits_for"].to_string().contains("the baton"));
        waits.then_some(()).ok_or_else(|| agent.log())
    })
    .await
    .expect("it waits");
    let (leases, looks, began) = (asked.leases.load(Relaxed), asked.looks.load(Relaxed), Instant::now());
    while began.elapsed() < FLOOD {
        case.client(1).put("/baton/noise", "x").await.expect("written");
    }
    let seconds = began.elapsed().as_secs() as usize;
    assert_eq!(asked.leases.load(Relaxed), leases, "leases for a baton that was taken");
    let looks = asked.looks.load(Relaxed) - looks;
    assert!(looks < 8 + 2 * seconds, "{looks} looks in {seconds} s");
    agent.process().expect("at work").signal(Signal::TERM).expect("told");
    agent.ends().await.must_be(10, "interrupted");
}
