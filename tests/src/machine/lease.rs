//! The number of a network, by which all that belongs to it is named. Networks of tests that run at once have different
//! ones, and what a test that was killed has left behind is found by its number.

use std::{
    fs::{self, File},
    io::{Read, Seek, Write},
    path::{Path, PathBuf},
};

use rustix::fs::{FlockOperation, flock};

use super::{control_group::ControlGroup, disk, run};
use crate::Error;

/// Not in a temporary folder: names of bridges and namespaces are the whole machine's.
const LEASES: &str = "/run/baton-hosts";

/// The third number of an address.
const COUNT: u8 = 250;

/// A number that nobody else has while this value lives.
#[derive(Debug)]
pub(super) struct Lease {
    pub(super) number: u8,
    /// Where its hosts have their disks.
    pub(super) home: PathBuf,
    _lock: File,
}

impl Lease {
    /// Clears away what was left behind, and takes the first number that is free.
    pub(super) fn take() -> Result<Self, Error> {
        fs::create_dir_all(LEASES)?;
        let mut taken = None;
        for number in 1..=COUNT {
            let path = Path::new(LEASES).join(number.to_string());
            if taken.is_some() && !path.exists() {
                continue;
            }
            let Some(mut lock) = lock(&path)? else { continue };
            clear(number, &mut lock)?;
            if taken.is_none() {
                taken = Some(Self::begin(number, lock)?);
            }
        }
        taken.ok_or_else(|| format!("{COUNT} networks of hosts are at work").into())
    }

    fn begin(number: u8, mut lock: File) -> Result<Self, Error> {
        // Where the temporary folder may be small, or in memory, the disks of hosts are not.
        let home = tempfile::Builder::new().prefix("baton-hosts-").tempdir_in("/var/tmp")?.keep();
        lock.set_len(0)?;
        lock.rewind()?;
        write!(lock, "{}", home.display())?;
        Ok(Self { number, home, _lock: lock })
    }

    /// The control group of its hosts' control groups.
    pub(super) fn control_group(&self) -> ControlGroup {
        group(self.number)
    }

    /// The bridge that connects its hosts.
    pub(super) fn bridge(&self) -> String {
        bridge(self.number)
    }

    /// The network namespace of one host; the host's end of the bridge has the same name.
    pub(super) fn namespace(&self, host: u8) -> String {
        format!("{}-{host}", self.bridge())
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let cleared = end(self.number, &self.home);
        // With its lease it would look as if there were nothing to clear.
        if cleared.is_ok() {
            let _ = fs::remove_file(Path::new(LEASES).join(self.number.to_string()));
        }
    }
}

/// The lease of a number; `None` where somebody has it.
fn lock(path: &Path) -> Result<Option<File>, Error> {
    loop {
        let file = File::options().read(true).write(true).create(true).truncate(false).open(path)?;
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Ok(None);
        }
        // Its last owner may have removed the file between our opening and our locking it.
        if path.exists() && same_file(&file, path)? {
            return Ok(Some(file));
        }
    }
}

fn same_file(file: &File, path: &Path) -> Result<bool, Error> {
    use std::os::unix::fs::MetadataExt;
    Ok(fs::metadata(path).is_ok_and(|named| file.metadata().is_ok_and(|open| open.ino() == named.ino())))
}

/// Clears away what the last owner of this number left behind; the lock says that it is dead.
fn clear(number: u8, lock: &mut File) -> Result<(), Error> {
    let mut home = String::new();
    lock.read_to_string(&mut home)?;
    if home.is_empty() { Ok(()) } else { end(number, Path::new(&home)) }
}

/// Ends hosts and network of this number, whatever of them there is.
fn end(number: u8, home: &Path) -> Result<(), Error> {
    group(number).end()?;
    disk::unmount_below(home);
    for link in names_in("/sys/class/net", number) {
        run("ip", &["link", "delete", &link])?;
    }
    for namespace in names_in("/run/netns", number) {
        run("ip", &["netns", "delete", &namespace])?;
    }
    match fs::remove_dir_all(home) {
        Err(error) if home.exists() => Err(format!("{} is not removed: {error}", home.display()).into()),
        _ => Ok(()),
    }
}

/// What in this folder has the name of the bridge or of one of its hosts.
fn names_in(folder: &str, number: u8) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| name.split('-').next() == Some(&*bridge(number))).collect()
}

fn group(number: u8) -> ControlGroup {
    ControlGroup::named(&format!("baton-hosts-{number}"))
}

fn bridge(number: u8) -> String {
    format!("bh{number}")
}
