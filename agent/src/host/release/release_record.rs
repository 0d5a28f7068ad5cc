//! What was installed as a release: the checksums of the artifact and of its executables, in a file of its folder.
//!
//! A folder's name has twelve digits, which anybody can give to anything. The record has all of them, and lies where only
//! root, or the agent's user, may write. A release that somebody else put there has none, and may be left, not reached.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use super::{
    digest::{DigestError, FolderList, Sha256, files},
    unpack::{Unpacked, key},
};
use crate::{
    guarded::place::temporary_name,
    host::{
        files::durable::{self, Access, At, FileError},
        program::path_owner::{self, PathOwnerError, Writers},
    },
    words::typed,
};

/// The record's name in a release's folder.
const NAME: &str = ".baton-release.json";
/// How deep in its release's folder an executable is looked for to be.
const MAX_DEPTH: usize = super::digest::MAX_DEPTH + 1;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Record {
    format: u32,
    artifact: Sha256,
    executables: BTreeMap<String, Sha256>,
}

/// Why a release is not believed to be what was installed.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// A file could not be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// An executable could not be read.
    #[error(transparent)]
    Digest(#[from] DigestError),
    #[error(transparent)]
    Owner(#[from] PathOwnerError),
    #[error("{} does not say what was installed; type: {}", path.display(), remove(path))]
    Bad { path: PathBuf, source: serde_json::Error },
    /// A file is not what was installed.
    #[error(
        "{} was changed since it was installed: its SHA-256 is {found}, and was {expected}; restore it, or, if no member \
         runs from there, type: {}",
        path.display(), remove(record)
    )]
    Changed { path: PathBuf, found: Sha256, expected: Sha256, record: PathBuf },
}

/// The folder is put together again from the artifact by the next run.
fn remove(record: &Path) -> String {
    format!("rm -r {}", typed(&record.parent().unwrap_or(record).to_string_lossy()))
}

/// Writes down what was put into a folder; the folder's name makes it durable.
pub(crate) fn write(folder: &Path, unpacked: &Unpacked) -> Result<(), FileError> {
    let record = Record { format: 1, artifact: unpacked.sha256, executables: unpacked.executables.clone() };
    let path = folder.join(NAME);
    let json = serde_json::to_vec_pretty(&record).at("write", &path)?;
    durable::write(&path, &json, &Access::of_mode(0o644))
}

/// Whether a folder is the release that this artifact was installed as; false where it has no record.
///
/// # Errors
/// Others may change something in it, or it was changed.
pub(crate) fn is_of(folder: &Path, artifact: Sha256) -> Result<bool, RecordError> {
    path_owner::check_tree(folder, &Writers::own())?;
    let path = folder.join(NAME);
    let Some(record) = read(&path)?.filter(|record| record.artifact == artifact) else { return Ok(false) };
    for name in record.executables.keys() {
        compare(&folder.join(name), name, &record, &path)?;
    }
    Ok(true)
}

/// Compares all executables in a folder with its record, if it has one.
///
/// # Errors
/// One was changed since it was installed.
pub(crate) fn check_whole(folder: &Path) -> Result<(), RecordError> {
    let path = folder.join(NAME);
    let Some(record) = read(&path)? else { return Ok(()) };
    record.executables.keys().try_for_each(|name| compare(&folder.join(name), name, &record, &path))
}

/// Compares an executable with the record of its release.
///
/// # Errors
/// It was changed since. One of no record passes: somebody else put it there.
pub fn check(executable: &Path) -> Result<(), RecordError> {
    for folder in executable.ancestors().skip(1).take(MAX_DEPTH) {
        let path = folder.join(NAME);
        let Some(record) = read(&path)? else { continue };
        path_owner::check(&path, &Writers::own())?;
        path_owner::check(executable, &Writers::own())?;
        let name = key(executable.strip_prefix(folder).unwrap_or(executable).as_os_str());
        return compare(executable, &name, &record, &path);
    }
    Ok(())
}

/// Whether two folders hold the same files, but for records, whole or not: an agent that died may have left half of one.
pub(crate) fn is_same(one: &Path, other: &Path) -> Result<bool, RecordError> {
    Ok(list(one)? == list(other)?)
}

fn list(folder: &Path) -> Result<Sha256, DigestError> {
    let (mut list, half) = (FolderList::default(), temporary_name(NAME.as_ref()));
    for (name, path) in files(folder)?.into_iter().filter(|(name, _)| name != NAME && *name != half) {
        list.add(&name, Sha256::of_file(&path)?);
    }
    Ok(list.sha256())
}

fn read(path: &Path) -> Result<Option<Record>, RecordError> {
    match fs::symlink_metadata(path) {
        Ok(seen) if seen.is_file() => {}
        _ => return Ok(None),
    }
    let Some(json) = durable::read_if_there(path)? else { return Ok(None) };
    let record = serde_json::from_slice(&json).map_err(|source| RecordError::Bad { path: path.into(), source })?;
    Ok(Some(record))
}

/// One that the record does not have was put there by somebody else.
fn compare(executable: &Path, name: &str, record: &Record, path: &Path) -> Result<(), RecordError> {
    let Some(expected) = record.executables.get(name).copied() else { return Ok(()) };
    let found = Sha256::of_file(executable)?;
    match found == expected {
        true => Ok(()),
        false => Err(RecordError::Changed { path: executable.into(), found, expected, record: path.into() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn release(folder: &Path) -> Unpacked {
        fs::create_dir(folder.join("bin")).unwrap();
        fs::write(folder.join("bin/etcd"), "one").unwrap();
        fs::write(folder.join("read.me"), "text").unwrap();
        let executables = [("bin/etcd".to_owned(), Sha256::of(b"one"))].into();
        Unpacked { sha256: Sha256::of(b"artifact"), executables }
    }

    #[test]
    fn a_release_is_known_by_its_whole_checksum_and_not_by_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let unpacked = release(folder);
        assert!(!is_of(folder, unpacked.sha256).unwrap(), "it has no record");
        check(&folder.join("bin/etcd")).unwrap();
        write(folder, &unpacked).unwrap();
        assert!(is_of(folder, unpacked.sha256).unwrap());
        assert!(!is_of(folder, Sha256::of(b"another")).unwrap());
        check(&folder.join("bin/etcd")).unwrap();

        fs::write(folder.join("bin/etcd"), "two").unwrap();
        for error in [check(&folder.join("bin/etcd")).unwrap_err(), is_of(folder, unpacked.sha256).unwrap_err()] {
            assert!(matches!(error, RecordError::Changed { .. }), "{error}");
            assert!(error.to_string().ends_with(&format!("rm -r {}", folder.display())), "{error}");
        }
        fs::write(folder.join(NAME), "{").unwrap();
        assert!(matches!(check(&folder.join("bin/etcd")), Err(RecordError::Bad { .. })));
    }

    #[test]
    fn folders_are_the_same_whatever_their_records_say() {
        let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let unpacked = release(folders[0].path());
        release(folders[1].path());
        write(folders[0].path(), &unpacked).unwrap();
        assert!(is_same(folders[0].path(), folders[1].path()).unwrap());
        fs::write(folders[1].path().join(temporary_name(NAME.as_ref())), "left by a crash").unwrap();
        assert!(is_same(folders[0].path(), folders[1].path()).unwrap());
        fs::write(folders[1].path().join("read.me"), "other").unwrap();
        assert!(!is_same(folders[0].path(), folders[1].path()).unwrap());
    }
}
