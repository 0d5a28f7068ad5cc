//! A member in this process, served on a port of its own.

use std::{future::Future, sync::Arc};

use node::{
    cluster::gate::Gate,
    config::Config,
    entry::EntryKind,
    features::{FEATURES, Registry},
    host::{RealHost, tcp},
    member::{self, Member, Running},
    serve::{Listeners, ServeOptions, Server},
};
use proto::{
    ClusterVersion, MemberId, Release,
    etcdserverpb::{
        cluster_client::ClusterClient, kv_client::KvClient, lease_client::LeaseClient,
        maintenance_client::MaintenanceClient,
    },
};
use tempfile::TempDir;
use tokio::{
    net::TcpListener,
    sync::{Semaphore, oneshot},
    task::JoinHandle,
};
use tonic::transport::Channel;

/// The member's id.
pub const ID: MemberId = MemberId(0xebfe_df0e_b4e6_b9a8);

/// A served member; dropped, it stops.
pub struct Served {
    /// Where it serves.
    pub url: String,
    /// Where it serves HTTP, if not there.
    pub http_url: Option<String>,
    /// The member itself.
    pub member: Member,
    _running: Running,
    _folder: TempDir,
    stop: Option<oneshot::Sender<()>>,
    server: Option<JoinHandle<()>>,
}

/// What is served.
pub struct Setup {
    /// What the member runs.
    pub release: Release,
    /// Whether the cluster has decided its version.
    pub has_version: bool,
    /// What it knows of features.
    pub registry: Registry,
    /// What it wants of `ClusterLeaseCheckpoint`.
    pub wants: Option<bool>,
    /// How it serves.
    pub options: ServeOptions,
    /// Whether HTTP has a port of its own.
    pub has_http_port: bool,
}

/// As it serves where nobody says otherwise.
pub fn options() -> ServeOptions {
    ServeOptions::of(&Config::read([], [], FEATURES).unwrap())
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            release: Release::new(3, 6, 0),
            has_version: true,
            registry: Registry::of(&Release::new(3, 6, 0)),
            wants: None,
            options: options(),
            has_http_port: false,
        }
    }
}

impl Served {
    /// As everybody has it.
    pub async fn start() -> Self {
        Self::set_up(Setup::default()).await
    }

    /// As this set-up says.
    pub async fn set_up(setup: Setup) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let folder = tempfile::tempdir().unwrap();
        let running = start(&setup, &url, &folder).await;
        let member = running.member.clone();
        let (stop, stopped) = oneshot::channel::<()>();
        let (mut http, mut http_url) = (Vec::new(), None);
        if setup.has_http_port {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            http_url = Some(format!("http://{}", listener.local_addr().unwrap()));
            http.push(tcp(listener, Arc::new(Semaphore::new(64))));
        }
        let clients = vec![tcp(listener, Arc::new(Semaphore::new(4096)))];
        let listeners = Listeners { clients, http, probes: Vec::new() };
        let server = Server::new(member.clone(), setup.options).run(listeners, async {
            let _ = stopped.await;
        });
        let server = Some(tokio::spawn(server));
        let served = Self { url, http_url, member, _running: running, _folder: folder, stop: Some(stop), server };
        if setup.has_version {
            served.settled(setup.release.cluster_version()).await;
        }
        served
    }

    /// Asks it to stop; what is given ends when it has.
    pub fn stop(&mut self) -> impl Future<Output = ()> + use<> {
        drop(self.stop.take());
        let server = self.server.take();
        async move { server.unwrap().await.unwrap() }
    }

    /// Waits until the member has published itself, the cluster version is this and gates are decided: it proposes nothing
    /// more by itself.
    async fn settled(&self, version: ClusterVersion) {
        let mut changes = self.member.applied();
        let is_settled = || {
            self.member.read(|state| {
                let is_published = state.cluster.members.get(&ID).is_some_and(|member| !member.client_urls.is_empty());
                let is_decided = !state.cluster.has_gates() || matches!(state.cluster.gate, Gate::Decided(_));
                is_published && state.cluster.version == Some(version) && is_decided
            })
        };
        while !is_settled() {
            changes.changed().await.unwrap();
        }
    }

    /// Performs an entry that no client can ask for.
    pub async fn apply(&self, what: EntryKind) {
        self.member.propose(what.into()).await.unwrap();
    }

    pub fn channel(&self) -> Channel {
        Channel::from_shared(self.url.clone()).unwrap().connect_lazy()
    }

    pub fn kv(&self) -> KvClient<Channel> {
        KvClient::new(self.channel()).max_decoding_message_size(usize::MAX)
    }

    pub fn lease(&self) -> LeaseClient<Channel> {
        LeaseClient::new(self.channel())
    }

    pub fn cluster(&self) -> ClusterClient<Channel> {
        ClusterClient::new(self.channel())
    }

    pub fn maintenance(&self) -> MaintenanceClient<Channel> {
        MaintenanceClient::new(self.channel()).max_decoding_message_size(usize::MAX)
    }
}

/// A founder, and the only one but where there must not be a cluster yet.
async fn start(setup: &Setup, url: &str, folder: &TempDir) -> Running {
    let others = if setup.has_version { "" } else { ",m2=http://127.0.0.1:1" };
    let wish = setup.wants.map(|is_on| format!("--cluster-feature-gates=ClusterLeaseCheckpoint={is_on}"));
    let flags = [
        "--name=m1".to_owned(),
        format!("--data-dir={}", folder.path().join("data").display()),
        format!("--listen-client-urls={url}"),
        format!("--advertise-client-urls={url}"),
        "--initial-advertise-peer-urls=http://127.0.0.1:2380".to_owned(),
        format!("--initial-cluster=m1=http://127.0.0.1:2380{others}"),
    ];
    let config = Config::read(flags.into_iter().chain(wish), [], FEATURES).unwrap();
    let (release, registry) = (setup.release.clone(), setup.registry);
    member::start(member::Setup {
        host: Arc::new(RealHost::default()),
        config,
        release,
        registry,
        listeners: Vec::new(),
        tls: None,
    })
    .await
    .unwrap()
}
