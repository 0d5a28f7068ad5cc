//! What ends by itself is waited for before a member is stopped: a defragmentation or a snapshot anywhere, for the stop could
//! make a member catch up meanwhile (etcd#20271); and this member's own compaction (etcd#17780).

use crate::{
    observe::{activity::Activity, view::Member},
    plan::{Case, Next, refusal::Wait},
};

pub(super) fn busy(case: &Case, pick: &Member) -> Option<Next> {
    let goes = |member: &Member| member.id == pick.id;
    let hurts = |member: &Member, activity: Activity| match activity {
        Activity::Defragmentation | Activity::Snapshot => true,
        Activity::Compaction => goes(member),
    };
    let found = case.view.members.iter().find_map(|member| {
        let mut activities = member.activities.iter().copied();
        activities.find(|activity| hurts(member, *activity)).map(|activity| (member.id, activity))
    });
    found.map(|(member, activity)| Next::Wait(Wait::Activity { member, activity }))
}

#[cfg(test)]
mod tests {
    use proto::MemberId;

    use super::*;
    use crate::{
        keys::{Keys, rules::Rules},
        observe::view::Answer,
        plan::samples::{case, me, view},
    };

    #[test]
    fn nobody_goes_in_the_middle_of_what_ends_by_itself() {
        use Activity::{Compaction, Defragmentation, Snapshot};
        for (activities, expected) in [
            (vec![], None),
            (vec![(2, Defragmentation)], Some((2, Defragmentation))),
            (vec![(1, Defragmentation)], Some((1, Defragmentation))),
            (vec![(3, Snapshot)], Some((3, Snapshot))),
            (vec![(2, Compaction)], None), // it goes on while member 1 is away
            (vec![(1, Compaction)], Some((1, Compaction))),
            (vec![(2, Compaction), (3, Snapshot)], Some((3, Snapshot))),
        ] {
            let (me, rules, keys, mut seen) = (me(&[1]), Rules::default(), Keys::default(), view("1+ 2+ 3+"));
            for (member, activity) in &activities {
                seen.members[member - 1].activities.insert(*activity);
            }
            let found = busy(&case(&me, &rules, &keys, &seen), &seen.members[0]);
            let waits = |(member, activity)| Next::Wait(Wait::Activity { member: MemberId(member), activity });
            assert_eq!(found, expected.map(waits), "{activities:?}");
        }
    }

    /// One that defragments answers nobody: that is no reason to refuse.
    #[test]
    fn a_member_that_is_not_ready_as_it_defragments_is_waited_for() {
        let (me, rules, keys, mut seen) = (me(&[1]), Rules::default(), Keys::default(), view("1+ 2+ 3+"));
        seen.members[1].answer = Answer::Silent { reason: "no answer within 2 s".to_owned() };
        seen.members[1].activities.insert(Activity::Defragmentation);
        let next = crate::plan::next(&case(&me, &rules, &keys, &seen));
        let activity = Activity::Defragmentation;
        assert_eq!(next, Next::Wait(Wait::Activity { member: MemberId(2), activity }));
    }
}
