//! One line of the events file: an event and its fields. Fields are added, never renamed; agent/EVENTS.md has them all.

use proto::MemberId;
use serde::Serialize;

use super::{json::versions, seen::Seen};
use crate::{
    event::RunEvent,
    keys::{RunId, change::Change},
    observe::canary::Availability,
    plan::{hazard::Hazard, warning::Warning},
    report::{live::progress::Progress, names::printable, settling, shown::gates::GatesLine, wait},
};

/// The format that is written. A reader refuses a higher one.
pub const FORMAT: u32 = 1;

#[derive(Serialize)]
pub(super) struct Line<'a> {
    format: u32,
    time: String,
    run: Option<RunId>,
    host: &'a str,
    seq: u64,
    event: &'static str,
    member: Option<String>,
    member_id: Option<MemberId>,
    step: Option<String>,
    #[serde(flatten)]
    more: More<'a>,
}

/// What some events alone have.
#[derive(Default, Serialize)]
struct More<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    cluster: Option<String>,
    /// The kind of the playbook.
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<String>,
    /// Of a step: its member goes back.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    back: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    hook: Option<&'a str>,
    /// The program of a guarded command.
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    /// The hazards that a warning is about, by their ids.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    hazards: Vec<&'static str>,
    /// A person has accepted them.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    accepted: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    waiting_for: Option<String>,
    /// What ends that.
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gates: Option<GatesLine>,
    /// What a look has shown.
    #[serde(flatten)]
    seen: Option<Seen>,
    /// Whether hashes were compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    hashes: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    canary: Option<&'a Availability>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seconds: Option<u64>,
    /// How much of a backup is had.
    #[serde(skip_serializing_if = "Option::is_none")]
    percent: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    left: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// The event as a line, without time, host and number; `None` for what no file has.
pub(super) fn line<'a>(event: &RunEvent<'a>, progress: &Progress) -> Option<Line<'a>> {
    let names = progress.names();
    let member = event.member();
    let mut line = Line {
        format: FORMAT,
        time: String::new(),
        run: progress.run(),
        host: "",
        seq: 0,
        event: event.name()?,
        member: member.map(|member| names.short(member)),
        member_id: member,
        step: member.and(progress.step()).map(|step| step.to_string()),
        more: More::of(event, progress),
    };
    if let RunEvent::DataPutAside { node, .. } | RunEvent::NewcomerAdded { node } | RunEvent::NodeStarted { node } =
        event
    {
        line.member = Some((*node).to_owned());
    }
    Some(line)
}

impl<'a> More<'a> {
    fn of(event: &RunEvent<'a>, progress: &Progress) -> Self {
        let names = progress.names();
        let mut more = Self::default();
        match event {
            RunEvent::Begun { change, cluster } => {
                more.cluster = Some(text(cluster));
                change.iter().for_each(|change| more.change(change));
            }
            RunEvent::Hop { change, .. } => more.change(change),
            RunEvent::HandedOver { to, .. } => more.to = Some(names.short(*to)),
            RunEvent::Lowering { to } => more.to = to.map(|to| to.to_string()),
            RunEvent::StepLocked { back, .. } | RunEvent::StepTakenOver { back, .. } => more.back = *back,
            RunEvent::Failed { why, .. } | RunEvent::ProbeFailed { why, .. } | RunEvent::Warning(why) => {
                more.why = Some(text(why))
            }
            RunEvent::Warned { warning, why } => {
                more.why = Some(text(why));
                (more.hazards, more.accepted) = (hazards(warning), matches!(warning, Warning::Accepted { .. }));
            }
            RunEvent::BackingUp { percent } => more.percent = Some(*percent),
            RunEvent::BackedUp { path, .. } => more.to = Some(text(path)),
            RunEvent::LettingPollsEnd { seconds, .. } => more.seconds = Some(*seconds),
            RunEvent::DataPutAside { path, .. } => more.to = Some(text(path)),
            RunEvent::HookRan { hook, .. } => more.hook = Some(*hook),
            RunEvent::HookFailed { hook, why, .. } => (more.hook, more.why) = (Some(*hook), Some(text(why))),
            RunEvent::CommandBegun { command, .. } => more.command = Some(*command),
            RunEvent::CommandEnded { command, failed, .. } => {
                (more.command, more.why) = (Some(*command), failed.map(text));
            }
            RunEvent::Preparing { what } => more.waiting_for = Some(text(what)),
            RunEvent::Unsettled(missing) => {
                (more.waiting_for, more.gates) = (Some(settling::words(missing, names)), progress.gates());
            }
            RunEvent::GatesSettled => more.gates = progress.gates(),
            RunEvent::Canary(found) => more.canary = Some(*found),
            RunEvent::Settled { hashes } => more.hashes = Some(*hashes),
            RunEvent::Looked(view) => {
                (more.seen, more.gates) = (Some(Seen::of(view, names)), progress.gates());
            }
            RunEvent::Waiting(waited) => {
                (more.waiting_for, more.until) = (Some(wait::words(waited, names)), wait::until(waited));
            }
            RunEvent::Ended { exit, reason, message, left, next } => {
                (more.exit, more.reason) = (Some(*exit), Some(*reason));
                let said = |said: &str| Some(text(said)).filter(|said| !said.is_empty());
                (more.message, more.left, more.next) = (said(message), said(left), next.map(text));
            }
            _ => {}
        }
        more
    }

    fn change(&mut self, change: &Change) {
        self.kind = Some(match change {
            Change::Upgrade(_) => "upgrade",
            Change::Downgrade(_) => "downgrade",
            Change::Restart(_) => "restart",
            Change::Scale(_) => "scale",
            Change::Replace(_) => "replace",
        });
        (self.from, self.to) = versions(change);
    }
}

impl<'a> Line<'a> {
    /// With when it was told, by which host, and its number.
    pub(super) fn told(self, time: String, host: &'a str, seq: u64) -> Self {
        Self { time, host, seq, ..self }
    }

    /// What a look has shown: two that show the same are one.
    pub(super) fn seen(&self) -> Option<(&Seen, Option<&GatesLine>)> {
        Some((self.more.seen.as_ref()?, self.more.gates.as_ref()))
    }
}

fn hazards(warning: &Warning) -> Vec<&'static str> {
    match warning {
        Warning::Known { ids, .. } => ids.clone(),
        Warning::Accepted { id } | Warning::Hazard(Hazard::Known { id, .. }) => vec![id],
        _ => Vec::new(),
    }
}

fn text(said: &str) -> String {
    printable(said).to_string()
}
