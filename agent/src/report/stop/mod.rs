//! How an end is told: exit code, reason, one sentence, what was left, what to type next.
//!
//! Pure. [`of`] is for the ends of the rollout machine, [`super::trouble`] for those that never reach it. The
//! list of reasons is [`super::reason`].

pub mod abandoned;
mod alarm;
pub mod hazard;
mod hop;
mod members;
mod other_ways;
pub mod reason;
pub mod refused;
pub mod trouble;
pub mod warned;

#[cfg(test)]
mod stop_test;

use std::{path::Path, time::SystemTime};

use proto::MemberId;
use serde::Serialize;

pub use super::stop::reason::{Exit, Reason, markdown, table};
use super::{
    change,
    names::{Names, printable},
    shown::cluster::line,
    wait,
};
pub use crate::event::trouble::Trouble;
use crate::{
    calendar::rfc3339,
    keys::{RunResult, change::Change},
    machine::act::{Ending, Left},
    observe::view::ClusterView,
    plan::{Finish, Verb, refusal::Wait},
    words,
};

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Stop {
    pub exit: u8,
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
    Partial,
    /// All but the last, and the run holds.
    Held,
}

/// What the machine's own word does not say.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    pub names: &'a Names,
    pub view: Option<&'a ClusterView>,
    /// When that was, where things may stand otherwise by now.
    pub stale: Option<SystemTime>,
    /// Members of this host that do not run.
    pub down: &'a [MemberId],
    /// The playbook's path, as it was typed.
    pub playbook: &'a str,
    pub verb: Verb,
    pub change: Option<&'a Change>,
    /// Whether this process has stopped a member.
    pub touched: bool,
    /// `--require-complete`
    pub require_complete: bool,
}

pub fn typed(verb: Verb) -> &'static str {
    match verb {
        Verb::Run => "run",
        Verb::Rollback => "rollback",
        Verb::Finalize => "finalize",
        Verb::Resume => "resume",
        // Whether it is time is asked; the command is typed by whoever wants it.
        Verb::Guard(_) => "guard --check",
    }
}

/// How it is told that a guarded command had its way with the host.
pub fn host_goes_down(context: &Context) -> Stop {
    let left = "the lock stands until this host is back and its members are ready";
    let message = "the command has ended, and this host goes down".to_owned();
    context.stop(Reason::HostGoesDown, message, context.onward()).without_next().leaving(left)
}

/// How the machine's end is told.
pub fn of(ending: &Ending, context: &Context) -> Stop {
    let stop = told(ending, context);
    let has_begun =
        matches!(ending, Ending::Sick { .. } | Ending::NoQuorum { .. } | Ending::NoAnswer { .. } | Ending::Step { .. });
    // A guard that has begun nothing has nothing to be finished.
    let is_ended = context.is_guard() && !has_begun && stop.reason != Reason::StepOfAnother;
    if is_ended { stop.without_next() } else { stop }
}

