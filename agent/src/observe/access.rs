//! Connections to the members: TLS, the user's token, one open channel an address, and a deadline on every call.
//!
//! Knows addresses, not members: who is where is the [`Directory`]'s, what to ask is [`super::member`]'s. Nothing here
//! reads an environment's proxy or the system's authorities: a playbook says all there is to know.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    future::Future,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant, SystemTime},
};

use proto::etcdserverpb::{AuthUserGetRequest, auth_client::AuthClient};
use tonic::{
    Code, Request, Response, Status,
    metadata::{Ascii, MetadataValue},
    transport::Channel,
};

use super::{
    answer::Answered,
    directory::Directory,
    error::{CallError, ObserveError},
    introduction::Peer,
    line::{Line, endpoint, had_ended, is_unconnected},
    listed::normal_form,
    login::Login,
    member::whose,
    tls::{Renewed, TlsFiles},
    validity::Validity,
};
use crate::playbook::cluster::Cluster;

/// How long any call may take; after it the outcome is unknown.
pub const CALL: Duration = Duration::from_secs(5);
/// How late a time-out may come on a busy machine; one that comes later than that came to a process that was frozen.
const STALL: Duration = Duration::from_secs(2);
/// How long a transaction may take: etcd itself gives up after seven seconds.
pub const TXN: Duration = Duration::from_secs(8);
/// How many connections are tried: a new one may have been closed by the time that it is this call's turn.
const LINES: usize = 3;

/// The way to the members of one cluster. Its connections belong to the runtime it is used in.
#[derive(Debug)]
pub struct Access {
    tls: Option<Arc<Renewed>>,
    pub(super) login: Login,
    directory: Arc<Directory>,
    lines: Mutex<HashMap<String, Arc<Line>>>,
    /// Held while it is found out which cluster this is about.
    pub(super) meeting: tokio::sync::Mutex<()>,
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

    /// From when to when the agent's own certificate is valid, where it has one.
    pub fn own_validity(&self) -> Option<Validity> {
        self.tls.as_deref()?.own_validity()
    }

    /// What is wrong with the dates of the agent's own certificate.
    pub(super) fn own_fault(&self) -> Option<String> {
        self.own_validity()?.fault(SystemTime::now())
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
            match open(&once).await {
                Err(CallError::Broken(status)) if !is_unconnected(&status) => open(&once).await,
                answer => answer,
            }
        };
        let began = Instant::now();
        match self.within(CALL, address, twice()).await {
            Err(CallError::TimedOut(_)) if began.elapsed() > CALL + STALL => self.within(CALL, address, twice()).await,
            answer => answer,
        }
    }

    /// Sends what changes something: once, over a connection that is open. Any error but the server's own words leaves
    /// its outcome unknown.
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
        self.within(deadline, address, open(|| self.authorized(address, &request, &send))).await
    }

    /// The connection to this address. Where it broke, or the TLS files have changed, it is a new one.
    ///
    /// # Errors
    /// [`CallError::Unusable`] for an address that is none.
    pub(super) fn line(&self, address: &str) -> Result<Arc<Line>, CallError> {
        let generation = self.generation();
        if let Some(line) = self.lines().get(address).filter(|line| line.generation == generation) {
            return Ok(Arc::clone(line));
        }
        let (tls, generation) = self.tls();
        let line = Line::to(address, tls.as_ref(), generation);
        let line = Arc::new(line.map_err(|expected| CallError::Unusable(expected.to_owned()))?);
        self.lines().insert(address.to_owned(), Arc::clone(&line));
        Ok(line)
    }

    /// Lets go of the connection to this address; the next call makes a new one.
    pub fn forget(&self, address: &str) {
        self.lines().remove(address);
    }

    /// Lets go of this connection, and of none that was made since.
    pub(super) fn hang_up(&self, line: &Arc<Line>) {
        let mut lines = self.lines();
        if lines.get(&line.address).is_some_and(|kept| Arc::ptr_eq(kept, line)) {
            lines.remove(&line.address);
        }
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
        let (line, token) = self.entry(address).await?;
        let answer = match send(line.channel.clone(), with_token(request.clone(), token.as_ref())).await {
            Err(status) if self.login.wants_renewal(&status) => {
                // Nobody signs a refusal.
                self.vouched(&line).await?;
                let token = self.login.renew(&line, token).await;
                send(line.channel.clone(), with_token(request.clone(), token.as_ref())).await
            }
            answer => answer,
        };
        self.believed(&line, answer.map(Response::into_inner).map_err(CallError::from)).await
    }

    /// An answer, unless it is of another cluster: an address that a member advertises may lead elsewhere, such as
    /// `localhost`, or one that was given away. A refusal names no cluster, so it counts once whoever is there has said
    /// over this connection which one is his.
    async fn believed<A: Answered>(&self, line: &Arc<Line>, answer: Result<A, CallError>) -> Result<A, CallError> {
        match &answer {
            Ok(said) => {
                if let Some(cluster) = self.directory.foreign(said.header()) {
                    self.hang_up(line);
                    return Err(CallError::Foreign(cluster));
                }
                if let Some((member, cluster)) = whose(said.header()) {
                    line.peer.get_or_init(|| Peer::Member(member, cluster));
                }
            }
            Err(CallError::Said(_)) if self.directory.cluster().is_some() => self.acquainted(line).await?,
            Err(CallError::Said(_)) => {}
            Err(_) => self.hang_up(line),
        }
        answer
    }

    /// Nothing panics with the lock held, so what a poisoned lock guards is whole.
    fn lines(&self) -> MutexGuard<'_, HashMap<String, Arc<Line>>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn with_token<R>(message: R, token: Option<&MetadataValue<Ascii>>) -> Request<R> {
    let mut request = Request::new(message);
    if let Some(token) = token {
        request.metadata_mut().insert("token", token.clone());
    }
    request
}

/// Does this over a connection that is open: where that of the line was over before anything was sent, over the next.
async fn open<A, F>(once: impl Fn() -> F) -> Result<A, CallError>
where
    F: Future<Output = Result<A, CallError>>,
{
    for _ in 1..LINES {
        match once().await {
            Err(CallError::Broken(status)) if had_ended(&status) => {}
            answer => return answer,
        }
    }
    once().await
}
