//! How an end is told: exit code, reason, one sentence, what was left, what to type next.
//!
//! Pure. [`of`] is for the ends of the rollout machine, [`super::trouble`] for those that never reach it. The
//! list of reasons is [`super::reason`].

use std::path::Path;

use serde::Serialize;

use super::{
    names::{Names, printable},
    standing::standing,
    wait,
};
pub use super::{
    reason::{Exit, Reason, markdown, table},
    trouble::Trouble,
};
use crate::{
    observe::view::ClusterView,
    plan::{
        Finish, Verb,
        refusal::{Refusal, Wait},
    },
    rollout::{
        act::{Ending, Left},
        keys::{Change, RunResult, TakeDown},
    },
};

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Stop {
    /// The process's exit code.
    pub exit: u8,
    /// Why, for scripts.
    pub reason: Reason,
    /// What happened, in one sentence for a person.
    pub message: String,
    /// What state things were left in; empty where nothing is known or to be said.
    pub left: String,
    /// The next command to type.
    pub next: Option<String>,
    /// How far the cluster is, where this is known.
    pub cluster: Option<Progress>,
}

/// How far the cluster is with the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Progress {
    /// Every member is where it should be.
    Done,
    /// Some are not.
    Partial,
    /// All but the last, and the run holds.
    Held,
}

/// What the machine's own word does not say.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// Who is called what.
    pub names: &'a Names,
    /// The last look.
    pub view: Option<&'a ClusterView>,
    /// The playbook's path, as it was typed.
    pub playbook: &'a str,
    /// What was typed.
    pub verb: Verb,
    /// What the run changes.
    pub change: Option<&'a Change>,
    /// Whether this process has stopped a member.
    pub touched: bool,
    /// `--require-complete`
    pub require_complete: bool,
}

/// A verb as it is typed.
pub fn typed(verb: Verb) -> &'static str {
    match verb {
        Verb::Run => "run",
        Verb::Rollback => "rollback",
        Verb::Finalize => "finalize",
        Verb::Resume => "resume",
    }
}

/// How the machine's end is told.
pub fn of(ending: &Ending, context: &Context) -> Stop {
    match ending {
        Ending::Finished(finish) => context.finished(finish),
        Ending::Refused(refusal) => context.refused(refusal),
        Ending::Unprepared(why) => {
            context.stop(Reason::Unprepared, format!("this host is not fit for its step: {}", printable(why)), "run")
        }
        Ending::Hook { member, why } => {
            let message = format!("a before_node hook of {} failed: {}", context.names.member(*member), printable(why));
            context.stop(Reason::HookFailed, message, "run").leaving("it was not stopped")
        }
        Ending::HandOver { member, why } => {
            let message = format!("{} did not pass leadership on: {}", context.names.member(*member), printable(why));
            context.stop(Reason::HandOverFailed, message, "run").leaving("it was not stopped")
        }
        Ending::Step { member, why, left } => {
            let message = format!("the step of {} failed: {}", context.names.member(*member), printable(why));
            context.step_failed(message, &context.names.short(*member), *left)
        }
        Ending::Sick { member, why } => {
            let message =
                format!("{} runs and does not become ready: {}", context.names.member(*member), printable(why));
            context.stop(Reason::MemberSick, message, "run")
        }
        Ending::NoQuorum { member } => {
            let message = format!("{} runs, but there is no quorum to judge it by", context.names.member(*member));
            let left = "its take-down record, if it stands, is deleted by the next run";
            context.stop(Reason::NoQuorum, message, "run").leaving(left)
        }
        Ending::NotSettled(why) => {
            let message =
                format!("the members are at their target, but the cluster did not settle: {}", printable(why));
            context.stop(Reason::NotSettled, message, "run")
        }
        Ending::Expired(waited) => context.expired(waited),
        Ending::NoAnswer { record: Some(member) } => {
            let member = context.names.member(*member);
            let message = format!("the cluster did not answer, so the take-down record of {member} may still stand");
            context.stop(Reason::RecordLeft, message, "run").leaving("the next run on this host deletes it")
        }
        Ending::NoAnswer { record: None } => {
            context.stop(Reason::NoAnswer, "the cluster did not answer for too long".into(), "run")
        }
        Ending::Interrupted => {
            let message = "a signal asked for an end; the step in hand was finished or undone".into();
            context.stop(Reason::Interrupted, message, context.typed()).leaving("this host holds no baton")
        }
    }
}

impl Stop {
    /// A good end of a verb that takes nothing down.
    pub fn well(reason: Reason, message: String, next: &str, playbook: &Path) -> Self {
        let next = Some(format!("agent {next} {}", quoted(&playbook.to_string_lossy())));
        Self { exit: reason.exit().code(false), reason, message, left: String::new(), next, cluster: None }
    }

    fn leaving(self, what: &str) -> Self {
        let left = if self.left.is_empty() { what.to_owned() } else { format!("{what}; {}", self.left) };
        Self { left, ..self }
    }

    fn next(self, next: String) -> Self {
        Self { next: Some(next), ..self }
    }

