//! No run from one release to another while a member takes part beside its own release alone.
//!
//! Each follower that is restarted would wait until all the others run its release, and of three the second to wait takes the
//! majority along (node/INVARIANTS.md, N-10).

use proto::MemberId;

use crate::{
    keys::Intent,
    observe::view::{ClusterView, Member},
    plan::{Case, Next, refusal::Refusal},
};

pub(super) fn strict_join(case: &Case) -> Option<Next> {
    let member = strict(&case.me.intent, case.view)?;
    Some(Next::Refuse(Refusal::StrictJoin { member }))
}

/// The first strict member of a cluster that is to get another release.
fn strict(intent: &Intent, view: &ClusterView) -> Option<MemberId> {
    let to = intent.change.kind().target().release?;
    let is_strict =
        |member: &&Member| member.report().and_then(|report| report.join.as_ref()).is_some_and(|join| join.is_strict);
    let is_another = |member: &Member| member.release().is_some_and(|release| release != to);
    // A member that is alone waits for nobody.
    let is_one_of_several = view.members.len() > 1;
    let strict =
        view.members.iter().find(is_strict).filter(|_| is_one_of_several && view.members.iter().any(is_another));
    strict.map(|member| member.id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        keys::{Keys, rules::Rules},
        plan::samples::{self, intent, view, with_join_policy, with_release},
    };

    #[test]
    fn a_strict_member_keeps_its_cluster_at_one_release() {
        for (strict_at, is_strict, releases, refused) in [
            (1, true, ["3.4.23", "3.4.23", "3.4.23"], Some(MemberId(2))),
            (1, true, ["3.5.30", "3.4.23", "3.4.23"], Some(MemberId(2))),
            (1, true, ["3.5.30", "3.5.30", "3.5.30"], None), // nothing changes any more
            (1, false, ["3.4.23", "3.4.23", "3.4.23"], None),
        ] {
            let mut view = view("1* 2+ 3+");
            for (at, release) in releases.iter().enumerate() {
                with_release(&mut view, at, release);
            }
            assert_eq!(strict(&intent(">=3.4, <3.5", "3.5.30"), &view), None, "nobody tells");
            with_join_policy(&mut view, strict_at, is_strict);
            assert_eq!(strict(&intent(">=3.4, <3.5", "3.5.30"), &view), refused, "{releases:?} {is_strict}");
        }
    }

    /// Downtime brings nobody in: who waits is not ready, and the next one is not restarted.
    #[test]
    fn downtime_that_is_allowed_changes_nothing_and_a_member_alone_waits_for_nobody() {
        for (members, is_refused) in [("1* 2+ 3+", true), ("1* 2+", true), ("1*", false)] {
            let mut view = view(members);
            with_join_policy(&mut view, 0, true);
            let (mut me, rules, keys) = (samples::me(&[1]), Rules::default(), Keys::default());
            me.intent = intent(">=3.4, <3.5", "3.5.30").into();
            for allow_downtime in [false, true] {
                me.allow_downtime = allow_downtime;
                assert_eq!(strict_join(&samples::case(&me, &rules, &keys, &view)).is_some(), is_refused, "{members}");
            }
        }
    }
}
