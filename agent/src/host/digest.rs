//! SHA-256 of a file or of a folder: what an artifact is, whatever its name.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs::{self, File},
    io,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use sha2::{Digest, Sha256 as Hasher};

use super::durable::{At, FileError};
pub use crate::sha256::Sha256;

/// Why a folder has no checksum.
#[derive(Debug, thiserror::Error)]
pub enum DigestError {
    /// It could not be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// It holds something that is neither a file nor a folder.
    #[error("{} is {what}: an artifact holds files and folders only", path.display())]
    Unexpected {
        /// What was met.
        path: PathBuf,
        /// `a link`, `a device, pipe or socket`.
        what: &'static str,
    },
}

impl Sha256 {
    /// The checksum of some bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Hasher::digest(bytes).into())
    }

    /// The checksum of a file, as `sha256sum` prints it.
    pub fn of_file(path: &Path) -> Result<Self, FileError> {
        let mut file = File::open(path).at("open", path)?;
        let mut hasher = Hash(Hasher::new());
        io::copy(&mut file, &mut hasher).at("read", path)?;
        Ok(Self(hasher.0.finalize().into()))
    }

    /// The checksum of a folder, as this prints it:
    /// `cd FOLDER && find . -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum`.
    /// So it knows names and contents, not modes or times.
    pub fn of_folder(folder: &Path) -> Result<Self, DigestError> {
        let mut list = Vec::new();
        for (name, path) in files(folder)? {
            list.extend(format!("{}  ./", Self::of_file(&path)?).bytes());
            list.extend(name.as_bytes());
            list.push(b'\n');
        }
        Ok(Self::of(&list))
    }

    /// The first twelve digits, as in the names of releases' folders.
    pub fn short(&self) -> String {
        self.to_string()[..12].to_owned()
    }
}

/// All files in and below a folder by their names in it, sorted as bytes are (which paths are not).
pub(crate) fn files(folder: &Path) -> Result<BTreeMap<OsString, PathBuf>, DigestError> {
    let (mut found, mut folders) = (BTreeMap::new(), vec![folder.to_owned()]);
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).at("read", &next)? {
            let entry = entry.at("read", &next)?;
            let (path, kind) = (entry.path(), entry.file_type().at("look at", &next)?);
            if kind.is_dir() {
                folders.push(path);
            } else if kind.is_file() {
                found.insert(path.strip_prefix(folder).unwrap_or(&path).as_os_str().to_owned(), path);
            } else {
                let what = if kind.is_symlink() { "a link" } else { "a device, pipe or socket" };
                return Err(DigestError::Unexpected { path, what });
            }
        }
    }
    Ok(found)
}

struct Hash(Hasher);

impl io::Write for Hash {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_checksum_is_that_of_sha256sum() {
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(Sha256::of(b"abc").to_string(), abc);
        assert_eq!(Sha256::of(b"abc").short(), "ba7816bf8f01");
    }

    #[test]
    fn a_folders_checksum_is_what_its_recipe_prints() {
        let folder = tempfile::tempdir().unwrap();
        for (name, content) in [("b", "2"), ("a/z", "1"), ("a.txt", "3"), ("a/b/c", ""), ("ü x", "4")] {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        let recipe = "find . -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum";
        let printed = Command::new("sh").args(["-c", recipe]).current_dir(folder.path()).output().unwrap();
        let ours = Sha256::of_folder(folder.path()).unwrap();
        assert_eq!(String::from_utf8(printed.stdout).unwrap().split(' ').next(), Some(ours.to_string().as_str()));
        std::os::unix::fs::symlink("b", folder.path().join("link")).unwrap();
        let error = Sha256::of_folder(folder.path()).unwrap_err().to_string();
        assert!(error.contains("link is a link"), "{error}");
    }
}
