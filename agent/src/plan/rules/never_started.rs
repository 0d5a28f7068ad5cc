//! A member that was added and never started is not counted, and a person must know it: while it is listed the cluster
//! version does not rise (etcd, `decideClusterVersion`).

use crate::plan::{Case, warning::Warning};

pub(super) fn never_started(case: &Case) -> Vec<Warning> {
    let is_newcomer = |id| case.current_run().is_some_and(|run| run.brings(id));
    let never = case.view.members.iter().filter(|member| member.has_never_started() && !is_newcomer(member.id));
    never.map(|member| Warning::NeverStarted { member: member.id }).collect()
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
    fn only_one_that_never_started_is_named() {
        for (members, named) in
            [("1+ 2+ 3+", vec![]), ("1+ 2- 3.", vec![]), ("1+ 2+ 3l", vec![]), ("1+ 2+ 3+ 4?", vec![4])]
        {
            let (me, rules, keys, view) = (me(&[1]), Rules::default(), keys(None, false), view(members));
            let expected: Vec<_> = named.into_iter().map(|id| Warning::NeverStarted { member: MemberId(id) }).collect();
            assert_eq!(never_started(&case(&me, &rules, &keys, &view)), expected, "{members}");
        }
    }
}
