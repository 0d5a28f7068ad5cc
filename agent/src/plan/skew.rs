//! Version rules: what leader and members may run while this run stands, and that no minor is left out.
//!
//! A member that did not answer is no matter of versions: the quorum rule speaks of it. Source:
//! ARCHITECTURE.md, I-4; etcd's upgrade guides ("one minor at a time").

use proto::Release;

use super::refusal::Refusal;
use crate::{observe::view::ClusterView, rollout::keys::Intent};

/// The leader, then a member, outside what the change allows.
pub(super) fn skew(intent: &Intent, view: &ClusterView) -> Option<Refusal> {
    let Some(leader) = view.leader() else { return Some(Refusal::NoLeader) };
    let kind = intent.change.kind();
    let (from, to) = kind.releases()?;
    let allowed = |release: &Release| release == to || from.matches(&release.0);
    if let Some(release) = leader.release().filter(|release| !allowed(release)) {
        return Some(Refusal::LeaderVersion { member: leader.id, release: release.clone() });
    }
    view.members.iter().find_map(|member| match member.release()? {
        release if !allowed(release) => Some(Refusal::MemberVersion { member: member.id, release: release.clone() }),
        release if kind.is_one_step_from(release) => None,
        release => Some(Refusal::SkipsMinor { member: member.id, release: release.clone() }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        observe::view::Leader,
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
    fn no_leader_is_never_a_wrong_version() {
        let mut view = view("1+ 2+ 3+");
        view.leader = Leader::Unknown;
        assert_eq!(skew(&intent(">=3.4, <3.5", "3.5.30"), &view), Some(Refusal::NoLeader));
    }
}
