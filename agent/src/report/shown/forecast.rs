//! A forecast for people and scripts.

use std::fmt::Write as _;

use serde::Serialize;

use crate::{
    journal::restart::Direction,
    plan::{
        forecast::{Action, Forecast, Step},
        membership::forecast::{MemberAction, Voters},
        order::Rank,
    },
    report::{
        change,
        names::{Names, printable},
        stop::warned::quantity,
        wait,
    },
};

/// One step as JSON has it. In a plan nothing has been done yet; a run fills in state and time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StepLine {
    /// `1`, `1.1`, …
    pub id: String,
    pub member: Option<String>,
    pub action: &'static str,
    /// `planned`, `running`, `done`, `failed`, `put_back`, `kept_new`
    pub state: &'static str,
    /// How long it took, in milliseconds.
    pub ms: Option<u64>,
    /// Whether there is no way back from its start on.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub no_return: bool,
    /// How many voters there are after it, where it changes their number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub voters: Option<usize>,
    /// How many of them may then be lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub voters_to_lose: Option<usize>,
    /// The host that does it, where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
}

/// The starts of members that are down, where nothing more can be foreseen.
pub fn starts(down: &[String]) -> String {
    down.iter().enumerate().map(|(at, name)| format!("{:<5}{name}  {NOT_RUNNING}\n", at + 1)).collect()
}

pub fn start_lines(down: &[String], host: &str) -> Vec<StepLine> {
    let line = |(at, name): (usize, &String)| StepLine {
        id: (at + 1).to_string(),
        member: Some(name.clone()),
        action: verb(&Action::Start),
        state: "planned",
        ms: None,
        no_return: false,
        voters: None,
        voters_to_lose: None,
        host: Some(host.to_owned()),
    };
    down.iter().enumerate().map(line).collect()
}

/// What this host would do next.
pub fn now(host: &str, would: &str) -> String {
    format!("this host ({host}) would now: {would}\n")
}

const NOT_RUNNING: &str = "start: it is not running";

/// The steps, one a line, parts indented under their step.
pub fn text(forecast: &Forecast, names: &Names) -> String {
    let names = &with_newcomers(forecast, names);
    let mut text = String::new();
    let width = forecast.steps.iter().map(|step| who(step, names).chars().count()).max();
    for step in &forecast.steps {
        let indent = if step.id.contains('.') { "  " } else { "" };
        let host = match (&step.host, &step.action) {
            (Some(host), Action::Restart { .. } | Action::Repair | Action::Start | Action::Member(_))
                if indent.is_empty() =>
            {
                format!("  on {}", printable(host))
            }
            _ => String::new(),
        };
        let note = match (step.is_no_return, &step.action) {
            (true, Action::Member(_)) => "  <- there is no way back from this: its id never comes again",
            (true, _) => "  <- the point of no return: after this there is no way back",
            (false, _) => "",
        };
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{:<5}{indent}{}{host}{note}", step.id, words(step, names, width.unwrap_or(0)));
    }
    text
}

fn with_newcomers(forecast: &Forecast, names: &Names) -> Names {
    let mut names = names.clone();
    names.learn(&forecast.newcomers.iter().map(|(id, name)| (name.to_string(), *id)).collect());
    names
}

pub fn lines(forecast: &Forecast, names: &Names) -> Vec<StepLine> {
    let line = |step: &Step| StepLine {
        id: step.id.clone(),
        member: Some(who(step, names)).filter(|who| !who.is_empty()),
        action: verb(&step.action),
        state: "planned",
        ms: None,
        no_return: step.is_no_return,
        voters: step.voters.map(|voters| voters.count),
        voters_to_lose: step.voters.map(|voters| voters.to_lose),
        host: step.host.as_deref().map(str::to_owned),
    };
    forecast.steps.iter().map(line).collect()
}

