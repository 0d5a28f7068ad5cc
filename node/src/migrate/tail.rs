//! What stands in a log behind what its member knows to be committed: it may be applied yet, at the lower version.

use consensus::Content;
use proto::ClusterVersion;

use crate::{
    cluster::{downgrade::LOWEST, entry::Entry as ClusterEntry},
    entry::{Entry, EntryKind},
    machine::Proposal,
};

/// What an entry does that stands against the way down from this version to the target; `own` is that of the release that asks. At the
/// target already, it is what leads up again; above, what comes out otherwise at another version or under another gate.
pub(crate) fn against(
    content: &Content,
    own: ClusterVersion,
    version: ClusterVersion,
    target: ClusterVersion,
) -> Option<&'static str> {
    let command = match content {
        Content::Nothing => return None,
        Content::Members(_) => return (version > target).then_some("changes who the members are"),
        Content::Command(command) => command.clone(),
    };
    let entry = Proposal::decode(command).and_then(|proposal| Entry::decode(proposal.entry, own));
    match entry {
        Err(_) => (version > target).then_some("cannot be read"),
        Ok(entry) if version > target => depends(&entry, target),
        Ok(entry) => raises(&entry, target).then_some("raises the cluster version"),
    }
}

fn raises(entry: &Entry, target: ClusterVersion) -> bool {
    matches!(&entry.what, EntryKind::Cluster(ClusterEntry::SetVersion { version, .. }) if *version > target)
}

fn depends(entry: &Entry, target: ClusterVersion) -> Option<&'static str> {
    match &entry.what {
        EntryKind::Cluster(ClusterEntry::Publish { attributes, .. }) => {
            // At the version that it was made at it counts.
            let counts = attributes.proposal.as_ref().is_some_and(|proposal| proposal.version <= target);
            counts.then_some("says what a member wants at a lower version")
        }
        EntryKind::Cluster(ClusterEntry::Move { .. }) => None,
        EntryKind::Cluster(_) => Some("changes the cluster's version or its gate"),
        _ if entry.since() > LOWEST => Some("depends on a feature"),
        _ => None,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use consensus::Members;
    use proto::{MemberId, batonpb::AddRequest, etcdserverpb::PutRequest};

    use super::*;
    use crate::{
        cluster::member::{Attributes, Proposal as Wish, Starts},
        state::ProposalId,
    };

    const fn v(minor: u64) -> ClusterVersion {
        ClusterVersion { major: 3, minor }
    }

    fn proposed(what: EntryKind) -> Content {
        let id = ProposalId { member: MemberId(1), starts: Starts(1), number: 1 };
        Content::Command(Proposal { id, settled: 1, entry: Entry::from(what).encode().into() }.encode().into())
    }

    fn published(at: Option<u64>) -> Content {
        let proposal = at.map(|minor| Wish { version: v(minor), features: Default::default() });
        let attributes = Attributes { name: "m".into(), client_urls: Vec::new(), proposal };
        let member = MemberId(1);
        proposed(EntryKind::Cluster(ClusterEntry::Publish {
            member,
            starts: Starts(2),
            start_id: None,
            incarnation: None,
            attributes,
        }))
    }

    fn raised_to(minor: u64) -> Content {
        proposed(EntryKind::Cluster(ClusterEntry::SetVersion { version: v(minor), heard: Default::default() }))
    }

    /// By release 3.7, to 3.6.
    #[test]
    fn what_may_be_applied_yet_must_come_to_the_same_at_the_lower_version() {
        let moved = || proposed(EntryKind::Cluster(ClusterEntry::Move { member: MemberId(1), peer_urls: Vec::new() }));
        let reset = || proposed(EntryKind::Cluster(ClusterEntry::Reset { prepares: v(7) }));
        let put = || proposed(EntryKind::Put(PutRequest::default()));
        let counted = || proposed(EntryKind::CounterAdd(AddRequest::default()));
        let (wish, gate) = ("says what a member wants at a lower version", "changes the cluster's version or its gate");
        let (feature, raises) = ("depends on a feature", "raises the cluster version");
        let (members, unread) = ("changes who the members are", "cannot be read");
        for (name, content, at_3_7, at_3_6) in [
            ("nothing", Content::Nothing, None, None),
            ("a put", put(), None, None),
            ("a counter", counted(), Some(feature), None),
            ("members", Content::Members(Members::default()), Some(members), None),
            ("a start without a wish", published(None), None, None),
            ("a wish at the version", published(Some(7)), None, None),
            ("a wish at the target", published(Some(6)), Some(wish), None),
            ("other URLs", moved(), None, None),
            ("a reset", reset(), Some(gate), None),
            ("the version up", raised_to(7), Some(gate), Some(raises)),
            ("the version down", raised_to(6), Some(gate), None),
            ("rubbish", Content::Command(vec![0xff; 9].into()), Some(unread), None),
        ] {
            assert_eq!(against(&content, v(7), v(7), v(6)), at_3_7, "{name}, to be lowered");
            assert_eq!(against(&content, v(7), v(6), v(6)), at_3_6, "{name}, at the target");
        }
    }
}
