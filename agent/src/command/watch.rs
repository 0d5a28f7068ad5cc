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
    keys::Keys,
    report::{
        file::json::{self, Facts},
        live::text,
        shown::changes::changes,
        stop::Stop,
    },
};

/// How often it looks, and says that it waits for a look.
const PERIOD: Duration = Duration::from_secs(1);
/// How many of the last changes are shown.
const SHOWN_CHANGES: usize = 5;

/// Shows one picture after the other until nobody reads any more.
pub(super) async fn watch(place: &Place, output: Output) -> Outcome {
    let mut watched = Watched::default();
    loop {
        let began = Instant::now();
        let looked = {
            let look = place.look();
            tokio::pin!(look);
            loop {
                tokio::select! {
                    looked = &mut look => break looked.map_err(|trouble| place.stop(&trouble)),
                    () = tokio::time::sleep(PERIOD) => {}
                }
                // Where nobody reads any more, what the look has found finds it out.
                let _ = show_wait(&watched, began, output);
            }
        };
        let stop = match &looked {
            Ok(picture) => picture.outcome.stop.clone(),
            Err(stop) => stop.clone(),
        };
        let shown = match output {
            Output::Json => {
                let facts = looked.map_or_else(|_| Facts::default(), |picture| picture.outcome.facts);
                show_line(&(json::object(&stop, &facts) + "\n"))
            }
            Output::Text => {
                watched.take(looked, began, SystemTime::now());
                show_page(&watched.page(None, Instant::now(), SystemTime::now()))
            }
        };
        if shown.is_err() {
            // Whoever watched has gone.
            return Outcome { stop, facts: Facts::default(), text: String::new() };
        }
        tokio::time::sleep(PERIOD).await;
    }
}

/// While a look takes its time: a terminal has the whole page again, anything else the line with the ages.
fn show_wait(watched: &Watched, began: Instant, output: Output) -> io::Result<()> {
    let (now, time) = (Instant::now(), SystemTime::now());
    match output {
        // Each of its lines is a look, with its own time.
        Output::Json => Ok(()),
        Output::Text if io::stdout().is_terminal() => show_page(&watched.page(Some(began), now, time)),
        Output::Text => show_page(&watched.head(Some(began), now, time)),
    }
}

/// The last picture that could be had, and what has changed since the first.
#[derive(Debug, Default)]
struct Watched {
    /// With when its look began: what a slow one shows is as old as that.
    last: Option<(Picture, Instant)>,
    /// Why the last look has brought none.
    why: Option<String>,
    changes: VecDeque<String>,
}

impl Watched {
    /// A cluster that cannot be looked at leaves the last picture.
    fn take(&mut self, looked: Result<Picture, Stop>, began: Instant, time: SystemTime) {
        match looked {
            Ok(picture) => {
                self.learn(&picture, &clock(time));
                (self.last, self.why) = (Some((picture, began)), None);
            }
            Err(stop) => self.why = Some(text::end(&stop)),
        }
    }

    /// What is shown now; with a look that is under way since `asking`.
    fn page(&self, asking: Option<Instant>, now: Instant, time: SystemTime) -> String {
        let picture = self.last.as_ref().map_or("", |(picture, _)| &picture.outcome.text);
        let changes: String = self.changes.iter().map(|change| format!("{change}\n")).collect();
        let rule = if changes.is_empty() { "" } else { "\n" };
        format!("{}{picture}{rule}{changes}", self.head(asking, now, time))
    }

    /// The time, how old the picture is where that matters, and why there is no newer one.
    fn head(&self, asking: Option<Instant>, now: Instant, time: SystemTime) -> String {
        let since = |at: Instant| now.saturating_duration_since(at).as_secs();
        let asking = asking.map(|at| format!("; asking since {} s", since(at)));
        let age = self.last.as_ref().map(|(_, at)| since(*at));
        let age = age.filter(|age| asking.is_some() || self.why.is_some() || *age > PERIOD.as_secs());
        let age = age.map(|age| format!("; picture {age} s old"));
        let (asking, age) = (asking.unwrap_or_default(), age.unwrap_or_default());
        format!("{} UTC{asking}{age}\n{}", clock(time), self.why.as_deref().unwrap_or_default())
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

fn clock(time: SystemTime) -> String {
    rfc3339(time)[11..19].to_owned()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        event::trouble::Trouble,
        plan::samples,
        report::{names::Names, stop::Reason},
    };

    fn picture(text: &str) -> Picture {
        let view = samples::view("1+ 2+ 3+");
        let stop = Stop::well(Reason::Looked, String::new(), "plan", "p.yaml".as_ref());
        let outcome = Outcome { stop, facts: Facts::default(), text: text.into() };
        Picture { outcome, names: Names::of(&view), keys: None, view }
    }

    #[test]
    fn a_picture_that_a_slow_look_leaves_has_its_age() {
        let (began, time) = (Instant::now(), SystemTime::UNIX_EPOCH);
        let at = |seconds| began + Duration::from_secs(seconds);
        let mut watched = Watched::default();
        let head = |watched: &Watched, asking: Option<u64>, now| {
            let page = watched.page(asking.map(at), at(now), time);
            page.strip_prefix("00:00:00 UTC").unwrap().to_owned()
        };
        assert_eq!(head(&watched, Some(0), 3), "; asking since 3 s\n");
        watched.take(Ok(picture("first\n")), at(0), time);
        assert_eq!(head(&watched, None, 0), "\nfirst\n");
        assert_eq!(head(&watched, None, 6), "; picture 6 s old\nfirst\n", "its own look was slow");
        assert_eq!(head(&watched, Some(5), 9), "; asking since 4 s; picture 9 s old\nfirst\n");
        let nobody = Trouble::Unreachable("nobody answers".into());
        watched.take(Err(nobody.stop("status", None, false)), at(5), time);
        let failed = head(&watched, None, 10);
        assert!(
            failed.starts_with("; picture 10 s old\nerror: nobody answers\n") && failed.ends_with("first\n"),
            "{failed}"
        );
        let again = head(&watched, Some(11), 13);
        assert!(again.starts_with("; asking since 2 s; picture 13 s old\nerror: nobody answers\n"), "{again}");
        watched.take(Ok(picture("second\n")), at(14), time);
        assert_eq!(head(&watched, None, 14), "\nsecond\n");
    }
}
