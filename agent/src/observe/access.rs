//! Connections to the members: TLS, the user's token, one open channel an address, and a deadline on every call.
//!
//! Knows addresses, not members: who is where is the [`Directory`]'s, what to ask is [`super::member`]'s. Nothing here
//! reads an environment's proxy or the system's authorities: a playbook says all there is to know.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    future::Future,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use proto::etcdserverpb::{AuthUserGetRequest, auth_client::AuthClient};
use tonic::{
    Code, ConnectError, Request, Response, Status,
    metadata::{Ascii, MetadataValue},
    transport::{Channel, ClientTlsConfig, Endpoint},
};

use super::{
    answer::Answered,
    directory::Directory,
    error::{CallError, ObserveError},
    introduction::Peer,
    listed::normal_form,
    login::Login,
    tls::{Renewed, TlsFiles},
};
use crate::playbook::cluster::Cluster;

/// How long any call may take; after it the outcome is unknown.
pub const CALL: Duration = Duration::from_secs(5);
/// How late a time-out may come on a busy machine; one that comes later than that came to a process that was frozen.
const STALL: Duration = Duration::from_secs(2);
/// How long a transaction may take: etcd itself gives up after seven seconds.
pub const TXN: Duration = Duration::from_secs(8);
/// How long a connection may take to be made; below [`CALL`], so that a dead host is told from a slow one.
pub const CONNECT: Duration = Duration::from_secs(2);
/// How often an open stream is checked for life; etcd closes a connection that asks more often than each 5 s.
const PING: Duration = Duration::from_secs(10);

/// The way to the members of one cluster. Its connections belong to the runtime it is used in.
#[derive(Debug)]
pub struct Access {
    tls: Option<Arc<Renewed>>,
    pub(super) login: Login,
    directory: Arc<Directory>,
    lines: Mutex<HashMap<String, Line>>,
    /// Held while it is found out which cluster this is about.
    pub(super) meeting: tokio::sync::Mutex<()>,
}

/// One connection.
#[derive(Debug)]
struct Line {
    channel: Channel,
    /// Which state of the TLS files it was made with.
    generation: u64,
    /// Who answered there before any secret was sent.
    peer: Option<Peer>,
}

impl Access {
    /// Reads the files that the playbook names; connects to nobody yet.
    ///
    /// # Errors
    /// [`ObserveError::File`], [`ObserveError::Pem`], [`ObserveError::Tls`] and [`ObserveError::Address`].
    pub fn new(cluster: &Cluster) -> Result<Self, ObserveError> {
        let tls = cluster.tls.as_ref().map(Renewed::read).transpose()?.map(Arc::new);
        let scheme = if tls.is_some() { "https" } else { "http" };
        let endpoints: Vec<_> = cluster.endpoints.iter().map(|address| normal_form(address, scheme)).collect();
        let files = tls.as_deref().map(|tls| tls.current().0);
        for address in &endpoints {
            endpoint(address, files.as_ref().map(TlsFiles::for_grpc))
                .map_err(|expected| ObserveError::Address { address: address.clone(), expected })?;
        }
        let login = Login::new(cluster.auth.as_ref())?;
        Ok(Self::over(tls, login, Arc::new(Directory::new(endpoints))))
    }

    /// The same way for another runtime: it shares what was learned about addresses, and no connection.
    pub fn for_another_runtime(&self) -> Self {
        Self::over(self.tls.clone(), self.login.anew(), Arc::clone(&self.directory))
    }

    fn over(tls: Option<Arc<Renewed>>, login: Login, directory: Arc<Directory>) -> Self {
        Self { tls, login, directory, lines: Mutex::default(), meeting: tokio::sync::Mutex::default() }
    }

    /// Who is where.
    pub fn directory(&self) -> &Directory {
        &self.directory
    }

    /// The TLS files as they are now, if the cluster is reached by TLS, and which state of them it is.
    pub(super) fn tls(&self) -> (Option<TlsFiles>, u64) {
        self.tls.as_deref().map_or((None, 0), |tls| {
            let (files, generation) = tls.current();
            (Some(files), generation)
        })
    }

    /// Which state of the TLS files new connections are made with.
    pub(super) fn generation(&self) -> u64 {
        self.tls.as_deref().map_or(0, Renewed::generation)
    }

