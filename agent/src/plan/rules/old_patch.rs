//! Before the cluster gets gates each member should run the newest 3.5: an older one may lack what the two releases need of
//! each other. Advice, and no refusal (KEP-4647, "Upgrade / Downgrade Strategy"; etcd's guide, "Upgrade etcd from 3.5 to 3.6").

use proto::{ClusterVersion, Release};

use crate::plan::{Case, Verb, warning::Warning};

const OLD: ClusterVersion = ClusterVersion { major: 3, minor: 5 };

/// The newest that this agent has heard of (etcd, `CHANGELOG-3.5.md`, August 2026).
fn newest() -> Release {
    Release::new(3, 5, 33)
}

pub(super) fn old_patch(case: &Case) -> Vec<Warning> {
    let target = case.me.intent.change.kind().target().release.map(Release::cluster_version);
    if case.me.verb == Verb::Rollback || target.is_none_or(|target| target <= OLD) {
        return Vec::new();
    }
    let newest = newest();
    let is_old = |release: &Release| release.cluster_version() == OLD && *release < newest;
    let old = case.view.members.iter().filter(|member| member.release().is_some_and(is_old));
    let members: Vec<_> = old.map(|member| member.id).collect();
    if members.is_empty() { Vec::new() } else { vec![Warning::OldPatch { members, newest }] }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proto::MemberId;

    use super::*;
    use crate::{
        keys::rules::Rules,
        plan::{
            Me,
            samples::{case, intent, keys, me, view, with_release},
        },
    };

    #[test]
    fn a_3_5_below_the_newest_is_named_before_an_upgrade_out_of_it() {
        for (releases, to, verb, named) in [
            (["3.5.30", "3.5.30", "3.5.30"], "3.6.14", Verb::Run, vec![1, 2, 3]),
            (["3.5.33", "3.5.16", "3.5.33"], "3.6.14", Verb::Run, vec![2]),
            (["3.6.14", "3.5.0", "3.5.40"], "3.6.14", Verb::Run, vec![2]),
            (["3.5.33", "3.5.33", "3.5.40"], "3.6.14", Verb::Run, vec![]),
            (["3.5.16", "3.5.16", "3.5.16"], "3.5.30", Verb::Run, vec![]), // that is on the way to it
            (["3.6.0", "3.6.0", "3.6.0"], "3.7.1", Verb::Run, vec![]),
            (["3.5.16", "3.5.16", "3.6.14"], "3.6.14", Verb::Rollback, vec![]),
        ] {
            let mut seen = view("1+ 2+ 3+");
            releases.iter().enumerate().for_each(|(at, release)| with_release(&mut seen, at, release));
            let me = Me { intent: Arc::new(intent(">=3.5, <3.7", to)), verb, ..me(&[1]) };
            let (rules, keys) = (Rules::default(), keys(None, false));
            let members: Vec<_> = named.into_iter().map(MemberId).collect();
            let expected: Vec<_> =
                (!members.is_empty()).then(|| Warning::OldPatch { members, newest: newest() }).into_iter().collect();
            assert_eq!(old_patch(&case(&me, &rules, &keys, &seen)), expected, "{releases:?} to {to}");
        }
    }
}
