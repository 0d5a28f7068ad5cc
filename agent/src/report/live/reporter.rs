//! [`Reporter`]: hears what happens and tells it on: to a terminal, in lines, to an events file, as a result.
//!
//! Telling never fails and never waits. What cannot be written is said once, as a warning.

use std::{
    collections::BTreeMap,
    io::{self, IsTerminal},
    path::Path,
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use proto::MemberId;

use super::{
    display::{Screen, frame, size},
    pipe::{Pipe, Target},
    progress::Progress,
    text,
};
use crate::{
    calendar::rfc3339,
    event::{RunEvent, trouble::Trouble},
    guarded::FileError,
    keys::seat::Seats,
    report::{
        Output,
        file::{
            events::Events,
            json::{self, Facts},
            metrics_file::MetricsFile,
            report_file::ReportFile,
        },
        lasted::lasted,
        stop::Stop,
    },
    visible,
};

/// How long a wait has lasted when it is told of again, the first time.
const TOLD_AGAIN: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub struct Reporter {
    progress: Progress,
    output: Output,
    events: Option<Events>,
    metrics: Option<MetricsFile>,
    report: Option<ReportFile>,
    /// Where progress is shown: stdout, or stderr where stdout is for the result alone.
    pipe: Pipe,
    /// Where progress is drawn rather than written line by line.
    screen: Option<Screen>,
    began: Instant,
    /// The wait that goes on.
    wait: Option<Wait>,
    is_broken: bool,
}

/// A wait as it is told of.
#[derive(Clone, Copy, Debug)]
struct Wait {
    since: Instant,
    /// The same by the clock.
    at: SystemTime,
    /// How long it has lasted when it is told of again, in lines.
    told_again: Duration,
}

impl Reporter {
    /// Opens the events file, and looks whether there is a terminal. `host` is this host's name.
    ///
    /// # Errors
    /// [`Trouble::Usage`] when the events file cannot be opened.
    pub fn open(output: Output, events: Option<&Path>, host: Arc<str>) -> Result<Self, Trouble> {
        let cannot =
            |path: &Path, error: FileError| Trouble::Usage(format!("--events {}: {}", path.display(), error.source));
        let events = match events {
            Some(path) => Some(Events::open(path, host).map_err(|error| cannot(path, error))?),
            None => None,
        };
        let (target, is_terminal) = match output {
            Output::Text => (Target::Stdout, io::stdout().is_terminal()),
            Output::Json => (Target::Stderr, false),
        };
        Ok(Self {
            progress: Progress::default(),
            output,
            events,
            metrics: None,
            report: None,
            pipe: Pipe::new(target),
            screen: is_terminal.then(Screen::default),
            began: Instant::now(),
            wait: None,
            is_broken: false,
        })
    }

    /// Keeps this file up to date, too.
    pub fn with_metrics(self, metrics: Option<MetricsFile>) -> Self {
        Self { metrics, ..self }
    }

    /// Writes a report of what is told from now on, at the end.
    pub fn with_report(self, report: Option<ReportFile>) -> Self {
        let events = match &report {
            Some(report) => Some(self.events.unwrap_or_else(|| Events::new(report.host.clone())).keep()),
            None => self.events,
        };
        Self { events, report, ..self }
    }

    /// Says who is called what, before the members themselves were asked.
    pub fn learn(&mut self, members: &BTreeMap<String, MemberId>) {
        self.progress.learn(members);
    }

    /// Says which members run on this host.
    pub fn own(&mut self, seats: &Seats) {
        self.progress.own(seats);
    }

    /// Says which of them do not run, at the end.
    pub fn down(&mut self, members: &[MemberId]) {
        self.progress.down(members);
    }

    /// What has happened so far, and who is called what.
    pub fn progress(&self) -> &Progress {
        &self.progress
    }

    pub fn tell(&mut self, event: RunEvent) {
        let is_new = self.is_new(&event);
        if matches!(event, RunEvent::Looked(_)) {
            self.progress.seen(SystemTime::now());
        }
        let now = Instant::now();
        self.progress.take(&event, now);
        self.wait = self.progress.waiting_since().map(|since| match self.wait {
            Some(wait) if wait.since == since => wait,
            _ => Wait { since, at: SystemTime::now(), told_again: TOLD_AGAIN },
        });
        if let Some(metrics) = &mut self.metrics {
            metrics.hear(&event, self.progress.names(), SystemTime::now());
        }
        if let Some(why) = self.metrics.as_ref().and_then(MetricsFile::failure) {
            self.warn(&why);
        }
        if is_new {
            let warning =
                self.events.as_mut().and_then(|events| events.write(&event, &self.progress, SystemTime::now()));
            self.show(&event);
            if let Some(warning) = warning {
                self.warn(&warning);
            }
        }
        match &mut self.wait {
            Some(wait) if !is_new && self.screen.is_none() && now - wait.since >= wait.told_again => {
                wait.told_again *= 2;
                let lasted = lasted(now - wait.since);
                self.offer_line(&format!(
                    "for {lasted} already: {}",
                    text::line(&event, &self.progress).unwrap_or_default()
                ));
            }
            _ => {}
        }
        if let Some(why) = self.pipe.failure().filter(|_| !std::mem::replace(&mut self.is_broken, true)) {
            self.warn(&format!("progress cannot be shown: {why}"));
        }
    }

    /// The same wait, begun again after another look, is no news.
    fn is_new(&self, event: &RunEvent) -> bool {
        match event {
            RunEvent::Waiting(wait) => !self.progress.is_waiting(wait),
            RunEvent::Unsettled(missing) => !self.progress.is_unsettled(missing),
            _ => true,
        }
    }

    fn warn(&mut self, text: &str) {
        let warning = RunEvent::Warning(text);
        self.progress.take(&warning, Instant::now());
        self.show(&warning);
    }

    fn show(&mut self, event: &RunEvent) {
        match (&self.screen, text::line(event, &self.progress)) {
            (Some(_), line) => {
                let stays = matches!(
                    event,
                    RunEvent::Warning(_)
                        | RunEvent::Warned { .. }
                        | RunEvent::Failed { .. }
                        | RunEvent::ProbeFailed { .. }
                        | RunEvent::HookFailed { .. }
                );
                self.draw(&line.filter(|_| stays).into_iter().collect::<Vec<_>>());
            }
            (None, Some(line)) => self.offer_line(&line),
            (None, None) => {}
        }
    }

    /// A line that does not fit is lost: the run goes on.
    fn offer_line(&self, line: &str) {
        let time = rfc3339(SystemTime::now());
        self.pipe.offer(format!("{}  {}\n", &time[11..19], visible::line(line)));
    }

    /// Since when it waits, as RFC 3339 has it.
    pub fn waiting_since(&self) -> Option<String> {
        self.wait.map(|wait| rfc3339(wait.at))
    }

    fn draw(&mut self, above: &[String]) {
        let Some(screen) = &self.screen else { return };
        let size = size(io::stdout());
        let mut next = screen.clone();
        let drawn = next.draw(above, &frame(&self.progress, self.began.elapsed(), size), size);
        // A drawing that was not taken has not changed the screen.
        if self.pipe.offer(drawn) {
            self.screen = Some(next);
        }
    }

    /// Ends without a word, once all that was told is written.
    pub fn close(self) {
        self.pipe.end(String::new());
    }

    /// Tells the end, prints the result, and gives the exit code.
    pub fn end(mut self, stop: &Stop) -> u8 {
        let Stop { exit, reason, message, left, next, .. } = stop;
        self.tell(RunEvent::Ended { exit: *exit, reason: reason.name(), message, left, next: next.as_deref() });
        if let Some(report) = self.report.take() {
            let events = self.events.as_mut().map(Events::kept).unwrap_or_default();
            if let Err(why) = report.write(events) {
                self.warn(&why);
            }
        }
        let facts = Facts { waiting_since: self.waiting_since(), ..self.progress.facts() };
        if let Some(metrics) = self.metrics.take() {
            metrics.end();
        }
        match self.output {
            Output::Text if stop.exit == 0 => self.pipe.end(text::end(stop)),
            Output::Text => {
                self.pipe.end(String::new());
                Pipe::new(Target::Stderr).end(text::end(stop));
            }
            Output::Json => {
                Pipe::new(Target::Stdout).end(json::object(stop, &facts) + "\n");
                self.pipe.end(String::new());
            }
        }
        stop.exit
    }
}
