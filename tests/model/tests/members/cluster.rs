//! The cluster's own part: what a look finds of the members, and what the server makes of a call when it arrives.
//!
//! The server's checks are those of etcd under `--strict-reconfig-check` (`server/etcdserver/server.go`, `api/membership`): an
//! address is listed once; one learner at a time; a learner is added while enough voters are connected; a promotion needs a
//! learner whose log the leader has seen follow, and enough that were ever started; a voter that is connected goes only while
//! the others could do without one more.

use std::{collections::BTreeSet, sync::Arc};

use super::{
    judge::Violation,
    names::id_of,
    scenario::{name_of, url_of},
    world::{Call, Listed, NOBODYS, Seen, State, World},
};
use agent::{
    observe::{
        peers::PeerUrls,
        view::{Answer, ClusterView, Health, Leader, Member, Report, Role},
    },
    plan::membership::survey::{Data, Place, Survey},
};
use proto::{ClusterId, ClusterVersion, LogIndex, Revision, Term};

/// What the server says to a call that arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said {
    Done,
    Refused,
}

fn urls(seat: usize) -> BTreeSet<String> {
    BTreeSet::from([url_of(seat)])
}

impl World {
    pub fn view(&self, seen: &Seen) -> ClusterView {
        let leader = seen.leader.map_or(Leader::Unknown, |member| Leader::Agreed { member, term: Term(1) });
        let members = seen.members.iter().map(|(one, state)| self.shown(one, *state)).collect();
        ClusterView { cluster: ClusterId(1), leader, members, warnings: Vec::new() }
    }

    fn shown(&self, one: &Listed, state: State) -> Member {
        let answer = match state {
            State::NeverStarted => Answer::NeverStarted,
            State::Silent => Answer::Silent { reason: String::new() },
            State::NotReady if one.is_learner => self.reported(Health::CatchingUp { reason: String::new() }),
            State::NotReady => self.reported(Health::Sick { reason: String::new() }),
            State::Ready => self.reported(Health::Ready),
        };
        Member {
            id: one.id,
            name: if one.is_named { name_of(one.seat) } else { Arc::default() },
            role: if one.is_learner { Role::Learner } else { Role::Voter },
            client_urls: Vec::new(),
            reached: None,
            is_disputed: false,
            activities: Default::default(),
            answer,
        }
    }

    fn reported(&self, health: Health) -> Answer {
        Answer::Reported(Box::new(Report {
            release: self.scenario.release(),
            cluster_version: Some(ClusterVersion { major: 3, minor: 5 }),
            storage_version: None,
            downgrade: None,
            leader: None,
            term: Term(1),
            log_index: LogIndex(0),
            applied: LogIndex(0),
            revision: Revision(0),
            db_bytes: 0,
            quota_bytes: None,
            health,
            gates: None,
            join: None,
        }))
    }

    /// The list of now, by the word of a quorum, and this host's place.
    pub fn survey(&self, host: usize) -> Survey {
        let listed: PeerUrls = self.listed.iter().map(|one| (one.id, urls(one.seat))).collect();
        let at = &self.hosts[host];
        let data = at.data.map_or(Data::None, |member| Data::Of { cluster: ClusterId(1), member });
        Survey { listed, places: vec![Place { peer_urls: vec![url_of(host)], data, runs: at.runs }] }
    }

    /// A call arrives, and takes effect or is refused; `None` where nobody leads.
    pub fn arrive(&mut self, call: Call) -> Result<Option<Said>, Violation> {
        if !self.has_quorum() {
            return Ok(None);
        }
        let said = match call {
            Call::Add(seat) => self.add(seat),
            Call::Promote(id) => match self.member(id) {
                None => Said::Refused,
                Some(one) if !one.is_learner => Said::Done,
                Some(one) if one.is_synced && self.are_enough_started() => {
                    self.judge_promotion(id)?;
                    self.with(id, |one| one.is_learner = false);
                    Said::Done
                }
                Some(_) => Said::Refused,
            },
            Call::Remove(id) => match self.member(id).copied() {
                None => Said::Done,
                Some(one) if self.may_go(&one) => {
                    self.judge_removal(&one)?;
                    self.listed.retain(|other| other.id != id);
                    Said::Done
                }
                Some(_) => Said::Refused,
            },
        };
        Ok(Some(said))
    }

    pub fn with(&mut self, id: proto::MemberId, change: impl FnOnce(&mut Listed)) {
        if let Some(one) = self.listed.iter_mut().find(|one| one.id == id) {
            change(one);
        }
    }

    fn add(&mut self, seat: usize) -> Said {
        let is_there = |one: &Listed| one.seat == seat && seat != NOBODYS;
        let learners = self.listed.iter().filter(|one| one.is_learner).count();
        let (voters, up) = (self.voters().count(), self.voters_up());
        let are_connected = up == voters || (self.scenario.is_late && up > voters.div_ceil(2));
        if self.listed.iter().any(is_there) || learners >= self.scenario.max_learners || !are_connected {
            return Said::Refused;
        }
        let id = id_of(self.members);
        self.members += 1;
        self.listed.push(Listed { id, seat, is_learner: true, is_named: false, is_begun: false, is_synced: false });
        Said::Done
    }

    /// Names alone are counted: the newcomer's own, and those of the voters (`IsReadyToPromoteMember`).
    fn are_enough_started(&self) -> bool {
        let (voters, named) = (self.voters().count(), self.voters().filter(|one| one.is_named).count());
        named + 1 > voters.div_ceil(2)
    }

    /// What is not connected may go (`mayRemoveMember`).
    pub fn may_go(&self, one: &Listed) -> bool {
        if one.is_learner {
            return true;
        }
        let (voters, up) = (self.voters().count(), self.voters_up());
        !self.is_up(one) || (voters > 1 && up > 1 + (voters - 1) / 2)
    }
}