    /// Whether the cluster is reached by TLS.
    pub(super) fn has_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// Makes sure that there is a token, where the playbook has a user and the cluster has auth switched on. Hands on
    /// which addresses were asked in vain, as [`Self::meet`] does.
    ///
    /// # Errors
    /// [`ObserveError::Auth`] if the cluster does not take the user or the password. That nobody could be asked for a
    /// token is no error: some calls need none, and the others say so. And what [`Self::meet`] says.
    pub(super) async fn log_in(&self) -> Result<BTreeMap<String, CallError>, ObserveError> {
        let failed = self.meet().await?;
        self.login.check(|| self.for_login()).await?;
        Ok(failed)
    }

    /// Whether calls that only an administrator may make will be answered: the user has the role `root`, or auth is
    /// switched off.
    ///
    /// # Errors
    /// [`CallError`] when nobody could be asked. A cluster with auth that the playbook has no user for refuses other
    /// calls already.
    pub async fn is_administrator(&self) -> Result<bool, CallError> {
        let Some(name) = self.user().await else { return Ok(true) };
        let mut error = CallError::Unusable("no member is left to ask".to_owned());
        for address in self.directory.routes(None) {
            let question = AuthUserGetRequest { name: name.clone() };
            let answer = self.ask(&address, question, |channel, request| async move {
                AuthClient::new(channel).user_get(request).await
            });
            match answer.await {
                Ok(user) => return Ok(user.roles.iter().any(|role| role == "root")),
                Err(refusal) if refusal.code() == Some(Code::PermissionDenied) => return Ok(false),
                Err(why) => error = why,
            }
        }
        Err(error)
    }

    /// The user that calls are made as, once the cluster has taken it.
    pub async fn user(&self) -> Option<String> {
        self.login.user_with_token().await
    }

    /// Asks what changes nothing: on a connection that turns out to be broken it is asked once more on a fresh one, and
    /// so it is where this process stood still while the time ran out, which is no silence of the member's.
    ///
    /// # Errors
    /// [`CallError`], after [`CALL`] at the latest, in which this process runs.
    pub async fn ask<R, A, S, F>(&self, address: &str, question: R, send: S) -> Result<A, CallError>
    where
        R: Clone,
        A: Answered,
        S: Fn(Channel, Request<R>) -> F,
        F: Future<Output = Result<Response<A>, Status>>,
    {
        self.patiently(address, || self.authorized(address, &question, &send)).await
    }

    /// Asks once more where that may help.
    pub(super) async fn patiently<A, F>(&self, address: &str, once: impl Fn() -> F) -> Result<A, CallError>
    where
        F: Future<Output = Result<A, CallError>>,
    {
        let twice = || async {
            match once().await {
                Err(CallError::Broken(status)) if !is_unconnected(&status) => once().await,
                answer => answer,
            }
        };
        let began = Instant::now();
        match self.within(CALL, address, twice()).await {
            Err(CallError::TimedOut(_)) if began.elapsed() > CALL + STALL => self.within(CALL, address, twice()).await,
            answer => answer,
        }
    }

    /// Sends what changes something: once. Any error but the server's own words leaves its fate unknown.
    ///
    /// # Errors
    /// [`CallError`], after `deadline` at the latest.
    pub async fn tell<R, A, S, F>(&self, address: &str, deadline: Duration, request: R, send: S) -> Result<A, CallError>
    where
        R: Clone,
        A: Answered,
        S: Fn(Channel, Request<R>) -> F,
        F: Future<Output = Result<Response<A>, Status>>,
    {
        self.within(deadline, address, self.authorized(address, &request, &send)).await
    }

    /// An open channel to this address; it connects when it is first used, and again when the connection broke. Where
    /// the TLS files have changed it is a new one.
    ///
    /// # Errors
    /// [`CallError::Unusable`] for an address that is none.
    pub fn channel(&self, address: &str) -> Result<Channel, CallError> {
        let generation = self.generation();
        if let Some(line) = self.lines().get(address).filter(|line| line.generation == generation) {
            return Ok(line.channel.clone());
        }
        let (tls, generation) = self.tls();
        let tls = tls.as_ref().map(TlsFiles::for_grpc);
        let endpoint = endpoint(address, tls).map_err(|expected| CallError::Unusable(expected.to_owned()))?;
        let channel = endpoint.connect_lazy();
        self.lines().insert(address.to_owned(), Line { channel: channel.clone(), generation, peer: None });
        Ok(channel)
    }

