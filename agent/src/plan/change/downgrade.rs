//! Every member to an older release. What it needs before any member goes: the cluster version lowered, and each member's
//! own data made fit for the lower release. On the way back it is cancelled first, and the version rises again once nobody
//! is lowered any more.
//!
//! Looked at, never validated twice: once it is under way the cluster answers that its target is none (etcd,
//! `DowngradeValidate`). Source: etcd's downgrade guides; KEP-4647, "Cluster Online Downgrade".

use proto::{ClusterVersion, Release};
use semver::VersionReq;

use super::{Kind, is_at_release, is_one_step_up, parts_of, same_seats};
use crate::{
    journal::restart::Direction,
    keys::change::Downgrade,
    observe::view::{ClusterView, Member, Role},
    plan::{
        Case, Next, Verb,
        refusal::{Refusal, Wait},
        target::{self, Target},
    },
};

impl Kind for Downgrade {
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
        is_one_step_up(&self.to, release)
    }

    fn hindrance(&self, _: &ClusterView) -> Option<Refusal> {
        None
    }

    /// Members of several minors, which an upgrade that has not ended leaves, and a learner, which may become a voter on
    /// the way.
    fn unready(&self, view: &ClusterView) -> Option<Refusal> {
        let target = self.to.cluster_version();
        if !target::changes_minor_to(&self.to, view) || view.downgrade() == Some(target) {
            return None;
        }
        let is_low = |member: &&Member| member.release().is_some_and(|release| release.cluster_version() == target);
        let mixed = view.members.iter().find(is_low);
        let mixed = mixed.and_then(|one| Some(Refusal::Mixed { member: one.id, release: one.release()?.clone() }));
        let mut learners = view.members.iter().filter(|member| member.role == Role::Learner);
        mixed.or_else(|| learners.next().map(|one| Refusal::Learner { member: one.id }))
    }

    /// Enables it, and waits for what follows of that.
    fn before_members(&self, case: &Case) -> Option<Next> {
        let target =
            self.target(case).filter(|_| case.current_run().is_some() && case.direction() == Direction::Forward)?;
        let under_way = case.view.downgrade();
        // A version that nothing holds where it is may rise at any moment.
        let is_held =
            under_way.is_some() || case.view.reports().any(|report| report.release.cluster_version() == target);
        let is_lowered = is_held && case.view.reports().any(|report| report.cluster_version == Some(target));
        match under_way {
            Some(other) if other != target => Some(Next::Refuse(Refusal::GoingDown { target: other })),
            _ if is_lowered => None,
            None => Some(Next::Downgrade(Some(target))),
            // To enable it twice does no harm, and nobody waits for what one member made up.
            Some(_) if most_deny_it(case.view, target) => Some(Next::Downgrade(Some(target))),
            Some(_) => {
                let holds =
                    |member: &&Member| member.report().and_then(|report| report.cluster_version) == Some(target);
                let silent = case.view.members.iter().find(|member| member.report().is_none());
                let member = silent.or_else(|| case.view.members.iter().find(|member| !holds(member)))?.id;
                Some(Next::Wait(Wait::Lowering { member, target }))
            }
        }
    }

    /// It is cancelled first of all: where no member has gone yet, every one is where it should be, and nothing but this
    /// makes the version rise again. Who has the baton may be enabling it, by what was so before the run turned.
    fn before_members_go_back(&self, case: &Case) -> Option<Next> {
        self.target(case).filter(|_| case.direction() == Direction::Back)?;
        let another = case.keys.baton.as_ref().map(|baton| baton.value.host).filter(|host| *host != case.me.host);
        match (case.view.downgrade(), another) {
            (Some(_), _) => case.rules.back_is_cancelled.then_some(Next::Downgrade(None)),
            (None, Some(host)) => case.rules.back_waits_for_the_baton.then_some(Next::Wait(Wait::Baton { host })),
            (None, None) => None,
        }
    }

    /// A member is stopped only when its own data can be read by what is started in its place.
    fn before_member(&self, case: &Case, member: &Member) -> Option<Next> {
        let is_asked =
            case.direction() == Direction::Forward && case.current_run().is_some() && case.rules.data_is_fit_to_go;
        let target = self.target(case).filter(|_| is_asked)?;
        let found = member.report().and_then(|report| report.storage_version);
        (found != Some(target)).then_some(Next::Wait(Wait::Storage { member: member.id, target }))
    }

    /// What is lowered starts on the higher release whatever the version is.
    fn old_starts_below(&self) -> Option<ClusterVersion> {
        None
    }

    /// Cancelled, the version rises again by itself, to what the members run.
    fn settled_version(&self, view: &ClusterView, back: bool) -> Option<ClusterVersion> {
        match back {
            true => view.started().next()?.release().map(Release::cluster_version),
            false => Some(self.to.cluster_version()),
        }
    }

    fn lowers_to(&self) -> Option<ClusterVersion> {
        Some(self.to.cluster_version())
    }

    fn refuses(&self, _: Verb) -> Option<Refusal> {
        None
    }

    fn phrase(&self) -> String {
        format!("a downgrade to {}", self.to)
    }

    fn parts(&self) -> Vec<(&'static str, String)> {
        parts_of(&self.from, &self.to)
    }
}

