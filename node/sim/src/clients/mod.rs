//! Clients of the cluster, on a machine of their own that never fails, and what they saw.

mod counters;
mod lease;
mod registers;
mod watch;

use std::{
    collections::BTreeMap,
    ops::Range,
    sync::{Arc, Mutex},
    time::Duration,
};

use hyper_util::rt::TokioIo;
use lab::history::History;
use node::host::Socket;
use proto::etcdserverpb::{kv_client::KvClient, lease_client::LeaseClient, watch_client::WatchClient};
use simulated_disk::Chance;
use tokio::runtime::{Builder, Runtime};
use tonic::{
    codegen::http::Uri,
    transport::{Channel, Endpoint},
};

pub use counters::{Counted, KEY as COUNTER};

use crate::{
    faults::CLIENTS,
    machine::{CLIENT_PORT, TURN},
    network::{HostId, Micros, Network},
};

/// As many read and write.
const REGISTERS: usize = 4;
/// A client gives up after this, and does not know what came of it.
const PATIENCE: Duration = Duration::from_secs(3);

/// What all clients saw.
#[derive(Default)]
pub struct Seen {
    pub history: History,
    /// What was acknowledged: revision, key, value.
    pub acknowledged: Vec<(i64, String, u64)>,
    /// What the watch told, in its order.
    pub watched: Vec<(i64, String, u64)>,
    /// Revisions that the watch was told it cannot hear of, since they were compacted away.
    pub gone: Vec<Range<i64>>,
    /// What must never be.
    pub faults: Vec<String>,
    pub puts: u64,
    pub gets: u64,
    /// Transactions that wrote or read what they found.
    pub swaps: u64,
    pub unknown: u64,
    /// Writes and reads that have begun and are not in the history yet.
    pub under_way: u64,
    pub renewals: u64,
    pub leases: u64,
    pub compactions: u64,
    pub counted: Counted,
}

pub type Shared = Arc<Mutex<Seen>>;

pub struct Clients {
    runtime: Runtime,
    pub seen: Shared,
    quiet: Arc<tokio::sync::watch::Sender<bool>>,
    clock: Micros,
    channels: Channels,
    network: Network,
}

/// By host: the voters.
type Channels = Arc<Mutex<BTreeMap<HostId, Channel>>>;

/// What each client has.
#[derive(Clone)]
pub(crate) struct Client {
    channels: Channels,
    seen: Shared,
    quiet: tokio::sync::watch::Receiver<bool>,
}

impl Client {
    fn any(&self, chance: &mut Chance) -> Channel {
        let channels = self.channels.lock().unwrap();
        channels.values().nth(chance.below(channels.len())).unwrap().clone()
    }

    fn kv(&self, chance: &mut Chance) -> KvClient<Channel> {
        KvClient::new(self.any(chance))
    }

    fn leases(&self, chance: &mut Chance) -> LeaseClient<Channel> {
        LeaseClient::new(self.any(chance))
    }

    fn watches(&self, chance: &mut Chance) -> WatchClient<Channel> {
        WatchClient::new(self.any(chance))
    }

    fn is_quiet(&self) -> bool {
        *self.quiet.borrow()
    }
}

/// The time that all clients go by: the world's, in nanoseconds.
pub(crate) fn now() -> u64 {
    crate::entropy::now()
}

impl Clients {
    pub fn new(network: &Network, members: HostId, chance: &mut Chance) -> Self {
        TURN.set(CLIENTS);
        let runtime = Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let seen = Shared::default();
        let quiet = Arc::new(tokio::sync::watch::Sender::new(false));
        let channels = {
            let _on = runtime.enter();
            Arc::new(Mutex::new((1..=members).map(|host| (host, channel(network, host))).collect()))
        };
        let client = || Client { channels: channels.clone(), seen: seen.clone(), quiet: quiet.subscribe() };
        for number in 0..REGISTERS {
            runtime.spawn(registers::run(client(), number, fork(chance)));
        }
        runtime.spawn(registers::compact(client(), fork(chance)));
        for _ in 0..2 {
            runtime.spawn(counters::run(client(), fork(chance)));
        }
        for ttl in [2, 5] {
            runtime.spawn(lease::run(client(), ttl, fork(chance)));
        }
        runtime.spawn(watch::run(client(), fork(chance)));
        Self { runtime, seen, quiet, clock: 0, channels, network: network.clone() }
    }

    /// Until this time.
    pub fn run_until(&mut self, now: Micros) {
        TURN.set(CLIENTS);
        let passed = Duration::from_micros(now - self.clock);
        self.clock = now;
        self.runtime.block_on(async { tokio::time::sleep(passed).await });
    }

    /// From now on nobody begins anything, but for the watch, which goes on.
    pub fn be_quiet(&self) {
        self.quiet.send_replace(true);
    }

    /// From now on clients talk to these.
    pub(crate) fn reach(&self, hosts: impl Iterator<Item = HostId>) {
        let _on = self.runtime.enter();
        let mut channels = self.channels.lock().unwrap();
        let mut known = std::mem::take(&mut *channels);
        *channels =
            hosts.map(|host| (host, known.remove(&host).unwrap_or_else(|| channel(&self.network, host)))).collect();
    }

    /// Has clients do something more, through one member.
    pub(crate) fn also<F>(&self, host: HostId, what: impl FnOnce(Channel) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let _on = self.runtime.enter();
        self.runtime.spawn(what(channel(&self.network, host)));
    }

    /// Puts through one member; what comes of it is in the cell.
    pub fn probe(&self, host: HostId, number: u64) -> Arc<Mutex<Option<Result<(), String>>>> {
        let outcome = Arc::new(Mutex::new(None));
        let told = outcome.clone();
        let channel = {
            let _on = self.runtime.enter();
            channel(&self.network, host)
        };
        self.runtime.spawn(async move {
            let mut kv = KvClient::new(channel);
            let put = kv.put(proto::etcdserverpb::PutRequest {
                key: format!("probe/{host}").into(),
                value: number.to_string().into(),
                ..Default::default()
            });
            let answer = tokio::time::timeout(PATIENCE, put).await;
            let answer = match answer {
                Ok(Ok(_)) => Ok(()),
                Ok(Err(status)) => Err(status.message().to_owned()),
                Err(_) => Err("no answer".to_owned()),
            };
            *told.lock().unwrap() = Some(answer);
        });
        outcome
    }
}

fn fork(chance: &mut Chance) -> Chance {
    Chance::new(chance.below(usize::MAX) as u64)
}

fn channel(network: &Network, host: HostId) -> Channel {
    let network = network.clone();
    let connector = tower::service_fn(move |_: Uri| {
        let connecting = network.connect(CLIENTS, &format!("10.0.0.{host}:{CLIENT_PORT}"));
        async move { connecting.await.map(|socket: Box<dyn Socket>| TokioIo::new(socket)) }
    });
    Endpoint::from_shared(format!("http://10.0.0.{host}:{CLIENT_PORT}"))
        .unwrap()
        .connect_timeout(Duration::from_secs(1))
        .http2_keep_alive_interval(Duration::from_secs(1))
        .keep_alive_timeout(Duration::from_secs(1))
        .keep_alive_while_idle(true)
        .connect_with_connector_lazy(connector)
}
