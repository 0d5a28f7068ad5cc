//! Where a member has its data, and the new data beside it, on the same file system: so that both are exchanged in one rename, and
//! no start meets a member without data, which etcd would begin anew.
//!
//! Where the data directory is a mount, or has more in it than a member's data, what is exchanged lies within it: etcd has all in its
//! folder `member`.
//!
//! The copy that the tool reads is removed right before the exchange. So what lies beside the data with a copy was made here and has never
//! served, and may go; without one it may be the old data, and is kept whatever happens.

use std::{
    fs::{self, File, OpenOptions, Permissions},
    io,
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, fchown},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::SystemTime,
};

use rustix::{
    fs::{Access, AtFlags, CWD, FlockOperation, Mode, OFlags, RenameFlags, flock, openat, renameat_with},
    io::Errno,
};

use super::{rights::Rights, saved::open};
use crate::{
    calendar::rfc3339,
    host::{
        blocking::blocking,
        files::whose::{Whose, has_entries, whose},
    },
    observe::database::origin::Origin,
};

/// etcd's own folder in a data directory.
const MEMBER: &str = "member";
/// Which member the bundled node's data is of, and what else it has in a data directory.
const IDENTITY: &str = "identity";
const BUNDLED: [&str; 3] = [IDENTITY, "snap", "wal"];
/// What the tool reads.
const COPY: &str = "saved.db";
/// What every token begins with (`record.rs`).
pub const TOKEN: &str = "restored-";

/// Work that nobody waits for any more, since a signal came, goes on while the disk does not answer; what clears it comes after it.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// One member's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub data: PathBuf,
    /// The folder of what is being made.
    staging: PathBuf,
    is_within: bool,
    /// With whose rights all of this is done.
    rights: Rights,
}

/// What could not be done where the data lies.
#[derive(Debug, thiserror::Error)]
#[error("its data in {} cannot be changed, or not be looked at: {source}", folder.display())]
pub struct PlaceError {
    folder: PathBuf,
    source: io::Error,
}

impl Place {
    /// `token` tells what is made here from what an earlier restore has left.
    ///
    /// # Errors
    /// The system's.
    pub fn of(data: &Path, token: &str) -> io::Result<Self> {
        let (Some(parent), Some(name)) = (data.parent(), data.file_name()) else {
            return Err(io::Error::other("the data directory has no folder that it lies in"));
        };
        let device = |path: &Path| fs::metadata(path).map(|seen| seen.dev());
        let is_within = data.try_exists()? && (device(data)? != device(parent)? || has_more(data));
        let staging = match is_within {
            true => data.join(token),
            false => parent.join(format!("{}.{token}", name.to_string_lossy())),
        };
        Ok(Self { data: data.into(), staging, is_within, rights: Rights::Own })
    }

