//! Version rules: what leader and members may run while this run stands, and that no minor is left out.
//!
//! A member that did not answer is no matter of versions: the quorum rule speaks of it. Source:
//! agent/PROTOCOL.md, I-4; etcd's upgrade guides ("one minor at a time").

use proto::Release;

use crate::{
    keys::Intent,
    observe::view::{ClusterView, Member},
    plan::{
        Case, Next,
        refusal::{Refusal, Wait},
    },
};

pub(super) fn versions(case: &Case) -> Option<Next> {
    match skew(&case.me.intent, case.view)? {
        Refusal::NoLeader => Some(without_leader(case)),
        refusal => Some(Next::Refuse(refusal)),
    }
}

/// Where downtime is allowed, two voters have no leader while one of them is down, and its host may have put the
/// record of that after the keys were read.
fn without_leader(case: &Case) -> Next {
    let is_awaited =
        |member: &&Member| !member.is_ready() && !case.me.seats.has(member.id) && case.keys.has_participant(member.id);
    let is_expected = case.me.allow_downtime && case.view.voters().count() <= 2;
    match case.view.voters().find(is_awaited).filter(|_| is_expected) {
        Some(member) => Next::Wait(Wait::Ready { member: member.id }),
        None => Next::Refuse(Refusal::NoLeader),
    }
}

/// The leader, then a member, outside what the change allows.
pub(in crate::plan) fn skew(intent: &Intent, view: &ClusterView) -> Option<Refusal> {
    let Some(leader) = view.leader() else { return Some(Refusal::NoLeader) };
    let kind = intent.change.kind();
    let (from, to) = (kind.from()?, kind.target().release?);
    let allowed = |release: &Release| release == to || from.matches(&release.0);
    if let Some(release) = leader.release().filter(|release| !allowed(release)) {
        return Some(Refusal::LeaderVersion { member: leader.id, release: release.clone() });
    }
    view.members.iter().find_map(|member| match member.release()? {
        release if !allowed(release) => Some(Refusal::MemberVersion { member: member.id, release: release.clone() }),
        release if kind.is_one_step_from(release) => None,
        release => Some(Refusal::SkipsMinor { member: member.id, release: release.clone() }),
    })
}

#[cfg(test)]
mod tests {
    use proto::MemberId;

    use super::*;
    use crate::{
        keys::{Keys, rules::Rules},
        observe::view::Leader,
        plan::{
            Me, next,
            samples::{self, intent, view, with_release},
        },
    };

    #[test]
    fn leader_and_members_stay_within_from_and_to() {
        for (releases, refused) in [
            (["3.4.23", "3.4.23", "3.4.23"], ""),
            (["3.5.30", "3.4.23", "3.5.30"], ""),
            (["3.5.29", "3.4.23", "3.4.23"], "leader"),
            (["3.4.23", "3.5.29", "3.4.23"], "member"),
            (["3.6.0", "3.4.23", "3.4.23"], "leader"),
            (["3.4.23", "3.4.23", "3.3.1"], "member"),
        ] {
            let mut view = view("1* 2+ 3+");
            for (at, release) in releases.iter().enumerate() {
                with_release(&mut view, at, release);
            }
            let found = match skew(&intent(">=3.4, <3.5", "3.5.30"), &view) {
                None => "",
                Some(Refusal::LeaderVersion { .. }) => "leader",
                Some(Refusal::MemberVersion { .. }) => "member",
                Some(other) => panic!("{other:?}"),
            };
            assert_eq!(found, refused, "{releases:?}");
        }
    }

    #[test]
    fn no_leader_is_never_a_wrong_version() {
        let mut view = view("1+ 2+ 3+");
        view.leader = Leader::Unknown;
        assert_eq!(skew(&intent(">=3.4, <3.5", "3.5.30"), &view), Some(Refusal::NoLeader));
    }

    #[test]
    fn two_voters_without_a_leader_are_waited_for_where_one_goes_down_with_leave() {
        for (view, allow_downtime, is_owner_there, waits) in [
            ("1+ 2.", true, true, true),
            ("1- 2.", true, true, true), // without the other it answers no read
            ("1+ 2.", true, false, false),
            ("1+ 2.", false, true, false),
            ("1+ 2. 3.", true, true, false), // three never go below their quorum
            ("1- 2+", true, true, false),    // this host's own is nobody else's to wait for
        ] {
            let me = Me { allow_downtime, ..samples::me(&[1]) };
            let keys = Keys { step: None, ..samples::keys(None, is_owner_there) };
            let view_of = ClusterView { leader: Leader::Unknown, ..samples::view(view) };
            let rules = Rules::default();
            let case = samples::case(&me, &rules, &keys, &view_of);
            let expected = match waits {
                true => Next::Wait(Wait::Ready { member: MemberId(2) }),
                false => Next::Refuse(Refusal::NoLeader),
            };
            assert_eq!(next(&case), expected, "{view} {allow_downtime} {is_owner_there}");
        }
    }
}
