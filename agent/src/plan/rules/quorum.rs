//! Quorum rule: no step leaves fewer ready voters than a majority, and nobody healthy goes while another
//! voter is sick.
//!
//! Pure: reads the view, never asks the cluster. The member going down counts as lost: its return is
//! hoped for, not observed. Source: agent/PROTOCOL.md, I-2.

use proto::MemberId;

use crate::{
    observe::view::{ClusterView, Member},
    plan::{Case, Me, Next, order, refusal::Refusal},
};

pub(super) fn quorum(case: &Case, pick: &Member) -> Option<Next> {
    match objection(case.me, case.view, pick.id)? {
        Objection::Below(refusal) => Some(Next::Refuse(refusal)),
        Objection::AnotherIsSick(other) => Some(order::another_is_sick(case, other)),
    }
}

/// What stands in the way of taking a member down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::plan) enum Objection {
    /// Another voter is not ready and must be seen to first.
    AnotherIsSick(MemberId),
    Below(Refusal),
}

/// Why `down` may not go, if so.
pub(in crate::plan) fn objection(me: &Me, view: &ClusterView, down: MemberId) -> Option<Objection> {
    objection_to_all(me, view, &[down])
}

/// Why these may not go together, if so.
pub(in crate::plan) fn objection_to_all(me: &Me, view: &ClusterView, down: &[MemberId]) -> Option<Objection> {
    let voters = view.voters().count();
    let needed = voters / 2 + 1;
    let (ready, sick): (Vec<_>, Vec<_>) =
        view.voters().filter(|voter| !down.contains(&voter.id)).partition(|voter| voter.is_ready());
    match sick.first() {
        Some(other) if down.iter().any(|own| view.is_ready(*own)) && !is_degraded_allowed(me, voters) => {
            Some(Objection::AnotherIsSick(other.id))
        }
        _ if ready.len() < needed && !(me.allow_downtime && voters <= 2) => {
            let down = down.first().copied().unwrap_or_default();
            Some(Objection::Below(Refusal::BelowQuorum { down, standing: ready.len(), needed }))
        }
        _ => None,
    }
}

fn is_degraded_allowed(me: &Me, voters: usize) -> bool {
    me.allow_degraded && voters >= 5
}

/// A voter beside `down` that is not ready, where nobody goes while one is.
pub(in crate::plan) fn sick_beside(me: &Me, view: &ClusterView, down: MemberId) -> Option<MemberId> {
    let sick = view.voters().find(|member| member.id != down && !member.is_ready());
    sick.filter(|_| !is_degraded_allowed(me, view.voters().count())).map(|member| member.id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::samples::{me, view};

    #[test]
    fn quorum_counts_the_member_going_down_as_lost() {
        for (members, down, allowed) in [
            // + ready voter, - voter that is not, l learner
            ("1+ 2+ 3+", 1, true),
            ("1+ 2+ 3-", 1, false),       // only one would stand
            ("1+ 2+ 3-", 3, true),        // the broken one may be repaired
            ("1+ 2- 3-", 3, false),       // nothing stands to repair it with
            ("1+ 2+ 3+ 4+ 5-", 1, false), // a majority would stand, but repair the sick one first
            ("1+ 2+ 3l", 1, false),       // a learner has no vote
            ("1+ 2+ 3l", 3, true),        // and takes none away
            ("1+ 2+", 1, false),
            ("1+", 1, false),
        ] {
            assert_eq!(
                objection(&me(&[1]), &view(members), MemberId(down)).is_none(),
                allowed,
                "{members} without {down}"
            );
        }
    }

    #[test]
    fn an_operator_may_allow_downtime_for_one_or_two_and_a_sick_member_among_five() {
        let mut me = me(&[1]);
        me.allow_downtime = true;
        me.allow_degraded = true;
        for (members, down, allowed) in [
            ("1+", 1, true),
            ("1+ 2+", 1, true),
            ("1+ 2-", 1, false),         // two voters: a sick one still comes first
            ("1+ 2+ 3-", 1, false),      // never for three
            ("1+ 2+ 3+ 4+ 5-", 1, true), // three of five stand
            ("1+ 2+ 3+ 4- 5-", 1, false),
        ] {
            assert_eq!(objection(&me, &view(members), MemberId(down)).is_none(), allowed, "{members} without {down}");
        }
    }
}