    /// Does this work off the threads that wait for signals.
    ///
    /// # Errors
    /// [`PlaceError`]
    pub async fn have<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> io::Result<T> + Send + 'static,
    ) -> Result<T, PlaceError> {
        let place = self.clone();
        let in_turn = move || {
            let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
            work(&place)
        };
        let done = blocking(in_turn).await;
        done.map_err(|source| PlaceError { folder: self.folder().into(), source })
    }

    /// With these rights instead.
    pub fn with_rights(self, rights: Rights) -> Self {
        Self { rights, ..self }
    }

    /// The folder whose file system has to have room.
    pub fn folder(&self) -> &Path {
        if self.is_within { &self.data } else { self.data.parent().unwrap_or(&self.data) }
    }

    /// Which file system that is.
    pub fn device(&self) -> Option<u64> {
        fs::metadata(self.folder()).ok().map(|seen| seen.dev())
    }

    /// Whether some process has the data open: etcd locks its database, and the bundled node its folder (flock(2)).
    pub fn is_open(&self) -> bool {
        let is_locked = |path: PathBuf| {
            let flags = (OFlags::NONBLOCK | OFlags::NOFOLLOW).bits() as i32;
            let file = OpenOptions::new().read(true).custom_flags(flags).open(path);
            file.is_ok_and(|file| flock(&file, FlockOperation::NonBlockingLockShared) == Err(Errno::WOULDBLOCK))
        };
        is_locked(self.data.join("member/snap/db")) || is_locked(self.data.clone())
    }

    /// Where the tool makes the new data.
    pub fn made(&self) -> PathBuf {
        self.staging.join("data")
    }

    /// Where the tool finds the copy that it reads.
    pub fn copy(&self) -> PathBuf {
        self.staging.join(COPY)
    }

    /// Whether this can be exchanged: the bundled node has several entries in its data directory, and so no one name in a mount.
    pub fn fits(&self) -> bool {
        !self.is_within || !self.data.join(IDENTITY).exists()
    }

    /// Whether what was made can be exchanged, as of the old data nothing may be there.
    pub fn fits_made(&self) -> bool {
        !self.is_within || self.made().join(MEMBER).is_dir()
    }

    /// Whether anything can be made here.
    ///
    /// # Errors
    /// Why not.
    pub fn must_be_writable(&self) -> io::Result<()> {
        let folder = self.folder();
        let asked = || Ok(rustix::fs::accessat(CWD, folder, Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS)?);
        match self.rights.with(asked) {
            // A kernel that cannot say so.
            Err(error) if error.raw_os_error() == Some(Errno::NOSYS.raw_os_error()) => Ok(()),
            said => said,
        }
    }

    /// What etcd's database in the old data says of its cluster, as far as it can be read while the member may run.
    pub async fn database(&self) -> Option<Origin> {
        let path = self.data.join("member/snap/db");
        let read = blocking(move || Origin::read(open(&path).ok()?).ok());
        read.await
    }

    /// An empty folder of this owner, in the place of what an earlier try has left, and in it the copy's file.
    ///
    /// # Errors
    /// The system's.
    pub fn begin(&self, owner: (u32, u32)) -> io::Result<File> {
        self.rights.with(|| {
            self.make_way()?;
            fs::create_dir(&self.staging)?;
            let flags = (OFlags::DIRECTORY | OFlags::NOFOLLOW).bits() as i32;
            let folder = OpenOptions::new().read(true).custom_flags(flags).open(&self.staging)?;
            folder.set_permissions(Permissions::from_mode(0o700))?;
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let copy = File::from(openat(&folder, COPY, flags, Mode::from_raw_mode(0o600))?);
            // With the owner's own rights it is his already.
            if self.rights == Rights::Own {
                fchown(&copy, Some(owner.0), Some(owner.1))?;
                fchown(&folder, Some(owner.0), Some(owner.1))?;
            }
            Ok(copy)
        })
    }

    /// Removes what is being made; what may be old data is put aside, and it is said where.
    ///
    /// # Errors
    /// The system's.
    pub fn clear(&self) -> io::Result<Option<PathBuf>> {
        self.rights.with(|| self.make_way())
    }

    /// Whether something is being made, or was.
    pub fn is_begun(&self) -> bool {
        fs::symlink_metadata(&self.staging).is_ok()
    }

    /// Removes what was made and has never been in its place.
    ///
    /// # Errors
    /// The system's.
    pub fn discard(&self) -> io::Result<()> {
        self.rights.with(|| self.remove_staging())
    }

    /// What restores by other names have left here, of agents that were killed.
    pub fn others(&self) -> Vec<Self> {
        let begins = match self.is_within {
            true => TOKEN.to_owned(),
            false => {
                let own = self.data.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
                format!("{own}.{TOKEN}")
            }
        };
        let entries = fs::read_dir(self.folder()).into_iter().flatten().flatten();
        let left =
            entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(&begins)).map(|entry| entry.path());
        left.filter(|path| *path != self.staging).map(|staging| Self { staging, ..self.clone() }).collect()
    }

    fn make_way(&self) -> io::Result<Option<PathBuf>> {
        // A link is nothing of the agent's, whatever it leads to.
        let is_own = fs::symlink_metadata(&self.staging).is_ok_and(|seen| seen.is_dir());
        let aside = if is_own && !self.copy().try_exists()? { self.keep_old()? } else { None };
        self.remove_staging()?;
        Ok(aside)
    }

    fn remove_staging(&self) -> io::Result<()> {
        match fs::symlink_metadata(&self.staging) {
            Ok(seen) if seen.is_dir() => fs::remove_dir_all(&self.staging),
            // Nothing of the agent's.
            Ok(_) => fs::remove_file(&self.staging),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Makes what the tool has made durable.
    ///
    /// # Errors
    /// The system's.
    pub fn settle(&self) -> io::Result<()> {
        self.rights.with(|| Ok(rustix::fs::syncfs(File::open(&self.staging)?)?))
    }

    /// Whose the new data is, while it lies beside the old.
    pub fn whose_made(&self) -> Whose {
        whose_in(&self.made())
    }

    /// Whose the data is that a start would find.
    pub fn whose_data(&self) -> Whose {
        whose_in(&self.data)
    }

    /// Puts the new data in its place, and what was there beside it. The member must not run. Gives where the old data is, where it has
    /// its last name already.
    ///
    /// # Errors
    /// The system's: both are where they were.
    pub fn exchange(&self) -> io::Result<Option<PathBuf>> {
        let (new, place) = match self.is_within {
            true => (self.made().join(MEMBER), self.data.join(MEMBER)),
            false => (self.made(), self.data.clone()),
        };
        self.rights.with(|| {
            match fs::remove_file(self.copy()) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => File::open(&self.staging)?.sync_all()?,
            }
            let aside = match place.try_exists()? {
                false => rename_to_new(&new, &place).map(|()| None)?,
                true => match renameat_with(CWD, &new, CWD, &place, RenameFlags::EXCHANGE) {
                    Err(Errno::INVAL | Errno::NOSYS) => Some(self.one_after_the_other(&new, &place)?),
                    exchanged => exchanged.map(|()| None)?,
                },
            };
            self.sync()?;
            Ok(aside)
        })
    }

    /// On a file system that cannot exchange. There is a moment without data, which the stopped member does not see. The old data has its
    /// last name first, so that nothing that goes on from there takes it for what is being made.
    fn one_after_the_other(&self, new: &Path, place: &Path) -> io::Result<PathBuf> {
        let aside = self.aside(whose_in(&self.data));
        let old = if self.is_within { aside.join(MEMBER) } else { aside.clone() };
        if self.is_within {
            fs::create_dir(&aside)?;
        }
        rename_to_new(place, &old)?;
        if let Err(error) = rename_to_new(new, place) {
            fs::rename(&old, place)?;
            return Err(error);
        }
        Ok(aside)
    }

    /// Gives what was exchanged the name by which a person finds it, and says which; `None` where there was nothing.
    ///
    /// # Errors
    /// The system's.
    pub fn put_aside(&self) -> io::Result<Option<PathBuf>> {
        self.rights.with(|| {
            let aside = self.keep_old()?;
            self.remove_staging()?;
            self.sync()?;
            Ok(aside)
        })
    }

    fn keep_old(&self) -> io::Result<Option<PathBuf>> {
        let old = self.made();
        let is_folder = |path: &Path| fs::symlink_metadata(path).is_ok_and(|seen| seen.is_dir());
        if !is_folder(&self.staging) || !is_folder(&old) || !has_entries(&old) {
            return Ok(None);
        }
        let aside = self.aside(whose_in(&old));
        rename_to_new(&old, &aside)?;
        Ok(Some(aside))
    }

    /// What was put aside here before: within the data or beside it, as what else lay in it may have come or gone since.
    pub fn archives(&self) -> Vec<PathBuf> {
        let own = self.data.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let beside = self.data.parent().map(|parent| (parent, format!("{own}.archived-")));
        let within = (&*self.data, "archived-".to_owned());
        let those_in = |(folder, begins): (&Path, String)| {
            let entries = fs::read_dir(folder).into_iter().flatten().flatten();
            entries
                .filter(move |entry| entry.file_name().to_string_lossy().starts_with(&begins))
                .map(|entry| entry.path())
        };
        beside.into_iter().chain([within]).flat_map(those_in).collect()
    }

    fn aside(&self, whose: Whose) -> PathBuf {
        let time: String = rfc3339(SystemTime::now()).chars().filter(char::is_ascii_alphanumeric).collect();
        let whose = match whose {
            Whose::Member { member, .. } => member.to_string(),
            _ => "unknown".to_owned(),
        };
        let name = format!("archived-{whose}-{time}");
        match self.is_within {
            true => self.data.join(name),
            false => {
                let own = self.data.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
                self.folder().join(format!("{own}.{name}"))
            }
        }
    }

    fn sync(&self) -> io::Result<()> {
        File::open(self.folder())?.sync_all()?;
        match File::open(&self.staging) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            staging => staging?.sync_all(),
        }
    }
}

/// Whether somebody keeps more than a member's data here, as certificates: that must be there when the member is started, whatever has
/// become of the data.
fn has_more(data: &Path) -> bool {
    let is_bundled = data.join(IDENTITY).exists();
    let is_data = |name: &std::ffi::OsStr| match is_bundled {
        true => BUNDLED.iter().any(|own| name == *own),
        false => name == MEMBER,
    };
    fs::read_dir(data).into_iter().flatten().flatten().any(|entry| !is_data(&entry.file_name()))
}

/// Never in the place of something else.
fn rename_to_new(from: &Path, to: &Path) -> io::Result<()> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // A file system that cannot say so.
        Err(Errno::INVAL | Errno::NOSYS) if !to.try_exists()? => fs::rename(from, to),
        renamed => Ok(renamed?),
    }
}

/// Whose data this directory has, with its log in it.
pub fn whose_in(data: &Path) -> Whose {
    whose(data, &data.join("member/wal"))
}

#[cfg(test)]
#[path = "place_test.rs"]
mod tests;