    /// Who answered there over the connection that there is.
    pub(super) fn peer(&self, address: &str) -> Option<Peer> {
        self.lines().get(address)?.peer
    }

    pub(super) fn remember(&self, address: &str, peer: Peer) {
        if let Some(line) = self.lines().get_mut(address) {
            line.peer = Some(peer);
        }
    }

    /// Lets go of the connection to this address; the next call makes a new one.
    pub fn forget(&self, address: &str) {
        self.lines().remove(address);
    }

    /// Lets go of everything that was kept for addresses which are none of the cluster's any more.
    pub(super) fn forget_others(&self) {
        let known: BTreeSet<_> = self.directory.addresses().into_iter().collect();
        self.lines().retain(|address, _| known.contains(address));
        self.login.forget_others(&known);
    }

    async fn within<A>(
        &self,
        deadline: Duration,
        address: &str,
        call: impl Future<Output = Result<A, CallError>>,
    ) -> Result<A, CallError> {
        tokio::time::timeout(deadline, call).await.unwrap_or_else(|_| {
            // A connection that is silent once (a frozen host, a lost route) stays silent for minutes.
            self.forget(address);
            Err(CallError::TimedOut(deadline))
        })
    }

    /// Sends with the token; where the server wants a newer one, once more with that. Such a refusal is definite:
    /// nothing was done.
    async fn authorized<R, A, S, F>(&self, address: &str, request: &R, send: &S) -> Result<A, CallError>
    where
        R: Clone,
        A: Answered,
        S: Fn(Channel, Request<R>) -> F,
        F: Future<Output = Result<Response<A>, Status>>,
    {
        let token = self.token(address).await?;
        let channel = self.channel(address)?;
        let answer = match send(channel.clone(), with_token(request.clone(), token.as_ref())).await {
            Err(status) if self.login.wants_renewal(&status) => {
                let channel = self.trusted(address).await?;
                let token = self.login.renew(address, channel.clone(), token).await;
                send(channel, with_token(request.clone(), token.as_ref())).await
            }
            answer => answer,
        };
        self.believed(address, answer.map(Response::into_inner).map_err(CallError::from))
    }

    /// An answer, unless it is of another cluster: an address that a member advertises may lead elsewhere, such as
    /// `localhost`, or one that was given away.
    fn believed<A: Answered>(&self, address: &str, answer: Result<A, CallError>) -> Result<A, CallError> {
        let foreign = answer.as_ref().ok().and_then(|answer| self.directory.foreign(answer.header()));
        if foreign.is_some() || matches!(answer, Err(CallError::Broken(_))) {
            // Whoever comes to be there next says first who it is.
            self.lines().get_mut(address).into_iter().for_each(|line| line.peer = None);
        }
        foreign.map_or(answer, |cluster| Err(CallError::Foreign(cluster)))
    }

    /// Nothing panics with the lock held, so what a poisoned lock guards is whole.
    fn lines(&self) -> MutexGuard<'_, HashMap<String, Line>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What to connect to, or what was expected of the address instead.
pub(super) fn endpoint(address: &str, tls: Option<ClientTlsConfig>) -> Result<Endpoint, &'static str> {
    let url = Endpoint::from_shared(address.to_owned()).map_err(|_| "expected a URL such as https://10.0.0.1:2379")?;
    let endpoint = url.connect_timeout(CONNECT).http2_keep_alive_interval(PING).keep_alive_timeout(CALL);
    match (endpoint.uri().scheme_str(), tls) {
        (Some("http"), None) => Ok(endpoint),
        (Some("http"), Some(_)) => Err("with `cluster.tls` no http address is used"),
        (Some("https"), Some(tls)) => {
            endpoint.tls_config(tls).map_err(|_| "the files of `cluster.tls` do not fit together")
        }
        (Some("https"), None) => Err("an https address needs `cluster.tls`"),
        _ => Err("expected http:// or https://"),
    }
}

fn with_token<R>(message: R, token: Option<&MetadataValue<Ascii>>) -> Request<R> {
    let mut request = Request::new(message);
    if let Some(token) = token {
        request.metadata_mut().insert("token", token.clone());
    }
    request
}

/// Whether no connection was made, so that trying again at once is of no use.
fn is_unconnected(status: &Status) -> bool {
    let mut cause = std::error::Error::source(status);
    while let Some(error) = cause {
        if error.is::<ConnectError>() {
            return true;
        }
        cause = error.source();
    }
    false
}
