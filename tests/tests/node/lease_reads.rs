//! `--linearizable-read-mode=lease`: a leader answers reads without asking, for as long as nobody else can lead.

use std::time::Duration;

use tests::{
    fault,
    wait::{self, GENEROUS},
};
use tokio::time::timeout;

use crate::up;

/// So long that whoever has just been heard counts for the whole of a test's first half: 9 s.
const SLOW: [&str; 2] = ["--heartbeat-interval=1000", "--election-timeout=20000"];
/// A read that waits for nobody takes no longer.
const AT_ONCE: Duration = Duration::from_secs(5);

#[tokio::test]
async fn a_leader_answers_by_its_lease_while_it_lasts_and_no_longer() {
    let Some(cluster) = up("3.6", &[SLOW[0], SLOW[1], "--linearizable-read-mode=lease"]).await else { return };
    let layout = &cluster.layout;
    let leader = layout.leader().await.expect("a leader");
    let client = layout.client(leader).expect("a client");
    client.put("key", "value").await.expect("written");
    let others = layout.members.iter().filter(|member| member.name != leader.name);
    let others: Vec<_> = others.map(|member| member.process().expect("runs")).collect();
    others.iter().for_each(|process| fault::freeze(process).expect("frozen"));

    let read = timeout(AT_ONCE, client.get("key")).await.expect("nobody was asked").expect("read").expect("there");
    assert_eq!(read.value, b"value");
    // A write needs them as ever.
    assert!(timeout(AT_ONCE, client.put("key", "other")).await.is_err(), "nobody can have acknowledged it");
    wait::until("the lease to end", GENEROUS, || async {
        match timeout(AT_ONCE, client.get("key")).await {
            Ok(Ok(_)) => Err("it still answers".to_owned()),
            _ => Ok(()),
        }
    })
    .await
    .expect("it ends");

    others.iter().for_each(|process| fault::thaw(process).expect("goes on"));
    cluster.ready().await.expect("all serve");
}
