//! The report of a run as a file: looked for before the run, written once at its end.
//!
//! A thread of its own writes it, so that no disk holds up an end. A write that fails is a warning and changes no run.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, mpsc::channel},
    thread,
    time::Duration,
};

use crate::{
    guarded::{Access, Content, FileError, Place},
    report::page,
};

/// As the events file: what stands in it is for the agent's user.
const ACCESS: Access = Access::of_mode(0o600);
/// How long the end waits for the disk.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub struct ReportFile {
    place: Place,
    path: PathBuf,
    pub(in crate::report) host: Arc<str>,
}

/// Why no report could be written there.
#[derive(Debug, thiserror::Error)]
pub enum ReportFileError {
    #[error("{}", .0.source)]
    File(#[from] FileError),
    #[error("there is a file that is no report of Baton's, and it would be written over; name another, or remove it")]
    NoReport,
}

impl ReportFile {
    /// Looks whether the file can be written, and leaves the one that is there.
    ///
    /// # Errors
    /// The system's, why another user could decide which file it is, or that something else is there.
    pub fn open(path: &Path, host: Arc<str>) -> Result<Self, ReportFileError> {
        let place = Place::of(path)?;
        let found = place.read(Content::Anybodys)?;
        if found.is_some_and(|found| !found.is_empty() && !page::is_one(&found)) {
            return Err(ReportFileError::NoReport);
        }
        place.check_writable()?;
        place.rehearse(b"", &ACCESS)?.end()?;
        Ok(Self { place, path: path.to_owned(), host })
    }

    /// Makes the report of these events, and writes it.
    ///
    /// # Errors
    /// A warning.
    pub fn write(self, events: String) -> Result<(), String> {
        let Self { place, path, .. } = self;
        let warning = |why: &str| format!("no report is written: {}: {why}", path.display());
        let (ended, written) = channel();
        let writer = move || {
            let made = page::of_one_run(events.as_bytes()).map_err(|error| error.to_string());
            let told =
                made.and_then(|page| place.write(page.as_bytes(), &ACCESS).map_err(|error| error.source.to_string()));
            // Nobody waits where the receiver is gone.
            let _ = ended.send(told);
        };
        let begun = thread::Builder::new().name("report".to_owned()).spawn(writer);
        begun.map_err(|error| warning(&error.to_string()))?;
        match written.recv_timeout(PATIENCE) {
            Ok(told) => told.map_err(|why| warning(&why)),
            Err(_) => Err(warning(&format!("the disk has not taken it within {} s", PATIENCE.as_secs()))),
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

    const ENDED: &str = "{\"format\":1,\"time\":\"2026-11-21T11:53:00.123Z\",\"run\":null,\"host\":\"h1\",\"seq\":0,\
                         \"event\":\"ended\",\"exit\":0,\"reason\":\"done\"}\n";

    #[test]
    fn a_report_is_written_at_the_end_and_takes_the_place_of_another() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report.html");
        for _ in 0..2 {
            let file = ReportFile::open(&path, "h1".into()).unwrap();
            file.write(ENDED.to_owned()).unwrap();
            assert!(page::is_one(&fs::read(&path).unwrap()));
        }
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o600);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside it");
    }

    #[test]
    fn what_cannot_be_written_is_refused_before_the_run_and_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("playbook.yaml"), "kind: Upgrade").unwrap();
        symlink(at("playbook.yaml"), at("link")).unwrap();
        fs::write(at("empty"), "").unwrap();
        for (name, expected) in [
            ("missing/report.html", "No such file"),
            (".", "folder"),
            ("playbook.yaml", "no report of Baton's"),
            ("link", "no report of Baton's"),
        ] {
            let refused = ReportFile::open(&at(name), "h1".into()).unwrap_err().to_string();
            assert!(refused.contains(expected), "{name}: {refused}");
        }
        ReportFile::open(&at("empty"), "h1".into()).unwrap();
        assert_eq!(fs::read_to_string(at("playbook.yaml")).unwrap(), "kind: Upgrade");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3, "nothing was made");
    }

    #[test]
    fn a_write_that_fails_is_a_warning() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("inner");
        fs::create_dir(&inner).unwrap();
        let file = ReportFile::open(&inner.join("report.html"), "h1".into()).unwrap();
        fs::remove_dir(&inner).unwrap();
        let why = file.write(ENDED.to_owned()).unwrap_err();
        assert!(why.starts_with("no report is written: ") && why.contains("report.html"), "{why}");
    }
}
