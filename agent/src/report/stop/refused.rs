//! How the planner's refusals are told. Pure, beside [`crate::report::stop`].

use super::{Context, Stop, hazard, reason::Reason, there, with_own_playbook};
use crate::{
    keys::StepLock,
    observe::{error::DENIED, view::Member},
    plan::{
        hazard::Hazard,
        refusal::{Difference, Refusal},
        replace_run::Obstacle,
    },
    report::{
        names::{Names, printable},
        shown::grants,
    },
    words::typed,
};

/// What keeps a run from being replaced.
pub fn obstacle(obstacle: &Obstacle, names: &Names) -> String {
    match obstacle {
        Obstacle::Down(member) => format!(
            "{} is taken down by the run that stands; let it finish, or abandon that step first",
            names.member(*member)
        ),
        Obstacle::Lost(member) => {
            format!("the step of {} was abandoned, and its host may still wake up", names.member(*member))
        }
        Obstacle::Joining(seat) => format!(
            "{} is on its way into the cluster by the run that stands; end that run with its own playbook, or `agent abandon` it",
            printable(seat)
        ),
        Obstacle::Participant(host) => {
            format!("the agent on {} is at work on the run that stands; stop it first", printable(host))
        }
    }
}

fn difference(Difference { part, standing, wanted }: &Difference) -> String {
    printable(&format!("{part} (there {standing}, in this playbook {wanted})")).to_string()
}

