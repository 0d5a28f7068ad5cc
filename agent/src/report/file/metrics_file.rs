//! The metrics of a run as a file, for node_exporter's textfile collector: what the run saw last, written over whenever it looks.
//!
//! A thread of its own writes it, at most once a second, so that no disk holds up a run. A write that fails is told once and
//! changes no run.

use std::{
    path::Path,
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    thread,
    time::{Duration, Instant, SystemTime},
};

use super::metrics::{self, AgentRun, Look};
use crate::{
    event::RunEvent,
    guarded::{Access, At, Content, FileError, Place},
    keys::Keys,
    observe::view::ClusterView,
    report::names::Names,
};

/// Whoever scrapes is another user.
const ACCESS: Access = Access::of_mode(0o644);
/// The time between two writes: each is synced, and nobody scrapes more often.
const PERIOD: Duration = Duration::from_secs(1);
/// How long the end waits for the last page.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub struct MetricsFile {
    cluster: String,
    host: Arc<str>,
    view: Option<ClusterView>,
    keys: Option<Keys>,
    /// When the members were seen.
    at: Option<SystemTime>,
    pages: Option<Sender<String>>,
    written: Receiver<()>,
    failure: Arc<Mutex<Option<String>>>,
}

impl MetricsFile {
    /// Looks whether the file can be replaced, and leaves the one that is there.
    ///
    /// # Errors
    /// The system's, or why another user could decide which file it is.
    pub fn open(path: &Path, cluster: &str, host: Arc<str>) -> Result<Self, FileError> {
        let place = Place::of(path)?;
        // What has the name must be a plain file: a rename would take the place of anything.
        place.read(Content::Anybodys)?;
        place.check_writable()?;
        place.rehearse(b"", &ACCESS)?.end()?;
        let failure = Arc::new(Mutex::new(None));
        let (pages, waiting) = channel();
        let (ended, written) = channel();
        let (failed, told) = (Arc::clone(&failure), path.to_owned());
        let writer = move || {
            write_each(&waiting, &place, &told, &failed);
            // Nobody waits where the receiver is gone.
            let _ = ended.send(());
        };
        thread::Builder::new().name("metrics".to_owned()).spawn(writer).at("write", path)?;
        let cluster = cluster.to_owned();
        Ok(Self { cluster, host, view: None, keys: None, at: None, pages: Some(pages), written, failure })
    }

    /// Takes over what has happened; what a look has shown is a new page.
    pub fn hear(&mut self, event: &RunEvent, names: &Names, now: SystemTime) {
        let run = match event {
            RunEvent::Looked(view) => {
                (self.view, self.at) = (Some((*view).clone()), Some(now));
                AgentRun::AtWork
            }
            RunEvent::Read(keys) => {
                self.keys = Some((*keys).clone());
                AgentRun::AtWork
            }
            RunEvent::Ended { exit, reason, .. } => AgentRun::Ended { exit: *exit, reason },
            _ => return,
        };
        // What the keys said while nobody looked at the members is of no moment that could be named.
        let at = self.at.unwrap_or(now);
        let (view, keys) = (self.view.as_ref(), self.keys.as_ref());
        let agent = Some((&*self.host, run));
        let page = metrics::page(&Look { cluster: Some(&self.cluster), at, view, keys, names, agent });
        // A writer that is gone has left its reason.
        let _ = self.pages.as_ref().map(|pages| pages.send(page));
    }

    /// What went wrong first, once.
    pub fn failure(&self) -> Option<String> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).take().filter(|why| !why.is_empty())
    }

    /// Waits a while until the last page is written.
    pub fn end(mut self) {
        drop(self.pages.take());
        let _ = self.written.recv_timeout(PATIENCE);
    }
}

/// Of pages that come while none may be written yet, the last counts.
fn write_each(pages: &Receiver<String>, place: &Place, path: &Path, failure: &Mutex<Option<String>>) {
    let mut is_over = false;
    while let (false, Ok(mut page)) = (is_over, pages.recv()) {
        let mut last = Instant::now();
        loop {
            if let Err(error) = place.write(page.as_bytes(), &ACCESS) {
                let why = format!("metrics are not written: {}: {}", path.display(), error.source);
                failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(why);
            }
            let Some(next) = newest(pages, last + PERIOD, &mut is_over) else { break };
            (page, last) = (next, Instant::now());
        }
    }
}