impl Downgrade {
    /// Where a downgrade of a minor leads to; within a minor nothing is lowered.
    fn target(&self, case: &Case) -> Option<ClusterVersion> {
        case.changes_minor().then(|| self.to.cluster_version())
    }
}

/// Whether, of the members whose release tells of a downgrade, more say that none is enabled.
fn most_deny_it(view: &ClusterView, target: ClusterVersion) -> bool {
    let tells = view.reports().filter(|report| report.release.cluster_version() > target);
    let (confirm, deny): (Vec<_>, Vec<_>) = tells.partition(|report| report.downgrade.is_some());
    deny.len() > confirm.len()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proto::{MemberId, Revision};

    use super::*;
    use crate::{
        keys::{At, Baton, Intent, Keys, ProcessId, Run, RunId, RunState, TakeId, change::Change, rules::Rules},
        observe::view::Answer,
        plan::{Me, samples},
        unknown::Unknown,
    };

    const V3_5: ClusterVersion = ClusterVersion { major: 3, minor: 5 };

    /// What members say: release, cluster version, storage version, and where a downgrade that is enabled leads to, each
    /// `-` for none; a member of one word is silent.
    fn view(members: [&str; 3]) -> ClusterView {
        let mut view = samples::view("1+ 2+ 3+");
        for (member, said) in view.members.iter_mut().zip(members) {
            let words: Vec<_> = said.split(' ').collect();
            match (&mut member.answer, &words[..]) {
                (Answer::Reported(report), [release, version, storage, downgrade]) => {
                    report.release = release.parse().unwrap();
                    report.cluster_version = version.parse().ok();
                    report.storage_version = storage.parse().ok();
                    report.downgrade = downgrade.parse().ok();
                }
                (answer, _) => *answer = Answer::Silent { reason: "gone".into() },
            }
        }
        view
    }

    fn asked<T>(members: [&str; 3], state: RunState, to: &str, ask: impl FnOnce(&Case, &ClusterView) -> T) -> T {
        let change = Change::Downgrade(Downgrade { from: ">=3.6, <3.7".parse().unwrap(), to: to.parse().unwrap() });
        let intent = Arc::new(Intent { change, ..samples::intent(">=3.5, <3.6", "3.6.14") });
        let me = Me { intent: intent.clone(), ..samples::me(&[1]) };
        let changes_minor = to.starts_with("3.5");
        let run = Run {
            id: RunId(1),
            intent,
            state,
            changes_minor,
            done: Vec::new(),
            begun_by: None,
            membership: None,
            backup: None,
            pause: None,
            unknown: Unknown::default(),
        };
        let run = Some(At { created: Revision(3), modified: Revision(3), value: run });
        let (keys, view, rules) = (Keys { run, ..Keys::default() }, view(members), Rules::default());
        let (me, keys, rules) = (&me, &keys, &rules);
        let case = samples::case(me, rules, keys, &view);
        ask(&case, &view)
    }

    #[test]
    fn it_is_enabled_once_and_waited_for() {
        let high = "3.6.14 3.6 3.6 -";
        let (enabled, lowered, old) = ("3.6.14 3.6 3.6 3.5", "3.6.14 3.5 3.5 3.5", "3.5.30 3.5 - -");
        let waits = |member| Some(Next::Wait(Wait::Lowering { member: MemberId(member), target: V3_5 }));
        let elsewhere = Some(Next::Refuse(Refusal::GoingDown { target: ClusterVersion { major: 3, minor: 4 } }));
        for (members, expected) in [
            ([high, high, high], Some(Next::Downgrade(Some(V3_5)))),
            ([high, enabled, high], Some(Next::Downgrade(Some(V3_5)))), // it alone says so
            ([high, enabled, enabled], waits(1)),
            ([high, enabled, "silent"], waits(3)),
            ([enabled, "silent", enabled], waits(2)), // it is what keeps the version up
            ([lowered, lowered, lowered], None),
            ([lowered, enabled, lowered], None), // it has not heard yet; its own data is asked for apart
            ([old, lowered, lowered], None),
            ([old, "3.6.14 3.5 3.5 -", "3.6.14 3.5 3.5 -"], None), // cancelled by hand, and held down by the first
            (["3.6.14 3.5 3.5 -"; 3], Some(Next::Downgrade(Some(V3_5)))), // about to rise
            ([high, high, "3.6.14 3.6 3.6 3.4"], elsewhere),
        ] {
            let found = asked(members, RunState::Rolling, "3.5.30", |case, _| case.kind().before_members(case));
            assert_eq!(found, expected, "{members:?}");
        }
    }

    #[test]
    fn it_does_not_begin_with_several_minors_or_a_learner() {
        let (high, enabled, old) = ("3.6.14 3.6 3.6 -", "3.6.14 3.6 3.6 3.5", "3.5.30 3.5 - -");
        let mixed = Refusal::Mixed { member: MemberId(2), release: "3.5.30".parse().unwrap() };
        for (members, expected) in [
            ([high, high, high], None),
            ([high, old, high], Some(mixed)),
            ([enabled, old, enabled], None), // one that is under way goes on
        ] {
            let found = asked(members, RunState::Rolling, "3.5.30", |case, view| case.kind().unready(view));
            assert_eq!(found, expected, "{members:?}");
        }
        let found = asked([high; 3], RunState::Rolling, "3.5.30", |case, view| {
            let mut view = view.clone();
            view.members[2].role = Role::Learner;
            case.kind().unready(&view)
        });
        assert_eq!(found, Some(Refusal::Learner { member: MemberId(3) }));
    }

    #[test]
    fn the_way_back_begins_with_its_end() {
        let (lowered, old) = ("3.6.14 3.5 3.5 3.5", "3.5.30 3.5 - -");
        for (members, expected) in [
            ([old, lowered, lowered], Some(Next::Downgrade(None))),
            ([old, "3.6.14 3.5 3.5 -", "3.6.14 3.5 3.5 -"], None),
        ] {
            let found = asked(members, RunState::RollingBack, "3.5.30", |case, _| {
                (case.kind().before_members_go_back(case), case.kind().before_members(case))
            });
            assert_eq!(found, (expected, None), "{members:?}");
        }
    }

    #[test]
    fn the_way_back_waits_for_whoever_may_be_enabling_one() {
        let high = "3.6.14 3.6 3.6 -";
        let (mine, another) = (samples::me(&[1]).host, samples::me(&[2]).host);
        assert_ne!(mine, another);
        for (holder, expected) in [(mine, None), (another, Some(Next::Wait(Wait::Baton { host: another })))] {
            let found = asked([high; 3], RunState::RollingBack, "3.5.30", |case, _| {
                let process = ProcessId { boot_id: 1, pid_namespace: 1, pid: 1, start_time: 1 };
                let value =
                    Baton { host: holder, process, host_name: "".into(), take: TakeId(1), unknown: Unknown::default() };
                let baton = Some(At { created: Revision(4), modified: Revision(4), value });
                case.kind().before_members_go_back(&Case { keys: &Keys { baton, ..case.keys.clone() }, ..*case })
            });
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn within_a_minor_nothing_is_lowered() {
        let found = asked(["3.6.14 3.6 3.6 -"; 3], RunState::Rolling, "3.6.13", |case, view| {
            (case.kind().before_members(case), case.kind().before_member(case, &view.members[0]))
        });
        assert_eq!(found, (None, None));
    }

    #[test]
    fn a_member_goes_when_its_own_data_is_fit() {
        for (said, is_fit) in [
            ("3.6.14 3.5 3.5 3.5", true),
            ("3.6.14 3.5 3.6 3.5", false),
            ("3.6.14 3.5 - 3.5", false),
            ("silent", false),
        ] {
            let members = [said, "3.6.14 3.5 3.5 3.5", "3.6.14 3.5 3.5 3.5"];
            let found = asked(members, RunState::Rolling, "3.5.30", |case, view| {
                case.kind().before_member(case, &view.members[0])
            });
            assert_eq!(found.is_none(), is_fit, "{said}");
            let back = asked(members, RunState::RollingBack, "3.5.30", |case, view| {
                case.kind().before_member(case, &view.members[0])
            });
            assert_eq!(back, None, "it goes back whatever it holds");
        }
    }
}
