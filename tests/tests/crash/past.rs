//! What Baton is for, all at once: members of etcd 3.4 that were restored, replaced and promoted go to 3.7 by one command, under load and
//! compactions, while the agents are killed again and again.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use proto::{
    Revision,
    etcdserverpb::{CompactionRequest, kv_client::KvClient},
};
use tests::{
    case::Case,
    chance::Chance,
    client::Client,
    fault::Moment,
    past::{had_users, replaced, restored},
    rollout::Rollout,
    system::System,
    watcher::Watcher,
    workload::Acked,
};

use crate::kill::kill_at;

/// So much data there is, in MB. `BATON_MB` gives another number.
const MEGABYTES: usize = 200;
/// Old revisions, which are compacted bit by bit meanwhile.
const OLD: i64 = 4_000;
/// An agent is killed at a random one of so many boundaries of its journal, and so often at most.
const BOUNDARIES: u64 = 8;
const KILLS: usize = 6;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "slow: some ten minutes, and 3.7 is built from source"]
async fn a_cluster_with_a_past_goes_from_3_4_to_3_7_though_its_agents_are_killed() {
    let case = Case::path(System::Etcd, ("3.4", "3.7"), |_| {}).await.and_then(|case| case.over(&["3.5", "3.6"]));
    let Some(case) = case else { return };
    let client = case.client(0);
    let megabytes = std::env::var("BATON_MB").ok().and_then(|number| number.parse().ok()).unwrap_or(MEGABYTES);
    let value = "x".repeat(1_000_000);
    for at in 0..megabytes {
        client.put(&format!("large/{at}"), &value).await.expect("written");
    }
    restored(&case).await;
    replaced(&case, "m3", false).await;
    replaced(&case, "m2", true).await;
    had_users(&case).await;
    let begun = client.newest().await.expect("a revision");
    for at in 0..OLD {
        client.put("old", &at.to_string()).await.expect("written");
    }

    let newest = client.newest().await.expect("a revision");
    let over = Arc::new(AtomicBool::new(false));
    let (endpoints, access) = (case.layout().endpoints(), case.layout().access());
    let watchers: Vec<_> = endpoints
        .iter()
        .map(|one| Watcher::start_among_others(std::slice::from_ref(one), &access, "watched/", Revision(newest.0 + 1)))
        .collect::<Result<_, _>>()
        .expect("they watch");
    let clients: Vec<_> =
        case.layout().members.iter().map(|one| case.layout().client(one).expect("a client")).collect();
    let acked = Arc::new(Mutex::new(Vec::new()));
    let writer = tokio::spawn(written(clients.clone(), Arc::clone(&acked), Arc::clone(&over)));
    let compactor = tokio::spawn(compacted(clients, (begun.0 + 1, newest.0), Arc::clone(&over)));

    let mut rollout = case.begin().await;
    rollout.upgrade.everybody_comes();
    rollout.write();
    let mut chance = Chance::of_this_run();
    let seeds = [0; 3].map(|_| chance.below(1 << 32));
    let (one, two, three) =
        tokio::join!(killed(&rollout, 0, seeds[0]), killed(&rollout, 1, seeds[1]), killed(&rollout, 2, seeds[2]));
    rollout.arrives().await;
    over.store(true, Ordering::Relaxed);
    writer.await.expect("no panic");
    let compactions = compactor.await.expect("no panic");
    let acked = acked.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let last = acked.last().map(|write: &Acked| write.revision).expect("something was written");
    for watcher in &watchers {
        watcher.judge(last, &acked).await.expect("every event once, in order");
    }
    println!("{} kills, {} watched writes, {compactions} compactions, {megabytes} MB", one + two + three, acked.len());
    assert!(one + two + three > 0 && compactions > 0);
    rollout.end(1).await;
}

/// One write after the other, each through the next member.
async fn written(clients: Vec<Client>, acked: Arc<Mutex<Vec<Acked>>>, over: Arc<AtomicBool>) {
    let mut value = 0;
    while !over.load(Ordering::Relaxed) {
        value += 1;
        let (key, text) = ("watched/key".to_owned(), value.to_string());
        let put = clients[value as usize % clients.len()].put(&key, &text);
        if let Ok(Ok(revision)) = tokio::time::timeout(Duration::from_secs(1), put).await {
            acked.lock().unwrap_or_else(PoisonError::into_inner).push(Acked { key, value, revision });
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// A few more of the old revisions each time. Gives how often that was done.
async fn compacted(clients: Vec<Client>, (from, to): (i64, i64), over: Arc<AtomicBool>) -> usize {
    let (mut done, mut at) = (0, from);
    while !over.load(Ordering::Relaxed) {
        let client = &clients[done % clients.len()];
        let request = CompactionRequest { revision: at.min(to), physical: false };
        if let Ok(request) = client.request(request).await
            && KvClient::new(client.channel()).compact(request).await.is_ok()
        {
            at += 20;
        }
        done += 1;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    done
}

/// Has this host's agent killed, and started again, until it ends by itself. Gives how often.
async fn killed(rollout: &Rollout, index: usize, seed: u64) -> usize {
    let mut chance = Chance::of(seed);
    for kills in 0..KILLS {
        let nth = 1 + chance.below(BOUNDARIES) as usize;
        let moment = if chance.percent(50) { Moment::Before } else { Moment::After };
        if kill_at(rollout, index, nth, moment).await.is_none() {
            return kills;
        }
    }
    rollout.one("run", index).await.must_succeed();
    KILLS
}
