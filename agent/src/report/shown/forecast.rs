//! A forecast for people and scripts.

use std::fmt::Write as _;

use serde::Serialize;

use crate::{
    journal::restart::Direction,
    plan::{
        forecast::{Action, Forecast, Step},
        order::Rank,
    },
    report::{names::Names, wait},
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
    let mut text = String::new();
    let width = forecast.steps.iter().filter_map(|step| step.member).map(|m| names.short(m).chars().count()).max();
    for step in &forecast.steps {
        let indent = if step.id.contains('.') { "  " } else { "" };
        let host = match (&step.host, &step.action) {
            (Some(host), Action::Restart { .. } | Action::Repair | Action::Start) if indent.is_empty() => {
                format!("  on {}", crate::report::names::printable(host))
            }
            _ => String::new(),
        };
        let note = if step.is_no_return { "  <- the point of no return: after this there is no way back" } else { "" };
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{:<5}{indent}{}{host}{note}", step.id, words(step, names, width.unwrap_or(0)));
    }
    text
}

pub fn lines(forecast: &Forecast, names: &Names) -> Vec<StepLine> {
    let line = |step: &Step| StepLine {
        id: step.id.clone(),
        member: step.member.map(|member| names.short(member)),
        action: verb(&step.action),
        state: "planned",
        ms: None,
        no_return: step.is_no_return,
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
        Action::Downgrade(Some(_)) => "lower",
        Action::Downgrade(None) => "cancel",
        Action::Stop => "stop",
        Action::Switch => "switch",
        Action::Start => "start",
        Action::AwaitReady => "await_ready",
        Action::Hold => "hold",
        Action::Settle => "settle",
    }
}

fn words(step: &Step, names: &Names, width: usize) -> String {
    let member = step.member.map(|member| names.short(member)).unwrap_or_default();
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
        Action::HandOver(to) => format!("pass leadership to {}", names.short(*to)),
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
        Action::Settle => "settle: versions, gates and hashes agree on every member".to_owned(),
    }
}

fn word(rank: Rank) -> &'static str {
    match rank {
        Rank::NotReady => "not ready",
        Rank::Learner => "learner",
        Rank::Follower => "follower",
        Rank::Leader => "leader",
    }
}
