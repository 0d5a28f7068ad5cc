//! SHA-256 of a file or of a folder: what an artifact is, whatever its name.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    fs::{self, File},
    io::{self, Read},
    os::unix::{ffi::OsStrExt, fs::OpenOptionsExt},
    path::{Path, PathBuf},
};

use rustix::fs::OFlags;

use sha2::{Digest, Sha256 as Hasher};

use super::unpack::MAX_BYTES;
use crate::host::files::durable::{At, FileError};
pub use crate::sha256::Sha256;

/// The most files and folders of an artifact.
pub const MAX_ENTRIES: usize = 100_000;
/// How many folders deep an artifact may be.
pub const MAX_DEPTH: usize = 32;

/// Why a folder has no checksum.
#[derive(Debug, thiserror::Error)]
pub enum DigestError {
    /// It could not be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// It holds something that is neither a file nor a folder.
    #[error("{} is {what}: an artifact holds files and folders only", path.display())]
    Unexpected {
        path: PathBuf,
        /// `a link`, `a device, pipe or socket`.
        what: &'static str,
    },
    /// It is larger than any artifact.
    #[error("{} holds more than {MAX_ENTRIES} files and folders, or lies more than {MAX_DEPTH} folders deep", .0.display())]
    TooMany(PathBuf),
    /// Its files are larger than any artifact's, all together.
    #[error("{} holds more than {MAX_BYTES} bytes", .0.display())]
    TooLarge(PathBuf),
}

/// Opens a file for reading, whatever lies at its path by now: a pipe is not waited for, nor a link followed at the end
/// of a path that `follow` forbids it for.
pub(crate) fn open_file(path: &Path, follow: bool) -> Result<File, DigestError> {
    let flags = if follow { OFlags::NONBLOCK } else { OFlags::NONBLOCK | OFlags::NOFOLLOW };
    let mut options = fs::OpenOptions::new();
    options.read(true).custom_flags(flags.bits().cast_signed());
    let file = options.open(path).at("open", path)?;
    match file.metadata().at("look at", path)?.is_file() {
        true => Ok(file),
        false => Err(DigestError::Unexpected { path: path.into(), what: "a folder, device, pipe or socket" }),
    }
}

impl Sha256 {
    /// The checksum of some bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Hasher::digest(bytes).into())
    }

    /// The checksum of a file, as `sha256sum` prints it.
    pub fn of_file(path: &Path) -> Result<Self, DigestError> {
        Ok(read_within(open_file(path, true)?, path, MAX_BYTES)?.0)
    }

    /// The checksum of a folder, as this prints it:
    /// `cd FOLDER && find . -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum`.
    /// So it knows names and contents, not modes or times.
    pub fn of_folder(folder: &Path) -> Result<Self, DigestError> {
        let (mut list, mut left) = (FolderList::default(), MAX_BYTES);
        for (name, path) in files(folder)? {
            let (sha256, bytes) = read_within(open_file(&path, false)?, &path, left).map_err(|error| match error {
                DigestError::TooLarge(_) => DigestError::TooLarge(folder.to_owned()),
                error => error,
            })?;
            left -= bytes;
            list.add(&name, sha256);
        }
        Ok(list.sha256())
    }

    /// The first twelve digits, as in the names of releases' folders.
    pub fn short(&self) -> String {
        self.to_string()[..12].to_owned()
    }
}

/// The checksum of all that is read, and its length, which is refused above `most`. Whoever owns the file may let it grow
/// meanwhile.
fn read_within(file: impl Read, path: &Path, most: u64) -> Result<(Sha256, u64), DigestError> {
    let mut file = Hashing::new(file);
    let bytes = io::copy(&mut (&mut file).take(most.saturating_add(1)), &mut io::sink()).at("read", path)?;
    if bytes > most { Err(DigestError::TooLarge(path.into())) } else { Ok((file.sha256(), bytes)) }
}

/// The list whose checksum is a folder's; files are added in the order of [`files`].
#[derive(Default)]
pub(crate) struct FolderList(Vec<u8>);

impl FolderList {
    pub(crate) fn add(&mut self, name: &OsStr, content: Sha256) {
        self.0.extend(format!("{content}  ./").bytes());
        self.0.extend(name.as_bytes());
        self.0.push(b'\n');
    }

    pub(crate) fn sha256(&self) -> Sha256 {
        Sha256::of(&self.0)
    }
}

/// All files in and below a folder by their names in it, sorted as bytes are (which paths are not). More than [`MAX_BYTES`]
/// of all of them is refused by what their sizes say, before any is read.
pub(crate) fn files(folder: &Path) -> Result<BTreeMap<OsString, PathBuf>, DigestError> {
    let (mut found, mut folders, mut entries, mut bytes) = (BTreeMap::new(), vec![(folder.to_owned(), 0)], 0, 0_u64);
    while let Some((next, depth)) = folders.pop() {
        for entry in fs::read_dir(&next).at("read", &next)? {
            let entry = entry.at("read", &next)?;
            let (path, kind) = (entry.path(), entry.file_type().at("look at", &next)?);
            entries += 1;
            if entries > MAX_ENTRIES || depth >= MAX_DEPTH {
                return Err(DigestError::TooMany(folder.into()));
            }
            if kind.is_dir() {
                folders.push((path, depth + 1));
            } else if kind.is_file() {
                bytes = bytes.saturating_add(entry.metadata().at("look at", &path)?.len());
                if bytes > MAX_BYTES {
                    return Err(DigestError::TooLarge(folder.into()));
                }
                found.insert(path.strip_prefix(folder).unwrap_or(&path).as_os_str().to_owned(), path);
            } else {
                let what = if kind.is_symlink() { "a link" } else { "a device, pipe or socket" };
                return Err(DigestError::Unexpected { path, what });
            }
        }
    }
    Ok(found)
}

/// A reader that computes the checksum of all that is read through it.
pub(crate) struct Hashing<R> {
    reader: R,
    hasher: Hasher,
}

impl<R> Hashing<R> {
    pub(crate) fn new(reader: R) -> Self {
        Self { reader, hasher: Hasher::new() }
    }

    pub(crate) fn sha256(self) -> Sha256 {
        Sha256(self.hasher.finalize().into())
    }
}

impl<R: Read> Read for Hashing<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.reader.read(buffer)?;
        self.hasher.update(&buffer[..count]);
        Ok(count)
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

    #[test]
    fn all_files_of_a_folder_together_are_bounded() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a", "b", "c/d"] {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            // A hole: each of them is smaller than the limit, and none needs space.
            File::create(path).unwrap().set_len(MAX_BYTES / 2).unwrap();
        }
        let error = Sha256::of_folder(folder.path()).unwrap_err();
        assert!(matches!(&error, DigestError::TooLarge(path) if path == folder.path()), "{error}");
    }

    #[test]
    fn a_file_that_grows_is_read_to_the_limit() {
        let path = Path::new("a");
        for (content, most, is_read) in [("", 0, true), ("x", 0, false), ("abc", 3, true), ("abcd", 3, false)] {
            let read = read_within(content.as_bytes(), path, most);
            assert_eq!(read.ok(), is_read.then(|| (Sha256::of(content.as_bytes()), content.len() as u64)), "{content}");
        }
        assert!(matches!(read_within(io::repeat(0), path, 9), Err(DigestError::TooLarge(_))));
    }
}
