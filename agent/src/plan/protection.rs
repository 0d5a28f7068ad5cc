//! Hosts that are held for the members they carry: when a hold is put, when it is lifted, and what it forbids.
//!
//! Pure. A hold keeps a host, not a process: no restart asks for it. It is on once a host is adopted, or has joined
//! . Source: agent/HOSTS.md.

use std::{collections::BTreeSet, sync::Arc};

use proto::MemberId;

use crate::keys::{
    At, Keys,
    host_id::HostId,
    host_record::{Hold, HostRecord, Phase, QUORUM},
    membership::Membership,
};

/// So many hosts that have left are remembered, for who asks after one again.
const LEFT_KEPT: usize = 16;

/// Whether hosts are held: one of them has a member, as its record says.
pub fn is_on(keys: &Keys) -> bool {
    keys.hosts.values().any(|at| at.value.phase == Phase::Running)
}

/// The record of the host that carries this member.
pub fn host_of(keys: &Keys, member: MemberId) -> Option<(HostId, &At<HostRecord>)> {
    keys.hosts.iter().find(|(_, at)| at.value.carries(member)).map(|(host, at)| (*host, at))
}

/// Somebody else's hold on the host of this member: it is not removed.
pub fn held_by_others(keys: &Keys, member: MemberId) -> Option<(&HostRecord, &Hold)> {
    let (_, at) = host_of(keys, member)?;
    Some((&at.value, at.value.others_hold()?))
}

/// What a host's record is once it is adopted with these voters. On one that is to go the hold is not put back: whoever took it away
/// may have had no spare host.
pub fn adopted(before: Option<&HostRecord>, host_name: &Arc<str>, voters: &[MemberId]) -> HostRecord {
    let new = HostRecord::joining(host_name.clone());
    let was = before.filter(|record| record.phase != Phase::Left).unwrap_or(&new);
    let held = voters.iter().fold(was.in_phase(Phase::Running), |record, voter| record.holding(*voter));
    let next = if was.is_let_go() { held.without_hold(QUORUM) } else { held };
    HostRecord { host_name: host_name.clone(), ..next }
}

/// The next record that is not as the members are, and what it is to be; `None` where it is to go. `listed` is as a quorum says, and not
/// older than the keys: an id that is gone never comes again.
pub fn out_of_date(
    keys: &Keys,
    listed: impl Fn(MemberId) -> bool,
    membership: Option<&Membership>,
) -> Option<(HostId, Option<HostRecord>)> {
    let changed = keys.hosts.iter().find_map(|(host, at)| {
        let now = up_to_date(*host, &at.value, &listed, membership);
        (now != at.value).then_some((*host, Some(now)))
    });
    changed.or_else(|| Some((long_gone(keys)?, None)))
}

/// The one that has left first, where so many are remembered that one may be forgotten.
fn long_gone(keys: &Keys) -> Option<HostId> {
    let has_left = |at: &&At<HostRecord>| at.value.phase == Phase::Left && at.value.holds.is_empty();
    let left = keys.hosts.iter().filter(|(_, at)| has_left(at));
    let is_many = left.clone().count() > LEFT_KEPT;
    left.min_by_key(|(_, at)| at.modified).map(|(host, _)| *host).filter(|_| is_many)
}

fn up_to_date(
    host: HostId,
    record: &HostRecord,
    listed: &impl Fn(MemberId) -> bool,
    membership: Option<&Membership>,
) -> HostRecord {
    let mut now = record.clone();
    now.members.retain(|member| listed(*member));
    let is_coming = membership.is_some_and(|membership| membership.joins.iter().any(|join| join.host == host));
    let votes = |member: &MemberId| {
        membership.is_some_and(|membership| membership.expected.iter().any(|one| one.member == *member))
    };
    match record.phase {
        Phase::Left => record.clone(),
        Phase::Joining if now.members.iter().any(votes) => now.in_phase(Phase::Running),
        Phase::Joining | Phase::Running if now.members.is_empty() && !is_coming => now.left(),
        Phase::Joining | Phase::Running => now,
    }
}

/// The same record without its mark: one that stays is held, though somebody has taken the hold away meanwhile.
pub fn unmarked(record: &HostRecord, listed: &BTreeSet<MemberId>) -> HostRecord {
    let members = record.members.iter().filter(|member| listed.contains(member));
    let held = members.fold(record.clone(), |record, member| record.holding(*member));
    HostRecord { mark: None, ..held }
}

/// What stands between a host and its going.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stays {
    /// A hold that somebody put.
    Held(Hold),
    /// It carries members, which are to leave first.
    Carries(Vec<MemberId>),
    /// Its newcomer is on its way in, and is to be taken back first.
    Joins(Arc<str>),
}

/// What keeps a host; nothing where it may go. One that is marked may go with its members where somebody has taken the agents' hold
/// away.
pub fn stays(
    host: HostId,
    record: &HostRecord,
    listed: &BTreeSet<MemberId>,
    membership: Option<&Membership>,
) -> Option<Stays> {
    if let Some(hold) = record.others_hold() {
        return Some(Stays::Held(hold.clone()));
    }
    if let Some(join) = membership.and_then(|membership| membership.joins.iter().find(|join| join.host == host)) {
        return Some(Stays::Joins(join.seat.clone()));
    }
    let members: Vec<_> = record.members.iter().copied().filter(|member| listed.contains(member)).collect();
    (!record.is_let_go() && !members.is_empty()).then_some(Stays::Carries(members))
}

/// How many ready voters may go down before a quorum is at risk: all but one of the hosts stay up, and a quorum in any
/// case.
pub fn budget(keys: &Keys, voters: usize, ready: usize) -> usize {
    let hosts = keys.hosts.values().filter(|at| at.value.phase != Phase::Left).count();
    let wanted = hosts.saturating_sub(1).max(voters / 2 + 1);
    ready.saturating_sub(wanted)
}

#[cfg(test)]
#[path = "protection_test.rs"]
mod tests;
