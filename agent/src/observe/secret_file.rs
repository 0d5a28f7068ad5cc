//! Reads the small files that a playbook names for a connection: certificates, keys, a password.
//!
//! What is no regular file, or a large one, is refused: a pipe would be waited for without end.

use std::{fs, os::unix::fs::MetadataExt as _, path::Path, time::SystemTime};

use super::error::ObserveError;
use crate::{playbook::Cluster, regular_file, words::typed};

/// How many bytes such a file may have.
const MAX_BYTES: usize = 1024 * 1024;

/// What a file looks like from outside; it is another one after the file was changed or put in another's place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    inode: (u64, u64),
    bytes: u64,
    modified: Option<SystemTime>,
}

impl Stamp {
    /// `None` where there is no such file.
    pub(super) fn of(path: &Path) -> Option<Self> {
        let found = fs::metadata(path).ok()?;
        Some(Self { inode: (found.dev(), found.ino()), bytes: found.len(), modified: found.modified().ok() })
    }
}

/// What to warn of: a key or a password that every user of this host may read.
pub fn warnings(cluster: &Cluster) -> Vec<String> {
    let key = cluster.tls.iter().filter_map(|tls| Some(("cluster.tls.key", tls.key.as_deref()?)));
    let password = cluster.auth.iter().map(|auth| ("cluster.auth.password_file", auth.password_file.as_path()));
    let exposed = key.chain(password).filter(|(_, path)| may_be_read_by_others(path));
    let warning = |(field, path): (&str, &Path)| {
        let path = path.to_string_lossy();
        format!("`{field}`: every user of this host may read {path}; type: chmod 600 {}", typed(&path))
    };
    exposed.map(warning).collect()
}

/// Whether others may read the file, and enter each folder on the way to it. What a group may is its administrator's choice.
fn may_be_read_by_others(path: &Path) -> bool {
    let Ok(path) = fs::canonicalize(path) else { return false };
    let lets = |path: &Path, bit: u32| fs::metadata(path).is_ok_and(|found| found.mode() & bit != 0);
    path.is_file() && lets(&path, 0o004) && path.ancestors().skip(1).all(|folder| lets(folder, 0o001))
}

/// What the file holds.
///
/// # Errors
/// [`ObserveError::File`]
pub(super) fn read(path: &Path) -> Result<Vec<u8>, ObserveError> {
    let bytes = regular_file::read(path, MAX_BYTES);
    bytes.map_err(|error| ObserveError::File { path: path.to_owned(), source: error.into() })
}

#[cfg(test)]
mod tests {
    use std::{os::unix::fs::PermissionsExt as _, path::PathBuf};

    use super::*;
    use crate::playbook::cluster::{Auth, Tls};

    #[test]
    fn what_every_user_may_read_is_warned_of() {
        // A private TMPDIR keeps everybody else out by itself.
        let folder = tempfile::tempdir_in("/tmp").unwrap();
        let [key, password] = ["key", "pass word"].map(|name| folder.path().join(name));
        let mode = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        let cluster = Cluster {
            name: "c".into(),
            endpoints: Vec::new(),
            election_timeout: std::time::Duration::ZERO,
            tls: Some(Tls { ca: PathBuf::from("/etc/passwd"), cert: None, key: Some(key.clone()) }),
            auth: Some(Auth { user: "root".into(), password_file: password.clone() }),
            http: std::collections::BTreeMap::new(),
        };
        assert_eq!(warnings(&cluster), Vec::<String>::new(), "nothing is there");
        [&key, &password].into_iter().for_each(|path| fs::write(path, "").unwrap());
        for (of_folder, of_file, count) in [
            (0o755, 0o600, 0),
            (0o755, 0o640, 0), // as Debian's ssl-cert
            (0o755, 0o644, 2),
            (0o755, 0o604, 2),
            (0o750, 0o644, 0), // nobody else gets there
        ] {
            mode(folder.path(), of_folder);
            [&key, &password].into_iter().for_each(|path| mode(path, of_file));
            assert_eq!(warnings(&cluster).len(), count, "{of_folder:o} {of_file:o}");
        }
        mode(folder.path(), 0o755);
        let said = warnings(&cluster);
        assert!(said[0].ends_with(&format!("type: chmod 600 {}", key.display())), "{said:?}");
        assert!(said[1].ends_with(&format!("type: chmod 600 '{}'", password.display())), "{said:?}");
    }

    #[test]
    fn only_a_small_regular_file_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "secret").unwrap();
        assert_eq!(read(&path).unwrap(), b"secret");
        fs::write(&path, vec![b'x'; 1024 * 1024 + 1]).unwrap();
        assert!(read(&path).is_err());
        assert!(read(folder.path()).is_err());
        let pipe = folder.path().join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        assert!(read(&pipe).is_err(), "nobody writes to it, and it is not waited for");
    }
}
