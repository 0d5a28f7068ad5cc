//! Folders and files of the file system.

use std::{
    fs::{self, DirBuilder, OpenOptions},
    io,
    os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::Arc,
};

use rustix::fs::{FlockOperation, flock};

use crate::{File, Folder};

/// A folder of the file system.
#[derive(Debug)]
pub struct RealFolder {
    path: PathBuf,
    /// Carries the lock, and syncs the names.
    folder: fs::File,
}

impl RealFolder {
    /// Opens it; makes it, durably, where there is none.
    ///
    /// # Errors
    /// The system refuses.
    pub fn open(path: &Path) -> io::Result<Self> {
        if !path.is_dir() {
            create(path)?;
        }
        Ok(Self { path: path.into(), folder: fs::File::open(path)? })
    }
}

/// What is in a folder of ours is for its owner, as with etcd. Each folder that had to be made is a name in the one above it.
fn create(path: &Path) -> io::Result<()> {
    let parent = match path.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
        None => return Ok(()),
    };
    if !parent.is_dir() {
        create(parent)?;
    }
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    fs::File::open(parent)?.sync_all()
}

impl Folder for RealFolder {
    fn path(&self, name: &str) -> PathBuf {
        // Joined with nothing it would end with a slash.
        if name.is_empty() { self.path.clone() } else { self.path.join(name) }
    }

    fn names(&self) -> io::Result<Vec<String>> {
        let names = fs::read_dir(&self.path)?.map(|entry| entry.map(|entry| entry.file_name()));
        names.filter_map(|name| name.map(|name| name.into_string().ok()).transpose()).collect()
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn File>> {
        let path = self.path(name);
        // Neither through a link to elsewhere, nor into a file that another user has open.
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path)?;
        Ok(Arc::new(file))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn File>> {
        Ok(Arc::new(OpenOptions::new().read(true).write(true).open(self.path(name))?))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path(from), self.path(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.path(name))
    }

    fn sync_names(&self) -> io::Result<()> {
        self.folder.sync_all()
    }

    fn folder(&self, name: &str) -> io::Result<Arc<dyn Folder>> {
        Ok(Arc::new(Self::open(&self.path(name))?))
    }

    fn lock(&self) -> io::Result<()> {
        flock(&self.folder, FlockOperation::NonBlockingLockExclusive).map_err(Into::into)
    }

    fn has(&self, name: &str) -> io::Result<bool> {
        fs::exists(self.path(name))
    }
}

impl File for fs::File {
    fn length(&self) -> io::Result<u64> {
        self.metadata().map(|metadata| metadata.len())
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.read_exact_at(buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.write_all_at(bytes, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_made_one_in_another_and_locked_once() {
        let home = tempfile::tempdir().unwrap();
        let data = RealFolder::open(&home.path().join("a/b/data")).unwrap();
        let (wal, again) = (data.folder("wal").unwrap(), data.folder("wal").unwrap());
        wal.lock().unwrap();
        assert_eq!(again.lock().unwrap_err().kind(), io::ErrorKind::WouldBlock);
        drop(wal);
        again.lock().unwrap();
        assert!(data.has("wal").unwrap() && !data.has("snap").unwrap());
        let error = RealFolder::open(Path::new("/dev/null/data")).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotADirectory);
    }

    #[test]
    fn what_is_made_is_the_owner_s_alone_and_lies_where_it_seems_to() {
        use std::os::unix::fs::PermissionsExt;

        let home = tempfile::tempdir().unwrap();
        let elsewhere = home.path().join("elsewhere");
        fs::write(&elsewhere, "precious").unwrap();
        let data = RealFolder::open(&home.path().join("data")).unwrap();
        std::os::unix::fs::symlink(&elsewhere, data.path("next")).unwrap();
        data.create("next").unwrap().write_at(b"ours", 0).unwrap();
        assert_eq!(fs::read(&elsewhere).unwrap(), b"precious");
        let mode = |path: PathBuf| fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(data.path("")), mode(data.path("next"))), (0o700, 0o600));
    }
}
