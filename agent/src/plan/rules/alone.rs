//! A member that is not ready and that no agent looks after keeps everybody from going, sooner or later.
//!
//! One that never started has no agent to come: `never_started.rs`.

use crate::{
    observe::view::Member,
    plan::{Case, warning::Warning},
};

pub(super) fn alone(case: &Case) -> Vec<Warning> {
    let run = case.current_run();
    let is_alone = |member: &&Member| {
        let has_nobody = !case.me.seats.has(member.id) && !case.keys.has_participant(member.id);
        // Who is to go, or is on its way, keeps nobody.
        let is_waited_for = !case.me.intent.change.drops(&member.name) && !run.is_some_and(|run| run.brings(member.id));
        !member.is_ready() && has_nobody && is_waited_for
    };
    case.view.started().filter(is_alone).map(|member| Warning::Alone { member: member.id }).collect()
}

#[cfg(test)]
mod tests {
    use proto::MemberId;

    use super::*;
    use crate::{
        keys::rules::Rules,
        plan::samples::{case, keys, me, view},
    };

    #[test]
    fn who_is_not_ready_and_has_no_agent_is_named() {
        let (me, rules) = (me(&[1]), Rules::default());
        for (members, has_agent, named) in [
            ("1+ 2+ 3+", false, vec![]),
            ("1- 2+ 3+", false, vec![]), // this host's own
            ("1+ 2- 3.", false, vec![2, 3]),
            ("1+ 2- 3+ 4?", false, vec![2]),
            ("1+ 2- 3~", true, vec![3]),
        ] {
            let (keys, view) = (keys(None, has_agent), view(members));
            let expected: Vec<_> = named.into_iter().map(|id| Warning::Alone { member: MemberId(id) }).collect();
            assert_eq!(alone(&case(&me, &rules, &keys, &view)), expected, "{members}, an agent of 2: {has_agent}");
        }
    }
}
