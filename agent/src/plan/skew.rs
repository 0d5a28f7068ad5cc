//! Version rules: what leader and members may run while this run stands, and that no minor is left out.
//!
//! A member that did not answer is no matter of versions: the quorum rule speaks of it. Source:
//! ARCHITECTURE.md, I-4; etcd's upgrade guides ("one minor at a time").

use proto::Release;

use super::refusal::Refusal;
use crate::{
    observe::view::ClusterView,
    rollout::keys::{Change, Intent},
};

/// The leader, then a member, outside what the change allows.
pub(super) fn skew(intent: &Intent, view: &ClusterView) -> Option<Refusal> {
    let Some(leader) = view.leader() else { return Some(Refusal::NoLeader) };
    let (from, to) = intent.change.releases()?;
    let allowed = |release: &Release| release == to || from.matches(&release.0);
    if let Some(release) = leader.release().filter(|release| !allowed(release)) {
        return Some(Refusal::LeaderVersion { member: leader.id, release: release.clone() });
    }
    view.members.iter().find_map(|member| match member.release()? {
        release if !allowed(release) => Some(Refusal::MemberVersion { member: member.id, release: release.clone() }),
        release if is_one_step(&intent.change, release, to) => None,
        release => Some(Refusal::SkipsMinor { member: member.id, release: release.clone() }),
    })
}

/// While a downgrade is enabled no version rises (etcd, `server/etcdserver/version`), so an upgrade would wait for ever.
pub(super) fn going_down(intent: &Intent, view: &ClusterView) -> Option<Refusal> {
    matches!(intent.change, Change::Upgrade { .. }).then_some(())?;
    let target = view.members.iter().find_map(|member| member.report()?.downgrade)?;
    Some(Refusal::GoingDown { target })
}

fn is_one_step(change: &Change, from: &Release, to: &Release) -> bool {
    let (lower, higher) = if change.is_down() { (to, from) } else { (from, to) };
    lower.0.major == higher.0.major && (lower.0.minor == higher.0.minor || lower.0.minor + 1 == higher.0.minor)
}

#[cfg(test)]
mod tests {
    use proto::ClusterVersion;

    use super::*;
    use crate::{
        observe::view::{Answer, Leader},
        plan::samples::{intent, view, with_release},
    };

    #[test]
    fn leader_and_members_stay_within_from_and_to() {
        for (releases, refused) in [
            (["3.4.23", "3.4.23", "3.4.23"], ""),
            (["3.5.30", "3.4.23", "3.5.30"], ""),
            (["3.5.29", "3.4.23", "3.4.23"], "leader"),
            (["3.4.23", "3.5.29", "3.4.23"], "member"),
            (["3.6.0", "3.4.23", "3.4.23"], "leader"),
            (["3.4.23", "3.4.23", "3.3.1"], "member"),
        ] {
            let mut view = view("1* 2+ 3+");
            for (at, release) in releases.iter().enumerate() {
                with_release(&mut view, at, release);
            }
            let found = match skew(&intent(">=3.4, <3.5", "3.5.30"), &view) {
                None => "",
                Some(Refusal::LeaderVersion { .. }) => "leader",
                Some(Refusal::MemberVersion { .. }) => "member",
                Some(other) => panic!("{other:?}"),
            };
            assert_eq!(found, refused, "{releases:?}");
        }
    }

    #[test]
    fn a_minor_left_out_is_refused_though_from_allows_it() {
        let mut view = view("1+ 2+ 3+");
        with_release(&mut view, 2, "3.4.23");
        let found = skew(&intent(">=3.4, <3.6", "3.6.14"), &view);
        assert!(matches!(found, Some(Refusal::SkipsMinor { .. })), "{found:?}");
    }

    #[test]
    fn nothing_rises_while_a_downgrade_is_enabled() {
        let mut view = view("1+ 2+ 3.");
        assert_eq!(going_down(&intent(">=3.5, <3.6", "3.6.14"), &view), None);
        let target = ClusterVersion { major: 3, minor: 5 };
        let Answer::Reported(report) = &mut view.members[1].answer else { panic!("it answers") };
        report.downgrade = Some(target);
        assert_eq!(going_down(&intent(">=3.5, <3.6", "3.6.14"), &view), Some(Refusal::GoingDown { target }));
        let restart = Intent { change: Change::Restart { id: "1".into() }, ..intent(">=3.5, <3.6", "3.6.14") };
        assert_eq!(going_down(&restart, &view), None);
    }

    #[test]
    fn no_leader_is_never_a_wrong_version() {
        let mut view = view("1+ 2+ 3+");
        view.leader = Leader::Unknown;
        assert_eq!(skew(&intent(">=3.4, <3.5", "3.5.30"), &view), Some(Refusal::NoLeader));
    }
}
