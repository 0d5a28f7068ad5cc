//! A member that was added and never started is not counted, and a person must know it: while it is listed the cluster
//! version does not rise (etcd, `decideClusterVersion`).

use crate::plan::{Case, warning::Warning};

pub(super) fn never_started(case: &Case) -> Vec<Warning> {
    // One that was just added is not written down yet, as far as anybody knows.
    let membership = case.current_run().and_then(|run| run.membership.as_ref());
    let is_newcomer = |id| {
        membership.is_some_and(|membership| membership.joins.iter().any(|join| join.member.is_none_or(|one| one == id)))
    };
    let never = case.view.members.iter().filter(|member| member.has_never_started() && !is_newcomer(member.id));
    never.map(|member| Warning::NeverStarted { member: member.id }).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proto::MemberId;

    use super::*;
    use crate::{
        keys::{
            AttemptId, Keys, RunState,
            membership::{Join, Membership, Stage},
            rules::Rules,
        },
        plan::samples::{at, case, host, keys, me, run, view},
    };

    #[test]
    fn only_one_that_never_started_is_named() {
        for (members, named) in
            [("1+ 2+ 3+", vec![]), ("1+ 2- 3.", vec![]), ("1+ 2+ 3l", vec![]), ("1+ 2+ 3+ 4?", vec![4])]
        {
            let (me, rules, keys, view) = (me(&[1]), Rules::default(), keys(None, false), view(members));
            let expected: Vec<_> = named.into_iter().map(|id| Warning::NeverStarted { member: MemberId(id) }).collect();
            assert_eq!(never_started(&case(&me, &rules, &keys, &view)), expected, "{members}");
        }
    }

    #[test]
    fn a_newcomer_on_its_way_is_no_matter_for_a_person() {
        let (me, rules, view) = (me(&[1]), Rules::default(), view("1+ 2+ 3+ 4?"));
        for (member, is_named) in [(None, false), (Some(4), false), (Some(5), true)] {
            let mut run = run(RunState::Rolling);
            let join = Join {
                seat: "m4".into(),
                host: host(4),
                host_name: "h4".into(),
                attempt: AttemptId(1),
                peer_urls: Vec::new(),
                member: member.map(MemberId),
                stage: Stage::Reserved,
            };
            run.membership = Some(Arc::new(Membership { joins: vec![join], ..Membership::default() }));
            let keys = Keys { run: Some(at(run)), ..Keys::default() };
            assert_eq!(!never_started(&case(&me, &rules, &keys, &view)).is_empty(), is_named, "{member:?}");
        }
    }
}
