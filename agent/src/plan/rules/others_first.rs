//! Members that go earlier go first, whichever host they are on.

use proto::MemberId;

use super::failed;
use crate::{
    observe::view::Member,
    plan::{Case, Next, order::rank, refusal::Wait},
};

/// A host lets members of an earlier standing go first; not under its own member's failure mark, where nobody
/// else may go, and all would wait for one another.
pub(super) fn others_first(case: &Case, pick: &Member) -> Option<Next> {
    if failed::only(case).is_some() {
        return None;
    }
    let rank_of = |member: &Member| rank(case.view, member);
    let earlier = case.undone().filter(|m| rank_of(m) < rank_of(pick) && !case.me.seats.has(m.id));
    let (awaited, alone): (Vec<MemberId>, Vec<MemberId>) =
        earlier.map(|member| member.id).partition(|member| case.keys.may_go_now(*member));
    match (awaited.is_empty(), alone.is_empty()) {
        (false, _) => Some(Next::Wait(Wait::Others { members: awaited })),
        (true, false) if !case.is_window_over() => Some(Next::Wait(Wait::OthersToJoin)),
        _ => None,
    }
}
