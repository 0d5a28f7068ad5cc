//! The node as a process: its arguments, its output, its threads, its end.

mod offline;

use std::{
    env,
    error::Error,
    io::{self, Write},
    process::ExitCode,
    sync::Arc,
    thread,
    time::Duration,
};

use consensus::with_causes;
use proto::Release;
use sd_notify::NotifyState;
use tokio::{
    runtime::{Builder, Runtime},
    signal::unix::{Signal, SignalKind, signal},
    sync::oneshot,
    task::JoinSet,
    time::{sleep, timeout},
};

use crate::{
    config::{
        CLIENT_TLS, Config, ConfigError, PEER_TLS, Role, SETTINGS, TlsSettings, Url, arguments, overruled, variables,
    },
    features::{INITIAL_CORRUPT_CHECK, Registry},
    host::{Descriptors, RealHost},
    identity::Identity,
    logging,
    member::{End, Member, Running, Setup, data_dir, start},
    migrate::MigrateCommandError,
    restore::SnapshotCommandError,
    serve::{Listeners, ServeOptions, Server},
    transport::{
        listening::{Bound, ListenError},
        tls::{ClientTls, ServerTls, make_where_needed},
    },
};

/// How long the connections of clients are waited for at the end, beyond what the server itself takes.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(500);

/// A member that waits to be let in asks systemd for so much more time, again and again.
const START_EXTENSION: Duration = Duration::from_secs(60);

/// Between two looks whether there is a quorum.
const READY_INTERVAL: Duration = Duration::from_millis(100);
/// As many of those who ask for metrics and health at ports of their own are connected at once.
const MOST_PROBES: usize = 16;
/// One of so many clients may be one by HTTP, where that has ports of its own.
const HTTP_PART: usize = 8;

type Outcome = Result<(), Box<dyn Error + Send + Sync>>;

/// Runs the node to its end.
pub fn run(release: &str) -> ExitCode {
    let arguments = match arguments(env::args_os().skip(1)) {
        Ok(arguments) => arguments,
        Err(error) => return failed(&error),
    };
    if let Some((first, rest)) = arguments.split_first()
        && first == "snapshot"
    {
        return match offline::snapshot(release, rest) {
            Ok(text) => say(&text),
            Err(error) => failed(&*error),
        };
    }
    if let Some((first, rest)) = arguments.split_first()
        && first == "migrate"
    {
        return match offline::migrate(release, rest) {
            Ok(text) => say(&text),
            Err(error) => failed(&*error),
        };
    }
    let (version, others): (Vec<_>, Vec<_>) = arguments.iter().cloned().partition(|argument| is_version(argument));
    if !version.is_empty() {
        // Whoever wants to know whether a release takes some flags asks it with them.
        return match takes(release, others) {
            Ok(warnings) => {
                warn(&warnings);
                // The first line is etcd's, for those who read it.
                say(&format!("etcd Version: {release}\nMade by: Baton's node, with KEP-4647\n"))
            }
            Err(error) => failed(&*error),
        };
    }
    if arguments.iter().any(|argument| matches!(argument.as_str(), "--help" | "-h" | "help")) {
        return say(&help());
    }
    match serve(release, arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(&*error),
    }
}

/// Whether this release takes these flags; what of them will count for nothing.
fn takes(release: &str, flags: Vec<String>) -> Result<Vec<String>, Box<dyn Error + Send + Sync>> {
    let release: Release = release.parse()?;
    let registry = Registry::of(&release);
    Ok(overruled(&registry, release.cluster_version(), &Config::check_flags(flags, registry)?))
}

/// To whoever asked. Where that cannot be written, nobody reads it.
fn warn(warnings: &[String]) {
    warnings.iter().for_each(|warning| drop(writeln!(io::stderr(), "warning: {warning}")));
}

fn is_version(argument: &str) -> bool {
    matches!(argument, "--version" | "-version" | "version")
}

/// To whoever asked.
fn say(text: &str) -> ExitCode {
    match io::stdout().write_all(text.as_bytes()).and_then(|()| io::stdout().flush()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(&error),
    }
}

