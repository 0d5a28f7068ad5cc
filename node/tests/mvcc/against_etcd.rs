//! Random requests give the same answers, errors, hashes, leases and events in the store and in a real etcd.

use node::mvcc::{KeyRange, Store};
use proto::{Revision, etcdserverpb::LeaseTimeToLiveRequest};
use tonic::{Code, Status};

use crate::{
    answer::answer,
    etcd::{Etcd, folder},
    hash::hashed,
    random::{LEASES, Random, Step, Steps},
};

const SEEDS: u64 = 3;
const STEPS: usize = 700;

#[test]
fn the_store_does_what_etcd_does() {
    let Some(folder) = folder() else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut refused = 0;
        for seed in 0..SEEDS {
            refused += play(seed, &mut Etcd::start(&folder).await).await;
        }
        println!("counted: {} random requests against etcd 3.6, {refused} of them refused", SEEDS as usize * STEPS);
    });
}

#[test]
fn hashes_are_etcds() {
    let Some(folder) = folder() else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut etcd = Etcd::start(&folder).await;
        let mut store = Store::default();
        for (step, _) in hashed() {
            let place = format!("{step:?}");
            assert!(perform(step, &mut store, &mut etcd, &place).await);
            assert_eq!(store.hash_kv(0).unwrap(), etcd.hash(0).await.unwrap(), "after {place}");
        }
    });
}

/// Plays one sequence; says how many requests were refused.
async fn play(seed: u64, etcd: &mut Etcd) -> usize {
    let mut steps = Steps { random: Random(1000 + seed), open_deletions: false };
    let mut store = Store::default();
    let mut refused = 0;
    for turn in 0..STEPS {
        let step = steps.next(store.revision().0);
        let place = format!("seed {seed}, request {turn}: {step:?}");
        refused += usize::from(!perform(step, &mut store, etcd, &place).await);
        if steps.random.once_in(4) {
            compare_hashes(&mut steps, &store, etcd, &place).await;
        }
        if steps.random.once_in(40) {
            compare_leases(&store, etcd, &place).await;
            compare_events(&store, etcd, &place).await;
        }
    }
    refused
}

/// Sends a request to both; says whether it was granted.
async fn perform(step: Step, store: &mut Store, etcd: &mut Etcd, place: &str) -> bool {
    match (answer(store, step.clone()), etcd.answer(step).await) {
        (Ok(given), expected) => {
            assert_eq!(given, expected.unwrap(), "{place}");
            true
        }
        (Err(error), expected) => {
            assert_eq!((Code::from(error.code() as i32), error.to_string()), said(expected), "{place}");
            false
        }
    }
}

fn said<T: std::fmt::Debug>(refusal: Result<T, Status>) -> (Code, String) {
    let status = refusal.unwrap_err();
    (status.code(), status.message().to_owned())
}

async fn compare_hashes(steps: &mut Steps, store: &Store, etcd: &Etcd, place: &str) {
    // At a revision that was compacted at, etcd answers with the hash it had before it compacted.
    let past = store.revision().0 - steps.random.below(10);
    for revision in [0, -1, store.revision().0 + 1, past.max(store.compacted().0 + 1)] {
        match store.hash_kv(revision) {
            Ok(hash) => assert_eq!(hash, etcd.hash(revision).await.unwrap(), "hash at {revision} after {place}"),
            Err(error) => {
                let expected = said(etcd.hash(revision).await);
                assert_eq!((Code::from(error.code() as i32), error.to_string()), expected, "{place}");
            }
        }
    }
}

async fn compare_leases(store: &Store, etcd: &Etcd, place: &str) {
    for id in LEASES {
        let expected = etcd.time_to_live(id).await;
        let given = store.lease_time_to_live(&LeaseTimeToLiveRequest { id, keys: true }, expected.ttl);
        assert_eq!(given, expected, "lease {id} after {place}");
    }
}

async fn compare_events(store: &Store, etcd: &Etcd, place: &str) {
    // From 0 on etcd would tell what happens after now.
    let start = store.compacted().max(Revision(1));
    let events: Vec<_> = store.events_since(start, KeyRange::From(&[0]), true).unwrap().collect();
    let newest = events.last().and_then(|event| event.kv.as_ref()).map_or(0, |kv| kv.mod_revision);
    assert_eq!(events, etcd.events(start.0, newest).await, "events from {start} on after {place}");
}
