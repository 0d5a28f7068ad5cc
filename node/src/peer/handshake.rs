//! The handshake: every call says who calls and whom it means, every answer who answers. A member of another cluster, one
//! that took another's address, or one that has lost its data directory is refused before anything of the call is looked at.
//! Whether its release fits is another question: only who asks that, and is asked, need not fit.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use bytes::Bytes;
use prost::Message;
use proto::{ClusterId, ClusterVersion, MemberId, Release};
use tokio::sync::watch;
use tonic::{
    Request, Response, Status,
    metadata::{MetadataMap, MetadataValue},
};

use super::{
    compatible::{Protocols, Terms},
    unapplied::{Known, Unapplied},
    wire::{self, Frame},
};
use crate::{
    cluster::member::{Incarnation, Start, StartId, Starts},
    config::JoinPolicy,
    identity::Identity,
    machine::Machine,
};

/// Where the handshake is in a call's metadata.
pub(super) const KEY: &str = "baton-handshake-bin";
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remote {
    pub member: MemberId,
    pub release: Release,
    /// How often it has started.
    pub starts: Starts,
    /// It has no log yet.
    pub is_new: bool,
    pub terms: Terms,
    /// The cluster version in its state.
    pub version: Option<ClusterVersion>,
    /// Until it is let in it takes no part in anything.
    pub waits: bool,
    /// By how many minors its state was put at a lower version while nobody ran.
    pub lowered_offline: u64,
}

impl Remote {
    fn read(said: &wire::Handshake) -> Result<Self, Status> {
        let release: Release =
            said.release.parse().map_err(|_| Status::invalid_argument("a handshake without a release"))?;
        let (lowest, highest) = match said.highest_protocol {
            0 => (said.protocol, said.protocol),
            highest => (said.lowest_protocol, highest),
        };
        let policy = match said.join_policy() {
            wire::JoinPolicy::Unsaid => None,
            wire::JoinPolicy::Compatible => Some(JoinPolicy::Compatible),
            wire::JoinPolicy::Strict => Some(JoinPolicy::Strict),
        };
        Ok(Self {
            member: MemberId(said.member),
            release: release.clone(),
            starts: Starts(said.starts),
            is_new: said.is_empty,
            terms: Terms { release, protocols: Protocols { lowest, highest }, policy },
            version: said.cluster_version.parse().ok(),
            waits: said.waits,
            lowered_offline: said.lowered_offline,
        })
    }
}

/// Why a member is not talked to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum Refused {
    /// It is none of this cluster, or not the one that it should be.
    #[error("{0}")]
    Stranger(String),
    /// What it has promised it does not know any more. Nothing but a person mends that: it is told so, and ends.
    #[error(
        "member {member} has lost its data directory: {what}. Bring the data directory back as it was; or remove the member, \
         empty its data directory and add it again"
    )]
    Lost { member: MemberId, what: &'static str },
    /// It was one, and will be none again (etcd, `ErrMemberRemoved`).
    #[error("etcdserver: the member has been permanently removed from the cluster")]
    Removed,
    /// It was said before the member published its start, and comes after that: it can be said again.
    #[error("this was on its way for too long")]
    Late,
}

/// What a member is told that must end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// It is a member no more.
    Removed,
    /// Its data is lost; by whom it was told.
    Lost(String),
}

impl Told {
    /// From the text of a refusal.
    pub(super) fn read(text: &str) -> Self {
        match text == Refused::Removed.to_string() {
            true => Self::Removed,
            false => Self::Lost(text.to_owned()),
        }
    }
}

impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Removed => Refused::Removed.fmt(f),
            Self::Lost(text) => f.write_str(text),
        }
    }
}

/// Shakes hands for this member.
#[derive(Clone, Debug)]
pub struct Handshake {
    pub(super) identity: Arc<Identity>,
    pub(super) machine: Machine,
    had_log: bool,
    unapplied: Arc<Unapplied>,
    /// A member of its cluster that has data has called it while it was new.
    is_known: Arc<AtomicBool>,
    pub(super) terms: Terms,
    /// This member takes no part in its cluster before it is let in.
    pub(super) waits: watch::Sender<bool>,
    /// The last words of each other member.
    pub(super) heard: Arc<Mutex<BTreeMap<MemberId, Remote>>>,
    /// The log here begins behind this entry.
    pub(super) log_begins_behind: Arc<AtomicU64>,
}

impl Handshake {
    /// For a member of this identity, with what it knows of the others, and whether it had a log when it started.
    pub fn new(identity: Arc<Identity>, machine: Machine, had_log: bool) -> Self {
        let terms =
            Terms { release: identity.release.clone(), protocols: Protocols::OWN, policy: Some(JoinPolicy::default()) };
        let (waits, heard, log_begins_behind) = (watch::Sender::default(), Arc::default(), Arc::default());
        let (unapplied, is_known) = (Arc::default(), Arc::default());
        Self { identity, machine, had_log, unapplied, is_known, terms, waits, heard, log_begins_behind }
    }

