//! `agent status --watch`: the same picture again and again, its age, and what has changed since the watch began.

use std::{
    collections::VecDeque,
    io::{self, IsTerminal, Write},
    time::{Duration, Instant, SystemTime},
};

use super::{
    Outcome, coloured, shown_text,
    status::{Picture, Place},
};
use crate::{
    calendar::rfc3339,
    cli::Output,
    event::trouble::Trouble,
    keys::Keys,
    report::{
        file::json::{self, Facts},
        live::text,
        shown::changes::changes,
    },
};

/// How often it looks.
const PERIOD: Duration = Duration::from_secs(1);
/// How many of the last changes are shown.
const SHOWN_CHANGES: usize = 5;

/// Shows one picture after the other until nobody reads any more.
pub(super) async fn watch(place: &Place, output: Output) -> Outcome {
    let mut watched = Watched::default();
    loop {
        let looked = place.look().await;
        let stop = match &looked {
            Ok(picture) => picture.outcome.stop.clone(),
            Err(trouble) => trouble.stop("status", None, false),
        };
        let shown = match output {
            Output::Json => {
                let facts = looked.map_or_else(|_| Facts::default(), |picture| picture.outcome.facts);
                show_line(&(json::object(&stop, &facts) + "\n"))
            }
            Output::Text => show_page(&watched.page(looked, Instant::now(), SystemTime::now())),
        };
        if shown.is_err() {
            // Whoever watched has gone.
            return Outcome { stop, facts: Facts::default(), text: String::new() };
        }
        tokio::time::sleep(PERIOD).await;
    }
}

/// The last picture that could be had, and what has changed since the first.
#[derive(Debug, Default)]
struct Watched {
    last: Option<(Picture, Instant)>,
    changes: VecDeque<String>,
}

impl Watched {
    /// What is shown now. A cluster that cannot be looked at leaves the last picture, with its age and the reason.
    fn page(&mut self, looked: Result<Picture, Trouble>, now: Instant, time: SystemTime) -> String {
        let clock = rfc3339(time)[11..19].to_owned();
        let head = match looked {
            Ok(picture) => {
                self.learn(&picture, &clock);
                self.last = Some((picture, now));
                format!("{clock} UTC\n")
            }
            Err(trouble) => {
                let why = text::end(&trouble.stop("status", None, false));
                let age = self.last.as_ref().map(|(_, at)| now.saturating_duration_since(*at).as_secs());
                let age = age.map_or_else(String::new, |age| format!("; what follows is {age} s old"));
                format!("{clock} UTC{age}\n{why}")
            }
        };
        let picture = self.last.as_ref().map_or("", |(picture, _)| &picture.outcome.text);
        let changes: String = self.changes.iter().map(|change| format!("{change}\n")).collect();
        let rule = if changes.is_empty() { "" } else { "\n" };
        format!("{head}{picture}{rule}{changes}")
    }

    fn learn(&mut self, picture: &Picture, clock: &str) {
        let none = Keys::default();
        let keys = |picture: &Picture| picture.keys.clone().unwrap_or_default();
        if let Some((before, _)) = &self.last {
            // Keys that could not be read have not changed.
            let (was, is) = match (&before.keys, &picture.keys) {
                (Some(_), Some(_)) => (keys(before), keys(picture)),
                _ => (none.clone(), none),
            };
            let said = changes((&before.view, &was), (&picture.view, &is), &picture.names);
            self.changes.extend(said.into_iter().map(|change| format!("{clock}  {change}")));
        }
        let surplus = self.changes.len().saturating_sub(SHOWN_CHANGES);
        self.changes.drain(..surplus);
    }
}

fn show_line(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// A terminal is wiped first; elsewhere an empty line parts one picture from the next.
fn show_page(text: &str) -> io::Result<()> {
    match io::stdout().is_terminal() {
        true => show_line(&format!("\x1b[H\x1b[2J{}", coloured(text))),
        false => show_line(&format!("{}\n", shown_text(text))),
    }
}
