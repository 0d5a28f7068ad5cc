//! Puts and gets of a few keys, whose history must be linearizable; and compactions.

use std::time::Duration;

use lab::history::{Action, Operation};
use proto::etcdserverpb::{CompactionRequest, PutRequest, RangeRequest};
use simulated_disk::Chance;
use tokio::time::{sleep, timeout};

use super::{Client, PATIENCE, now};

/// Few, so that clients meet.
const KEYS: usize = 6;

/// A value: its number, and bytes behind it.
fn value(number: u64, chance: &mut Chance) -> Vec<u8> {
    let filling = match chance.below(100) {
        0 => 300_000,
        1..=4 => 20_000,
        5..=30 => 500,
        _ => 0,
    };
    let mut value = number.to_be_bytes().to_vec();
    value.resize(8 + filling, 7);
    value
}

pub(super) fn number(value: &[u8]) -> Option<u64> {
    Some(u64::from_be_bytes(value.get(..8)?.try_into().ok()?))
}

pub(super) async fn run(client: Client, me: usize, mut chance: Chance) {
    let mut next = 0;
    while !client.is_quiet() {
        sleep(Duration::from_millis(10 + chance.below(120) as u64)).await;
        let key = format!("r/{}", chance.below(KEYS));
        match chance.below(5) {
            0..=2 => {
                next += 1;
                let number = (me as u64) << 32 | next;
                put(&client, &key, number, &mut chance).await;
            }
            _ => get(&client, &key, &mut chance).await,
        }
    }
}

async fn put(client: &Client, key: &str, number: u64, chance: &mut Chance) {
    let invoked = now();
    let request = PutRequest { key: key.into(), value: value(number, chance), ..Default::default() };
    let answer = timeout(PATIENCE, client.kv(chance).put(request)).await;
    let mut seen = client.seen.lock().unwrap();
    let revision = match answer {
        Ok(Ok(answer)) => answer.into_inner().header.map(|header| header.revision),
        Ok(Err(_)) | Err(_) => None,
    };
    let returned = revision.map(|_| now());
    seen.puts += 1;
    match revision {
        Some(revision) => seen.acknowledged.push((revision, key.into(), number)),
        None => seen.unknown += 1,
    }
    seen.history.entry(key.into()).or_default().push(Operation { action: Action::Put(number), invoked, returned });
}

async fn get(client: &Client, key: &str, chance: &mut Chance) {
    let invoked = now();
    let answer =
        timeout(PATIENCE, client.kv(chance).range(RangeRequest { key: key.into(), ..Default::default() })).await;
    let Ok(Ok(answer)) = answer else { return };
    let found = answer.into_inner().kvs.first().and_then(|pair| number(&pair.value));
    let mut seen = client.seen.lock().unwrap();
    seen.gets += 1;
    let operation = Operation { action: Action::Get(found), invoked, returned: Some(now()) };
    seen.history.entry(key.into()).or_default().push(operation);
}

pub(super) async fn compact(client: Client, mut chance: Chance) {
    while !client.is_quiet() {
        sleep(Duration::from_millis(3000 + chance.below(6000) as u64)).await;
        let newest = client.seen.lock().unwrap().acknowledged.iter().map(|(revision, ..)| *revision).max();
        let Some(revision) = newest.map(|newest| newest - 50).filter(|revision| *revision > 1) else { continue };
        let request = CompactionRequest { revision, physical: false };
        if let Ok(Ok(_)) = timeout(PATIENCE, client.kv(&mut chance).compact(request)).await {
            client.seen.lock().unwrap().compactions += 1;
        }
    }
}
