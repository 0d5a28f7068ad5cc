//! The report of a run: events files read back, and one HTML page that stands alone, with no script and no address in it.
//!
//! ```text
//! bytes -> read -> runs -> story (timeline, steps, cautions, cluster) -> html
//! ```
//! Everything here is pure, and bounded: a file may be torn, hostile or very large. What it says is shown as text alone, and nothing is
//! concluded that no event says.

mod cautions;
mod chart;
mod cluster;
mod html;
mod moment;
pub mod read;
mod record;
mod runs;
#[cfg(test)]
mod samples;
mod sections;
mod steps;
mod story;
mod timeline;
mod words;

#[cfg(test)]
mod page_test;

use self::{
    read::{Events, ReadError, Source},
    runs::NoSuchRun,
    story::Story,
};

/// What each page begins with.
const BEGINNING: &str = "<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"generator\" \
                         content=\"Baton\">";

/// A page, and what is to be said of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    pub html: String,
    /// What it is about and how that ended, in one sentence.
    pub result: String,
    /// The runs that it is about: several where a way over several releases was gone.
    pub runs: Vec<String>,
}

/// Whether a file is a page that was made here.
pub fn is_one(bytes: &[u8]) -> bool {
    bytes.starts_with(BEGINNING.as_bytes())
}

/// The page of the newest run in these events, or of the one whose id begins so.
///
/// # Errors
/// There is no such run.
pub fn of(events: &Events, run: Option<&str>) -> Result<Page, NoSuchRun> {
    let chosen = runs::choose(&events.records, run)?;
    let story = Story::of(events, &chosen);
    Ok(Page { html: html::page(&story), result: story.sentence(), runs: story.runs.clone() })
}

/// The page of what one process has kept.
///
/// # Errors
/// There is nothing.
pub fn of_one_run(lines: &[u8]) -> Result<String, ReadError> {
    let events = read::events(&[Source { name: "this run".to_owned(), bytes: lines }])?;
    of(&events, None).map(|page| page.html).map_err(|_| ReadError::Nothing { file: "this run".to_owned() })
}