    /// With what it demands of others.
    pub fn demanding(mut self, policy: JoinPolicy) -> Self {
        self.terms.policy = Some(policy);
        self
    }

    /// With what the log says that is not in the state yet.
    pub fn with(self, unapplied: Unapplied) -> Self {
        Self { unapplied: Arc::new(unapplied), ..self }
    }

    /// Why this member's own data directory is not the one that the log knows of, or that it is a member no more; as another member
    /// would say it. A start without an id says nothing of its data: it may be its own.
    pub(crate) fn own_loss(&self) -> Option<Told> {
        if self.is_removed(self.identity.member) {
            return Some(Told::Removed);
        }
        let own = self.machine.read(|state| self.unapplied.known(state, self.identity.member));
        own.filter(|own| own.start.id.is_some())?;
        match self.check(&self.said(MemberId(0))) {
            Err(refused @ Refused::Lost { .. }) => Some(Told::Lost(refused.to_string())),
            _ => None,
        }
    }

    pub(crate) fn call<T>(&self, to: MemberId, message: T) -> Request<T> {
        let mut request = Request::new(message);
        self.put(to, request.metadata_mut());
        request
    }

    /// A refusal of this member, which says so: another one ends for some.
    pub(super) fn refusal(&self, mut status: Status) -> Status {
        self.put(MemberId(0), status.metadata_mut());
        status
    }

    /// An answer of this member.
    pub(super) fn answer<T>(&self, message: T) -> Response<T> {
        let mut response = Response::new(message);
        self.put(MemberId(0), response.metadata_mut());
        response
    }

    fn put(&self, to: MemberId, metadata: &mut MetadataMap) {
        insert(metadata, &self.said(to));
    }

    fn said(&self, to: MemberId) -> wire::Handshake {
        let published = self.identity.published();
        let policy = match self.terms.policy {
            None => wire::JoinPolicy::Unsaid,
            Some(JoinPolicy::Compatible) => wire::JoinPolicy::Compatible,
            Some(JoinPolicy::Strict) => wire::JoinPolicy::Strict,
        };
        wire::Handshake {
            protocol: self.terms.protocols.lowest,
            cluster: self.identity.cluster.0,
            member: self.identity.member.0,
            release: self.identity.release.to_string(),
            starts: self.identity.starts.0,
            to: to.0,
            is_empty: self.is_new(),
            incarnation: Incarnation::written(self.identity.incarnation),
            published: published.starts.0,
            start_id: StartId::written(self.identity.start_id),
            published_id: StartId::written(published.id),
            lowest_protocol: self.terms.protocols.lowest,
            highest_protocol: self.terms.protocols.highest,
            cluster_version: self.version().map_or_else(String::new, |version| version.to_string()),
            join_policy: policy.into(),
            waits: self.waits(),
            lowered_offline: self.machine.read(|state| state.cluster.lowered_offline),
        }
    }

    pub(super) fn version(&self) -> Option<ClusterVersion> {
        self.machine.read(|state| state.cluster.version)
    }

    fn is_removed(&self, member: MemberId) -> bool {
        self.machine.read(|state| state.cluster.removed.contains(&member))
    }

    /// Waits until a member is one no more.
    pub(super) async fn removed(&self, member: MemberId) {
        let mut cluster = self.machine.cluster_changed();
        // Without a sender nothing is applied any more.
        let _ = cluster.wait_for(|_| self.is_removed(member)).await;
    }

    /// Where this member is reached, with commas between; nothing before the cluster is founded.
    pub(crate) fn urls_of(&self, member: MemberId) -> Option<String> {
        let urls =
            self.machine.read(|state| state.cluster.members.get(&member).map(|member| member.peer_urls.join(",")));
        urls.filter(|urls| !urls.is_empty())
    }

    /// Whether this member has no log yet.
    pub(crate) fn is_new(&self) -> bool {
        !self.had_log && self.machine.read(|state| state.cluster.members.is_empty())
    }

    /// Whether a member with data has called this one, which has none: its cluster is there already.
    pub(crate) fn is_known(&self) -> bool {
        self.is_known.load(Ordering::Relaxed)
    }

    /// Who calls. One that has lost its data directory is told so by `DATA_LOSS`.
    ///
    /// # Errors
    /// It is none that this member talks to; the text says why.
    pub(super) fn caller(&self, metadata: &MetadataMap) -> Result<Remote, Status> {
        let (remote, to) = self.read(metadata, Status::data_loss)?;
        if !remote.is_new && self.is_new() {
            self.is_known.store(true, Ordering::Relaxed);
        }
        if to != self.identity.member {
            let text = format!("this is member {}, and member {to} was meant", self.identity.member);
            return Err(Status::failed_precondition(text));
        }
        Ok(remote)
    }

