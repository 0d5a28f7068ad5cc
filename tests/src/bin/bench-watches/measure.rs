//! Readers, a writer and two watches at once.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use proto::etcdserverpb::{
    PutRequest, RangeRequest, WatchCreateRequest, WatchRequest, kv_client::KvClient, watch_client::WatchClient,
    watch_request::RequestUnion,
};
use tests::{Error, cluster::Layout};
use tokio::{sync::mpsc, task::JoinSet};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{
    Status,
    transport::{Channel, Endpoint},
};

use crate::raw;

/// Between two puts.
const INTERVAL: Duration = Duration::from_millis(20);
/// How long an event may be missing.
const GENEROUS: Duration = Duration::from_secs(20);

/// So many read all keys again and again, for so long.
pub struct Reading {
    pub readers: usize,
    pub time: Duration,
}

pub struct Heard {
    pub read_bytes: u64,
    pub puts: Latencies,
    /// The watch on a connection of its own.
    pub beside: Latencies,
    /// The watch on the connection of the readers.
    pub among: Latencies,
}

#[derive(Default)]
pub struct Latencies(Vec<Duration>);

impl Latencies {
    fn sorted(mut latencies: Vec<Duration>) -> Self {
        latencies.sort_unstable();
        Self(latencies)
    }

    fn ms(&self, at: usize) -> f64 {
        self.0.get(at).map_or(f64::NAN, |latency| latency.as_secs_f64() * 1e3)
    }

    pub fn longest_ms(&self) -> f64 {
        self.ms(self.0.len().saturating_sub(1))
    }

    pub fn p99_ms(&self) -> f64 {
        self.ms(self.0.len() * 99 / 100)
    }
}

/// With windows that grow with what comes, as those of etcd's Go client do.
fn channel(layout: &Layout) -> Result<Channel, Error> {
    let member = layout.members.first().ok_or("a cluster without members")?;
    let endpoint = Endpoint::from_shared(member.client_url.clone())?;
    Ok(endpoint.tcp_nodelay(true).http2_adaptive_window(true).connect_lazy())
}

/// Says when each value of the key came.
async fn watch(channel: Channel, heard: mpsc::UnboundedSender<(u64, Instant)>) -> Result<JoinSet<()>, Error> {
    let (send, requests) = mpsc::channel(1);
    let create = WatchCreateRequest { key: b"watched".into(), ..WatchCreateRequest::default() };
    send.send(WatchRequest { request_union: Some(RequestUnion::CreateRequest(create)) }).await?;
    let mut answers = WatchClient::new(channel).watch(ReceiverStream::new(requests)).await?.into_inner();
    answers.message().await?.filter(|answer| answer.created).ok_or("the watch was not created")?;
    let mut listening = JoinSet::new();
    listening.spawn(async move {
        let _keep = send;
        while let Ok(Some(answer)) = answers.message().await {
            let now = Instant::now();
            for event in answer.events {
                let value = event.kv.unwrap_or_default().value;
                let number = String::from_utf8_lossy(&value).parse().unwrap_or_default();
                // Whoever counts may have enough.
                let _ = heard.send((number, now));
            }
        }
    });
    Ok(listening)
}

impl Reading {
    pub async fn run(self, layout: &Layout) -> Result<Heard, Error> {
        let (common, own, writing) = (channel(layout)?, channel(layout)?, channel(layout)?);
        let (to_among, mut among) = mpsc::unbounded_channel();
        let (to_beside, mut beside) = mpsc::unbounded_channel();
        let _watches = (watch(common.clone(), to_among).await?, watch(own, to_beside).await?);
        let bytes = Arc::new(AtomicU64::new(0));
        let mut readers = JoinSet::new();
        for _ in 0..self.readers {
            let (channel, bytes) = (common.clone(), bytes.clone());
            readers.spawn(async move {
                loop {
                    let all = RangeRequest { key: vec![0], range_end: vec![0], ..RangeRequest::default() };
                    bytes.fetch_add(raw::ask(&channel, "/etcdserverpb.KV/Range", all).await?, Relaxed);
                }
                #[allow(unreachable_code)]
                Ok::<(), Status>(())
            });
        }
        let (sent, puts) = put_for(self.time, writing).await?;
        let read_bytes = bytes.load(Relaxed);
        let among = heard(&mut among, &sent).await?;
        let beside = heard(&mut beside, &sent).await?;
        if let Some(ended) = readers.try_join_next() {
            ended??;
        }
        Ok(Heard { read_bytes, puts, beside, among })
    }
}

/// Puts the key again and again; when each put was sent, and how long it took.
async fn put_for(time: Duration, channel: Channel) -> Result<(Vec<Instant>, Latencies), Error> {
    let (mut client, mut sent, mut took) = (KvClient::new(channel), Vec::new(), Vec::new());
    let began = Instant::now();
    while began.elapsed() < time {
        let (now, value) = (Instant::now(), sent.len().to_string().into_bytes());
        sent.push(now);
        client.put(PutRequest { key: b"watched".into(), value, ..PutRequest::default() }).await?;
        took.push(now.elapsed());
        tokio::time::sleep(INTERVAL).await;
    }
    Ok((sent, Latencies::sorted(took)))
}

/// How long after each put its event came.
async fn heard(events: &mut mpsc::UnboundedReceiver<(u64, Instant)>, sent: &[Instant]) -> Result<Latencies, Error> {
    let mut latencies = Vec::new();
    while latencies.len() < sent.len() {
        let event = tokio::time::timeout(GENEROUS, events.recv()).await?;
        let (number, at) = event.ok_or("the watch ended")?;
        let put = sent.get(usize::try_from(number)?).ok_or("an event that nobody made")?;
        latencies.push(at.saturating_duration_since(*put));
    }
    Ok(Latencies::sorted(latencies))
}