fn verb(action: &Action) -> &'static str {
    match action {
        Action::Await(_) => "wait",
        Action::Repair => "repair",
        Action::Restart { direction: Direction::Back, .. } => "put_back",
        Action::Restart { from: Some(from), to: Some(to), .. } if to < from => "downgrade",
        Action::Restart { to: Some(_), .. } => "upgrade",
        Action::Restart { to: None, .. } => "restart",
        Action::HandOver(_) => "hand_over",
        Action::BackUp => "back_up",
        Action::Downgrade(Some(_)) => "lower",
        Action::Downgrade(None) => "cancel",
        Action::Stop => "stop",
        Action::Switch => "switch",
        Action::Start => "start",
        Action::AwaitReady => "await_ready",
        Action::Hold => "hold",
        Action::Member(MemberAction::PutAside) => "put_aside",
        Action::Member(MemberAction::Join) => "join",
        Action::Member(MemberAction::CatchUp) => "catch_up",
        Action::Member(MemberAction::Promote) => "promote",
        Action::Member(MemberAction::Remove { .. }) => "remove",
        Action::Member(MemberAction::TakeBack) => "take_back",
        Action::Member(MemberAction::Retire) => "retire",
        Action::Settle => "settle",
        Action::Hop { .. } => "hop",
    }
}

/// Whom it is done to; nobody's where it is done to all.
fn who(step: &Step, names: &Names) -> String {
    let listed = || step.member.map(|member| names.short(member)).unwrap_or_default();
    step.seat.as_ref().map_or_else(listed, |seat| printable(seat).to_string())
}

fn words(step: &Step, names: &Names, width: usize) -> String {
    let member = who(step, names);
    match &step.action {
        Action::Await(wait) => format!("wait for {}", wait::words(wait, names)),
        Action::Repair => format!("{member}  bring it up and finish what an earlier agent began"),
        Action::Restart { from, to, direction, rank } => {
            let from = from.as_ref().map_or_else(|| "?".to_owned(), ToString::to_string);
            let change = match (to, direction) {
                (Some(to), Direction::Forward) => format!("{from} -> {to}"),
                (Some(to), Direction::Back) => format!("{from} -> {to}, back"),
                (None, Direction::Forward) => format!("{from}, anew"),
                (None, Direction::Back) => format!("{from} -> what it ran before, back"),
            };
            format!("{member:<width$}  {:<9}  {change}", word(*rank))
        }
        Action::HandOver(to) if !step.id.contains('.') => {
            format!("{member:<width$}  pass leadership to {}", names.short(*to))
        }
        Action::HandOver(to) => format!("pass leadership to {}", names.short(*to)),
        Action::BackUp => "save a member's database, on the first host that is at work".to_owned(),
        Action::Downgrade(Some(to)) => {
            format!("enable a downgrade to {to}, and wait until every member's data is fit for it")
        }
        Action::Downgrade(None) => "cancel the downgrade".to_owned(),
        Action::Stop => "stop".to_owned(),
        Action::Switch => "switch the binary".to_owned(),
        Action::Start if step.id.contains('.') => "start".to_owned(),
        Action::Start => format!("{member:<width$}  {NOT_RUNNING}"),
        Action::AwaitReady => "wait until it is ready".to_owned(),
        Action::Hold => {
            format!("hold before {member}, until `agent finalize`: {}", crate::report::stop::HOLD)
        }
        Action::Member(action) => {
            let then = step.voters.map(after).unwrap_or_default();
            format!("{member:<width$}  {}{then}", member_words(*action))
        }
        Action::Settle => "settle: versions, gates and hashes agree on every member".to_owned(),
        Action::Hop { number, of, change } => format!("hop {number} of {of}, {}", change::words(Some(change)).run),
    }
}

fn member_words(action: MemberAction) -> &'static str {
    match action {
        MemberAction::PutAside => "put old data aside",
        MemberAction::Join => "join as a learner",
        MemberAction::CatchUp => "start, and catch up",
        MemberAction::Promote => "promote",
        MemberAction::Remove { is_dead: false } => "remove",
        MemberAction::Remove { is_dead: true } => "remove, though it is not ready",
        MemberAction::TakeBack => "remove, as it was given up",
        MemberAction::Retire => "stop for good, and put its data aside",
    }
}

fn after(voters: Voters) -> String {
    let noun = if voters.count == 1 { "voter" } else { "voters" };
    format!(": then {} {noun}, {} may be lost", voters.count, quantity(voters.to_lose))
}

fn word(rank: Rank) -> &'static str {
    match rank {
        Rank::NotReady => "not ready",
        Rank::Learner => "learner",
        Rank::Follower => "follower",
        Rank::Leader => "leader",
    }
}
