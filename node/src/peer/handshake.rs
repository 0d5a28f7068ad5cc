//! The handshake: every call says who calls and whom it means, every answer who answers. A member of another cluster, one
//! that took another's address, one whose protocol is newer, or one that has lost its data directory is refused before
//! anything of the call is looked at.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use bytes::Bytes;
use prost::Message;
use proto::{ClusterId, MemberId, Release};
use tonic::{
    Request, Response, Status,
    metadata::{MetadataMap, MetadataValue},
};

use super::{
    unapplied::{Known, Unapplied},
    wire::{self, Frame},
};
use crate::{
    cluster::member::{Incarnation, Start, StartId, Starts},
    identity::Identity,
    machine::Machine,
};

/// Where the handshake is in a call's metadata.
pub(super) const KEY: &str = "baton-handshake-bin";
/// The protocol that is spoken.
const PROTOCOL: u32 = 1;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remote {
    pub member: MemberId,
    pub release: Release,
    /// How often it has started.
    pub starts: Starts,
    /// It has no log yet.
    pub is_new: bool,
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

/// Shakes hands for this member.
#[derive(Clone, Debug)]
pub struct Handshake {
    identity: Arc<Identity>,
    machine: Machine,
    had_log: bool,
    unapplied: Arc<Unapplied>,
    /// A member of its cluster that has data has called it while it was new.
    is_known: Arc<AtomicBool>,
}

impl Handshake {
    /// For a member of this identity, with what it knows of the others, and whether it had a log when it started.
    pub fn new(identity: Arc<Identity>, machine: Machine, had_log: bool) -> Self {
        Self { identity, machine, had_log, unapplied: Arc::default(), is_known: Arc::default() }
    }

    /// With what the log says that is not in the state yet.
    pub fn with(self, unapplied: Unapplied) -> Self {
        Self { unapplied: Arc::new(unapplied), ..self }
    }

    /// Why this member's own data directory is not the one that the log knows of, or that it is a member no more; as another member
    /// would say it. A start without an id says nothing of its data: it may be its own.
    pub(crate) fn own_loss(&self) -> Option<String> {
        if self.machine.read(|state| state.cluster.removed.contains(&self.identity.member)) {
            return Some(Refused::Removed.to_string());
        }
        let own = self.machine.read(|state| self.unapplied.known(state, self.identity.member));
        own.filter(|own| own.start.id.is_some())?;
        match self.check(&self.said(MemberId(0))) {
            Err(refused @ Refused::Lost { .. }) => Some(refused.to_string()),
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
        wire::Handshake {
            protocol: PROTOCOL,
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
        }
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
        if handshake.protocol > PROTOCOL {
            let text = format!("protocol {} is newer than {PROTOCOL}, which this member knows", handshake.protocol);
            return Err(Status::failed_precondition(text));
        }
        let release =
            handshake.release.parse().map_err(|_| Status::invalid_argument("a handshake without a release"))?;
        let (member, starts) = (MemberId(handshake.member), Starts(handshake.starts));
        self.check(&handshake).map_err(|refused| match refused {
            Refused::Stranger(text) => Status::failed_precondition(text),
            Refused::Lost { .. } | Refused::Removed => lost(refused.to_string()),
            Refused::Late => Status::unavailable(refused.to_string()),
        })?;
        Ok((Remote { member, release, starts, is_new: handshake.is_empty }, MemberId(handshake.to)))
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
            return match self.machine.read(|state| state.cluster.removed.contains(&member)) {
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
#[allow(clippy::unwrap_used)]
mod tests {
    use proto::Release;
    use tonic::Code;

    use super::*;
    use crate::{
        cluster::{entry::Entry as ClusterEntry, member::Attributes, membership::Membership},
        entry::EntryKind,
        features::FEATURES,
        machine::Proposals,
    };

    fn handshake(cluster: u64, member: u64) -> Handshake {
        let (member, starts, release) = (MemberId(member), Starts(300), Release::new(3, 6, 0));
        let machine = Machine::new(release.clone(), FEATURES, Proposals::new(member, starts));
        let identity = Identity::of_none(ClusterId(cluster), member, release, starts);
        Handshake::new(Arc::new(identity), machine, true)
    }

    /// What was sent once is read by every later release. Never written anew: another meaning is another field.
    #[test]
    fn the_bytes_are_those_of_the_release_that_first_sent_them() {
        let call = handshake(0x1234, 0xabc).call(MemberId(7), ());
        let golden = b"\x08\x01\x10\xb4\x24\x18\xbc\x15\x22\x053.6.0\x28\xac\x02\x30\x07";
        let framed = [&[0x0a, golden.len() as u8][..], golden, b"\x15", &crc32c::crc32c(golden).to_le_bytes()].concat();
        assert_eq!(call.metadata().get_bin(KEY).unwrap().to_bytes().unwrap(), framed);
    }

    #[test]
    fn a_handshake_with_a_flipped_bit_is_none() {
        let own = handshake(1, 7);
        let call = handshake(1, 0xabc).call(MemberId(7), ());
        let bytes = call.metadata().get_bin(KEY).unwrap().to_bytes().unwrap();
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.to_vec();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let mut metadata = MetadataMap::new();
            metadata.insert_bin(KEY, MetadataValue::from_bytes(&flipped));
            let status = own.caller(&metadata).unwrap_err();
            assert_eq!(status.code(), Code::Unavailable, "bit {bit}: {status}");
        }
    }

    #[test]
    fn who_is_not_meant_or_of_another_cluster_is_refused_with_the_reason() {
        let own = handshake(1, 7);
        let caller = |cluster, to| own.caller(handshake(cluster, 0xabc).call(MemberId(to), ()).metadata());
        assert_eq!(caller(1, 7).unwrap().member, MemberId(0xabc));
        assert_eq!(caller(1, 8).unwrap_err().message(), "this is member 7, and member 8 was meant");
        let other = caller(2, 7).unwrap_err();
        assert!(other.message().contains("member abc is of cluster 2, this one of 1"), "{other}");
        assert!(own.caller(&MetadataMap::new()).unwrap_err().message().contains("without a handshake"));
        let answer = handshake(1, 0xabc).answer(());
        assert!(own.answerer(MemberId(0xabc), answer.metadata()).is_ok());
        let wrong = own.answerer(MemberId(9), answer.metadata()).unwrap_err();
        assert_eq!(wrong.message(), "member 9 was called, and member abc answered");
    }

    #[test]
    fn a_refusal_says_of_which_cluster_the_member_is_that_was_called() {
        let own = handshake(1, 7);
        let refused = |cluster, member| {
            let refusal = handshake(cluster, member).refusal(Status::failed_precondition("cluster ID mismatch"));
            own.other_cluster(MemberId(0xabc), refusal.metadata())
        };
        assert_eq!(refused(2, 0xabc), Some(ClusterId(2)));
        assert_eq!(refused(1, 0xabc), None, "it refuses for another reason");
        assert_eq!(refused(2, 9), None, "somebody else listens there");
        assert_eq!(own.other_cluster(MemberId(0xabc), &MetadataMap::new()), None);
    }

    #[test]
    fn who_was_removed_is_told_so_and_who_is_not_known_yet_may_have_been_added() {
        let own = handshake(1, 7);
        let call = || handshake(1, 0xabc).call(MemberId(7), ());
        assert!(own.caller(call().metadata()).is_ok(), "the cluster is being founded");
        let members = [7, 0xabc].map(|id| (MemberId(id), ("m".to_owned(), vec![]))).into();
        own.machine.apply_of_test(EntryKind::Cluster(ClusterEntry::Bootstrap { id: ClusterId(1), members }));
        own.machine
            .follow_of_test(&Membership { voters: [MemberId(7)].into(), peer_urls: [(MemberId(7), vec![])].into() });
        let status = own.caller(call().metadata()).unwrap_err();
        let text = "etcdserver: the member has been permanently removed from the cluster";
        assert_eq!((status.code(), status.message()), (Code::DataLoss, text));
        let status = own.answerer(MemberId(0xabc), handshake(1, 0xabc).answer(()).metadata()).unwrap_err();
        assert_eq!((status.code(), status.message()), (Code::FailedPrecondition, text));
        assert!(own.caller(handshake(1, 0xdef).call(MemberId(7), ()).metadata()).is_ok(), "it was added since");
    }

    /// A member that is told to have lost its data ends: what it said before it had any must not be taken for that.
    #[test]
    fn who_has_lost_its_data_is_told_from_who_was_heard_late() {
        let own = handshake(1, 7);
        let members = [(MemberId(0xabc), ("m2".to_owned(), vec![]))].into();
        let published = ClusterEntry::Publish {
            member: MemberId(0xabc),
            starts: Starts(2),
            start_id: StartId::read(8),
            incarnation: Incarnation::read(5),
            attributes: Attributes::default(),
        };
        for entry in [ClusterEntry::Bootstrap { id: ClusterId(1), members }, published] {
            own.machine.apply_of_test(EntryKind::Cluster(entry));
        }
        let late = Some((Code::Unavailable, "on its way for too long"));
        let lost = |text| Some((Code::DataLoss, text));
        // Each start with its id.
        for (incarnation, (starts, start_id), (published, published_id), is_empty, refused) in [
            (5, (2, 8), (2, 8), false, None),
            (5, (2, 8), (1, 7), false, late),
            (5, (2, 8), (0, 0), true, late), // said while it was new
            (5, (2, 8), (2, 8), true, lost("no log any more")),
            (5, (3, 9), (2, 8), true, lost("no log any more")),
            (5, (3, 9), (2, 8), false, None),
            (5, (3, 9), (3, 9), false, None),
            (5, (3, 9), (1, 7), false, lost("an older copy")),
            (5, (1, 7), (1, 7), false, lost("an older copy")),
            (5, (2, 6), (1, 7), false, lost("an older copy")), // the copy counts the same start once more
            (5, (2, 6), (2, 6), false, lost("an older copy")), // has published it to those that do not know
            (5, (3, 9), (2, 6), false, lost("an older copy")), // and has started since
            (5, (2, 0), (1, 7), false, lost("an older copy")),
            (6, (2, 8), (0, 0), true, lost("it has another one")),
            (0, (2, 8), (0, 0), true, lost("it has another one")),
        ] {
            let said = wire::Handshake {
                protocol: PROTOCOL,
                cluster: 1,
                member: 0xabc,
                release: "3.6.0".into(),
                starts,
                to: 7,
                is_empty,
                incarnation,
                published,
                start_id,
                published_id,
            };
            let mut metadata = MetadataMap::new();
            insert(&mut metadata, &said);
            let status = own.caller(&metadata).err();
            let fits = match (&status, refused) {
                (None, None) => true,
                (Some(status), Some((code, text))) => status.code() == code && status.message().contains(text),
                _ => false,
            };
            assert!(fits, "{said:?}: {status:?}");
        }
    }
}
