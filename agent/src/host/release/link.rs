//! A node's `binary`: a symlink that is switched from one complete release to another in one rename.
//!
//! The releases lie beside it, in `releases/`; none is ever deleted here, so the one that the link points to and
//! the one before it always stay.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use crate::{
    guarded::{At, FileError, Folder, Place},
    words::typed,
};

/// Why `binary` cannot be used or switched.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    #[error(transparent)]
    File(#[from] FileError),
    /// It is a file or folder of its own. The commands keep it as a release and put a link in its place.
    #[error("{} is no symlink, so it cannot be switched in one step; make it one: {} && {}", path.display(), commands[0], commands[1])]
    NotALink { path: PathBuf, commands: [String; 2] },
    #[error("{} is not there: expected a symlink to the node's executable; make it: ln -sfn EXECUTABLE {}", path.display(), shell(path))]
    Missing { path: PathBuf },
    #[error("{} points to {}, which is not there; put that back, or point the link to what is to run: ln -sfn EXECUTABLE {}", path.display(), target.display(), shell(path))]
    Dangling { path: PathBuf, target: PathBuf },
    /// It was to be switched to something that is not there.
    #[error("{} is not there to be switched to; put that release back, from its artifact or another host, and give the same command", target.display())]
    NoTarget {
        /// The executable that was to be the new one.
        target: PathBuf,
    },
}

/// A symlink to a node's executable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    link: PathBuf,
}

impl Link {
    /// The link at this path, or the one that is to be there; refused when it is anything else. What it points to is not
    /// looked at.
    pub fn open(link: &Path) -> Result<Self, LinkError> {
        match fs::symlink_metadata(link) {
            Ok(metadata) if metadata.is_symlink() => Ok(Self { link: link.into() }),
            // Commands that root types in a folder of somebody else's are that one's to lead elsewhere.
            Ok(_) => {
                Place::named(link)?;
                Err(LinkError::NotALink { path: link.into(), commands: link_commands(link) })
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self { link: link.into() }),
            Err(error) => Err(error).at("look at", link)?,
        }
    }

    pub fn link(&self) -> &Path {
        &self.link
    }

    /// The executable that it leads to, through all links on the way.
    pub fn current(&self) -> Result<PathBuf, LinkError> {
        match fs::canonicalize(&self.link) {
            Ok(path) => Ok(path),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(match fs::read_link(&self.link) {
                Ok(target) => LinkError::Dangling { path: self.link.clone(), target },
                Err(_) => LinkError::Missing { path: self.link.clone() },
            }),
            Err(error) => Err(error).at("follow", &self.link)?,
        }
    }

    /// Whether it is gone, or leads to something that is.
    pub fn leads_nowhere(&self) -> bool {
        matches!(self.current(), Err(LinkError::Missing { .. } | LinkError::Dangling { .. }))
    }

    /// The folder that it lies in, with all that is below: where this node's executables are.
    pub fn folder(&self) -> &Path {
        folder_of(&self.link)
    }

    /// The folder of the releases.
    pub fn releases(&self) -> PathBuf {
        self.folder().join("releases")
    }

    /// Looks, without changing anything, whether it can be switched, and by nobody else: the releases that it leads to are
    /// made beside it.
    pub fn check(&self) -> Result<(), LinkError> {
        match Folder::open(&self.releases()) {
            Err(error) if !error.is_absent() => return Err(error.into()),
            _ => {}
        }
        Ok(self.place()?.check_writable()?)
    }

    /// Does all of a switch but its last rename, and leaves nothing: to be asked before anything is stopped.
    pub fn rehearse(&self) -> Result<(), LinkError> {
        self.check()?;
        Ok(self.place()?.rehearse_link(&self.link)?)
    }

    fn place(&self) -> Result<Place, FileError> {
        Place::named(&self.link)
    }

    /// Points it to another executable: durable when this returns, and at any instant either the old or the new. One
    /// that points there already is not touched: what keeps it from being switched must not keep its node down.
    pub fn switch(&self, to: &Path) -> Result<(), LinkError> {
        if !to.is_file() {
            return Err(LinkError::NoTarget { target: to.into() });
        }
        // Relative where it can be, so that the folder may be moved or mounted elsewhere as a whole.
        let absolute = std::path::absolute(to).at("find", to)?;
        let target = to.strip_prefix(self.folder()).unwrap_or(&absolute);
        if fs::canonicalize(&self.link).ok() == Some(fs::canonicalize(to).at("follow", to)?) {
            // A folder that takes no change has nothing to lose.
            let _ = self.place().and_then(|place| place.sync());
            return Ok(());
        }
        Ok(self.place()?.write_link(target)?)
    }
}

