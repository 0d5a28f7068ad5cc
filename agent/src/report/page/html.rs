//! The page: its head, and its parts in the order in which they are read.

use base64::{Engine, engine::general_purpose::STANDARD};
use maud::{Markup, PreEscaped, html};
use sha2::{Digest, Sha256};

use super::{
    BEGINNING, chart,
    moment::span,
    sections::{cautions, changes, ends, head, journal, steps},
    story::Story,
};

const STYLE: &str = include_str!("page.css");

/// The page as a text.
pub(super) fn page(story: &Story) -> String {
    let title = format!("{} – Baton", story.sentence());
    let rest = html! {
        meta http-equiv="Content-Security-Policy" content=(policy());
        meta name="viewport" content="width=device-width, initial-scale=1";
        meta name="color-scheme" content="light dark";
        meta name="referrer" content="no-referrer";
        title { (title) }
        style { (PreEscaped(STYLE)) }
        (PreEscaped("</head>"))
        body {
            a class="skip" href="#timeline" { "Go to the timeline" }
            (head(story))
            main {
                (timeline(story))
                (steps(story))
                (cautions(story))
                (changes(story))
                (ends(story))
                (journal(story))
            }
            footer {
                p {
                    "Made by Baton from " (story.journal.len() + story.left_out) " events. Moments are in UTC, each by the clock \
                     of its own host. This page needs nothing but itself."
                }
            }
        }
        (PreEscaped("</html>\n"))
    };
    BEGINNING.to_owned() + &rest.into_string()
}

/// No script, no address, and no style but the page's own.
fn policy() -> String {
    let digest = STANDARD.encode(Sha256::digest(STYLE.as_bytes()));
    format!("default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'")
}

fn timeline(story: &Story) -> Markup {
    html! {
        section id="timeline" aria-labelledby="timeline-title" {
            h2 id="timeline-title" { "Timeline" }
            @if story.timeline.rows.is_empty() {
                p { "No event tells of a member." }
            } @else {
                p class="note" { "A bar is a member, from the first event to the last. Open one for its moments." }
                (chart::legend())
                div class="rows" {
                    @for row in &story.timeline.rows {
                        details class="member" {
                            summary {
                                span class="who" {
                                    strong { (row.name) }
                                    @if let Some(host) = &row.host { " on " (host) }
                                    @match &row.releases {
                                        Some((first, last)) if first != last => { ", " (first) " → " (last) }
                                        Some((first, _)) => { ", " (first) }
                                        None => {}
                                    }
                                }
                                (chart::bar(row, story))
                            }
                            div class="scroll" tabindex="0" role="region" aria-label={ "Moments of " (row.name) } {
                                table {
                                    thead { tr { th scope="col" { "from" } th scope="col" { "for" } th scope="col" { "was" } } }
                                    tbody {
                                        @for part in &row.spans {
                                            tr {
                                                td { (story.clock(part.from)) }
                                                td { (span(part.to - part.from)) }
                                                td { (part.what.name()) }
                                            }
                                        }
                                        @for part in &row.leads {
                                            tr {
                                                td { (story.clock(part.from)) }
                                                td { (span(part.to - part.from)) }
                                                td { "the leader" }
                                            }
                                        }
                                    }
                                }
                            }
                        }
                    }
                    (chart::axis(story))
                }
            }
        }
    }
}
