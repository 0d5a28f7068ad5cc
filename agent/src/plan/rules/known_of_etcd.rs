//! What is known to hurt of the releases alone, before the first member is stopped (`hazards/`). It is known of etcd; other programs
//! that speak its API are asked nothing of it.

use proto::Release;

use crate::{
    hazards::{self, Act},
    keys::change::Change,
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

/// What a run is refused for, and by whom. What waits at a later hop is refused before the first: nobody is left between two releases.
fn refused<'a>(case: &'a Case) -> impl Iterator<Item = (&'static hazards::Hazard, Vec<&'a Member>)> {
    let later = later(case);
    hazards::all().filter_map(move |hazard| {
        let is_refused = |(from, to): (&Release, &Release)| hazard.calls_for(Act::Refuse, from, to);
        let is_now = |member: &&Member| member.release().zip(target(case)).is_some_and(is_refused);
        let is_later = later.iter().copied().any(is_refused);
        let members: Vec<_> = those_to_go(case).filter(|member| is_later || is_now(member)).collect();
        (!members.is_empty()).then_some((hazard, members))
    })
}

/// The hops after the one that is gone now: which release follows which.
fn later<'a>(case: &'a Case) -> Vec<(&'a Release, &'a Release)> {
    let Some(hops) = case.me.intent.hops.as_ref().filter(|_| case.me.verb != Verb::Rollback) else { return Vec::new() };
    let ahead = hops.changes.iter().skip_while(|change| **change != case.me.intent.change);
    let releases: Vec<_> = ahead.filter_map(Change::to).collect();
    releases.windows(2).filter_map(|pair| Some((*pair.first()?, *pair.last()?))).collect()
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
        keys::{
            Intent, Keys,
            change::{Change, Upgrade},
            hops::Hops,
            rules::Rules,
        },
        observe::evidence::Evidence,
        plan::{
            Me,
            samples::{case, intent, me, view, with_release},
        },
    };

    /// What waits at a later hop.
    #[test]
    fn a_way_is_refused_for_any_of_its_hops() {
        for (way, refused) in [
            ("3.5.33 3.6.14 3.7.1", None),
            ("3.5.25 3.6.14", Some("floor-36")),
            ("3.5.33 3.6.3", Some("target-36-floor")),
            ("3.5.33 3.6.10 3.7.1", Some("floor-37")),
        ] {
            let up = |to: &str| Change::Upgrade(Upgrade { from: "*".parse().unwrap(), to: to.parse().unwrap() });
            let changes: Vec<_> = way.split_whitespace().map(up).collect();
            let first = changes[0].clone();
            let hops = Some(Arc::new(Hops { changes, gates: Default::default() }));
            let intent = Arc::new(Intent { hops, ..intent(">=3.4, <3.5", "3.5.33") }.at(&first));
            let mut seen = view("1+ 2+ 3+");
            (0..3).for_each(|at| with_release(&mut seen, at, "3.4.45"));
            let (me, rules, keys) = (Me { intent, ..me(&[1]) }, Rules::default(), Keys::default());
            let evidence = Evidence { etcd: [1, 2, 3].map(MemberId).into(), ..Evidence::default() };
            let case = Case { evidence: Some(&evidence), ..case(&me, &rules, &keys, &seen) };
            let found = known_of_etcd(&case).map(|next| match next {
                Next::Refuse(Refusal::Hazard(Hazard::Known { id, .. })) => id,
                other => panic!("{other:?}"),
            });
            assert_eq!(found, refused, "{way}");
        }
    }

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