/// The last page that comes until then, or until no more come.
fn newest(pages: &Receiver<String>, until: Instant, is_over: &mut bool) -> Option<String> {
    let mut newest = None;
    loop {
        match pages.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(page) => newest = Some(page),
            Err(RecvTimeoutError::Timeout) => return newest,
            Err(RecvTimeoutError::Disconnected) => {
                *is_over = true;
                return newest;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        os::unix::fs::{PermissionsExt, symlink},
    };

    use super::*;
    use crate::plan::samples;

    /// What is told in a burst and right before the end is there at the end.
    #[test]
    fn the_last_page_stays_and_others_may_read_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("baton.prom");
        let mut file = MetricsFile::open(&path, "orders", "h1".into()).unwrap();
        assert!(!path.exists(), "nothing is known yet");
        let (view, keys) = (samples::view("1+ 2+ 3+"), samples::keys(None, true));
        let names = Names::of(&view);
        for event in [RunEvent::Looked(&view), RunEvent::Read(&keys), RunEvent::Looked(&view)] {
            file.hear(&event, &names, SystemTime::UNIX_EPOCH + Duration::from_secs(7));
        }
        file.hear(
            &RunEvent::Ended { exit: 10, reason: "partial", message: "", left: "", next: None },
            &names,
            SystemTime::now(),
        );
        file.end();
        let page = fs::read_to_string(&path).unwrap();
        for line in [
            "baton_look_timestamp_seconds{cluster=\"orders\"} 7",
            "baton_run_in_progress{cluster=\"orders\"} 1",
            "baton_agent_run_active{cluster=\"orders\",host=\"h1\"} 0",
            "baton_agent_run_exit_code{cluster=\"orders\",host=\"h1\",reason=\"partial\"} 10",
        ] {
            assert!(page.lines().any(|said| said == line), "{line}: {page}");
        }
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o644);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside it");
    }

    #[test]
    fn a_page_is_there_while_the_run_goes_on() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("baton.prom");
        let mut file = MetricsFile::open(&path, "orders", "h1".into()).unwrap();
        let view = samples::view("1+ 2+ 3+");
        file.hear(&RunEvent::Looked(&view), &Names::of(&view), SystemTime::now());
        let deadline = Instant::now() + Duration::from_secs(60);
        while !path.exists() {
            assert!(Instant::now() < deadline, "{:?}", file.failure());
            thread::sleep(Duration::from_millis(10));
        }
        let page = fs::read_to_string(&path).unwrap();
        assert!(page.contains("baton_agent_run_active{cluster=\"orders\",host=\"h1\"} 1\n"), "{page}");
        file.end();
    }

    #[test]
    fn what_cannot_be_replaced_is_refused_and_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let open = |path: &Path| MetricsFile::open(path, "orders", "h1".into()).map(drop).unwrap_err().to_string();
        let missing = folder.path().join("missing/baton.prom");
        assert!(open(&missing).contains("cannot open"), "{}", open(&missing));
        assert!(open(folder.path()).contains("cannot"), "{}", open(folder.path()));
        let twice = folder.path().join("twice");
        fs::write(&twice, "mine").unwrap();
        fs::hard_link(&twice, folder.path().join("other")).unwrap();
        assert!(open(&twice).contains("twice"), "{}", open(&twice));
        assert_eq!(fs::read_to_string(&twice).unwrap(), "mine");
        let link = folder.path().join("link");
        symlink(folder.path().join("there"), &link).unwrap();
        MetricsFile::open(&link, "orders", "h1".into()).unwrap().end();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3, "nothing was made");
    }

    #[test]
    fn a_write_that_fails_is_told_once() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("inner");
        fs::create_dir(&inner).unwrap();
        let mut file = MetricsFile::open(&inner.join("baton.prom"), "orders", "h1".into()).unwrap();
        fs::remove_dir(&inner).unwrap();
        let view = samples::view("1+ 2+ 3+");
        file.hear(&RunEvent::Looked(&view), &Names::of(&view), SystemTime::now());
        let deadline = Instant::now() + Duration::from_secs(60);
        let why = loop {
            match file.failure() {
                Some(why) => break why,
                None if Instant::now() < deadline => thread::sleep(Duration::from_millis(10)),
                None => panic!("no word"),
            }
        };
        assert!(why.starts_with("metrics are not written: ") && why.contains("baton.prom"), "{why}");
        file.end();
    }
}
