//! Members that hold different data, before the first of them is stopped. Who meets it may know better (`strategy.accept_hazards`): an
//! upgrade may be what ends it.

use crate::{
    observe::difference::Difference,
    plan::{Case, Next, hazard::Hazard, refusal::Refusal, warning::Warning},
};

pub(super) fn differing(case: &Case) -> Option<Next> {
    let found = found(case).find(|difference| !is_accepted(case, difference))?;
    Some(Next::Refuse(Refusal::Hazard(Hazard::Differs(found.clone()))))
}

pub(super) fn told(case: &Case) -> Vec<Warning> {
    let mut ids: Vec<_> = found(case).filter(|found| is_accepted(case, found)).map(Hazard::of_difference).collect();
    ids.dedup();
    ids.into_iter().map(|id| Warning::Accepted { id }).collect()
}

fn found<'a>(case: &'a Case) -> impl Iterator<Item = &'a Difference> {
    case.evidence.into_iter().flat_map(|evidence| &evidence.differences)
}

fn is_accepted(case: &Case, difference: &Difference) -> bool {
    case.me.intent.accepted_hazards.contains(Hazard::of_difference(difference))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proto::{LogIndex, MemberId, Revision};

    use super::*;
    use crate::{
        keys::{Intent, Keys, rules::Rules},
        observe::evidence::Evidence,
        plan::{
            Me,
            samples::{case, intent, me, view},
        },
    };

    #[test]
    fn no_run_begins_on_members_that_differ_unless_that_is_accepted() {
        let users = Difference::Users { of: vec![(MemberId(1), 4), (MemberId(2), 5)] };
        let revisions = [(MemberId(1), Revision(4)), (MemberId(2), Revision(5))];
        let data = Difference::Revisions { applied: LogIndex(7), of: revisions.to_vec() };
        for (differences, accepted, refused, told) in [
            (vec![], "", None, vec![]),
            (vec![data.clone()], "", Some(&data), vec![]),
            (vec![data.clone()], "users-differ", Some(&data), vec![]),
            (vec![data.clone()], "data-differs", None, vec!["data-differs"]),
            (vec![data.clone(), users.clone()], "data-differs", Some(&users), vec!["data-differs"]),
            (vec![data.clone(), data.clone()], "data-differs", None, vec!["data-differs"]),
        ] {
            let accepted_hazards = accepted.split_whitespace().map(ToOwned::to_owned).collect();
            let intent = Arc::new(Intent { accepted_hazards, ..intent(">=3.4, <3.5", "3.5.33") });
            let (me, rules, keys) = (Me { intent, ..me(&[1]) }, Rules::default(), Keys::default());
            let (seen, evidence) = (view("1+ 2+ 3+"), Evidence { differences, ..Evidence::default() });
            let case = Case { evidence: Some(&evidence), ..case(&me, &rules, &keys, &seen) };
            let refusal = refused.map(|found| Next::Refuse(Refusal::Hazard(Hazard::Differs(found.clone()))));
            assert_eq!(differing(&case), refusal, "{evidence:?} but for {accepted}");
            let warned = told.into_iter().map(|id| Warning::Accepted { id }).collect::<Vec<_>>();
            assert_eq!(super::told(&case), warned, "{evidence:?} but for {accepted}");
        }
    }
}
