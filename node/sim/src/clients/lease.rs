//! Leases that are kept alive: none ends before its time, counted from when the last renewal was sent that was answered.
//! Where a leader's clock has jumped ahead, that much earlier.

use std::time::Duration;

use proto::etcdserverpb::{LeaseGrantRequest, LeaseKeepAliveRequest, PutRequest, RangeRequest};
use simulated_disk::Chance;
use tokio::time::{sleep, timeout};

use super::{Client, PATIENCE};
use crate::entropy::latest as now;

pub(super) async fn run(client: Client, ttl_s: i64, mut chance: Chance) {
    let mut number = 0;
    while !client.is_quiet() {
        number += 1;
        let key = format!("l/{ttl_s}/{number}");
        if let Some((lease, lives_until)) = grant(&client, &key, ttl_s, &mut chance).await {
            client.seen.lock().unwrap().leases += 1;
            keep(&client, &key, lease, lives_until, &mut chance).await;
        }
        sleep(Duration::from_millis(300)).await;
    }
}

/// The lease, and until when it lives at least.
async fn grant(client: &Client, key: &str, ttl_s: i64, chance: &mut Chance) -> Option<(i64, u64)> {
    let sent = now();
    let request = LeaseGrantRequest { ttl: ttl_s, id: 0 };
    let granted = timeout(PATIENCE, client.leases(chance).lease_grant(request)).await.ok()?.ok()?.into_inner();
    let put = PutRequest { key: key.into(), value: b"kept".to_vec(), lease: granted.id, ..Default::default() };
    timeout(PATIENCE, client.kv(chance).put(put)).await.ok()?.ok()?;
    Some((granted.id, sent + granted.ttl as u64 * 1_000_000_000))
}

/// Until it has ended, which it may only when nobody answered for long enough.
async fn keep(client: &Client, key: &str, lease: i64, mut lives_until: u64, chance: &mut Chance) {
    for _ in 0..60 {
        if client.is_quiet() {
            return;
        }
        sleep(Duration::from_millis(400 + chance.below(400) as u64)).await;
        let sent = now();
        let answer = renew(client, lease, chance).await;
        tracing::debug!(target: "sim", lease = format!("{lease:x}"), sent_ms = sent / 1_000_000, ?answer, "renewed");
        match answer {
            Some(ttl) if ttl > 0 => {
                client.seen.lock().unwrap().renewals += 1;
                lives_until = lives_until.max(sent + ttl as u64 * 1_000_000_000);
            }
            Some(_) if now() < lives_until => {
                return ended(client, lease, "a renewal says that it is gone", lives_until);
            }
            Some(_) => return,
            None => {}
        }
        let range = RangeRequest { key: key.into(), ..Default::default() };
        if let Ok(Ok(answer)) = timeout(PATIENCE, client.kv(chance).range(range)).await
            && answer.into_inner().kvs.is_empty()
        {
            if now() < lives_until {
                ended(client, lease, "its key is gone", lives_until);
            }
            return;
        }
    }
}

async fn renew(client: &Client, lease: i64, chance: &mut Chance) -> Option<i64> {
    let requests = tokio_stream::iter([LeaseKeepAliveRequest { id: lease }]);
    let asked = async {
        let mut answers = client.leases(chance).lease_keep_alive(requests).await.ok()?.into_inner();
        answers.message().await.ok()?
    };
    Some(timeout(PATIENCE, asked).await.ok()??.ttl)
}

fn ended(client: &Client, lease: i64, what: &str, lives_until: u64) {
    let early = (lives_until - now()) / 1_000_000;
    let text = format!("lease {lease:x} that was kept alive has ended {early} ms before its time: {what}");
    client.seen.lock().unwrap().faults.push(text);
}
