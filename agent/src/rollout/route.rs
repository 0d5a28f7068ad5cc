//! Which member a call of the whole cluster goes through.
//!
//! One that answers at this moment, votes, and is not about to be taken down. It is asked for its status first: a call
//! that changes something is then sent once, over a connection that has just worked.

use std::{
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
const EACH: Duration = Duration::from_secs(2);
/// How long to wait before all are tried again: an election passes.
const AGAIN: Duration = Duration::from_millis(50);

/// The way to whoever serves; remembers who served last.
#[derive(Debug)]
pub struct Route {
    access: Arc<Access>,
    last: Mutex<Option<String>>,
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

impl Route {
    /// A way through anybody but the excluded member.
    pub fn new(access: Arc<Access>, excluded: Arc<Excluded>) -> Self {
        Self { access, last: Mutex::default(), excluded }
    }

    /// The connections.
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
        let deadline = Instant::now() + patience;
        let mut error = CallError::TimedOut(patience);
        while let Ok(answer) = timeout_at(deadline, self.find_now()).await {
            match answer {
                Ok(address) => return Ok(address),
                Err(why) => error = why,
            }
            sleep(AGAIN).await;
        }
        Err(error)
    }

    async fn find_now(&self) -> Result<String, CallError> {
        let mut error = CallError::Unusable("no member is left to ask".to_owned());
        for address in self.candidates() {
            match self.serves(&address).await {
                Ok(()) => {
                    *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(address.clone());
                    return Ok(address);
                }
                Err(why) => {
                    // The next search begins behind it: one that ends early gets on all the same.
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

    /// Tries others first the next time: this address answered, and yet the call failed.
    pub fn distrust(&self, address: &str) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        *last = self.next_after(address);
    }

    fn candidates(&self) -> Vec<String> {
        let mut addresses = self.access.directory().routes(self.excluded.get());
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(at) = last.and_then(|last| addresses.iter().position(|address| *address == last)) {
            addresses.rotate_left(at);
        }
        addresses
    }

    fn next_after(&self, address: &str) -> Option<String> {
        let addresses = self.access.directory().routes(self.excluded.get());
        let at = addresses.iter().position(|other| other == address)?;
        addresses.get((at + 1) % addresses.len()).cloned()
    }

    /// Whether somebody there can carry out a call. A refusal of `Status` for lack of permission is an answer too.
    async fn serves(&self, address: &str) -> Result<(), CallError> {
        let status = self.access.ask(address, StatusRequest {}, |channel, request| async move {
            MaintenanceClient::new(channel).status(request).await
        });
        match timeout(EACH, status).await {
            Ok(Ok(status)) if status.is_learner => Err(CallError::Unusable(format!("{address} is a learner"))),
            Ok(Ok(status)) if status.leader == 0 => Err(CallError::Unusable(format!("{address} has no leader"))),
            Ok(Ok(status)) => self.is_allowed(status.header.map(|header| MemberId(header.member_id)), address),
            Ok(Err(error)) if error.code() == Some(Code::PermissionDenied) => Ok(()),
            Ok(Err(error)) => Err(error),
            Err(_) => {
                self.access.forget(address);
                Err(CallError::TimedOut(EACH))
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
