//! What clients write, and what they were told of it: of each key the last value that was acknowledged.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError, atomic::Ordering},
    time::{Duration, Instant},
};

use lab::{
    chance::Chance,
    client::{Client, was_never_sent},
};
use proto::etcdserverpb::{
    CompactionRequest, DefragmentRequest, DeleteRangeRequest, LeaseGrantRequest, LeaseRevokeRequest, PutRequest,
    RangeRequest, RequestOp, TxnRequest, kv_client::KvClient, lease_client::LeaseClient,
    maintenance_client::MaintenanceClient, request_op::Request as Operation,
};
use tokio::task::JoinSet;
use tonic::Status;

use super::{Broken, stage::Stage};
use crate::{past::Mix, plan::Host};

/// So many clients at once, each with keys of its own.
const CLIENTS: u64 = 64;
/// An attempt that takes longer is a maybe.
const PATIENCE: Duration = Duration::from_secs(3);
/// A cluster that takes no writes for so long is the judge's.
const LIMIT: Duration = Duration::from_secs(40);
/// Leases outlive every plan.
const LEASE_S: i64 = 36_000;
const LARGE: usize = 60_000;
/// One write of so many with a lease is taken back with it.
const REVOKED: u64 = 4;

/// What was acknowledged.
#[derive(Debug)]
pub(super) struct Written {
    seed: u64,
    /// The value of each key that clients know; `None` where it was deleted.
    pub(super) known: BTreeMap<String, Option<Vec<u8>>>,
    /// Every key of which a write had no answer. What it holds nobody knows, for good: the write may come late.
    pub(super) unknown: BTreeSet<String>,
}

impl Written {
    pub(super) fn of(seed: u64) -> Self {
        Self { seed, known: BTreeMap::new(), unknown: BTreeSet::new() }
    }

    fn note(&mut self, key: &str, outcome: Result<Option<Vec<u8>>, Status>) {
        match outcome {
            Ok(value) => drop(self.known.insert(key.into(), value)),
            Err(status) if was_never_sent(&status) => {}
            Err(_) => drop(self.unknown.insert(key.into())),
        }
    }
}

