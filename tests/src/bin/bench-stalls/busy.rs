//! What keeps members busy.

use std::{
    fs,
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use proto::etcdserverpb::{
    CompactionRequest, HashKvRequest, PutRequest, kv_client::KvClient, maintenance_client::MaintenanceClient,
};
use tests::{
    Error,
    cluster::Layout,
    much::{self, snapshots},
    probe::{self, INTERVAL},
};
use tokio::task::JoinSet;

pub async fn nothing() -> Result<(), Error> {
    std::future::pending().await
}

/// So many at once, again and again.
pub async fn hashes(layout: &Layout, many: usize) -> Result<impl Future<Output = Result<(), Error>> + use<>, Error> {
    let channel = probe::at_leader(layout).await?;
    Ok(async move {
        let mut hashing = JoinSet::new();
        for _ in 0..many {
            let mut client = MaintenanceClient::new(channel.clone());
            hashing.spawn(async move {
                loop {
                    client.hash_kv(HashKvRequest { revision: 0 }).await?;
                }
                #[allow(unreachable_code)]
                Ok::<(), tonic::Status>(())
            });
        }
        while let Some(ended) = hashing.join_next().await {
            ended??;
        }
        Ok(())
    })
}

/// One, of all that was written before.
pub async fn compaction(layout: &Layout) -> Result<impl Future<Output = Result<(), Error>> + use<>, Error> {
    let mut client = KvClient::new(probe::at_leader(layout).await?);
    let put = PutRequest { key: b"probe".into(), ..PutRequest::default() };
    let revision = client.put(put).await?.into_inner().header.unwrap_or_default().revision;
    Ok(async move {
        client.compact(CompactionRequest { revision, physical: true }).await?;
        Ok(())
    })
}

/// The most that a member has resident, in megabytes.
pub fn resident_mb(layout: &Layout) -> Result<f64, Error> {
    let mut most: f64 = 0.0;
    for member in &layout.members {
        let process = member.process().ok_or_else(|| format!("{} does not run", member.name))?;
        let status = fs::read_to_string(format!("/proc/{}/status", process.pid))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
        let kb: f64 = line.split_whitespace().next().and_then(|kb| kb.parse().ok()).unwrap_or(0.0);
        most = most.max(kb / 1024.0);
    }
    Ok(most)
}

/// What a put took, with and without a snapshot beside it.
pub struct Snapshots {
    pub without_ms: f64,
    pub with_ms: f64,
    pub most_mb: f64,
    /// What was written meanwhile, and is kept, as history is.
    pub written_mb: f64,
}

/// Puts of 16 KiB until each member has written so many snapshots, with a probe beside them.
pub async fn until_snapshots(layout: &Layout, many: usize) -> Result<Snapshots, Error> {
    const MOST: Duration = Duration::from_secs(300);
    let written = Arc::new(AtomicU64::new(0));
    let mut writers = JoinSet::new();
    for (number, channel) in much::channels(layout, 4)?.into_iter().enumerate() {
        let (mut client, written) = (KvClient::new(channel), written.clone());
        writers.spawn(async move {
            let put = PutRequest {
                key: format!("large/{number}").into(),
                value: vec![b'v'; 16 << 10],
                ..PutRequest::default()
            };
            loop {
                client.put(put.clone()).await?;
                written.fetch_add(16, Ordering::Relaxed);
            }
            #[allow(unreachable_code)]
            Ok::<(), tonic::Status>(())
        });
    }
    let mut client = KvClient::new(probe::at_leader(layout).await?);
    let (began, mut seen) = (Instant::now(), snapshots(layout).0);
    let (mut changes, mut found) = (0, Snapshots { without_ms: 0.0, with_ms: 0.0, most_mb: 0.0, written_mb: 0.0 });
    while changes < many * layout.members.len() && began.elapsed() < MOST {
        let (before, was_written) = snapshots(layout);
        let took = probe::put(&mut client).await?.as_secs_f64() * 1e3;
        let (after, is_written) = snapshots(layout);
        changes += after.iter().filter(|name| !seen.contains(name)).count();
        let is_beside = was_written || is_written || before != after;
        seen = after;
        match is_beside {
            true => found.with_ms = took.max(found.with_ms),
            false => found.without_ms = took.max(found.without_ms),
        }
        found.most_mb = found.most_mb.max(resident_mb(layout)?);
        tokio::time::sleep(INTERVAL).await;
    }
    if changes < many * layout.members.len() {
        return Err(format!("{changes} snapshots in {} s", MOST.as_secs()).into());
    }
    writers.abort_all();
    found.written_mb = written.load(Ordering::Relaxed) as f64 / 1024.0;
    Ok(found)
}

/// Small puts from 64 clients.
pub async fn writes_a_second(layout: &Layout, time: Duration) -> Result<f64, Error> {
    let (ends, over) = (Instant::now() + time, time.as_secs_f64());
    let mut clients = JoinSet::new();
    for (number, channel) in much::channels(layout, 12)?.into_iter().cycle().take(64).enumerate() {
        let mut client = KvClient::new(channel);
        clients.spawn(async move {
            let put =
                PutRequest { key: format!("load/{number}").into(), value: vec![b'v'; 256], ..PutRequest::default() };
            let mut done = 0;
            while Instant::now() < ends {
                client.put(put.clone()).await?;
                done += 1;
            }
            Ok::<u64, tonic::Status>(done)
        });
    }
    let mut done = 0;
    while let Some(client) = clients.join_next().await {
        done += client??;
    }
    Ok(done as f64 / over)
}