impl Context<'_> {
    pub(crate) fn refused(&self, refusal: &Refusal) -> Stop {
        let name = |member| self.names.member(member);
        match refusal {
            Refusal::Members(refusal) => self.refused_members(refusal),
            Refusal::OtherRun { differs, begun_by, takes_turns } => {
                let differs: Vec<_> = differs.iter().map(difference).collect();
                let begun =
                    begun_by.as_ref().map_or_else(String::new, |host| format!(", begun on {}", printable(host)));
                let message = format!("a run with another intent stands{begun}; it differs in {}", differs.join(", "));
                let left = match takes_turns {
                    true => {
                        "`agent run` waits for its end while agents of other hosts are at work on it; else end it with its own playbook"
                    }
                    false => "correct this playbook, or end that run with its own; `agent run --replace` gives it up",
                };
                self.stop(Reason::OtherRun, message, "status").leaving(left)
            }
            Refusal::GoingBack => {
                let message = format!("the run goes back, and `agent {}` would go forward", self.typed());
                self.stop(Reason::GoingBack, message, "rollback")
            }
            Refusal::NothingToRollBack => {
                let message = "there is no run of this playbook that could go back".into();
                self.stop(Reason::NothingToRollBack, message, "status")
            }
            Refusal::NothingToResume => {
                let message = "no run of this playbook stands, so none waits to be resumed".into();
                self.stop(Reason::NothingToResume, message, "run")
            }
            Refusal::NoWayBack => self.stop(Reason::NoWayBack, self.words().no_way_back.into(), "run"),
            Refusal::NotHeld => {
                self.stop(Reason::NotHeld, "the run does not hold before its last member".into(), "run")
            }
            Refusal::OwnsNothing => {
                let message = "no member of the cluster has the name of a node of this playbook".into();
                self.stop(Reason::OwnsNothing, message, "status")
            }
            Refusal::NoLeader => {
                let (troubles, again) = (self.troubles(), self.command(self.typed()));
                // Members that answer, and to this user say no: there is nothing to start.
                if troubles.contains(DENIED) {
                    let role = format!("`{}` says which role an agent needs", grants::COMMAND);
                    let message = format!("the cluster does not tell this user who leads{troubles}; {role}");
                    return self.stop(Reason::AuthRefused, message, "status").next(again);
                }
                let message = format!("no majority agrees on a leader{troubles}");
                // A run starts this host's own members first, without a leader, too.
                let next = if self.down.is_empty() {
                    format!("start the members that are down, then: {again}")
                } else {
                    again
                };
                self.stop(Reason::NoLeader, message, "status").next(next)
            }
            Refusal::LeaderVersion { member, release } => {
                let message =
                    format!("the leader {} runs {release}, expected {}", name(*member), self.words().expected);
                self.stop(Reason::LeaderVersion, message, "status")
            }
            Refusal::MemberVersion { member, release } => {
                let message = format!("{} runs {release}, expected {}", name(*member), self.words().expected);
                self.stop(Reason::MemberVersion, message, "status")
            }
            Refusal::SkipsMinor { member, release } => {
                let message = format!("{} runs {release}{}", name(*member), self.words().skips_minor);
                self.stop(Reason::SkipsMinor, message, "plan")
            }
            Refusal::StrictJoin { member } => {
                let message = format!(
                    "{} runs with --join-policy=strict: members of two releases would wait for each other, and a majority \
                     might not be left",
                    name(*member)
                );
                self.stop(Reason::StrictJoin, message, "plan")
            }
            Refusal::GoingDown { target } => {
                let why = self.words().against_downgrade;
                let message = format!("a downgrade to {target} is enabled, and {why}");
                self.stop(Reason::GoingDown, message, self.onward()).leaving("`etcdctl downgrade cancel` ends it")
            }
            Refusal::Mixed { member, release } => {
                let message =
                    format!("{} runs {release}: a downgrade begins with every member on one minor", name(*member));
                let left = "end the upgrade that left them so with its own playbook, or roll it back";
                self.stop(Reason::Mixed, message, "status").leaving(left)
            }
            Refusal::Learner { member } => {
                let message = format!("{} is a learner: a downgrade begins without", name(*member));
                let left = "`etcdctl member promote` makes it a voter, `etcdctl member remove` takes it out";
                self.stop(Reason::Learner, message, "status").leaving(left)
            }
            Refusal::BelowQuorum { down, standing, needed } => self.below_quorum(&name(*down), *standing, *needed),
            Refusal::NotReady { member } => {
                let trouble = self.view.and_then(|view| view.member(*member)?.trouble().map(|why| printable(&why)));
                let why = trouble.map_or_else(String::new, |trouble| format!(" ({trouble})"));
                if self.view.and_then(|view| view.member(*member)).is_some_and(Member::has_never_started) {
                    let left = format!("start it, or take it out with `etcdctl member remove {member}`");
                    let message = format!("{} is not ready{why}", name(*member));
                    return self.stop(Reason::MemberNotReady, message, "status").leaving(&left);
                }
                let message =
                    format!("{} is not ready{why}, and {} takes no part", name(*member), self.names.place(*member));
                let next = self.command_there(self.typed(), &[*member]);
                self.stop(Reason::MemberNotReady, message, self.onward()).next(next)
            }
            Refusal::NoClusterVersion { member } => {
                let message = format!("{} does not say which cluster version it holds", name(*member));
                let hint = "`/version` must answer at its client URL, or where `cluster.http` says";
                self.stop(Reason::NoClusterVersion, message, "status").leaving(hint)
            }
            Refusal::GatesUnsupported { member } => {
                let release = self.view.and_then(|view| view.member(*member)?.release().map(ToString::to_string));
                let release = release.map_or_else(String::new, |release| format!(" on {release}"));
                let message = format!("{} has no cluster feature gates{release}, and some are expected", name(*member));
                self.stop(Reason::GatesUnsupported, message, "validate").leaving("`gates.expect` asks for them")
            }
            Refusal::Hazard(hazard) => {
                let hazard::Words { found, remedy } = hazard::words(hazard, self.names);
                let stop = self.stop(Reason::Hazard, found, "plan").leaving(&remedy);
                match hazard {
                    Hazard::Known { id, .. } => stop.next(hazard::explained(id)),
                    Hazard::Differs(difference) => stop.next(hazard::explained(Hazard::of_difference(difference))),
                    Hazard::Quota { .. } => stop,
                }
            }
            Refusal::Alarm { kind, of, alone } => {
                let message = self.alarm(kind, *of, *alone);
                self.stop(Reason::Alarm, message, self.onward()).leaving(&self.disarm(*alone))
            }
            Refusal::Failed { member, why } => {
                let message = format!("the step of {} failed: {}", name(*member), printable(why));
                let place = self.names.place(*member);
                self.stop(Reason::RunFailed, message, self.onward())
                    .next(self.command_there(self.onward(), &[*member]))
                    .leaving(&format!("the run is marked failed until {place} tries again"))
            }
            Refusal::TwinHost { host_name, process } => {
                let host = printable(host_name);
                let message = format!(
                    "another agent goes by this host's id: pid {} on {host}, which still runs or renews its lease; one \
                     of the two state directories is a copy",
                    process.pid
                );
                let left =
                    "where the copy is, remove `<state_dir>/host-id`; nothing that the other agent put was touched";
                self.stop(Reason::TwinHost, message, self.onward()).leaving(left)
            }
            Refusal::Abandoned { record } => self.lost(record),
            Refusal::StepOfAnother { record, alive } => self.step_of_another(record, *alive),
        }
    }

    /// What is wrong with each member, after a colon.
    fn troubles(&self) -> String {
        let members = self.view.iter().flat_map(|view| &view.members);
        let troubles: Vec<_> = members
            .filter_map(|member| Some(format!("{}: {}", self.names.short(member.id), printable(&member.trouble()?))))
            .collect();
        if troubles.is_empty() { String::new() } else { format!(" ({})", troubles.join("; ")) }
    }

    fn below_quorum(&self, down: &str, standing: usize, needed: usize) -> Stop {
        let message = format!("without {down} there would be {standing} ready of the {needed} voters that are needed");
        let few = self.view.is_some_and(|view| view.voters().count() <= 2);
        let stop = self.stop(Reason::BelowQuorum, message, "status");
        if few { stop.leaving("one or two voters need `strategy.allow_downtime: true`") } else { stop }
    }

    fn lost(&self, record: &StepLock) -> Stop {
        let (member, host) = (self.names.short(record.member), printable(&record.host_name));
        let message = format!("the step of {member} was abandoned, and its host {host} may still wake up");
        let left = format!(
            "nobody takes a member down until {host} is back, {member} is replaced, or `agent abandon --host-is-fenced` \
             says that {host} is dead"
        );
        let next = with_own_playbook(&there(Some(&host), &member), self.onward());
        self.stop(Reason::AbandonedMember, message, self.onward()).next(next).leaving(&left)
    }

    fn step_of_another(&self, record: &StepLock, alive: bool) -> Stop {
        let (member, host) = (self.names.member(record.member), printable(&record.host_name));
        if let Some(guarded) = &record.guarded {
            let command = printable(&guarded.command);
            let message = format!(
                "{host} was to run {command} in the step of {member}, and no journal here says what became of it: it may still run"
            );
            let next = format!("{} {}", self.command("abandon"), typed(&self.names.short(record.member)));
            let left = "nobody takes a member down; see that the command has ended before the step is given up";
            return self.stop(Reason::StepOfAnother, message, "status").next(next).leaving(left);
        }
        let whose = match alive {
            true => format!("the agent with pid {} on this machine, which still runs", record.process.pid),
            false => format!("an agent with another state directory, on {host}"),
        };
        let message = format!("the step of {member} belongs to {whose}");
        let next = format!("{} {}", self.command("abandon"), typed(&self.names.short(record.member)));
        let stop = self.stop(Reason::StepOfAnother, message, "status");
        if alive { stop } else { stop.next(next) }
    }
}
