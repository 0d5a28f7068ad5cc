//! What a member serves to clients: etcd's gRPC services and HTTP paths, on one port or on two.
//!
//! A service looks at the state, or proposes an entry and passes on what came of it; it holds nothing of its own but the
//! watches of a stream. What depends on this member's flags alone (quota, sizes) is judged here, before anything is
//! proposed. Source: etcd, server/etcdserver/api/v3rpc and api/etcdhttp; KEP-4647, "Client APIs Changes".

mod admission;
mod answer;
mod auth;
mod calls;
mod client_versions;
mod cluster;
mod context;
mod counted;
mod counters;
mod downgrade;
mod feature;
mod health;
mod http;
mod kv;
mod leadership;
mod lease;
mod long_answer;
mod maintenance;
mod members;
mod messages;
mod metrics;
mod page;
mod process;
mod quota;
mod random;
mod request_stats;
mod route;
mod snapshot;
mod standard;
mod status;
mod watch;

use std::time::Duration;

use tokio::task::JoinSet;

use crate::{
    config::{Config, DEFAULT_QUOTA_BYTES, Keepalive},
    host::Listener,
    member::Member,
    transport::connection::{self, Caller},
};
use context::ServiceContext;
use route::{Pages, Routes, Spoken};

/// What a message may have beside its entry (etcd, `grpcOverheadBytes`).
const OVERHEAD_BYTES: usize = 512 << 10;

/// How a member serves its clients.
#[derive(Clone, Copy, Debug)]
pub struct ServeOptions {
    /// How large the state may grow; 0 for 2 GiB.
    pub quota_bytes: u64,
    /// How long the cluster goes without a leader before it elects one: no lease is granted for less, and no stream that
    /// asked for a leader outlasts a few of these without one.
    pub election_timeout: Duration,
    /// Whether others than this machine's can call as a member without showing a certificate.
    pub peer_port_is_open: bool,
    /// How long a watch that asked for progress hears nothing before it is told (etcd, `--watch-progress-notify-interval`).
    pub progress_interval: Duration,
    /// As many operations a transaction may have.
    pub max_txn_operations: usize,
    /// How large an entry may be.
    pub max_request_bytes: usize,
    /// As many calls may be under way on one connection.
    pub max_concurrent_streams: u32,
    pub keepalive: Keepalive,
    /// A request that takes longer is logged (etcd, `--warning-unary-request-duration`).
    pub warning_unary_request: Duration,
}

impl ServeOptions {
    /// As it was set up.
    pub fn of(config: &Config) -> Self {
        Self {
            quota_bytes: config.quota_backend_bytes,
            election_timeout: config.election_timeout,
            peer_port_is_open: false,
            progress_interval: config.progress_interval,
            max_txn_operations: config.max_txn_operations,
            max_request_bytes: config.max_request_bytes,
            max_concurrent_streams: config.max_concurrent_streams,
            keepalive: config.keepalive,
            warning_unary_request: config.warning_unary_request,
        }
    }

    fn quota_bytes(&self) -> u64 {
        if self.quota_bytes == 0 { DEFAULT_QUOTA_BYTES } else { self.quota_bytes }
    }

    /// The largest message that is read.
    fn longest_message_bytes(&self) -> usize {
        self.max_request_bytes + OVERHEAD_BYTES
    }
}

/// Where it listens.
#[derive(Default)]
pub struct Listeners {
    pub clients: Vec<Listener>,
    /// For HTTP. Where there are any, clients have gRPC alone (etcd, `--listen-client-http-urls`).
    pub http: Vec<Listener>,
    /// For metrics and health alone.
    pub probes: Vec<Listener>,
}

#[derive(Debug)]
pub struct Server {
    context: ServiceContext,
}

impl Server {
    /// A server for this member.
    pub fn new(member: Member, options: ServeOptions) -> Self {
        Self { context: ServiceContext::new(member, options) }
    }

    /// Serves on these sockets until `shutdown`, then lets requests under way finish, ends streams in etcd's words, and
    /// returns: in well under a second, whatever clients do.
    pub async fn run(self, listeners: Listeners, shutdown: impl Future<Output = ()>) {
        let (stopping, mut tasks) = (self.context.stopping.clone(), JoinSet::new());
        tasks.spawn(self.context.hub.clone().run(self.context.member.clone()));
        tasks.spawn(self.context.clone().watch_room());
        let ServeOptions { max_concurrent_streams, keepalive, .. } = self.context.options;
        let caller = Caller::Client { max_concurrent_streams, keepalive };
        let Listeners { clients, http, probes } = listeners;
        let spoken = if http.is_empty() { Spoken::Both } else { Spoken::Grpc };
        let pages = |pages: Pages, listeners| {
            let stops = stopping.clone().cancelled_owned();
            connection::serve(caller, move |_| pages.clone(), listeners, stops, stopping.clone())
        };
        let probed = pages(Pages::of_probes(self.context.clone()), probes);
        let by_http = pages(Pages::all(self.context.clone()), http);
        let routes = Routes::new(self.context, spoken);
        let routes = |remote| routes.clone().called_by(remote);
        let served = connection::serve(caller, routes, clients, shutdown, stopping.clone());
        tokio::join!(served, by_http, probed);
    }
}