/// A flag that is wrong ends a member with 2, as it does etcd.
fn failed(error: &(dyn Error + 'static)) -> ExitCode {
    // Where that cannot be written, the code still says it.
    let _ = writeln!(io::stderr(), "error: {}", with_causes(error));
    let is_of_a_flag = error.downcast_ref::<ConfigError>().is_some_and(ConfigError::is_of_a_flag);
    if is_of_a_flag || error.is::<SnapshotCommandError>() || error.is::<MigrateCommandError>() {
        ExitCode::from(2)
    } else {
        ExitCode::FAILURE
    }
}

fn help() -> String {
    let setting = |setting: &crate::config::Setting| {
        let default = if setting.default.is_empty() { String::new() } else { format!(" [{}]", setting.default) };
        match setting.role {
            Role::Used(help) => format!("  --{:<30} {help}{default}\n", setting.name),
            _ => String::new(),
        }
    };
    let settings: String = SETTINGS.iter().map(setting).collect();
    format!(
        "A raft node that speaks the etcd v3 API.\n\nUsage: node [--SETTING=VALUE]… | node --config-file FILE\n       \
         node snapshot status FILE | node snapshot restore FILE --data-dir DIR   (node snapshot --help)\n       node migrate --target-version 3.N --data-dir DIR   (node migrate --help)\n\n{settings}  \
         --{:<30} {}\n  --{:<30} {}\n\nEvery setting can be given as ETCD_… in the environment, too. etcd's other flags are taken or refused by name.\n",
        "config-file", "a YAML file with these settings; then no other counts", "version", "say which release this is"
    )
}

fn serve(release: &str, arguments: Vec<String>) -> Outcome {
    let release: Release = release.parse()?;
    let registry = Registry::of(&release);
    let config = Config::read(arguments, variables(env::vars_os())?, registry)?;
    if !Identity::is_in(&config.data_dir) {
        config.check_first_start()?;
    }
    logging::start(&config.log)?;
    config.say(&release);
    let open: Vec<_> = open_to_members(&config).collect();
    for (url, why) in &open {
        tracing::warn!(
            %url,
            "other members are listened for {why}: whoever reaches this address can take a member's place; keep it in a network \
             that is the members' own"
        );
    }
    for warning in &config.warnings {
        tracing::warn!("{warning}");
    }
    warn_of_unused(&config);
    // Raft on threads of its own: whatever clients ask for, heartbeats and elections keep their time.
    let (raft, clients) = (runtime("raft", 1)?, runtime("serve", serving_threads())?);
    let descriptors = Descriptors::claim()?;
    let signals = Signals::new(&clients)?;
    let peers = raft.block_on(Bound::at("listen-peer-urls", &config.listen_peer_urls))?;
    let sockets = clients.block_on(Bound::at("listen-client-urls", &config.listen_client_urls))?;
    let by_http = clients.block_on(Bound::at("listen-client-http-urls", &config.listen_client_http_urls))?;
    let probed = clients.block_on(Bound::at("listen-metrics-urls", &config.listen_metrics_urls))?;
    let tls = Tls::of(&config)?;
    let has_http = !config.listen_client_http_urls.is_empty();
    let served = [(if has_http { "grpc" } else { "grpc+http" }, sockets.addresses()), ("http", by_http.addresses())];
    let options = ServeOptions { peer_port_is_open: !open.is_empty(), ..ServeOptions::of(&config) };
    let peers = raft.block_on(async { peers.listen(descriptors.for_peers(), tls.peers.as_ref()) })?;
    let host = Arc::new(RealHost::calling_from(config.local_address()));
    let setup = Setup { config, release, registry, listeners: peers, host, tls: tls.to_peers };
    // On this thread: its heap grows in greater steps than those of others, and a large state takes a lot of it.
    let running = raft.block_on(start(setup))?;
    let most = descriptors.for_clients();
    let most_by_http = if has_http { most / HTTP_PART } else { 0 };
    let listen = || {
        let tls = tls.clients.as_ref();
        let listeners = Listeners {
            clients: sockets.listen(most - most_by_http, tls)?,
            http: by_http.listen(most_by_http, tls)?,
            probes: probed.listen(MOST_PROBES, tls)?,
        };
        served.iter().for_each(|(traffic, addresses)| say_serving(traffic, addresses));
        Ok(listeners)
    };
    let outcome = clients.block_on(live(&running, listen, options, signals.wait()));
    raft.block_on(running.end());
    raft.shutdown_timeout(DRAIN_TIMEOUT);
    clients.shutdown_timeout(DRAIN_TIMEOUT);
    outcome
}

/// What is shown, and who is taken, on each side.
struct Tls {
    clients: Option<Arc<ServerTls>>,
    peers: Option<Arc<ServerTls>>,
    to_peers: Option<Arc<ClientTls>>,
}

impl Tls {
    /// From files; the member's own are made where they must be.
    fn of(config: &Config) -> Result<Self, Box<dyn Error + Send + Sync>> {
        let sides = [(&config.client_tls, CLIENT_TLS), (&config.peer_tls, PEER_TLS)];
        if sides.iter().any(|(settings, _)| settings.self_signed.is_some()) {
            data_dir(&RealHost::default(), config)?;
            sides.iter().try_for_each(|(settings, flags)| make_where_needed(settings, *flags))?;
        }
        let server = |settings: &TlsSettings, flags| {
            settings.identity.as_ref().map(|_| ServerTls::new(settings.clone(), flags).map(Arc::new)).transpose()
        };
        let peer = &config.peer_tls;
        let calls = peer.identity.is_some() || peer.trusted_ca.is_some();
        Ok(Self {
            clients: server(&config.client_tls, CLIENT_TLS)?,
            peers: server(peer, PEER_TLS)?,
            to_peers: calls.then(|| ClientTls::new(peer.clone(), PEER_TLS).map(Arc::new)).transpose()?,
        })
    }
}

/// Where members of other machines are listened for, and whoever comes is one.
fn open_to_members(config: &Config) -> impl Iterator<Item = (&Url, &'static str)> {
    let why = |url: &Url| match (url.is_tls(), &config.peer_tls.trusted_ca) {
        (true, Some(_)) => None,
        (true, None) if config.peer_tls.self_signed.is_some() => {
            Some("by --peer-auto-tls, which asks nobody for a certificate and believes any")
        }
        (true, None) => Some("without asking for their certificates (--peer-trusted-ca-file)"),
        (false, _) => Some("without TLS"),
    };
    config.listen_peer_urls.iter().filter(|url| !url.is_loopback()).filter_map(move |url| Some((url, why(url)?)))
}

/// What an operator may have meant otherwise.
fn warn_of_unused(config: &Config) {
    let sides = [
        (CLIENT_TLS, &config.client_tls, &config.listen_client_urls),
        (CLIENT_TLS, &config.client_tls, &config.listen_client_http_urls),
        (PEER_TLS, &config.peer_tls, &config.listen_peer_urls),
    ];
    for (flags, settings, urls) in sides {
        let unused = settings.identity.is_some() || settings.trusted_ca.is_some();
        for url in urls.iter().filter(|url| !url.is_tls() && unused) {
            let scheme = url.scheme();
            let named = match settings.self_signed {
                Some(_) => format!("--{} is", flags.auto),
                None => format!("--{} and --{} are", flags.cert, flags.trusted_ca),
            };
            tracing::warn!(
                %url,
                "this is {scheme}, not {scheme}s: {named} not used, and nobody is asked for a certificate"
            );
        }
    }
}

/// Serves clients until somebody asks for the end, or the member cannot go on.
///
/// # Errors
/// Why it cannot.
pub async fn live(
    running: &Running,
    listen: impl FnOnce() -> Result<Listeners, ListenError>,
    options: ServeOptions,
    asked: impl Future<Output = ()>,
) -> Outcome {
    let end = until_the_end(running, asked);
    tokio::pin!(end);
    // Who is refused goes to another member at once; who is let in too soon waits. Without a quorum nobody is ever ready,
    // and whoever asks how things stand is to be answered.
    let ready = async {
        let_in(&running.member).await;
        timeout(options.election_timeout, running.member.linearize()).await
    };
    tokio::select! {
        _ = ready => {}
        ended = &mut end => return ended,
    }
    if running.member.feature_enabled(INITIAL_CORRUPT_CHECK) {
        tokio::select! {
            agrees = running.member.agrees() => agrees?,
            ended = &mut end => return ended,
        }
    }
    let listeners = listen()?;
    let mut tasks = JoinSet::new();
    tasks.spawn(say_ready(running.member.clone()));
    tell_systemd(&[NotifyState::Ready]);
    let (ends, ended) = oneshot::channel::<()>();
    let server = Server::new(running.member.clone(), options);
    let serving = tokio::spawn(server.run(listeners, async { drop(ended.await) }));
    let outcome = end.await;
    drop(ends);
    // What a client still waits for is answered by this member as a follower.
    let _ = timeout(DRAIN_TIMEOUT, serving).await;
    outcome
}

/// Whoever starts this process and waits for it to serve must not take it for one that hangs.
async fn let_in(member: &Member) {
    while timeout(START_EXTENSION / 2, member.is_in()).await.is_err() {
        tell_systemd(&[NotifyState::ExtendTimeoutUsec(START_EXTENSION.as_micros() as u32)]);
    }
}

/// etcd's words (`serve` in server/embed/serve.go).
fn say_serving(traffic: &str, addresses: &[(String, bool)]) {
    for (address, is_secure) in addresses {
        match is_secure {
            true => tracing::info!(traffic, address, "serving client traffic securely"),
            false => {
                tracing::info!(traffic, address, "serving client traffic insecurely; this is strongly discouraged!");
            }
        }
    }
}

/// etcd's words, once there is a quorum: whoever starts a cluster waits for them.
async fn say_ready(member: Member) {
    while member.linearize().await.is_err() {
        sleep(READY_INTERVAL).await;
    }
    tracing::info!("ready to serve client requests");
}

/// What a unit with `Type=notify` waits for (sd_notify(3)). A systemd that does not hear it will say so itself.
fn tell_systemd(state: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(state) {
        tracing::warn!(%error, "systemd was not told");
    }
}

fn runtime(name: &str, threads: usize) -> std::io::Result<Runtime> {
    Builder::new_multi_thread().worker_threads(threads).thread_name(name).enable_all().build()
}

/// One for each processor but raft's. More than there are processors only wake each other up.
fn serving_threads() -> usize {
    thread::available_parallelism().map_or(1, |processors| processors.get().saturating_sub(1).max(1))
}

/// Takes the signal of a file that may not grow (RLIMIT_FSIZE): it is an error with the file's name then, and no silent end.
fn take_too_large(runtime: &Runtime) -> std::io::Result<Signal> {
    let _on = runtime.enter();
    signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw()))
}

struct Signals {
    terminate: Signal,
    interrupt: Signal,
    _too_large: Signal,
}

impl Signals {
    fn new(runtime: &Runtime) -> std::io::Result<Self> {
        let _on = runtime.enter();
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            _too_large: take_too_large(runtime)?,
        })
    }

    async fn wait(mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// Until somebody asks for the end, or the member cannot go on.
async fn until_the_end(running: &Running, asked: impl Future<Output = ()>) -> Outcome {
    tokio::select! {
        () = asked => {}
        end = running.ended() => return match end {
            End::Failed(why) => Err(format!("this member cannot go on: {why}").into()),
            // Somebody wanted it so, and nothing has failed: whoever starts what has failed anew leaves it alone (etcd, `run` in
            // server/etcdserver/server.go).
            End::Removed => {
                tracing::warn!(
                    "ends: the member has been permanently removed from the cluster; its data directory is of no use any more"
                );
                Ok(())
            }
        },
    }
    tracing::info!("ends");
    tell_systemd(&[NotifyState::Stopping]);
    if let Err(error) = running.member.step_down().await {
        tracing::warn!(%error, "nobody took over");
    }
    Ok(())
}
