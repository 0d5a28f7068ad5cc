//! A control group of a host's own, wherever systemd wants one: else two hosts would share the groups of their services.
//!
//! A machine has one hierarchy (version 2), or beside it systemd's own of version 1, or only that one.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use rustix::process::Signal;

use crate::{
    Error,
    process::Process,
    wait::{self, GENEROUS},
};

/// A group, by its folder in each hierarchy.
#[derive(Clone, Debug)]
pub(super) struct ControlGroup {
    folders: Vec<PathBuf>,
}

impl ControlGroup {
    /// The group of this name; it need not be there.
    pub(super) fn named(name: &str) -> Self {
        Self { folders: hierarchies().into_iter().map(|(mount, _)| mount.join(name)).collect() }
    }

    /// The group that this process is in.
    pub(super) fn of(pid: i32) -> Result<Self, Error> {
        let said = fs::read_to_string(format!("/proc/{pid}/cgroup"))?;
        let folder = |(mount, name): (PathBuf, &str)| {
            let path = said
                .lines()
                .find_map(|line| line.splitn(3, ':').nth(2).filter(|_| line.split(':').nth(1) == Some(name)))?;
            Some(mount.join(path.trim_start_matches('/')))
        };
        Ok(Self { folders: hierarchies().into_iter().filter_map(folder).collect() })
    }

    pub(super) fn within(&self, name: &str) -> Self {
        Self { folders: self.folders.iter().map(|folder| folder.join(name)).collect() }
    }

    pub(super) fn create(&self) -> io::Result<()> {
        self.folders.iter().try_for_each(fs::create_dir_all)
    }

    /// The files that a process enters it by writing its number to.
    pub(super) fn doors(&self) -> impl Iterator<Item = PathBuf> {
        self.folders.iter().map(|folder| folder.join("cgroup.procs"))
    }

    /// All who are in it or in a group within it.
    pub(super) fn pids(&self) -> Vec<i32> {
        let folders = self.folders.iter().flat_map(|folder| inside_out(folder));
        let lists = folders.filter_map(|folder| fs::read_to_string(folder.join("cgroup.procs")).ok());
        let mut pids: Vec<_> =
            lists.flat_map(|list| list.lines().filter_map(|line| line.parse().ok()).collect::<Vec<_>>()).collect();
        pids.sort_unstable();
        pids.dedup();
        pids
    }

    /// Ends all who are in it, at once, and the group.
    pub(super) fn end(&self) -> Result<(), Error> {
        wait::until_blocking("the end of a host", GENEROUS, || {
            for process in self.pids().into_iter().filter_map(|pid| Process::open(pid).ok()) {
                process.signal(Signal::KILL).map_err(|error| error.to_string())?;
            }
            match self.folders.iter().flat_map(|folder| inside_out(folder)).try_for_each(fs::remove_dir) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error.to_string()),
                _ => Ok(()),
            }
        })?;
        Ok(())
    }
}

/// Where groups live that systemd uses, each with its name in `/proc/PID/cgroup`.
fn hierarchies() -> Vec<(PathBuf, &'static str)> {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let named = |line: &str| {
        let mut fields = line.split(' ').skip(1);
        let (mount, kind, options) = (fields.next()?, fields.next()?, fields.next()?);
        match kind {
            "cgroup2" => Some((mount.into(), "")),
            "cgroup" if options.split(',').any(|option| option == "name=systemd") => {
                Some((mount.into(), "name=systemd"))
            }
            _ => None,
        }
    };
    mounts.lines().filter_map(named).collect()
}

/// A folder and all folders in it, each after those within it.
fn inside_out(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let mut all: Vec<_> = folders.flat_map(|entry| inside_out(&entry.path())).collect();
    all.extend(folder.exists().then(|| folder.into()));
    all
}
