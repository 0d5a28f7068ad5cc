//! What holds and marks of hosts ask of a change of members.
//!
//! With no host held nothing is asked, but for a mark: that is a person's word in any case. Source: agent/HOSTS.md, L-03.

use proto::MemberId;

use super::{Move, Standing, refusal::MembersRefusal};
use crate::{
    keys::{
        At,
        host_id::HostId,
        host_record::{HostRecord, Phase},
        membership::Join,
    },
    observe::view::Member,
    plan::{Next, protection, refusal::Wait},
};

/// A newcomer is not begun on a host that is to go, nor promoted there.
pub(super) fn marked(standing: &Standing, host: HostId) -> Option<MembersRefusal> {
    let record = record_of(standing, host).filter(|_| standing.case.rules.mark_stops_a_promotion)?;
    let mark = record.value.mark.as_ref()?;
    Some(MembersRefusal::HostMarked { host_name: record.value.host_name.clone(), by: mark.by.clone() })
}

fn record_of<'a>(standing: &Standing<'a>, host: HostId) -> Option<&'a At<HostRecord>> {
    standing.case.keys.hosts.get(&host)
}

/// The host of a newcomer is known before it is added, so that it counts among those that are to stay up (L-03, A-27).
pub(super) fn before_it_is_added(standing: &Standing, join: &Join) -> Option<Next> {
    let is_known = record_of(standing, join.host).is_some_and(|record| record.value.phase != Phase::Left);
    let is_wanted = protection::is_on(standing.case.keys) && !is_known;
    is_wanted.then(|| note(join.host, begun(standing, join)))
}

/// It is held before it votes: no voter is without a hold, ever.
pub(super) fn before_it_votes(standing: &Standing, join: &Join) -> Option<Next> {
    let member = join.member.filter(|member| lacks_hold(standing, join.host, *member))?;
    let record = begun(standing, join);
    let seats = record.seats.iter().cloned().chain([join.seat.clone()]);
    Some(note(join.host, record.named(seats.collect::<Vec<_>>()).holding(member)))
}

/// Whether its promotion may not be called for: it has no hold any more, or its host is marked by now.
pub(super) fn keeps_from_voting(standing: &Standing, member: MemberId) -> bool {
    let join = standing.membership.joins.iter().find(|join| join.member == Some(member));
    join.is_some_and(|join| lacks_hold(standing, join.host, member) || marked(standing, join.host).is_some())
}

fn lacks_hold(standing: &Standing, host: HostId, member: MemberId) -> bool {
    let is_held = record_of(standing, host).is_some_and(|at| at.value.is_held() && at.value.carries(member));
    protection::is_on(standing.case.keys) && standing.case.rules.hold_comes_first && !is_held
}

/// The record that there is, or that of a host which comes anew.
fn begun(standing: &Standing, join: &Join) -> HostRecord {
    let found = record_of(standing, join.host).map(|at| &at.value);
    match found {
        Some(record) if record.phase != Phase::Left => record.clone(),
        // What others hold it for stays.
        Some(record) => HostRecord { host_name: join.host_name.clone(), ..record.in_phase(Phase::Joining) },
        None => HostRecord::joining(join.host_name.clone()),
    }
}

fn note(host: HostId, record: HostRecord) -> Next {
    Next::Members(Move::Host(host, Some(record)))
}

/// What is waited for while a member is to go first: for it, or for a hold on its host.
pub(super) fn until_it_goes(standing: &Standing, leaver: &Member) -> Next {
    of_others(standing, leaver).unwrap_or(Next::Wait(Wait::Ready { member: leaver.id }))
}

/// While somebody else holds its host a member is not removed, dead or alive.
pub(super) fn of_others(standing: &Standing, leaver: &Member) -> Option<Next> {
    let case = standing.case;
    let (record, hold) =
        protection::held_by_others(case.keys, leaver.id).filter(|_| case.rules.hold_stops_a_removal)?;
    Some(Next::Wait(Wait::HeldHost {
        member: leaver.id,
        host_name: record.host_name.clone(),
        hold: hold.name.clone(),
        owner: hold.owner.clone(),
    }))
}
