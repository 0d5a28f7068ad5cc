//! The timeline as a drawing: a bar a member. A state has a pattern as well as a colour, and whoever leads a line below.
//!
//! Places are in hundredths of the width, so the drawing fits any screen, and nothing in it needs a script or a style of its own.

use maud::{Markup, html};

use super::{
    moment::span,
    story::Story,
    timeline::{Row, State},
};

/// What is narrower than this is drawn as wide, in hundredths of the width: a member that was down for a moment is to be seen.
const NARROWEST: f64 = 0.4;

/// Patterns that all drawings use, and their meaning.
pub(super) fn legend() -> Markup {
    html! {
        svg class="patterns" width="0" height="0" aria-hidden="true" focusable="false" {
            defs {
                pattern id="p-down" width="6" height="6" patternUnits="userSpaceOnUse" {
                    rect class="ground-down" width="6" height="6" {}
                    path class="ink" d="M0 0L6 6M6 0L0 6" {}
                }
                pattern id="p-starting" width="6" height="6" patternUnits="userSpaceOnUse" {
                    rect class="ground-starting" width="6" height="6" {}
                    path class="ink" d="M0 6L6 0" {}
                }
                pattern id="p-sick" width="6" height="6" patternUnits="userSpaceOnUse" {
                    rect class="ground-sick" width="6" height="6" {}
                    circle class="dot" cx="3" cy="3" r="1.3" {}
                }
                pattern id="p-away" width="6" height="6" patternUnits="userSpaceOnUse" {
                    rect class="ground-away" width="6" height="6" {}
                    path class="ink" d="M0 3L6 3" {}
                }
            }
        }
        ul class="legend" aria-label="What the patterns mean" {
            @for (class, name) in [
                ("ready", "ready"), ("down", "down"), ("starting", "starting"), ("sick", "runs, not ready"),
                ("away", "no member, or never started"), ("unknown", "not known"), ("leads", "leads"),
            ] {
                li {
                    svg width="28" height="16" aria-hidden="true" focusable="false" {
                        @if class == "leads" {
                            rect class="s-ready" x="0" y="0" width="28" height="11" {}
                            rect class="leads" x="0" y="12" width="28" height="4" {}
                        } @else {
                            rect class={ "s-" (class) } x="0.5" y="0.5" width="27" height="15" {}
                        }
                    }
                    " " (name)
                }
            }
        }
    }
}

fn class(state: State) -> &'static str {
    match state {
        State::Ready => "s-ready",
        State::Down => "s-down",
        State::Starting => "s-starting",
        State::Sick => "s-sick",
        State::NeverStarted | State::Gone => "s-away",
        State::Unknown => "s-unknown",
    }
}

/// The bar of one member.
pub(super) fn bar(row: &Row, story: &Story) -> Markup {
    let place = |from: u64, to: u64| {
        let (from, to) = (hundredths(from, story), hundredths(to, story));
        (format!("{from:.3}%"), format!("{:.3}%", (to - from).max(NARROWEST).min(100.0 - from)))
    };
    // What is wide lies below what is narrow, which would be hidden otherwise.
    let mut spans: Vec<_> = row.spans.iter().collect();
    spans.sort_by_key(|span| std::cmp::Reverse(span.to - span.from));
    html! {
        svg class="bar" width="100%" height="22" role="img" aria-label=(in_words(row)) {
            @for part in spans {
                @let (x, width) = place(part.from, part.to);
                rect class=(class(part.what)) x=(x) y="0" width=(width) height="16" {
                    title { (row.name) " " (part.what.name()) ", " (story.clock(part.from)) " for " (span(part.to - part.from)) }
                }
            }
            @for part in &row.leads {
                @let (x, width) = place(part.from, part.to);
                rect class="leads" x=(x) y="18" width=(width) height="4" {
                    title { (row.name) " leads, " (story.clock(part.from)) " for " (span(part.to - part.from)) }
                }
            }
        }
    }
}

/// Marks below all bars: the beginning, the end, and what lies between.
pub(super) fn axis(story: &Story) -> Markup {
    let whole = story.ended - story.began;
    html! {
        svg class="axis" width="100%" height="24" aria-hidden="true" focusable="false" {
            @for (part, anchor) in [(0_u64, "start"), (1, "middle"), (2, "end")] {
                @let x = format!("{}%", part * 50);
                line x1=(x) x2=(x) y1="0" y2="6" {}
                text x=(x) y="20" text-anchor=(anchor) { (story.clock(story.began + whole / 2 * part)) }
            }
        }
    }
}

/// What the drawing shows, for whoever does not see it.
fn in_words(row: &Row) -> String {
    let time = |state: State| -> u64 {
        row.spans.iter().filter(|span| span.what == state).map(|span| span.to - span.from).sum()
    };
    let states = State::ALL.iter().filter(|state| time(**state) > 0);
    let states: Vec<_> = states.map(|state| format!("{} for {}", state.name(), span(time(*state)))).collect();
    let leads: u64 = row.leads.iter().map(|span| span.to - span.from).sum();
    let leads = if leads > 0 { format!("; leads for {}", span(leads)) } else { String::new() };
    format!("{}: {}{leads}", row.name, states.join(", "))
}

fn hundredths(at: u64, story: &Story) -> f64 {
    let whole = (story.ended - story.began).max(1) as f64;
    ((at.saturating_sub(story.began)) as f64 / whole * 100.0).clamp(0.0, 100.0)
}
