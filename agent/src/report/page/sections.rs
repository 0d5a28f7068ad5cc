//! The parts of the page that are words and tables.

use maud::{Markup, html};

use super::{
    moment::{self, date, span, whole},
    record::Record,
    steps::{Outcome, Step},
    story::{Story, Verdict},
    timeline::State,
    words::words,
};
use crate::report::available;

/// What run it is, and how it ended.
pub(super) fn head(story: &Story) -> Markup {
    let end = story.end().map(|(_, said)| said);
    let (class, mark) = match story.verdict() {
        Verdict::Well => ("well", "✓"),
        Verdict::Ill => ("ill", "✗"),
        Verdict::Open => ("open", "…"),
    };
    html! {
        header {
            h1 {
                @if let Some(cluster) = &story.cluster { (cluster) ": " }
                (story.what())
            }
            p class={ "result " (class) } { span class="mark" aria-hidden="true" { (mark) } " " (story.result()) }
            @if let Some(left) = end.and_then(|said| said.left.as_ref()) { p { "Left: " (left) } }
            @if let Some(next) = end.and_then(|said| said.next.as_ref()) { p { "Next: " code { (next) } } }
            @for other in story.other_ends() { p { "Another agent ended otherwise, on " (other) } }
            @let endless = story.endless();
            @if !endless.is_empty() && end.is_some() {
                p { "No end is told by the agent of " (endless.join(", ")) ": it is at work, or was ended from outside." }
            }
            dl class="facts" {
                div { dt { "Began" } dd { time datetime=(whole(story.began)) { (date(story.began)) " " (moment::clock(story.began)) } } }
                div { dt { "Took" } dd { (span(story.ended - story.began)) } }
                @if let Some(said) = end {
                    div {
                        dt { "Exit" }
                        dd {
                            @if let Some(exit) = said.exit { (exit) ", " }
                            (said.reason.as_deref().unwrap_or("no reason"))
                        }
                    }
                }
                div { dt { "Members" } dd { (story.timeline.rows.iter().filter(|row| !is_gone(row.spans.last())).count()) } }
                div { dt { "Most down at a time" } dd { (story.timeline.most_down) } }
                @if let Some((ready, members)) = story.timeline.fewest_ready {
                    div { dt { "Fewest ready at a time" } dd { (ready) " of " (members) } }
                }
                div { dt { "Steps" } dd { (story.steps.len() + story.more_steps) } }
                div { dt { "Hosts that report" } dd { (story.hosts.len()) } }
                @if !story.runs.is_empty() {
                    div class="wide" { dt { "Run" } dd { code { (story.runs.join(", ")) } } }
                }
                @for (host, found) in &story.canaries {
                    div class="wide" { dt { "Availability" } dd { "of " (host) ", " (available::words(found)) } }
                }
                @for (member, host, file) in &story.backups {
                    div class="wide" {
                        dt { "Backup" }
                        dd { "the database of " (member) ", on " (host) " as " code { (file) } }
                    }
                }
                @if !story.cluster_ids.is_empty() {
                    div class="wide" {
                        dt { "Cluster id" }
                        dd { code { (story.cluster_ids.iter().cloned().collect::<Vec<_>>().join(", ")) } }
                    }
                }
            }
            @if story.cluster_ids.len() > 1 {
                p class="result ill" { span class="mark" aria-hidden="true" { "✗" } " These events are of several clusters." }
            }
        }
    }
}

fn is_gone(last: Option<&super::timeline::Span<State>>) -> bool {
    last.is_some_and(|span| span.what == State::Gone)
}

/// A table with its caption that moves within itself where the screen is narrow.
fn table(title: &str, heads: &[&str], rows: Markup) -> Markup {
    html! {
        div class="scroll" tabindex="0" role="region" aria-label=(title) {
            table {
                thead { tr { @for head in heads { th scope="col" { (head) } } } }
                tbody { (rows) }
            }
        }
    }
}

/// Every step, with the events that show it.
pub(super) fn steps(story: &Story) -> Markup {
    html! {
        section aria-labelledby="steps-title" {
            h2 id="steps-title" { "Steps" }
            @if story.steps.is_empty() { p { "No member was stopped or started in a step." } }
            ol class="steps" {
                @for step in &story.steps { li { (one(step, story)) } }
            }
            @if story.more_steps > 0 { p { "And " (story.more_steps) " more." } }
        }
    }
}