/// Writes so much, by many clients at once, through every member that is not away; and on, where one is to be killed meanwhile.
pub(super) async fn write(stage: &mut Stage, mix: Mix, count: u64) -> Result<(), Broken> {
    let clients = stage.clients()?;
    let keys = stage.habits.keys;
    let (at_once, began) = (CLIENTS.min(keys).min(count), Instant::now());
    let seed = stage.written.seed.wrapping_add(1);
    let written = Arc::new(Mutex::new(std::mem::replace(&mut stage.written, Written::of(seed))));
    locked(&written).seed = seed;
    let mut workers = JoinSet::new();
    for number in 0..at_once {
        let writer = Writer {
            clients: clients.clone(),
            mix,
            reads: stage.habits.reads_in_transactions,
            // Each key has one writer, so that the last answer is the last write.
            keys: (0..keys).filter(|key| key % at_once == number).collect(),
            chance: Chance::of(number ^ (seed << 8)),
        };
        let (share, written) = ((number..count).step_by(at_once as usize).count(), Arc::clone(&written));
        let kill_is_coming = Arc::clone(&stage.kill_is_coming);
        workers.spawn(async move {
            let (mut writer, mut turn) = (writer, 0);
            while (turn < share || kill_is_coming.load(Ordering::Relaxed)) && began.elapsed() <= LIMIT {
                let key = writer.key();
                let outcome = writer.one(&key, number as usize + turn).await;
                turn += 1;
                let failed = outcome.is_err();
                locked(&written).note(&key, outcome);
                if failed {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            }
        });
    }
    while let Some(done) = workers.join_next().await {
        done?;
    }
    // Every clone is gone with its worker.
    let written = Arc::into_inner(written).ok_or("a writer is still at work")?;
    stage.written = written.into_inner().unwrap_or_else(PoisonError::into_inner);
    if mix == Mix::Churn {
        last_is_a_deletion(stage, &clients).await;
    }
    Ok(())
}

fn locked(written: &Mutex<Written>) -> std::sync::MutexGuard<'_, Written> {
    written.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn last_is_a_deletion(stage: &mut Stage, clients: &[Client]) {
    let Some(client) = clients.first() else { return };
    let key = "k/last";
    let put = within(put(client, key, b"for a moment".to_vec(), 0)).await;
    stage.written.note(key, put.map(Some));
    let deleted = within(delete(client, key)).await;
    stage.written.note(key, deleted.map(|()| None));
}

struct Writer {
    clients: Vec<Client>,
    mix: Mix,
    reads: bool,
    keys: Vec<u64>,
    chance: Chance,
}

impl Writer {
    fn key(&mut self) -> String {
        format!("k/{:05}", self.chance.one_of(&self.keys).unwrap_or_default())
    }

    /// One write; what the key holds then.
    async fn one(&mut self, key: &str, turn: usize) -> Result<Option<Vec<u8>>, Status> {
        let client = self.clients[turn % self.clients.len()].clone();
        let length = if self.mix == Mix::Large { LARGE } else { 8 + self.chance.below(100) as usize };
        let value = format!("{:020}", self.chance.below(u64::MAX)).into_bytes();
        let value: Vec<u8> = value.into_iter().cycle().take(length.max(20)).collect();
        let is_deletion = self.mix == Mix::Churn && self.chance.percent(35);
        match self.mix {
            _ if is_deletion => within(delete(&client, key)).await.map(|()| None),
            Mix::Puts | Mix::Churn | Mix::Large => within(put(&client, key, value, 0)).await.map(Some),
            Mix::Transactions => within(self.transaction(&client, key, value)).await.map(Some),
            Mix::Leases => within(self.with_lease(&client, key, value)).await,
        }
    }

    /// A put, a put and a deletion beside it, and a read.
    async fn transaction(&mut self, client: &Client, key: &str, value: Vec<u8>) -> Result<Vec<u8>, Status> {
        let beside = format!("{key}/beside").into_bytes();
        let put =
            |key: Vec<u8>, value: Vec<u8>| Operation::RequestPut(PutRequest { key, value, ..PutRequest::default() });
        let revision = match self.reads {
            true => self.some_revision(client).await?,
            false => 0,
        };
        let read = Operation::RequestRange(RangeRequest { key: key.into(), revision, ..RangeRequest::default() });
        let operations = if self.chance.percent(50) {
            vec![put(key.into(), value.clone()), put(beside, value.clone()), read]
        } else {
            let gone = DeleteRangeRequest { key: beside, ..DeleteRangeRequest::default() };
            vec![Operation::RequestDeleteRange(gone), put(key.into(), value.clone()), read]
        };
        let success = operations.into_iter().map(|one| RequestOp { request: Some(one) }).collect();
        let request = client.request(TxnRequest { success, ..TxnRequest::default() }).await?;
        client.outcome(KvClient::new(client.channel()).txn(request).await).await?;
        Ok(value)
    }

    /// Mostly one of the past, which may be compacted; sometimes one that is to come.
    async fn some_revision(&mut self, client: &Client) -> Result<i64, Status> {
        let newest = client.newest().await?.0;
        let back = self.chance.below(300) as i64;
        Ok(if self.chance.percent(10) { newest + 100 } else { (newest - back).max(1) })
    }

    async fn with_lease(&mut self, client: &Client, key: &str, value: Vec<u8>) -> Result<Option<Vec<u8>>, Status> {
        let mut leases = LeaseClient::new(client.channel());
        let request = client.request(LeaseGrantRequest { ttl: LEASE_S, id: 0 }).await?;
        let lease = client.outcome(leases.lease_grant(request).await).await?.id;
        put(client, key, value.clone(), lease).await?;
        if self.chance.below(REVOKED) > 0 {
            return Ok(Some(value));
        }
        let request = client.request(LeaseRevokeRequest { id: lease }).await?;
        client.outcome(leases.lease_revoke(request).await).await?;
        Ok(None)
    }
}

async fn within<T>(attempt: impl Future<Output = Result<T, Status>>) -> Result<T, Status> {
    let late = |_| Status::deadline_exceeded("the client's patience");
    tokio::time::timeout(PATIENCE, attempt).await.map_err(late)?
}

async fn put(client: &Client, key: &str, value: Vec<u8>, lease: i64) -> Result<Vec<u8>, Status> {
    let request = PutRequest { key: key.into(), value: value.clone(), lease, ..PutRequest::default() };
    let request = client.request(request).await?;
    client.outcome(KvClient::new(client.channel()).put(request).await).await?;
    Ok(value)
}

async fn delete(client: &Client, key: &str) -> Result<(), Status> {
    let request = client.request(DeleteRangeRequest { key: key.into(), ..DeleteRangeRequest::default() }).await?;
    client.outcome(KvClient::new(client.channel()).delete_range(request).await).await.map(drop)
}

/// Compacts; that it is refused, or nobody answers because somebody was killed, is as good.
pub(super) async fn compact(stage: &Stage, behind: u64) -> Result<(), Broken> {
    for client in stage.clients()? {
        let attempt = async {
            let revision = client.newest().await?.0 - behind as i64;
            if revision < 1 {
                return Ok(());
            }
            // Answered when it is done: what comes next comes during none.
            let request = client.request(CompactionRequest { revision, physical: true }).await?;
            client.outcome(KvClient::new(client.channel()).compact(request).await).await.map(drop)
        };
        if tokio::time::timeout(LIMIT, attempt).await.is_ok_and(|done| done.is_ok()) {
            break;
        }
    }
    Ok(())
}

pub(super) async fn defragment(stage: &Stage, host: Host) -> Result<(), Broken> {
    let client = stage.client(host)?;
    let attempt = async {
        let request = client.request(DefragmentRequest {}).await?;
        client.outcome(MaintenanceClient::new(client.channel()).defragment(request).await).await.map(drop)
    };
    let _ = tokio::time::timeout(LIMIT, attempt).await;
    Ok(())
}
