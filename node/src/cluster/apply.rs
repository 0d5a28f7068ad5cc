//! What an entry does to the state. Every member does the same, whichever release it runs.

use std::collections::BTreeMap;

use proto::{ClusterVersion, LogIndex, MemberId};

use super::{
    Cluster,
    entry::Entry,
    gate::Gate,
    member::{Attributes, Incarnation, Member, Start, Starts},
};

impl Cluster {
    /// Applies the entry at this index of the log. Whether it has changed anything.
    pub fn apply(&mut self, index: LogIndex, entry: Entry) -> bool {
        match entry {
            Entry::Bootstrap { id, members } if self.members.is_empty() => {
                self.id = id;
                let member = |(name, peer_urls)| Member { name, peer_urls, ..Member::default() };
                self.members = members.into_iter().map(|(id, said)| (id, member(said))).collect();
                self.inputs = index;
                true
            }
            Entry::Bootstrap { .. } => false,
            Entry::Publish { member, starts, start_id, incarnation, attributes } => {
                self.publish(index, member, (Start { starts, id: start_id }, incarnation), attributes)
            }
            Entry::Move { member, peer_urls } => {
                let is_allowed = self.may_move(member, &peer_urls).is_ok();
                let moved = self.members.get_mut(&member).filter(|member| is_allowed && member.peer_urls != peer_urls);
                moved.map(|member| member.peer_urls = peer_urls).is_some()
            }
            Entry::Reset { prepares } => self.reset(index, prepares),
            Entry::SetVersion { version, heard } => self.set_version(index, version, &heard),
            Entry::Downgrade { to: Some(target) } => {
                let begins = self.may_go_down_to(target).is_ok();
                if begins {
                    self.downgrade = Some(target);
                }
                begins
            }
            Entry::Downgrade { to: None } => self.downgrade.take().is_some(),
            Entry::Decide { features, inputs } => {
                let gate = Gate::Decided(features);
                let is_news = self.has_gates() && inputs == self.inputs && gate != self.gate;
                if is_news {
                    self.gate = gate;
                }
                is_news
            }
        }
    }

    fn publish(
        &mut self,
        index: LogIndex,
        id: MemberId,
        (start, incarnation): (Start, Option<Incarnation>),
        attributes: Attributes,
    ) -> bool {
        let (version, has_gates) = (self.version, self.has_gates());
        let is_it = |member: &&mut Member| {
            let is_same = member.incarnation.is_none() || incarnation == member.incarnation;
            is_same && start.starts >= member.starts && !start.is_another(member.start())
        };
        let Some(member) = self.members.get_mut(&id).filter(is_it) else { return false };
        if member.has_said(&attributes, start.starts) {
            return false;
        }
        member.incarnation = incarnation;
        let Attributes { name, client_urls, proposal } = attributes;
        (member.name, member.client_urls) = (name, client_urls);
        (member.starts, member.start_id) = (start.starts, start.id);
        // Made at another version it is no proposal; the one that is stored goes on to rule.
        let counts = proposal.filter(|proposal| has_gates && Some(proposal.version) == version);
        if counts.is_some() && counts != member.proposal {
            member.proposal = counts;
            if !member.is_learner {
                self.inputs = index;
            }
        }
        true
    }

    fn reset(&mut self, index: LogIndex, prepares: ClusterVersion) -> bool {
        let is_due = self.version != Some(prepares) && self.gate != Gate::Undecided;
        if is_due {
            self.gate = Gate::Undecided;
            // What was decided before it may be under way still.
            self.inputs = index;
        }
        is_due
    }

    /// Up by one minor at a time; the first may be any. Down by one, to where a downgrade leads. A decision that did not
    /// hear every member as it is now falls.
    fn set_version(&mut self, index: LogIndex, version: ClusterVersion, heard: &BTreeMap<MemberId, Starts>) -> bool {
        let is_down = self.downgrade == Some(version) && self.version == Some(next(version));
        let is_up = self.downgrade.is_none() && self.version.is_none_or(|now| version == next(now));
        let was_heard = |(id, member): (&MemberId, &Member)| heard.get(id).is_some_and(|at| *at >= member.starts);
        if !(is_up || is_down) || !self.members.iter().all(was_heard) {
            return false;
        }
        self.version = Some(version);
        self.behind = is_down.then_some(index);
        // In one step with the version: no index shows a gate, or a wish, that was meant for another one.
        self.gate = Gate::Undecided;
        self.members.values_mut().for_each(|member| member.proposal = None);
        self.inputs = index;
        true
    }
}

/// The minor after this one.
pub(super) fn next(version: ClusterVersion) -> ClusterVersion {
    ClusterVersion { minor: version.minor + 1, ..version }
}
