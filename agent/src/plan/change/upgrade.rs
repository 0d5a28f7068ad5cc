//! Every member to a newer release. The cluster version rises by itself once the last member runs it (etcd,
//! `server/etcdserver/version`).

use proto::{ClusterVersion, Release};
use semver::VersionReq;

use super::{Kind, common_version, is_at_release, is_one_step_up, parts_of, same_seats};
use crate::{
    journal::restart::Direction,
    keys::change::Upgrade,
    observe::view::{ClusterView, Member},
    plan::{Case, Verb, refusal::Refusal, target::Target},
};

impl Kind for Upgrade {
    fn target(&self) -> Target<'_> {
        same_seats(Some(&self.to))
    }

    fn from(&self) -> Option<&VersionReq> {
        Some(&self.from)
    }

    fn is_at(&self, case: &Case, member: &Member, direction: Direction) -> bool {
        is_at_release(case, member, direction, &self.to)
    }

    fn is_one_step_from(&self, release: &Release) -> bool {
        is_one_step_up(release, &self.to)
    }

    /// While a downgrade is enabled no version rises, so an upgrade would wait for ever.
    fn hindrance(&self, view: &ClusterView) -> Option<Refusal> {
        view.downgrade().map(|target| Refusal::GoingDown { target })
    }

    /// An old binary ends at once where the version has risen (etcd, `MustDetectDowngrade`).
    fn old_starts_below(&self) -> Option<ClusterVersion> {
        Some(self.to.cluster_version())
    }

    fn settled_version(&self, view: &ClusterView, back: bool) -> Option<ClusterVersion> {
        if back { common_version(view) } else { Some(self.to.cluster_version()) }
    }

    fn refuses(&self, _: Verb) -> Option<Refusal> {
        None
    }

    fn phrase(&self) -> String {
        format!("an upgrade to {}", self.to)
    }

    fn parts(&self) -> Vec<(&'static str, String)> {
        parts_of(&self.from, &self.to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        keys::{
            Intent,
            change::{Change, Restart},
        },
        observe::view::Answer,
        plan::samples::{intent, view, with_release},
    };

    #[test]
    fn a_minor_left_out_is_refused_though_from_allows_it() {
        let mut view = view("1+ 2+ 3+");
        with_release(&mut view, 2, "3.4.23");
        let found = crate::plan::rules::versions::skew(&intent(">=3.4, <3.6", "3.6.14"), &view);
        assert!(matches!(found, Some(Refusal::SkipsMinor { .. })), "{found:?}");
    }

    #[test]
    fn nothing_rises_while_a_downgrade_is_enabled() {
        let hindrance = |intent: &Intent, view: &ClusterView| intent.change.kind().hindrance(view);
        let mut view = view("1+ 2+ 3.");
        assert_eq!(hindrance(&intent(">=3.5, <3.6", "3.6.14"), &view), None);
        let target = ClusterVersion { major: 3, minor: 5 };
        let Answer::Reported(report) = &mut view.members[1].answer else { panic!("it answers") };
        report.downgrade = Some(target);
        assert_eq!(hindrance(&intent(">=3.5, <3.6", "3.6.14"), &view), Some(Refusal::GoingDown { target }));
        let change = Change::Restart(Restart { id: "1".into() });
        assert_eq!(hindrance(&Intent { change, ..intent(">=3.5, <3.6", "3.6.14") }, &view), None);
    }
}
