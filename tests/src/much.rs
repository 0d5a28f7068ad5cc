//! Much of something: a cluster with many keys, and many watches.

use std::{
    fs,
    time::{Duration, Instant},
};

use proto::etcdserverpb::{
    PutRequest, RequestOp, TxnRequest, WatchCreateRequest, WatchRequest, WatchResponse, kv_client::KvClient,
    request_op::Request, watch_client::WatchClient, watch_request::RequestUnion,
};
use tokio::{sync::mpsc, task::JoinSet};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{
    Streaming,
    transport::{Channel, Endpoint},
};

use crate::{Error, cluster::Layout, probe::INTERVAL};

/// Puts in one transaction (etcd, `--max-txn-ops`).
const BATCH: u64 = 128;
/// Clients that fill the cluster at once.
const FILLERS: u64 = 8;

/// So many connections, to one member after the other.
///
/// # Errors
/// An address is none.
pub fn channels(layout: &Layout, many: usize) -> Result<Vec<Channel>, Error> {
    let urls = layout.members.iter().cycle().take(many);
    urls.map(|member| Ok(Endpoint::from_shared(member.client_url.clone())?.tcp_nodelay(true).connect_lazy())).collect()
}

/// Writes so many keys of 16 bytes, with so many bytes each.
///
/// # Errors
/// A member refuses.
pub async fn fill(layout: &Layout, keys: u64, bytes: usize) -> Result<(), Error> {
    let mut fillers = JoinSet::new();
    for (number, channel) in (0..FILLERS).zip(channels(layout, FILLERS as usize)?) {
        let (mut client, share) = (KvClient::new(channel), keys.div_ceil(FILLERS));
        fillers.spawn(async move {
            let (mut next, end) = (number * share, keys.min((number + 1) * share));
            while next < end {
                let put = |key: u64| PutRequest {
                    key: format!("{key:016}").into_bytes(),
                    value: vec![b'v'; bytes],
                    ..PutRequest::default()
                };
                let batch = next..end.min(next + BATCH);
                next = batch.end;
                let success = batch.map(|key| RequestOp { request: Some(Request::RequestPut(put(key))) }).collect();
                client.txn(TxnRequest { success, ..TxnRequest::default() }).await?;
            }
            Ok::<_, tonic::Status>(())
        });
    }
    while let Some(filler) = fillers.join_next().await {
        filler??;
    }
    Ok(())
}

/// What is in the folder of a member's snapshots: those that are whole, and whether one is being written.
pub fn snapshots(layout: &Layout) -> (Vec<String>, bool) {
    let folders = layout.members.iter().flat_map(|member| {
        let data = member.dir.join("data");
        [data.join("snap"), data.join("member/snap")]
    });
    let mut names: Vec<_> = folders
        .flat_map(|folder| {
            fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path().display().to_string())
        })
        .collect();
    let is_written = names.iter().any(|name| name.ends_with(".tmp"));
    names.retain(|name| name.ends_with(".snap"));
    names.sort();
    (names, is_written)
}

/// Until no member has written a snapshot for a while: what filled it makes many.
pub async fn quiet(layout: &Layout) {
    const LONG: Duration = Duration::from_secs(3);
    let (mut since, mut seen) = (Instant::now(), snapshots(layout));
    while since.elapsed() < LONG {
        tokio::time::sleep(INTERVAL).await;
        let now = snapshots(layout);
        if now.1 || now != seen {
            (since, seen) = (Instant::now(), now);
        }
    }
}

/// Watches that are open for as long as this is there.
pub struct Watches {
    open: Vec<(mpsc::Sender<WatchRequest>, Streaming<WatchResponse>)>,
}

impl Watches {
    /// Their answers, a stream each; the other ends are to be kept for as long as they are read.
    pub fn into_streams(self) -> impl Iterator<Item = (mpsc::Sender<WatchRequest>, Streaming<WatchResponse>)> {
        self.open.into_iter()
    }
}

/// So many, a hundred on each stream, of keys that nobody writes.
///
/// # Errors
/// A member refuses.
pub async fn watches(layout: &Layout, many: usize) -> Result<Watches, Error> {
    watches_of(layout, many, |number| format!("none/{number}")).await
}

/// So many, a hundred on each stream, each of the key that its number has.
///
/// # Errors
/// A member refuses.
pub async fn watches_of(layout: &Layout, many: usize, key: impl Fn(usize) -> String) -> Result<Watches, Error> {
    const ON_A_STREAM: usize = 100;
    let streams = many / ON_A_STREAM;
    let channels = channels(layout, 12)?;
    let mut open = Vec::new();
    for (stream, channel) in (0..streams).zip(channels.into_iter().cycle()) {
        let (send, requests) = mpsc::channel(ON_A_STREAM);
        for number in 0..ON_A_STREAM {
            let key = key(stream * ON_A_STREAM + number).into();
            let create = WatchCreateRequest { key, ..WatchCreateRequest::default() };
            send.send(WatchRequest { request_union: Some(RequestUnion::CreateRequest(create)) }).await?;
        }
        let mut answers = WatchClient::new(channel).watch(ReceiverStream::new(requests)).await?.into_inner();
        for _ in 0..ON_A_STREAM {
            answers.message().await?.filter(|answer| answer.created).ok_or("a watch was not created")?;
        }
        open.push((send, answers));
    }
    Ok(Watches { open })
}