fn told(ending: &Ending, context: &Context) -> Stop {
    match ending {
        Ending::Finished(finish) => context.finished(finish),
        Ending::Refused(refusal) => context.refused(refusal),
        Ending::Unprepared(why) => context.stop(
            Reason::Unprepared,
            format!("this host is not fit for its step: {}", printable(why)),
            context.onward(),
        ),
        Ending::Hook { member, why } => {
            let message = format!("a before_node hook of {} failed: {}", context.names.member(*member), printable(why));
            context.stop(Reason::HookFailed, message, context.onward()).leaving("it was not stopped")
        }
        Ending::HandOver { member, why } => {
            let message = format!("{} did not pass leadership on: {}", context.names.member(*member), printable(why));
            context.stop(Reason::HandOverFailed, message, context.onward()).leaving("it was not stopped")
        }
        Ending::NotLowered(why) => {
            let message = format!("a step of the downgrade was not done: {}", printable(why));
            context.stop(Reason::NotLowered, message, context.onward()).leaving("no member was stopped for it")
        }
        Ending::NotBackedUp(why) => {
            let message = format!("no backup was made, which the playbook wants first: {}", printable(why));
            context.stop(Reason::NotBackedUp, message, context.onward()).leaving("nothing was changed by this run")
        }
        Ending::Step { member, why, left } => {
            let message = format!("the step of {} failed: {}", context.names.member(*member), printable(why));
            context.step_failed(message, &context.names.short(*member), *left)
        }
        Ending::Sick { member, why } => {
            let message = format!("{} does not become ready: {}", context.names.member(*member), printable(why));
            context.stop(Reason::MemberSick, message, context.onward())
        }
        Ending::NoQuorum { member } => {
            let message = format!("{} runs, but there is no quorum to judge it by", context.names.member(*member));
            let left = "its step lock, if it stands, is deleted by the next run";
            context.stop(Reason::NoQuorum, message, context.onward()).leaving(left)
        }
        Ending::NotSettled(why) => {
            let message =
                format!("the members are at their target, but the cluster did not settle: {}", printable(why));
            context.stop(Reason::NotSettled, message, context.onward())
        }
        Ending::NotJoined { seat, why } => {
            let message =
                format!("{} did not become a member, and was taken back: {}", printable(seat), printable(why));
            context.stop(Reason::NotJoined, message, context.onward())
        }
        Ending::Seat { seat, why } => {
            let message = format!("what was to be done for {} failed: {}", printable(seat), printable(why));
            context.stop(Reason::StepFailed, message, context.onward())
        }
        Ending::Expired(waited) => context.expired(waited),
        Ending::Guarded { failed: None } => {
            let message = "the command ran, and this host's members are ready".to_owned();
            context.stop(Reason::Guarded, message, context.onward()).without_next()
        }
        Ending::Guarded { failed: Some(why) } => {
            let message = format!("the command failed: {}", printable(why));
            let left = "this host's members are ready, and no lock stands";
            context.stop(Reason::CommandFailed, message, context.onward()).without_next().leaving(left)
        }
        Ending::MayGo => {
            context.stop(Reason::MayGo, "the command could begin now".into(), context.onward()).without_next()
        }
        Ending::NotYet(waited) => {
            let message = format!("the command would have to wait for {}", wait::words(waited, context.names));
            context.stop(Reason::NotYet, message, context.onward()).without_next()
        }
        Ending::NoAnswer { record: Some(member) } => {
            if let Some(alarm) = context.view.filter(|_| context.stale.is_none()).and_then(ClusterView::alarm) {
                return context.alarm_keeps_step_lock(alarm, *member);
            }
            let member = context.names.member(*member);
            let message = format!("the cluster did not answer, so the step lock of {member} may still stand");
            context
                .stop(Reason::StepLockLeft, message, context.onward())
                .leaving("the next run on this host deletes it")
        }
        Ending::NoAnswer { record: None } => {
            context.stop(Reason::NoAnswer, "the cluster did not answer for too long".into(), context.onward())
        }
        Ending::Interrupted => {
            let message = "a signal asked for an end; the step in hand was finished or undone".into();
            context.stop(Reason::Interrupted, message, context.typed()).leaving("this host holds no baton")
        }
    }
}

/// The same where the last look was refused: members do answer, and not this user.
pub fn denied(ending: &Ending, denial: &Trouble, context: &Context) -> Option<Stop> {
    let member = match ending {
        Ending::NoQuorum { member } => Some(*member),
        Ending::NoAnswer { record } => *record,
        _ => return None,
    };
    let told = denial.stop(context.typed(), Some(context.playbook), context.touched);
    let step = member.map(|member| format!("the step of {} could not be ended: ", context.names.member(member)));
    Some(Stop {
        message: format!("{}{}", step.unwrap_or_default(), told.message),
        cluster: Some(Progress::Partial),
        left: of(ending, context).left,
        ..told
    })
}

impl Stop {
    /// A good end of a verb that takes nothing down.
    pub fn well(reason: Reason, message: String, next: &str, playbook: &Path) -> Self {
        let next = Some(format!("agent {next} {}", words::typed(&playbook.to_string_lossy())));
        Self { exit: reason.exit().code(false), reason, message, left: String::new(), next, cluster: None }
    }

