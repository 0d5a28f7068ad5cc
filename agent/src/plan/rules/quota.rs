//! A database near its quota: a member that catches up needs room, and a full one raises an alarm under which etcd takes no
//! writes (etcd documentation, "Space quota").

use std::cmp::Reverse;

use crate::{
    observe::view::Member,
    plan::{Case, Next, hazard::Hazard, refusal::Refusal, warning::Warning},
};

/// Above so many percent it is told.
const NEAR: u64 = 80;
/// Above so many percent no run begins.
const FULL: u64 = 95;

pub(super) fn quota(case: &Case) -> Option<Next> {
    let (hazard, percent) = fullest(case)?;
    (percent > FULL).then_some(Next::Refuse(Refusal::Hazard(hazard)))
}

/// While a run stands nobody is refused for it any more.
pub(super) fn near_quota(case: &Case) -> Vec<Warning> {
    let is_told = |percent| percent > NEAR && (percent <= FULL || case.current_run().is_some());
    let found = fullest(case).filter(|(_, percent)| is_told(*percent));
    found.map(|(hazard, _)| Warning::Hazard(hazard)).into_iter().collect()
}

/// The member that has least room left; whoever does not say its quota is not judged.
fn fullest(case: &Case) -> Option<(Hazard, u64)> {
    let used = |member: &Member| {
        let report = member.report()?;
        let quota = report.quota_bytes.or_else(|| case.evidence?.quotas.get(&member.id).copied())?;
        let percent = u64::try_from(report.db_bytes).ok()?.saturating_mul(100).checked_div(quota)?;
        Some((Hazard::Quota { member: member.id, percent }, percent))
    };
    case.view.members.iter().filter_map(used).min_by_key(|(_, percent)| Reverse(*percent))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proto::MemberId;

    use super::*;
    use crate::{
        keys::{Keys, rules::Rules},
        observe::evidence::Evidence,
        plan::samples::{self, me, view, with_database},
    };

    #[test]
    fn a_database_near_its_quota_is_told_and_a_full_one_refused() {
        // What members 1 and 2 use, of which quota by their own word; and of 1 by its metrics.
        for (first, second, metrics, told, refused) in [
            ((80, Some(100)), (1, Some(100)), None, None, false),
            ((81, Some(100)), (1, Some(100)), None, Some((1, 81)), false),
            ((95, Some(100)), (1, Some(100)), None, Some((1, 95)), false),
            ((96, Some(100)), (1, Some(100)), None, Some((1, 96)), true),
            ((90, Some(100)), (97, Some(100)), None, Some((2, 97)), true),
            ((96, None), (1, None), None, None, false), // unknown says nothing
            ((96, None), (1, None), Some(100), Some((1, 96)), true),
            ((96, Some(200)), (1, None), Some(100), None, false), // its own word first
            ((96, Some(0)), (1, None), None, None, false),
            ((-1, Some(100)), (1, None), None, None, false),
        ] {
            let (me, rules, keys) = (me(&[1]), Rules::default(), Keys::default());
            let mut view = view("1+ 2+ 3+");
            with_database(&mut view, 0, first);
            with_database(&mut view, 1, second);
            let quotas = metrics.map(|bytes| (MemberId(1), bytes)).into_iter().collect::<BTreeMap<_, _>>();
            let evidence = Some(&Evidence { quotas, ..Evidence::default() });
            let case = Case { evidence, ..samples::case(&me, &rules, &keys, &view) };
            let hazard = told.map(|(member, percent)| Hazard::Quota { member: MemberId(member), percent });
            let warned =
                |is_told| hazard.clone().filter(|_| is_told).map(Warning::Hazard).into_iter().collect::<Vec<_>>();
            assert_eq!(near_quota(&case), warned(!refused), "{first:?} {second:?}");
            let standing = samples::keys(None, true);
            assert_eq!(near_quota(&Case { keys: &standing, ..case }), warned(true), "{first:?} {second:?}");
            let refusal = hazard.filter(|_| refused).map(|hazard| Next::Refuse(Refusal::Hazard(hazard)));
            assert_eq!(quota(&case), refusal, "{first:?} {second:?}");
        }
    }
}