fn one(step: &Step, story: &Story) -> Markup {
    let mark = match step.outcome {
        Outcome::Done => "✓",
        Outcome::PutBack | Outcome::KeptNew => "!",
        Outcome::Failed => "✗",
        Outcome::Unknown => "?",
    };
    let class = match step.outcome {
        Outcome::Done => "well",
        _ => "ill",
    };
    html! {
        details {
            summary {
                span class={ "mark " (class) } aria-hidden="true" { (mark) } " "
                strong { (step.member) } " "
                @if step.is_back { "back " }
                @match &step.releases {
                    (Some(before), Some(after)) if before != after => { (before) " → " (after) ", " }
                    (_, Some(after)) => { "at " (after) ", " }
                    (Some(before), None) => { "from " (before) ", " }
                    (None, None) => {}
                }
                (step.outcome.name())
                @match step.down {
                    Some((from, Some(to))) => { ", down for " (span(to.saturating_sub(from))) }
                    Some((from, None)) => { ", down since " (story.clock(from)) }
                    None => {}
                }
                span class="note" { " " (step.host) ", " (story.clock(step.began)) }
            }
            ul class="evidence" {
                @for (at, what) in &step.evidence {
                    li { time datetime=(whole(*at)) { (story.clock(*at)) } " " (what) }
                }
            }
        }
    }
}

/// Hazards, warnings and failures.
pub(super) fn cautions(story: &Story) -> Markup {
    let rows = html! {
        @for caution in &story.cautions {
            tr {
                td { strong { (caution.kind.name()) } }
                td class="words" { (caution.text) }
                td { @if let Some(at) = caution.at { (story.clock(at)) } }
                td { (caution.hosts.join(", ")) }
            }
        }
    };
    html! {
        section aria-labelledby="cautions-title" {
            h2 id="cautions-title" { "Hazards and warnings" }
            @if story.cautions.is_empty() { p { "None." } } @else {
                (table("Hazards and warnings", &["kind", "what", "first at", "said by"], rows))
            }
            @if story.more_cautions > 0 { p { "And " (story.more_cautions) " more, in the events." } }
        }
    }
}

/// Versions and gates.
pub(super) fn changes(story: &Story) -> Markup {
    let rows = html! {
        @for change in &story.changes {
            tr { td { (story.clock(change.at)) } td { (change.what) } td class="words" { (change.text) } }
        }
    };
    html! {
        section aria-labelledby="cluster-title" {
            h2 id="cluster-title" { "Cluster version and gates" }
            @if story.changes.is_empty() { p { "No event tells of them." } } @else {
                (table("Cluster version and gates", &["at", "what", "is"], rows))
            }
        }
    }
}

/// How each host's agent ended.
pub(super) fn ends(story: &Story) -> Markup {
    let rows = html! {
        @for ((host, _), end) in &story.ends {
            tr {
                td { (host) }
                @match end {
                    Some((at, said)) => {
                        td class="words" { (said.message.as_deref().unwrap_or_default()) }
                        td { @if let Some(exit) = said.exit { (exit) } }
                        td { (said.reason.as_deref().unwrap_or_default()) }
                        td { (story.clock(*at)) }
                    }
                    None => { td class="words" { "it is at work, or was ended from outside" } td {} td { "not told" } td {} }
                }
            }
        }
    };
    html! {
        section aria-labelledby="ends-title" {
            h2 id="ends-title" { "How each agent ended" }
            (table("How each agent ended", &["host", "in words", "exit", "reason", "at"], rows))
        }
    }
}

/// Every event.
pub(super) fn journal(story: &Story) -> Markup {
    let entry = |record: &Record| {
        let said = &record.said;
        html! {
            tr {
                td { time datetime=(whole(record.at)) { (story.clock(record.at)) } }
                td class="words" { (words(said)) }
                td { (said.member.as_deref().unwrap_or_default()) }
                td { (said.host) }
                td { (said.event) }
            }
        }
    };
    let half = if story.left_out > 0 { story.journal.len() / 2 } else { story.journal.len() };
    let (begin, end) = story.journal.split_at(half);
    let rows = html! {
        @for record in begin { (entry(record)) }
        @if story.left_out > 0 {
            tr { td colspan="5" { "… " (story.left_out) " events are left out here; the events files have them …" } }
        }
        @for record in end { (entry(record)) }
    };
    html! {
        section aria-labelledby="journal-title" {
            h2 id="journal-title" { "Journal" }
            details class="journal" {
                summary { "All " (story.journal.len() + story.left_out) " events, in order of time" }
                (table("Events", &["at", "what", "of", "said by", "event"], rows))
            }
        }
    }
}