fn shell(path: &Path) -> String {
    typed(&path.to_string_lossy())
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn link_commands(path: &Path) -> [String; 2] {
    let name = path.file_name().unwrap_or_default();
    let kept = Path::new("releases/original").join(name);
    let [from, to, kept] = [path, &folder_of(path).join(&kept), &kept].map(|path| typed(&path.to_string_lossy()));
    [format!("install -D -m 755 {from} {to}"), format!("ln -sfn {kept} {from}")]
}

#[cfg(test)]
mod tests {
    use std::{os::unix::fs::symlink, process::Command};

    use super::*;
    use crate::guarded::place::temporary_name;

    fn release(folder: &Path, name: &str) -> PathBuf {
        let path = folder.join("releases").join(name).join("etcd");
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, name).unwrap();
        path
    }

    #[test]
    fn a_switch_is_there_at_once_and_can_be_repeated_and_undone() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().canonicalize().unwrap();
        let (old, new) = (release(&folder, "3.4.23-aaa"), release(&folder, "3.5.30-bbb"));
        let link = folder.join("current");
        symlink(&old, &link).unwrap();
        symlink("left by a crash", folder.join(temporary_name("current".as_ref()))).unwrap();
        let binary = Link::open(&link).unwrap();
        for to in [&new, &new, &old, &new] {
            binary.switch(to).unwrap();
            assert_eq!(&binary.current().unwrap(), to);
        }
        assert_eq!(fs::read_link(&link).unwrap(), Path::new("releases/3.5.30-bbb/etcd"), "relative");
        let elsewhere = tempfile::NamedTempFile::new().unwrap();
        binary.switch(elsewhere.path()).unwrap();
        assert_eq!(fs::read_link(&link).unwrap(), elsewhere.path());
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 2, "nothing is left beside it");
    }

    #[test]
    fn a_link_that_points_there_already_is_not_touched() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().canonicalize().unwrap();
        let old = release(&folder, "3.4.23-aaa");
        let link = folder.join("current");
        symlink(&old, &link).unwrap();
        let inode = || fs::symlink_metadata(&link).map(|link| std::os::unix::fs::MetadataExt::ino(&link)).unwrap();
        let before = inode();
        Link::open(&link).unwrap().switch(&old).unwrap();
        assert_eq!(inode(), before);
    }

    #[test]
    fn a_switch_that_could_not_be_made_is_known_before() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("current");
        symlink("/bin/true", &link).unwrap();
        let binary = Link::open(&link).unwrap();
        binary.rehearse().unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside it");
        // Nobody may make files there, root neither.
        let error = Link { link: "/sys/current".into() }.rehearse().unwrap_err();
        assert!(crate::words::with_causes(&error).contains("/sys"), "{error}");
    }

    #[test]
    fn a_plain_file_is_refused_with_commands_that_work() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("the etcd");
        fs::write(&path, "program").unwrap();
        let Err(LinkError::NotALink { commands, .. }) = Link::open(&path) else { panic!("not refused") };
        for command in commands {
            assert!(Command::new("sh").args(["-c", &command]).status().unwrap().success(), "{command}");
        }
        let current = Link::open(&path).unwrap().current().unwrap();
        assert_eq!(fs::read_to_string(&current).unwrap(), "program");
        assert!(current.ends_with("releases/original/the etcd"), "{}", current.display());
    }

    #[test]
    fn what_is_not_there_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("current");
        let binary = Link::open(&link).unwrap();
        assert!(matches!(binary.current(), Err(LinkError::Missing { .. })));
        assert!(binary.leads_nowhere());
        symlink("releases/gone/etcd", &link).unwrap();
        assert!(binary.leads_nowhere());
        let error = binary.current().unwrap_err().to_string();
        assert!(error.contains("points to releases/gone/etcd, which is not there"), "{error}");
        let error = binary.switch(&folder.path().join("releases/absent/etcd")).unwrap_err();
        assert!(matches!(error, LinkError::NoTarget { .. }), "the link is left alone");
        assert_eq!(fs::read_link(&link).unwrap(), Path::new("releases/gone/etcd"));
        let old = release(folder.path(), "3.4.23-aaa");
        fs::remove_file(&link).unwrap();
        binary.switch(&old).unwrap();
        assert_eq!(binary.current().unwrap(), old.canonicalize().unwrap(), "one that is gone is made again");
        assert!(!binary.leads_nowhere());
    }
}
