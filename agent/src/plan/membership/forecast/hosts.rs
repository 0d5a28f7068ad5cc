//! Who takes part in a forecast, and what is at each host's places.

use std::{collections::BTreeMap, sync::Arc};

use proto::MemberId;

use super::{Agent, World, at};
use crate::{
    keys::{
        AttemptId, Participant,
        host_id::HostId,
        seat::{Seat, Seats},
    },
    observe::{
        peers::PeerUrls,
        view::{ClusterView, Member, Role},
    },
    plan::{
        Me,
        membership::{
            survey::{Data, Place},
            wanted,
        },
    },
};

impl World<'_> {
    /// An agent on each host that is there or is to come; where nobody knows a member's host, it has one of its own.
    /// `begins` is the home host's newcomer whose first start is in hand; those of others are in the hands of theirs.
    pub(super) fn people(&mut self, begins: Option<AttemptId>) {
        let (view, keys, home) = (&self.view, &self.keys, self.home);
        let membership = keys.run.as_ref().and_then(|run| run.value.membership.clone());
        let joins = membership.as_ref().map_or(&[][..], |membership| &membership.joins);
        let wanted = wanted(&home.intent.change);
        let started = view.started().filter(|member| !member.name.is_empty());
        let mut names: Vec<_> = started.map(|member| member.name.clone()).chain(wanted.iter().cloned()).collect();
        names.extend(joins.iter().map(|join| join.seat.clone()));
        names.sort();
        names.dedup();
        let mut hosts: BTreeMap<HostId, (Arc<str>, Vec<Seat>)> = BTreeMap::new();
        hosts.insert(home.host, (home.host_name.clone(), home.seats.0.clone()));
        let is_own = |name: &Arc<str>| home.seats.0.iter().any(|seat| seat.name == *name);
        for (at, name) in names.iter().enumerate().filter(|(_, name)| !is_own(name)) {
            let member = view.members.iter().find(|member| member.name == *name);
            let join = joins.iter().find(|join| join.seat == *name);
            let has = |agent: &Participant| {
                agent.seats.0.iter().any(|seat| seat.name == *name || member.is_some_and(|m| seat.member == Some(m.id)))
            };
            let known = keys.agents.iter().find(|(host, at)| **host != home.host && has(&at.value));
            let known = known.map(|(host, at)| (*host, at.value.host_name.clone()));
            let of_join = || join.map(|join| (join.host, join.host_name.clone()));
            let comes = wanted.contains(name) && !member.is_some_and(|m| m.role == Role::Voter && m.is_ready());
            let is_there = comes || member.is_some_and(Member::is_ready);
            let alone =
                || is_there.then(|| (HostId { machine: None, instance: u128::MAX - at as u128 }, Arc::from("")));
            let Some((host, host_name)) = known.or_else(of_join).or_else(alone) else { continue };
            let seat = Seat { name: name.clone(), host: Some(host), member: member.map(|member| member.id) };
            hosts.entry(host).or_insert_with(|| (host_name, Vec::new())).1.push(seat);
            let place = assumed(view, &self.listed, name, member, join.map(|join| (&join.peer_urls, join.member)));
            self.places.insert(name.clone(), place);
        }
        self.keys.agents.clear();
        for (host, (host_name, seats)) in hosts {
            let named = seats.iter().filter(|_| !host_name.is_empty());
            self.hosts.extend(named.map(|seat| (seat.name.clone(), host_name.clone())));
            let me = Me { host, host_name, seats: Seats(seats), ..self.home.clone() };
            self.keys.agents.insert(host, at(me.participant(Default::default())));
            let begun = || membership.as_ref()?.begun_by(host).map(|join| join.attempt);
            let begins = if host == home.host { begins } else { begun() };
            self.agents.push(Agent { me, begins });
        }
        // Whoever makes the plan, its order is the same.
        self.agents.sort_by_key(|agent| agent.me.seats.0.iter().map(|seat| seat.name.clone()).min());
    }
}

/// What another host's place is taken to be: that of a member is as it should be, and a newcomer's is empty.
fn assumed(
    view: &ClusterView,
    listed: &PeerUrls,
    name: &Arc<str>,
    member: Option<&Member>,
    join: Option<(&Vec<String>, Option<MemberId>)>,
) -> Place {
    let of = |member| Data::Of { cluster: view.cluster, member };
    match (join, member) {
        (Some((urls, id)), member) => {
            let has_begun = id.filter(|id| member.is_some_and(|member| member.id == *id));
            Place { peer_urls: urls.clone(), data: has_begun.map_or(Data::None, of), runs: has_begun.is_some() }
        }
        (None, Some(member)) => {
            let urls = listed.get(&member.id).into_iter().flatten().cloned().collect();
            let is_there = member.is_ready();
            Place { peer_urls: urls, data: if is_there { of(member.id) } else { Data::None }, runs: is_there }
        }
        (None, None) => Place { peer_urls: vec![format!("http://{name}")], data: Data::None, runs: false },
    }
}
