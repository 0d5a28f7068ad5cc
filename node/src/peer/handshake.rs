//! The handshake: every call says who calls and whom it means, every answer who answers. A member of another cluster, one
//! that took another's address, one whose protocol is newer, or one that has lost its data directory is refused before
//! anything of the call is looked at.

use std::sync::Arc;

use prost::Message;
use proto::{ClusterId, MemberId, Release};
use tonic::{
    Request, Response, Status,
    metadata::{MetadataMap, MetadataValue},
};

use super::wire;
use crate::{cluster::member::Starts, identity::Identity, machine::Machine};

/// Where the handshake is in a call's metadata.
const KEY: &str = "baton-handshake-bin";
/// The protocol that is spoken.
const PROTOCOL: u32 = 1;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remote {
    pub member: MemberId,
    pub release: Release,
    /// How often it has started.
    pub starts: Starts,
}

/// Shakes hands for this member.
#[derive(Clone, Debug)]
pub struct Handshake {
    identity: Arc<Identity>,
    machine: Machine,
    had_log: bool,
}

impl Handshake {
    /// For a member of this identity, with what it knows of the others, and whether it had a log when it started.
    pub fn new(identity: Arc<Identity>, machine: Machine, had_log: bool) -> Self {
        Self { identity, machine, had_log }
    }

    pub(crate) fn call<T>(&self, to: MemberId, message: T) -> Request<T> {
        let mut request = Request::new(message);
        self.put(to, request.metadata_mut());
        request
    }

    /// An answer of this member.
    pub(super) fn answer<T>(&self, message: T) -> Response<T> {
        let mut response = Response::new(message);
        self.put(MemberId(0), response.metadata_mut());
        response
    }

    fn put(&self, to: MemberId, metadata: &mut MetadataMap) {
        let handshake = wire::Handshake {
            protocol: PROTOCOL,
            cluster: self.identity.cluster.0,
            member: self.identity.member.0,
            release: self.identity.release.to_string(),
            starts: self.identity.starts.0,
            to: to.0,
            is_empty: !self.had_log && self.machine.read(|state| state.cluster.members.is_empty()),
        };
        metadata.insert_bin(KEY, MetadataValue::from_bytes(&handshake.encode_to_vec()));
    }

    /// Who calls.
    ///
    /// # Errors
    /// It is none that this member talks to; the text says why.
    pub(super) fn caller(&self, metadata: &MetadataMap) -> Result<Remote, Status> {
        let (remote, to) = self.read(metadata)?;
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
        let (remote, _) = self.read(metadata)?;
        if remote.member != called {
            let text = format!("member {called} was called, and member {} answered", remote.member);
            return Err(Status::failed_precondition(text));
        }
        Ok(remote)
    }

    fn read(&self, metadata: &MetadataMap) -> Result<(Remote, MemberId), Status> {
        let bytes = metadata.get_bin(KEY).and_then(|value| value.to_bytes().ok());
        let bytes =
            bytes.ok_or_else(|| Status::failed_precondition("no member of a cluster calls without a handshake"))?;
        let handshake = wire::Handshake::decode(bytes)
            .map_err(|error| Status::invalid_argument(format!("a damaged handshake: {error}")))?;
        if handshake.protocol > PROTOCOL {
            let text = format!("protocol {} is newer than {PROTOCOL}, which this member knows", handshake.protocol);
            return Err(Status::failed_precondition(text));
        }
        let release =
            handshake.release.parse().map_err(|_| Status::invalid_argument("a handshake without a release"))?;
        let (member, starts) = (MemberId(handshake.member), Starts(handshake.starts));
        self.check(ClusterId(handshake.cluster), member, starts, handshake.is_empty)?;
        Ok((Remote { member, release, starts }, MemberId(handshake.to)))
    }

    fn check(&self, cluster: ClusterId, member: MemberId, starts: Starts, is_empty: bool) -> Result<(), Status> {
        let own = self.identity.cluster;
        if cluster != own {
            let text =
                format!("etcdserver: cluster ID mismatch: member {member} is of cluster {cluster}, this one of {own}");
            return Err(Status::failed_precondition(text));
        }
        let known = self.machine.read(|state| state.cluster.members.get(&member).map(|member| member.starts));
        // It has promised what it does not remember: its votes and its log count for nothing any more.
        if known.is_some_and(|known| starts < known || is_empty && known > Starts(0)) {
            let text = format!("member {member} has lost its data directory: bring that back, or replace the member");
            return Err(Status::failed_precondition(text));
        }
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proto::Release;

    use super::*;
    use crate::{features::FEATURES, machine::Proposals};

    fn handshake(cluster: u64, member: u64) -> Handshake {
        let (member, starts, release) = (MemberId(member), Starts(300), Release::new(3, 6, 0));
        let machine = Machine::new(release.clone(), FEATURES, Proposals::new(member, starts));
        let identity = Identity { cluster: ClusterId(cluster), member, name: "m1".into(), release, starts };
        Handshake::new(Arc::new(identity), machine, true)
    }

    /// What was sent once is read by every later release. Never written anew: another meaning is another field.
    #[test]
    fn the_bytes_are_those_of_the_release_that_first_sent_them() {
        let call = handshake(0x1234, 0xabc).call(MemberId(7), ());
        let golden = b"\x08\x01\x10\xb4\x24\x18\xbc\x15\x22\x053.6.0\x28\xac\x02\x30\x07";
        assert_eq!(call.metadata().get_bin(KEY).unwrap().to_bytes().unwrap(), golden[..]);
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
}