    /// Who has answered.
    ///
    /// # Errors
    /// It is not the member that was called.
    pub(crate) fn answerer(&self, called: MemberId, metadata: &MetadataMap) -> Result<Remote, Status> {
        let (remote, _) = self.read(metadata, Status::failed_precondition)?;
        if remote.member != called {
            let text = format!("member {called} was called, and member {} answered", remote.member);
            return Err(Status::failed_precondition(text));
        }
        Ok(remote)
    }

    /// The cluster of the member that was called, where it has refused the call as one of another cluster. The id of a member does
    /// not say which of those it is that the same founders can make.
    pub(crate) fn other_cluster(&self, called: MemberId, refusal: &MetadataMap) -> Option<ClusterId> {
        let said = decode(refusal).ok().filter(|said| MemberId(said.member) == called)?;
        Some(ClusterId(said.cluster)).filter(|cluster| *cluster != self.identity.cluster)
    }

    /// Whether whoever refused the call is a member with data, of whichever cluster.
    pub(crate) fn has_data(&self, refusal: &MetadataMap) -> bool {
        decode(refusal).is_ok_and(|said| !said.is_empty)
    }

    fn read(&self, metadata: &MetadataMap, lost: impl FnOnce(String) -> Status) -> Result<(Remote, MemberId), Status> {
        let handshake = decode(metadata)?;
        let remote = Remote::read(&handshake)?;
        self.check(&handshake).map_err(|refused| match refused {
            Refused::Stranger(text) => Status::failed_precondition(text),
            Refused::Lost { .. } | Refused::Removed => lost(refused.to_string()),
            Refused::Late => Status::unavailable(refused.to_string()),
        })?;
        self.note(&remote);
        Ok((remote, MemberId(handshake.to)))
    }

    fn check(&self, handshake: &wire::Handshake) -> Result<(), Refused> {
        let (own, cluster, member) = (self.identity.cluster, ClusterId(handshake.cluster), MemberId(handshake.member));
        if cluster != own {
            return Err(Refused::Stranger(format!(
                "etcdserver: cluster ID mismatch: member {member} is of cluster {cluster}, this one of {own}"
            )));
        }
        let known = self.machine.read(|state| self.unapplied.known(state, member));
        let Some(Known { incarnation, start: known }) = known else {
            // Nobody is known before the cluster is founded; later, one that was added since what this member has applied.
            return match self.is_removed(member) {
                true => Err(Refused::Removed),
                false => Ok(()),
            };
        };
        // It has promised what it does not remember: its votes and its log count for nothing any more.
        let lost = |what| Err(Refused::Lost { member, what });
        if incarnation.is_some() && incarnation != Incarnation::read(handshake.incarnation) {
            return lost("it has another one than the cluster knows of");
        }
        let start = Start { starts: Starts(handshake.starts), id: StartId::read(handshake.start_id) };
        let published = Start { starts: Starts(handshake.published), id: StartId::read(handshake.published_id) };
        // What it has published it had noted before; but this may have been on its way since then. So may what a new member said
        // while it had no log yet. Not so what comes from another start of the same number: a copy has counted it once more.
        let is_older = incarnation.is_some() && (published.starts < known.starts || published.is_another(known));
        match is_older {
            true if start.starts == known.starts && !start.is_another(known) => Err(Refused::Late),
            _ if known.starts > Starts(0) && handshake.is_empty => lost("it has no log any more"),
            true => lost("it has an older copy of it"),
            false => Ok(()),
        }
    }
}

fn decode(metadata: &MetadataMap) -> Result<wire::Handshake, Status> {
    let bytes = metadata.get_bin(KEY).and_then(|value| value.to_bytes().ok());
    let bytes = bytes.ok_or_else(|| Status::failed_precondition("no member of a cluster calls without a handshake"))?;
    let framed = Frame::decode(bytes).map_err(|error| Status::unavailable(error.to_string()));
    let handshake = framed.and_then(Frame::carried::<wire::Handshake>);
    handshake.map_err(|status| Status::unavailable(format!("a damaged handshake: {}", status.message())))
}

/// A bit that is flipped on its way must not tell a member that it has lost its data.
fn insert(metadata: &mut MetadataMap, handshake: &wire::Handshake) {
    insert_bytes(metadata, handshake.encode_to_vec().into());
}

pub(super) fn insert_bytes(metadata: &mut MetadataMap, handshake: Bytes) {
    metadata.insert_bin(KEY, MetadataValue::from_bytes(&Frame::of(handshake).encode_to_vec()));
}

#[cfg(test)]
#[path = "handshake_test.rs"]
#[allow(clippy::unwrap_used)]
mod tests;