    pub(crate) fn leaving(self, what: &str) -> Self {
        let left = if self.left.is_empty() { what.to_owned() } else { format!("{what}; {}", self.left) };
        Self { left, ..self }
    }

    pub(crate) fn next(self, next: String) -> Self {
        Self { next: Some(next), ..self }
    }

    /// Has the command that is to be typed next pass the same hazards (`more`, each with a space before it): without them it would have
    /// another intent.
    pub(crate) fn passing(self, more: &str, playbook: &Path) -> Self {
        let playbook = words::typed(&playbook.to_string_lossy());
        let again = |said: String| {
            ["run", "plan", "rollback", "finalize", "resume"].iter().fold(said, |said, verb| {
                let command = format!("agent {verb} {playbook}");
                said.replace(&command, &format!("{command}{more}"))
            })
        };
        Self { message: again(self.message), left: again(self.left), next: self.next.map(again), ..self }
    }

    fn without_next(self) -> Self {
        Self { next: None, ..self }
    }

    fn cluster(self, cluster: Progress) -> Self {
        Self { cluster: Some(cluster), ..self }
    }
}

impl Context<'_> {
    pub(crate) fn stop(&self, reason: Reason, message: String, verb: &str) -> Stop {
        Stop {
            exit: reason.exit().code(self.touched),
            reason,
            message,
            left: self.cluster_now(),
            next: Some(self.command(verb)),
            // A guard brings nobody to any target.
            cluster: (!self.is_guard()).then_some(Progress::Partial),
        }
    }

    fn is_guard(&self) -> bool {
        matches!(self.verb, Verb::Guard(_))
    }

    /// How things stand, as far as it is known.
    pub fn cluster_now(&self) -> String {
        let down = match self.down {
            [] => None,
            [member] => Some(format!("{} is not running", self.names.short(*member))),
            members => Some(format!("{} are not running", self.names.list(members))),
        };
        let seen = self.view.map(|view| match self.stale {
            Some(at) => format!("last seen at {} UTC: {}", &rfc3339(at)[11..19], line(view)),
            None => line(view),
        });
        down.into_iter().chain(seen).collect::<Vec<_>>().join("; ")
    }

    pub(crate) fn typed(&self) -> &'static str {
        typed(self.verb)
    }

    /// What goes on from here: the same command again; `finalize` and `resume` are said once.
    pub(crate) fn onward(&self) -> &'static str {
        match self.verb {
            Verb::Rollback => "rollback",
            Verb::Run | Verb::Finalize | Verb::Resume => "run",
            Verb::Guard(_) => "guard --finish",
        }
    }

    pub(crate) fn command(&self, verb: &str) -> String {
        format!("agent {verb} {}", words::typed(self.playbook))
    }

    /// What to type on the hosts of these members. This host's playbook is not theirs, so its path is not named.
    pub(crate) fn command_there(&self, verb: &str, members: &[MemberId]) -> String {
        let place = |member: &MemberId| there(self.names.host_of(*member), &self.names.short(*member));
        match members {
            [] => with_own_playbook("on the host that is left", verb),
            [member] => with_own_playbook(&place(member), verb),
            _ => {
                let places: Vec<_> = members.iter().map(place).collect();
                format!("{}: agent {verb} with each host's own playbook", places.join("; "))
            }
        }
    }

    fn all(&self) -> String {
        match self.view.map_or(0, |view| view.started().count()) {
            0 => "every member".to_owned(),
            1 => "the one member".to_owned(),
            count => format!("all {count} members"),
        }
    }

    pub(crate) fn words(&self) -> change::Words {
        change::words(self.change)
    }

    fn finished(&self, finish: &Finish) -> Stop {
        let (all, target) = (self.all(), self.words().at_target);
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
                let stop = self.stop(Reason::NothingToDo, self.nothing_to_do(), "status").without_next();
                if self.is_guard() { stop } else { stop.cluster(Progress::Done) }
            }
            Finish::Partial { left } => self.partial(left),
            Finish::Closed { members } => {
                let message = format!(
                    "this host's part is done; the agents of {} wait for their hosts' windows",
                    self.names.list(members)
                );
                self.open(Reason::Partial, message, Progress::Partial).next(self.command("status"))
            }
            Finish::Unseated { seats } => {
                let left = seats.iter().map(|seat| printable(seat).to_string()).collect::<Vec<_>>().join(", ");
                let message = format!("this host's part is done; left without an agent: {left}");
                let host = if seats.len() == 1 { "on the host of" } else { "on the hosts of" };
                let next = with_own_playbook(&format!("{host} {left}"), self.typed());
                self.open(Reason::Partial, message, Progress::Partial).next(next)
            }
            Finish::Held { member } => {
                let trouble = self.view.and_then(|view| view.member(*member)?.trouble());
                let trouble = trouble.map_or_else(String::new, |why| format!("; it is not ready: {}", printable(&why)));
                let name = self.names.member(*member);
                let message = format!("{name} is the last one, and the run holds before it{trouble}");
                let next = self.command_there("finalize", &[*member]);
                self.open(Reason::Held, message, Progress::Held).next(next).leaving(HOLD)
            }
            Finish::Approved { left } => {
                let message = format!("{} may go now; its host must run", self.names.list(left));
                self.open(Reason::Approved, message, Progress::Partial).next(self.command_there("run", left))
            }
        }
    }

    fn nothing_to_do(&self) -> String {
        match self.verb {
            Verb::Finalize => "nothing to finalize: nothing is held back".to_owned(),
            Verb::Guard(_) => "nothing to do: no step of a guarded command is in hand".to_owned(),
            _ => format!("nothing to do: {} {}", self.all(), self.words().at_target),
        }
    }

    fn partial(&self, left: &[MemberId]) -> Stop {
        let message = format!("this host's part is done; left without an agent: {}", self.names.list(left));
        self.open(Reason::Partial, message, Progress::Partial).next(self.command_there(self.typed(), left))
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
                .stop(Reason::PutBack, message, self.onward())
                .leaving(&format!("{member} put back on its old binary and files, ready")),
            Left::AsItWas => {
                let left = format!("{member} runs on the binary it had, ready");
                self.stop(Reason::StepFailed, message, self.onward()).leaving(&left)
            }
            Left::AsItIs => {
                let left = format!("{member} as it is; its step lock stands, so no other member goes");
                self.stop(Reason::StepFailed, message, self.onward()).leaving(&left)
            }
            Left::NewBinaryKept => {
                let left = format!(
                    "{member} kept on its new binary, as nothing shows that the way back is open; its step lock stands, \
                     so no other member goes"
                );
                self.stop(Reason::NewBinaryKept, message, self.onward()).leaving(&left)
            }
        }
    }

    fn expired(&self, waited: &Wait) -> Stop {
        let message =
            format!("nobody made progress for too long while waiting for {}", wait::sentence(waited, self.names));
        match waited {
            Wait::Answer => self.stop(Reason::NoAnswer, message, "status"),
            Wait::Paused { .. } => self.stop(Reason::Paused, message, "resume"),
            Wait::UnderAlarm { alone, .. } => {
                self.stop(Reason::Alarm, message, self.onward()).leaving(&self.disarm(*alone))
            }
            _ => self.stop(Reason::Stalled, message, "status"),
        }
    }
}

/// The host of a member, as the beginning of what to type there.
fn there(host: Option<&str>, member: &str) -> String {
    match host {
        Some(host) => format!("on {}, the host of {}", words::remark(host), words::remark(member)),
        None => format!("on the host of {}", words::remark(member)),
    }
}

fn with_own_playbook(place: &str, verb: &str) -> String {
    format!("{place}: agent {verb} with that host's playbook")
}

/// What a person must know of a hold.
pub const HOLD: &str =
    "the way back is open until then; removing or replacing the held member raises the version at once";