    fn without_next(self) -> Self {
        Self { next: None, ..self }
    }

    fn cluster(self, cluster: Progress) -> Self {
        Self { cluster: Some(cluster), ..self }
    }
}

impl Context<'_> {
    fn stop(&self, reason: Reason, message: String, verb: &str) -> Stop {
        Stop {
            exit: reason.exit().code(self.touched),
            reason,
            message,
            left: self.view.map(standing).unwrap_or_default(),
            next: Some(self.command(verb)),
            cluster: Some(Progress::Partial),
        }
    }

    fn typed(&self) -> &'static str {
        typed(self.verb)
    }

    fn command(&self, verb: &str) -> String {
        format!("agent {verb} {}", quoted(self.playbook))
    }

    fn command_on(&self, verb: &str, place: &str) -> String {
        format!("{}  # on {place}", self.command(verb))
    }

    fn all(&self) -> String {
        match self.view.map_or(0, |view| view.members.len()) {
            0 => "every member".to_owned(),
            1 => "the one member".to_owned(),
            count => format!("all {count} members"),
        }
    }

    fn target(&self) -> String {
        match self.change {
            Some(Change::Upgrade { to, .. }) => format!("at {to}"),
            Some(Change::Restart { id }) => format!("restarted for `{}`", printable(id)),
            None => "at the target".to_owned(),
        }
    }

    fn finished(&self, finish: &Finish) -> Stop {
        let (all, target) = (self.all(), self.target());
        match finish {
            Finish::Done(RunResult::Reached) => self
                .stop(Reason::Done, format!("{all} {target}, and the cluster has settled"), "status")
                .without_next()
                .cluster(Progress::Done),
            Finish::Done(RunResult::RolledBack) => self
                .stop(Reason::RolledBack, format!("{all} back on the old release"), "status")
                .without_next()
                .cluster(Progress::Done),
            Finish::NothingToDo => {
                self.stop(Reason::NothingToDo, self.nothing_to_do(), "status").without_next().cluster(Progress::Done)
            }
            Finish::Partial { left } => self.partial(left),
            Finish::Held { member } => {
                let message = format!("{} is the last one, and the run holds before it", self.names.member(*member));
                let next = self.command_on("finalize", &self.names.place(*member));
                self.open(Reason::Held, message, Progress::Held).next(next).leaving(HOLD)
            }
            Finish::Approved { left } => {
                let message = format!("{} may go now; its host must run", self.names.list(left));
                let place = left.first().map_or_else(|| "the host that is left".to_owned(), |m| self.names.place(*m));
                self.open(Reason::Approved, message, Progress::Partial).next(self.command_on("run", &place))
            }
        }
    }

    fn nothing_to_do(&self) -> String {
        match self.verb {
            Verb::Finalize => "nothing to finalize: nothing is held back".to_owned(),
            _ => format!("nothing to do: {} {}", self.all(), self.target()),
        }
    }

    fn partial(&self, left: &[proto::MemberId]) -> Stop {
        let message = format!("this host's part is done; left without an agent: {}", self.names.list(left));
        let place = left.iter().map(|member| self.names.place(*member)).collect::<Vec<_>>().join(", ");
        self.open(Reason::Partial, message, Progress::Partial).next(self.command_on(self.typed(), &place))
    }

    /// An end that is well for this host and not yet for the cluster.
    fn open(&self, reason: Reason, message: String, cluster: Progress) -> Stop {
        let stop = self.stop(reason, message, "run").cluster(cluster);
        match self.require_complete {
            true => Stop { exit: Reason::Incomplete.exit().code(self.touched), reason: Reason::Incomplete, ..stop },
            false => stop,
        }
    }

    fn step_failed(&self, message: String, member: &str, left: Left) -> Stop {
        match left {
            Left::PutBack => self
                .stop(Reason::PutBack, message, "run")
                .leaving(&format!("{member} put back on its old binary, ready")),
            Left::AsItIs => {
                let left = format!("{member} as it is; its take-down record stands, so no other member goes");
                self.stop(Reason::StepFailed, message, "run").leaving(&left)
            }
            Left::NewBinaryKept => {
                let left = format!(
                    "{member} kept on its new binary, as the way back is closed; its take-down record stands, \
                     so no other member goes"
                );
                self.stop(Reason::NewBinaryKept, message, "run").leaving(&left)
            }
        }
    }

    fn expired(&self, waited: &Wait) -> Stop {
        let message =
            format!("nobody made progress for too long while waiting for {}", wait::words(waited, self.names));
        let reason = if *waited == Wait::Answer { Reason::NoAnswer } else { Reason::Turn };
        self.stop(reason, message, "status")
    }

    fn refused(&self, refusal: &Refusal) -> Stop {
        let name = |member| self.names.member(member);
        match refusal {
            Refusal::OtherRun { differs } => {
                let message = format!("a run with another intent stands; it differs in {}", differs.join(", "));
                self.stop(Reason::OtherRun, message, "run --replace")
            }
            Refusal::Paused => self.stop(Reason::Paused, "a newer agent has paused the run".into(), "status"),
            Refusal::GoingBack => {
                let message = format!("the run goes back, and `agent {}` would go forward", self.typed());
                self.stop(Reason::GoingBack, message, "rollback")
            }
            Refusal::NothingToRollBack => {
                let message = "there is no run of this playbook that could go back".into();
                self.stop(Reason::NothingToRollBack, message, "status")
            }
            Refusal::NoWayBack => {
                let message = "no voter runs the old release any more, and an old binary would refuse to start".into();
                self.stop(Reason::NoWayBack, message, "run")
            }
            Refusal::NotHeld => {
                self.stop(Reason::NotHeld, "the run does not hold before its last member yet".into(), "run")
            }
            Refusal::OwnsNothing => {
                let message = "no member of the cluster has the name of a node of this playbook".into();
                self.stop(Reason::OwnsNothing, message, "status")
            }
            Refusal::NoLeader => {
                let message = format!("no majority agrees on a leader{}", self.troubles());
                self.stop(Reason::NoLeader, message, "status")
            }
            Refusal::LeaderVersion { member, release } => {
                let message = format!("the leader {} runs {release}, expected {}", name(*member), self.expected());
                self.stop(Reason::LeaderVersion, message, "status")
            }
            Refusal::MemberVersion { member, release } => {
                let message = format!("{} runs {release}, expected {}", name(*member), self.expected());
                self.stop(Reason::MemberVersion, message, "status")
            }
            Refusal::SkipsMinor { member, release } => {
                let message = format!("{} runs {release}: {} leaves out a minor", name(*member), self.arrow());
                self.stop(Reason::SkipsMinor, message, "plan")
            }
            Refusal::BelowQuorum { down, standing, needed } => self.below_quorum(&name(*down), *standing, *needed),
            Refusal::NotReady { member } => {
                let trouble = self.view.and_then(|view| view.member(*member)?.trouble().map(|why| printable(&why)));
                let why = trouble.map_or_else(String::new, |trouble| format!(" ({trouble})"));
                let message =
                    format!("{} is not ready{why}, and {} takes no part", name(*member), self.names.place(*member));
                let next = self.command_on(self.typed(), &self.names.place(*member));
                self.stop(Reason::MemberNotReady, message, "run").next(next)
            }
            Refusal::Alarm { kind, of } => {
                let message = format!("the alarm {} of {} stands", printable(kind), name(*of));
                self.stop(Reason::Alarm, message, "run").leaving("no member goes before `etcdctl alarm disarm`")
            }
            Refusal::Failed { member, why } => {
                let message = format!("the step of {} failed: {}", name(*member), printable(why));
                let place = self.names.place(*member);
                self.stop(Reason::RunFailed, message, "run")
                    .next(self.command_on("run", &place))
                    .leaving(&format!("the run is marked failed until {place} tries again"))
            }
            Refusal::Lost { record } => self.lost(record),
            Refusal::RecordOfAnother { record, alive } => self.record_of_another(record, *alive),
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

    fn expected(&self) -> String {
        match self.change {
            Some(Change::Upgrade { from, to }) => format!("`{from}` or {to}"),
            _ => "another".to_owned(),
        }
    }

    fn arrow(&self) -> String {
        match self.change {
            Some(Change::Upgrade { to, .. }) => format!("the way to {to}"),
            _ => "the way".to_owned(),
        }
    }

    fn below_quorum(&self, down: &str, standing: usize, needed: usize) -> Stop {
        let message = format!("without {down} there would be {standing} ready of the {needed} voters that are needed");
        let few = self.view.is_some_and(|view| view.voters().count() <= 2);
        let stop = self.stop(Reason::BelowQuorum, message, "status");
        if few { stop.leaving("one or two voters need `strategy.allow_downtime: true`") } else { stop }
    }

    fn lost(&self, record: &TakeDown) -> Stop {
        let (member, host) = (self.names.short(record.member), printable(&record.host_name));
        let message = format!("the take-down of {member} was abandoned, and its host {host} may still wake up");
        self.stop(Reason::LostMember, message, "run").next(self.command_on("run", &host)).leaving(&format!(
            "nobody takes a member down until {host} is back, {member} is replaced, or `agent abandon \
             --host-is-fenced` says that {host} is dead"
        ))
    }

    fn record_of_another(&self, record: &TakeDown, alive: bool) -> Stop {
        let (member, host) = (self.names.member(record.member), printable(&record.host_name));
        let whose = match alive {
            true => format!("the agent with pid {} on this machine, which still runs", record.process.pid),
            false => format!("an agent with another state directory, on {host}"),
        };
        let message = format!("the take-down of {member} belongs to {whose}");
        let next = format!("{} {}", self.command("abandon"), quoted(&self.names.short(record.member)));
        let stop = self.stop(Reason::RecordOfAnother, message, "status");
        if alive { stop } else { stop.next(next) }
    }
}

/// What a person must know of a hold.
pub const HOLD: &str =
    "the way back is open until then; removing or replacing the held member raises the version at once";

/// A word as a shell takes it.
pub(super) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:,@%".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}
