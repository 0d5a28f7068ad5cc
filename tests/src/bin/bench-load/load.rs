//! One kind of request, from so many clients at once.

use std::{
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};

use proto::etcdserverpb::{PutRequest, RangeRequest};
use tests::{Error, cluster::Layout};
use tokio::{sync::watch, task::JoinSet};

use crate::{client::Client, life::processor_time};

/// Before anything is counted.
const WARM_UP: Duration = Duration::from_millis(500);
/// Keys that are written and read.
const KEYS: u64 = 10_000;
/// Clients share connections as they do in programs.
const CONNECTIONS: usize = 12;
/// Clients of `write`.
const WRITERS: u64 = 64;
const PUT: &str = "/etcdserverpb.KV/Put";

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

/// What came of it.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    pub a_second: f64,
    /// Of a hundred requests one took longer.
    pub p99_ms: f64,
    /// What all members together took of the processors for one request, in microseconds.
    pub processor_us: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    WarmUp,
    Counted,
    Over,
}

impl Load {
    /// Puts the load on all members alike.
    pub async fn run(self, layout: &Layout, time: Duration) -> Result<Measured, Error> {
        let connections = connect(layout, self.clients).await?;
        let phase = Arc::new(watch::Sender::new(Phase::WarmUp));
        let mut clients = JoinSet::new();
        for (number, connection) in connections.into_iter().cycle().take(self.clients).enumerate() {
            clients.spawn(self.client(number as u64, connection, phase.subscribe()));
        }
        tokio::time::sleep(WARM_UP).await;
        let (began, used) = (Instant::now(), processor_time(layout)?);
        phase.send_replace(Phase::Counted);
        tokio::time::sleep(time).await;
        phase.send_replace(Phase::Over);
        let (took, used) = (began.elapsed(), processor_time(layout)?.saturating_sub(used));
        let mut latencies = Vec::new();
        while let Some(client) = clients.join_next().await {
            latencies.extend(client??);
        }
        latencies.sort_unstable();
        let p99 = latencies.get(latencies.len() * 99 / 100).copied().unwrap_or_default();
        let count = latencies.len() as f64;
        Ok(Measured {
            a_second: count / took.as_secs_f64(),
            p99_ms: p99.as_secs_f64() * 1e3,
            processor_us: used.as_secs_f64() * 1e6 / count,
        })
    }

    /// How long each request took that was answered while they counted.
    async fn client(self, number: u64, client: Client, phase: watch::Receiver<Phase>) -> Result<Vec<Duration>, Error> {
        let method = client.method(match self.kind {
            Kind::Writes => PUT,
            Kind::Reads => "/etcdserverpb.KV/Range",
        })?;
        let (mut at, mut latencies) = (number * KEYS / 7, Vec::new());
        loop {
            at = (at + 7_919) % KEYS;
            let began = Instant::now();
            match self.kind {
                Kind::Writes => client.call(&method, &put(at, self.bytes)).await?,
                Kind::Reads => client.call(&method, &RangeRequest { key: key(at), ..RangeRequest::default() }).await?,
            }
            let now = *phase.borrow();
            match now {
                Phase::WarmUp => {}
                Phase::Counted => latencies.push(began.elapsed()),
                Phase::Over => return Ok(latencies),
            }
        }
    }
}

/// So many puts, to keys that are taken in turns.
pub async fn write(layout: &Layout, puts: u64, bytes: usize) -> Result<(), Error> {
    let mut clients = JoinSet::new();
    for (number, client) in (0..WRITERS).zip(connect(layout, CONNECTIONS).await?.into_iter().cycle()) {
        let method = client.method(PUT)?;
        clients.spawn(async move {
            for at in (number..puts).step_by(WRITERS as usize) {
                client.call(&method, &put(at % KEYS, bytes)).await?;
            }
            Ok::<_, Error>(())
        });
    }
    while let Some(client) = clients.join_next().await {
        client??;
    }
    Ok(())
}

async fn connect(layout: &Layout, clients: usize) -> Result<Vec<Client>, Error> {
    let mut connections = Vec::new();
    for member in layout.members.iter().cycle().take(clients.min(CONNECTIONS)) {
        connections.push(Client::connect(&member.client_url).await?);
    }
    Ok(connections)
}

fn key(at: u64) -> Vec<u8> {
    format!("load/{at:05}").into_bytes()
}

fn put(at: u64, bytes: usize) -> PutRequest {
    PutRequest { key: key(at), value: vec![b'v'; bytes], ..PutRequest::default() }
}
