//! Who takes part in the cluster: what this member says to one that comes, what it thinks of those that it would come to, and that it
//! is let in itself.

use std::{
    collections::BTreeMap,
    sync::{PoisonError, atomic::Ordering},
};

use proto::{ClusterVersion, LogIndex, MemberId};
use tonic::Status;

use super::{
    Handshake, Remote,
    compatible::{Mismatch, Terms, judge},
};
use crate::config::JoinPolicy;

impl Handshake {
    /// What this member runs and demands.
    pub fn terms(&self) -> &Terms {
        &self.terms
    }

    /// From now on this member waits.
    pub(crate) fn wait(&self) {
        self.waits.send_replace(true);
    }

    /// It waits no more.
    pub(crate) fn let_in(&self) {
        self.waits.send_replace(false);
    }

    /// Whether it waits to be let in.
    pub fn waits(&self) -> bool {
        *self.waits.borrow()
    }

    /// Returns once this member takes part.
    pub(crate) async fn is_in(&self) {
        // This one has the sender.
        let _ = self.waits.subscribe().wait_for(|waits| !*waits).await;
    }

    /// The other members, as they were heard last.
    pub fn heard(&self) -> BTreeMap<MemberId, Remote> {
        let heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        self.machine.read(|state| {
            let is_member = |id: &MemberId| state.cluster.members.contains_key(id);
            heard.iter().filter(|(id, _)| is_member(id)).map(|(id, remote)| (*id, remote.clone())).collect()
        })
    }

    pub(super) fn note(&self, remote: &Remote) {
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        let is_known = |id: &MemberId| self.machine.read(|state| state.cluster.members.contains_key(id));
        // Anybody can say that he is one.
        if heard.get(&remote.member) != Some(remote) && is_known(&remote.member) {
            heard.insert(remote.member, remote.clone());
        }
    }

    /// Nothing up to this entry is in the log any more: who is new gets a snapshot instead.
    pub(crate) fn log_begins_behind(&self, index: LogIndex) {
        self.log_begins_behind.store(index.0, Ordering::Relaxed);
    }

    /// Whether this member takes part beside its own release alone.
    pub(crate) fn is_strict(&self) -> bool {
        self.terms.policy == Some(JoinPolicy::Strict)
    }

    /// Whether a member that comes may take part, as this one sees it.
    ///
    /// # Errors
    /// [`Mismatch`]
    pub(super) fn judge(&self, joiner: &Remote) -> Result<(), Mismatch> {
        judge(&joiner.terms, &self.terms, self.needed_of(joiner))
    }

    /// Whether this member may take part beside another.
    ///
    /// # Errors
    /// [`Mismatch`]
    pub(crate) fn judge_own(&self, member: &Remote) -> Result<(), Mismatch> {
        judge(&self.terms, &member.terms, self.version().max(member.version))
    }

    /// Whether a member is talked to about more than who it is.
    ///
    /// # Errors
    /// One of the two waits; or the other one is new and could not go on with what it would be told. Whoever has a log may know more
    /// than this member: raft says whose counts.
    pub(super) fn talks_to(&self, remote: &Remote) -> Result<(), Status> {
        if self.waits() {
            return Err(Status::unavailable("this member waits until it is let in"));
        }
        if remote.waits {
            return Err(Status::unavailable("the member that calls waits until it is let in"));
        }
        if let Some(why) = self.left_out(remote) {
            return Err(Status::failed_precondition(why));
        }
        match self.judge(remote) {
            Err(mismatch) if remote.is_new && mismatch.forbids_talk() => {
                Err(Status::failed_precondition(format!("member {} may take no part: {mismatch}", remote.member)))
            }
            _ => Ok(()),
        }
    }

    /// Why this member and another one hold different states at one place of the log, which nothing mends: one was made fit for a lower
    /// release while nobody ran, and the other was left out. Who has no state yet is given one.
    fn left_out(&self, remote: &Remote) -> Option<String> {
        let own = self.machine.read(|state| state.cluster.version.map(|_| state.cluster.lowered_offline))?;
        let other = remote.version.map(|_| remote.lowered_offline).filter(|other| *other != own)?;
        let (out, member) =
            if other < own { (remote.member, self.identity.member) } else { (self.identity.member, remote.member) };
        Some(format!(
            "member {out} was left out when member {member} was made fit for a lower release (`node migrate`). Either stop member {out}, migrate \
             it, and start it with the release of the others; or, if most were left out, remove the migrated ones, empty their data \
             directories, and add them anew"
        ))
    }

    /// The version that a member must know. One that is new would replay this log from its beginning: where the cluster was lowered, up
    /// to the entry that did so no lower release can (N-8).
    fn needed_of(&self, joiner: &Remote) -> Option<ClusterVersion> {
        let begins_behind = LogIndex(self.log_begins_behind.load(Ordering::Relaxed));
        self.machine.read(|state| match joiner.is_new {
            true => state.cluster.storage_version(begins_behind),
            false => state.cluster.version,
        })
    }
}

#[cfg(test)]
#[path = "letting_in_test.rs"]
#[allow(clippy::unwrap_used)]
mod tests;
