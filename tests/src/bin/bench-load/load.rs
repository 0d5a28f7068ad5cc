//! One kind of request, from so many clients at once.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use proto::etcdserverpb::{PutRequest, RangeRequest, kv_client::KvClient};
use tests::{Error, cluster::Layout};
use tokio::task::JoinSet;
use tonic::{
    Status,
    transport::{Channel, Endpoint},
};

/// Before anything is counted.
const WARM_UP: Duration = Duration::from_millis(500);
/// Keys that are written and read.
const KEYS: u64 = 10_000;
/// Clients share connections as they do in programs.
const CONNECTIONS: usize = 12;

/// What clients ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Puts.
    Writes,
    /// Linearizable reads of one key: a quorum round each, unless the server puts several into one.
    Reads,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Writes => "writes",
            Self::Reads => "reads",
        })
    }
}

/// A load.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    pub kind: Kind,
    pub clients: usize,
    pub bytes: usize,
}

impl Load {
    /// Puts the load on all members alike; requests a second.
    pub async fn run(self, layout: &Layout, time: Duration) -> Result<f64, Error> {
        let members = layout.members.iter().map(|member| member.client_url.clone());
        let channels: Result<Vec<Channel>, _> = members
            .cycle()
            .take(self.clients.min(CONNECTIONS))
            .map(|url| Ok::<_, Error>(Endpoint::from_shared(url)?.tcp_nodelay(true).connect_lazy()))
            .collect();
        let (done, over) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let mut clients = JoinSet::new();
        for (number, channel) in channels?.into_iter().cycle().take(self.clients).enumerate() {
            clients.spawn(self.client(number as u64, KvClient::new(channel), done.clone(), over.clone()));
        }
        tokio::time::sleep(WARM_UP).await;
        let (began, before) = (Instant::now(), done.load(Relaxed));
        tokio::time::sleep(time).await;
        let (after, took) = (done.load(Relaxed), began.elapsed());
        over.store(true, Relaxed);
        while let Some(client) = clients.join_next().await {
            client??;
        }
        Ok((after - before) as f64 / took.as_secs_f64())
    }

    async fn client(
        self,
        number: u64,
        mut client: KvClient<Channel>,
        done: Arc<AtomicU64>,
        over: Arc<AtomicBool>,
    ) -> Result<(), Status> {
        let mut at = number * KEYS / 7;
        while !over.load(Relaxed) {
            at = (at + 7_919) % KEYS;
            let key = format!("load/{at:05}").into_bytes();
            match self.kind {
                Kind::Writes => {
                    let value = vec![b'v'; self.bytes];
                    client.put(PutRequest { key, value, ..PutRequest::default() }).await?;
                }
                Kind::Reads => {
                    client.range(RangeRequest { key, ..RangeRequest::default() }).await?;
                }
            }
            done.fetch_add(1, Relaxed);
        }
        Ok(())
    }
}
