//! Puts, gets, deletions and transactions on a few keys, whose history must be linearizable; and compactions.

use std::time::Duration;

use lab::history::{Action, Operation};
use proto::etcdserverpb::{
    CompactionRequest, Compare, DeleteRangeRequest, PutRequest, RangeRequest, RangeResponse, RequestOp, TxnRequest,
    compare::{CompareResult, CompareTarget, TargetUnion},
    request_op::Request,
    response_op::Response,
};
use simulated_disk::Chance;
use tokio::time::{sleep, timeout};

use super::{Client, PATIENCE, now};

/// Few, so that clients meet.
const KEYS: usize = 6;
/// In the place of a value's number where the key was deleted.
pub(super) const DELETED: u64 = 0;

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
        next += 1;
        let number = (me as u64) << 32 | next;
        client.seen.lock().unwrap().under_way += 1;
        match chance.below(20) {
            0..=9 => put(&client, &key, number, &mut chance).await,
            10..=11 => swap(&client, &key, number, &mut chance).await,
            12 => delete(&client, &key, &mut chance).await,
            _ => drop(get(&client, &key, &mut chance).await),
        }
        client.seen.lock().unwrap().under_way -= 1;
    }
}

/// What came of a write: its revision, or `None` where nobody knows.
fn note(client: &Client, key: &str, action: Action, number: u64, invoked: u64, revision: Option<i64>) {
    let mut seen = client.seen.lock().unwrap();
    seen.puts += 1;
    match revision {
        Some(revision) => seen.acknowledged.push((revision, key.into(), number)),
        None => seen.unknown += 1,
    }
    let returned = revision.map(|_| now());
    seen.history.entry(key.into()).or_default().push(Operation { action, invoked, returned });
}

async fn put(client: &Client, key: &str, number: u64, chance: &mut Chance) {
    let invoked = now();
    let request = PutRequest { key: key.into(), value: value(number, chance), ..Default::default() };
    let answer = timeout(PATIENCE, client.kv(chance).put(request)).await;
    let revision = answer.ok().and_then(Result::ok).and_then(|answer| answer.into_inner().header);
    note(client, key, Action::Put(number), number, invoked, revision.map(|header| header.revision));
}

/// Writes where nobody has since it read; else it reads once more, in the same transaction.
async fn swap(client: &Client, key: &str, number: u64, chance: &mut Chance) {
    let Some(found) = get(client, key, chance).await else { return };
    let (from, revision) = found.map_or((None, 0), |(from, revision)| (Some(from), revision));
    let compare = Compare {
        key: key.into(),
        target: CompareTarget::Mod as i32,
        result: CompareResult::Equal as i32,
        target_union: Some(TargetUnion::ModRevision(revision)),
        ..Default::default()
    };
    let put = PutRequest { key: key.into(), value: value(number, chance), ..Default::default() };
    let range = RangeRequest { key: key.into(), ..Default::default() };
    let operation = |request| vec![RequestOp { request: Some(request) }];
    let request = TxnRequest {
        compare: vec![compare],
        success: operation(Request::RequestPut(put)),
        failure: operation(Request::RequestRange(range)),
    };
    let invoked = now();
    let answer = timeout(PATIENCE, client.kv(chance).txn(request)).await;
    let Ok(Ok(answer)) = answer else {
        return note(client, key, Action::Put(number), number, invoked, None);
    };
    let answer = answer.into_inner();
    let revision = answer.header.map(|header| header.revision);
    match answer.responses.into_iter().next().and_then(|response| response.response) {
        Some(Response::ResponseRange(read)) => _ = note_read(client, key, &read, invoked),
        _ => note(client, key, Action::Swap { from, to: number }, number, invoked, revision),
    }
    client.seen.lock().unwrap().swaps += 1;
}

async fn delete(client: &Client, key: &str, chance: &mut Chance) {
    let invoked = now();
    let request = DeleteRangeRequest { key: key.into(), ..Default::default() };
    let answer = timeout(PATIENCE, client.kv(chance).delete_range(request)).await;
    let answer = answer.ok().and_then(Result::ok).map(tonic::Response::into_inner);
    match answer {
        // It has moved no revision, and no watch is told.
        Some(answer) if answer.deleted == 0 => _ = note_read(client, key, &RangeResponse::default(), invoked),
        answer => {
            let revision = answer.and_then(|answer| answer.header).map(|header| header.revision);
            note(client, key, Action::Delete, DELETED, invoked, revision);
        }
    }
}

/// What is there, with its revision; `None` where nobody answers.
async fn get(client: &Client, key: &str, chance: &mut Chance) -> Option<Option<(u64, i64)>> {
    let invoked = now();
    let request = RangeRequest { key: key.into(), ..Default::default() };
    let answer = timeout(PATIENCE, client.kv(chance).range(request)).await.ok()?.ok()?;
    Some(note_read(client, key, answer.get_ref(), invoked))
}

fn note_read(client: &Client, key: &str, answer: &RangeResponse, invoked: u64) -> Option<(u64, i64)> {
    let found = answer.kvs.first().and_then(|pair| Some((number(&pair.value)?, pair.mod_revision)));
    let action = Action::Get(found.map(|(number, _)| number));
    let mut seen = client.seen.lock().unwrap();
    seen.gets += 1;
    seen.history.entry(key.into()).or_default().push(Operation { action, invoked, returned: Some(now()) });
    found
}

pub(super) async fn compact(client: Client, mut chance: Chance) {
    while !client.is_quiet() {
        sleep(Duration::from_millis(500 + chance.below(6000) as u64)).await;
        let newest = client.seen.lock().unwrap().acknowledged.iter().map(|(revision, ..)| *revision).max();
        // The newest, too: then some member has not told its watches yet of what goes.
        let kept = [0, 0, 5, 50][chance.below(4)];
        let Some(revision) = newest.map(|newest| newest - kept).filter(|revision| *revision > 1) else { continue };
        let request = CompactionRequest { revision, physical: false };
        if let Ok(Ok(_)) = timeout(PATIENCE, client.kv(&mut chance).compact(request)).await {
            client.seen.lock().unwrap().compactions += 1;
        }
    }
}
