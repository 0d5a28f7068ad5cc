//! Which member a call of the whole cluster goes through.
//!
//! One that answers at this moment, votes, and is not about to be taken down; this host's own before any other. It is
//! asked for its status first: a call that watch something is then sent once, over a connection that has just worked.
//!
//! No call goes through the member that is being taken down, and no watch: etcd from 3.5 on waits some 7 s for open watches when
//! it is asked to end.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
    time::Duration,
};

use proto::{
    MemberId,
    etcdserverpb::{StatusRequest, maintenance_client::MaintenanceClient},
};
use tokio::{
    sync::Notify,
    time::{Instant, sleep, timeout, timeout_at},
};
use tonic::Code;

use crate::observe::{access::Access, error::CallError};

/// How long one member is waited for before the next is tried.
const CALL_TIMEOUT: Duration = Duration::from_secs(2);
/// How long to wait before all are tried again: an election passes.
const RETRY_INTERVAL: Duration = Duration::from_millis(50);
/// How long others are tried before an address at which a call failed.
const PASSED_OVER: Duration = Duration::from_secs(10);

const FOR_EVER: Duration = Duration::from_secs(365 * 24 * 3600);

/// The way to whoever serves; remembers at which addresses calls failed.
#[derive(Debug)]
pub struct Endpoints {
    access: Arc<Access>,
    /// Until when others come first.
    distrusted: Mutex<HashMap<String, Instant>>,
    excluded: Arc<Excluded>,
}

/// The member that no call goes through, as it is about to be taken down, by whomever. Shared by all routes of one
/// agent.
#[derive(Debug, Default)]
pub struct Excluded {
    member: AtomicU64,
    changed: Notify,
}

impl Excluded {
    /// From now on no new call goes through this member; through any, for `None`.
    pub fn set(&self, member: Option<MemberId>) {
        self.member.store(member.map_or(0, |id| id.0), SeqCst);
        self.changed.notify_waiters();
    }

    /// The member, if there is one; no member has the id 0 (raft's "nobody").
    pub fn get(&self) -> Option<MemberId> {
        Some(MemberId(self.member.load(SeqCst))).filter(|id| id.0 != 0)
    }
}

impl Endpoints {
    /// A way through anybody but the excluded member.
    pub fn new(access: Arc<Access>, excluded: Arc<Excluded>) -> Self {
        Self { access, distrusted: Mutex::default(), excluded }
    }

    pub fn access(&self) -> &Arc<Access> {
        &self.access
    }

    /// The member that no call goes through.
    pub fn excluded(&self) -> &Arc<Excluded> {
        &self.excluded
    }

    /// The address of a voter that answers now and has a leader, tried for `patience`.
    ///
    /// # Errors
    /// What the last one tried said, when nobody does in that time.
    pub async fn find(&self, patience: Duration) -> Result<String, CallError> {
        self.find_among(patience, |_| true).await
    }

    /// The same of a voter that is not the one at this address. Falls back to that one where there is no other, or none
    /// answers.
    ///
    /// # Errors
    /// As for [`Self::find`].
    pub async fn find_beside(&self, patience: Duration, address: &str) -> Result<String, CallError> {
        let is_other = |other: &str| self.access.directory().is_elsewhere(other, address);
        if self.candidates().iter().any(|other| is_other(other))
            && let Ok(other) = self.find_among(patience, is_other).await
        {
            return Ok(other);
        }
        self.find(patience).await
    }

    async fn find_among(&self, patience: Duration, may_be: impl Fn(&str) -> bool) -> Result<String, CallError> {
        let deadline = Instant::now() + patience;
        let mut error = CallError::TimedOut(patience);
        // Where there is nobody to ask, the answer is there at once, and no deadline ends it.
        while Instant::now() < deadline {
            match timeout_at(deadline, self.find_now(&may_be)).await {
                Ok(Ok(address)) => return Ok(address),
                Ok(Err(why)) => error = why,
                Err(_) => break,
            }
            sleep(RETRY_INTERVAL).await;
        }
        Err(error)
    }

    async fn find_now(&self, may_be: impl Fn(&str) -> bool) -> Result<String, CallError> {
        let mut error = CallError::Unusable("no member is left to ask".to_owned());
        for address in self.candidates().into_iter().filter(|address| may_be(address)) {
            match self.serves(&address).await {
                Ok(()) => return Ok(address),
                Err(why) => {
                    // The next search has it last: one that ends early gets on all the same.
                    self.distrust(&address);
                    error = why;
                }
            }
        }
        Err(error)
    }

    /// Waits until no call may go on through this address.
    pub async fn forbids(&self, address: &str) {
        loop {
            let changed = self.excluded.changed.notified();
            if self.excluded.get().is_some_and(|excluded| self.access.directory().owner(address) == Some(excluded)) {
                return;
            }
            changed.await;
        }
    }

    /// Tries others first for a while: this address answered, and yet the call failed.
    pub fn distrust(&self, address: &str) {
        self.pass_over(address, PASSED_OVER);
    }

    /// Tries others first from now on: what was said there was not so.
    pub fn disbelieve(&self, address: &str) {
        self.pass_over(address, FOR_EVER);
    }

    fn pass_over(&self, address: &str, time: Duration) {
        let mut distrusted = self.distrusted.lock().unwrap_or_else(PoisonError::into_inner);
        let until = Instant::now() + time;
        let known = distrusted.entry(address.to_owned()).or_insert(until);
        *known = until.max(*known);
    }

    /// Who failed last comes last.
    fn candidates(&self) -> Vec<String> {
        let mut distrusted = self.distrusted.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        distrusted.retain(|_, until| *until > now);
        let mut addresses = self.access.directory().routes(self.excluded.get());
        addresses.sort_by_key(|address| distrusted.get(address).copied());
        addresses
    }

    /// Whether somebody there can carry out a call. A refusal of `Status` for lack of permission is an answer too.
    async fn serves(&self, address: &str) -> Result<(), CallError> {
        let status = self.access.ask(address, StatusRequest {}, |channel, request| async move {
            MaintenanceClient::new(channel).status(request).await
        });
        match timeout(CALL_TIMEOUT, status).await {
            Ok(Ok(status)) if status.is_learner => Err(CallError::Unusable(format!("{address} is a learner"))),
            Ok(Ok(status)) if status.leader == 0 => Err(CallError::Unusable(format!("{address} has no leader"))),
            Ok(Ok(status)) => self.is_allowed(status.header.map(|header| MemberId(header.member_id)), address),
            Ok(Err(error)) if error.code() == Some(Code::PermissionDenied) => Ok(()),
            Ok(Err(error)) => Err(error),
            Err(_) => {
                self.access.forget(address);
                Err(CallError::TimedOut(CALL_TIMEOUT))
            }
        }
    }

    /// An address of the playbook may turn out to be the excluded member's.
    fn is_allowed(&self, answered: Option<MemberId>, address: &str) -> Result<(), CallError> {
        match self.excluded.get() {
            Some(excluded) if answered == Some(excluded) => {
                Err(CallError::Unusable(format!("{address} is member {excluded}, which is going down")))
            }
            _ => Ok(()),
        }
    }
}
