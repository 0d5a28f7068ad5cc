//! What is known to hurt of the releases alone, before the first member is stopped (`hazards/`). It is known of etcd; other programs
//! that speak its API are asked nothing of it.

use proto::Release;

use crate::{
    hazards::{self, Act},
    observe::view::Member,
    plan::{Case, Next, Verb, hazard::Hazard, refusal::Refusal, warning::Warning},
};

pub(super) fn known_of_etcd(case: &Case) -> Option<Next> {
    let found = refused(case).find(|(hazard, _)| !is_accepted(case, hazard.id));
    let (hazard, members) = found?;
    let members = members.iter().map(|member| member.id).collect();
    Some(Next::Refuse(Refusal::Hazard(Hazard::Known { id: hazard.id, members })))
}

/// What was accepted, and what is good to know: by the oldest release that is there.
pub(super) fn told(case: &Case) -> Vec<Warning> {
    let mut told: Vec<_> = refused(case)
        .filter(|(hazard, _)| is_accepted(case, hazard.id))
        .map(|(hazard, _)| Warning::Accepted { id: hazard.id })
        .collect();
    let oldest = those_to_go(case).filter_map(Member::release).min();
    if let (Some(from), Some(to)) = (oldest, target(case)) {
        let warned_of = hazards::all().filter(|hazard| hazard.calls_for(Act::Warn, from, to));
        let ids: Vec<_> = warned_of.map(|hazard| hazard.id).collect();
        if !ids.is_empty() {
            told.push(Warning::Known { ids, from: from.clone(), to: to.clone() });
        }
    }
    told
}

/// What a run is refused for, and by whom.
fn refused<'a>(case: &'a Case) -> impl Iterator<Item = (&'static hazards::Hazard, Vec<&'a Member>)> {
    hazards::all().filter_map(|hazard| {
        let to = target(case)?;
        let is_refused = |from| hazard.calls_for(Act::Refuse, from, to);
        let members: Vec<_> = those_to_go(case).filter(|member| member.release().is_some_and(is_refused)).collect();
        (!members.is_empty()).then_some((hazard, members))
    })
}

fn is_accepted(case: &Case, id: &str) -> bool {
    case.me.intent.accepted_hazards.contains(id)
}

fn target<'a>(case: &'a Case) -> Option<&'a Release> {
    case.me.intent.change.to().filter(|_| case.me.verb != Verb::Rollback)
}

/// Members of etcd's own that do not run the target yet.
fn those_to_go<'a>(case: &'a Case) -> impl Iterator<Item = &'a Member> {
    let is_etcd = |member: &&Member| case.evidence.is_some_and(|evidence| evidence.etcd.contains(&member.id));
    let goes = |member: &&Member| member.release().is_some_and(|release| Some(release) != target(case));
    case.view.members.iter().filter(is_etcd).filter(goes)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proto::MemberId;

    use super::*;
    use crate::{
        keys::{Intent, Keys, rules::Rules},
        observe::evidence::Evidence,
        plan::{
            Me,
            samples::{case, intent, me, view, with_release},
        },
    };

    #[test]
    fn releases_that_are_known_to_hurt_are_refused_unless_accepted_and_others_told() {
        for (releases, to, is_etcd, accepted, refused, told) in [
            (["3.5.33", "3.5.33", "3.5.33"], "3.6.14", true, "", None, vec![]),
            (
                ["3.5.25", "3.5.33", "3.5.25"],
                "3.6.14",
                true,
                "",
                Some(("floor-36", vec![1, 3])),
                vec!["stale-read-hand-over"],
            ),
            (["3.5.25", "3.6.14", "3.6.14"], "3.6.14", true, "", Some(("floor-36", vec![1])), vec![]),
            (["3.5.25", "3.5.25", "3.5.25"], "3.6.14", true, "floor-36", None, vec!["floor-36"]),
            (["3.5.25", "3.5.25", "3.5.25"], "3.6.14", false, "", None, vec![]), // the bundled node
            (
                ["3.5.33", "3.5.33", "3.5.33"],
                "3.6.3",
                true,
                "",
                Some(("target-36-floor", vec![1, 2, 3])),
                vec!["memory-36"],
            ),
            (["3.6.10", "3.6.14", "3.6.14"], "3.7.1", true, "", Some(("floor-37", vec![1])), vec![]),
            (["3.6.14", "3.6.14", "3.6.14"], "3.7.1", true, "", None, vec![]),
            (
                ["3.4.45", "3.4.45", "3.4.45"],
                "3.5.0",
                true,
                "",
                Some(("zombie-35", vec![1, 2, 3])),
                vec!["35-inconsistent"],
            ),
            (["3.4.45", "3.4.45", "3.4.45"], "3.5.33", true, "", None, vec![]),
        ] {
            let mut seen = view("1+ 2+ 3+");
            releases.iter().enumerate().for_each(|(at, release)| with_release(&mut seen, at, release));
            let accepted_hazards = accepted.split_whitespace().map(ToOwned::to_owned).collect();
            let intent = Arc::new(Intent { accepted_hazards, ..intent(">=3.4, <3.8", to) });
            let (me, rules, keys) = (Me { intent, ..me(&[1]) }, Rules::default(), Keys::default());
            let etcd = [1, 2, 3].into_iter().filter(|_| is_etcd).map(MemberId).collect();
            let evidence = Some(&Evidence { etcd, ..Evidence::default() });
            let case = Case { evidence, ..case(&me, &rules, &keys, &seen) };
            let refusal = refused.map(|(id, members): (_, Vec<u64>)| {
                let members = members.into_iter().map(MemberId).collect();
                Next::Refuse(Refusal::Hazard(Hazard::Known { id, members }))
            });
            assert_eq!(known_of_etcd(&case), refusal, "{releases:?} to {to}");
            let said: Vec<_> = super::told(&case)
                .into_iter()
                .flat_map(|warning| match warning {
                    Warning::Accepted { id } => vec![id],
                    Warning::Known { ids, .. } => ids,
                    other => panic!("{other:?}"),
                })
                .collect();
            assert!(told.iter().all(|id| said.contains(id)), "{releases:?} to {to}: {said:?}");
            assert!(is_etcd || said.is_empty(), "{said:?}");
        }
    }
}
