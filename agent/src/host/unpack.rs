//! Putting an artifact's files into a new folder: out of a `.tar.gz`, from a folder, or one executable.
//!
//! Nothing lands outside the folder: an entry with an absolute name, with `..` in it, or that is a link or a device
//! is refused by its name, and so is the whole artifact. Every file and folder is fsynced.

use std::{
    fs::{self, File, OpenOptions, Permissions},
    io::{self, Read, Write},
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::{Component, Path, PathBuf},
};

use flate2::read::MultiGzDecoder;
use tar::{Archive, Entry, EntryType};

use super::{
    digest::{self, DigestError},
    durable::{self, At, FileError},
};

/// The largest artifact, unpacked, in bytes.
pub const MAX_BYTES: u64 = 4 << 30;
/// The most entries of an artifact.
pub const MAX_ENTRIES: usize = 100_000;

/// Why an artifact was not unpacked.
#[derive(Debug, thiserror::Error)]
pub enum UnpackError {
    /// A file could not be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// The source holds something else than files and folders.
    #[error(transparent)]
    Digest(#[from] DigestError),
    /// It is no archive, or one that is cut or damaged.
    #[error("{} is no whole .tar.gz archive", path.display())]
    Archive {
        /// The archive.
        path: PathBuf,
        /// What is wrong with it.
        source: io::Error,
    },
    /// An entry could do harm.
    #[error("{}: entry `{entry}` {why}", path.display())]
    Entry {
        /// The archive.
        path: PathBuf,
        /// The entry's name in it.
        entry: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// It is too large.
    #[error("{} unpacks to more than {MAX_BYTES} bytes or {MAX_ENTRIES} entries", path.display())]
    TooLarge {
        /// The archive.
        path: PathBuf,
    },
}

/// How much may still be unpacked.
struct Room {
    bytes: u64,
    entries: usize,
}

impl Room {
    const ALL: Self = Self { bytes: MAX_BYTES, entries: MAX_ENTRIES };

    fn take(&mut self, bytes: u64) -> Option<()> {
        self.bytes = self.bytes.checked_sub(bytes)?;
        self.entries = self.entries.checked_sub(1)?;
        Some(())
    }
}

/// Unpacks a `.tar.gz` into an empty folder.
pub fn archive(path: &Path, into: &Path) -> Result<(), UnpackError> {
    archive_within(path, into, Room::ALL)
}

fn archive_within(path: &Path, into: &Path, mut room: Room) -> Result<(), UnpackError> {
    let failed = |source| UnpackError::Archive { path: path.into(), source };
    let file = File::open(path).at("open", path)?;
    let mut archive = Archive::new(MultiGzDecoder::new(io::BufReader::new(file)));
    for entry in archive.entries().map_err(failed)? {
        let mut entry = entry.map_err(failed)?;
        room.take(entry.size()).ok_or_else(|| UnpackError::TooLarge { path: path.into() })?;
        put_entry(&mut entry, path, into)?;
    }
    // An archive that is cut where an entry ends looks whole to tar; its gzip trailer is missing.
    io::copy(&mut archive.into_inner(), &mut io::sink()).map_err(failed)?;
    sync_folders(into)
}

fn put_entry(entry: &mut Entry<'_, impl Read>, archive: &Path, into: &Path) -> Result<(), UnpackError> {
    let name = entry.path_bytes().into_owned();
    let name = String::from_utf8_lossy(&name).into_owned();
    let refused = |why| UnpackError::Entry { path: archive.into(), entry: name.clone(), why };
    let target = into.join(inside(Path::new(&name)).map_err(refused)?);
    match entry.header().entry_type() {
        EntryType::XGlobalHeader => Ok(()),
        EntryType::Directory => Ok(durable::create_folder(&target, 0o755)?),
        EntryType::Regular | EntryType::Continuous => {
            let executable = entry.header().mode().is_ok_and(|mode| mode & 0o111 != 0);
            match put(entry, &target, executable) {
                Err(PutError::Write(error)) if error.source.kind() == io::ErrorKind::AlreadyExists => {
                    Err(refused("is there twice"))
                }
                Err(PutError::Write(error)) => Err(UnpackError::File(error)),
                Err(PutError::Read(source)) => Err(UnpackError::Archive { path: archive.into(), source }),
                Ok(()) => Ok(()),
            }
        }
        EntryType::Symlink | EntryType::Link => Err(refused("is a link")),
        _ => Err(refused("is neither a file nor a folder")),
    }
}

/// The name with nothing in it that leads out of the folder it is put in.
fn inside(name: &Path) -> Result<PathBuf, &'static str> {
    let mut inside = PathBuf::new();
    for component in name.components() {
        match component {
            Component::Normal(part) => inside.push(part),
            Component::CurDir => {}
            Component::ParentDir => return Err("leads out of its folder with `..`"),
            Component::RootDir | Component::Prefix(_) => return Err("has an absolute name"),
        }
    }
    Ok(inside)
}

/// Copies a folder with all that is in it into an empty one.
pub fn folder(path: &Path, into: &Path) -> Result<(), UnpackError> {
    let mut room = Room::ALL;
    for (name, file) in digest::files(path)? {
        let metadata = fs::metadata(&file).at("look at", &file)?;
        room.take(metadata.len()).ok_or_else(|| UnpackError::TooLarge { path: path.into() })?;
        let mut content = File::open(&file).at("open", &file)?;
        let executable = metadata.permissions().mode() & 0o111 != 0;
        put(&mut content, &into.join(name), executable).map_err(|error| error.of(&file))?;
    }
    sync_folders(into)
}

/// Copies one executable into an empty folder.
pub fn executable(path: &Path, into: &Path, name: &str) -> Result<(), UnpackError> {
    let mut content = File::open(path).at("open", path)?;
    put(&mut content, &into.join(name), true).map_err(|error| error.of(path))?;
    sync_folders(into)
}

/// As much is written at once, in bytes: a member that shares the disk waits for it with its next write.
const PIECE: usize = 1 << 20;

/// Which side of a copy failed.
enum PutError {
    Read(io::Error),
    Write(FileError),
}

impl From<FileError> for PutError {
    fn from(error: FileError) -> Self {
        Self::Write(error)
    }
}

impl PutError {
    /// With the file that was read.
    fn of(self, source: &Path) -> UnpackError {
        UnpackError::File(match self {
            Self::Read(error) => FileError { doing: "read", path: source.into(), source: error },
            Self::Write(error) => error,
        })
    }
}

/// Writes a new file, fsynced. Of its mode only the right to be executed is taken over: no set-id bit, and nobody
/// but the owner may change it.
fn put(content: &mut impl Read, path: &Path, executable: bool) -> Result<(), PutError> {
    if let Some(parent) = path.parent() {
        durable::create_folder(parent, 0o755)?;
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).at("create", path)?;
    let (mut chunk, mut unsynced) = (vec![0; 64 * 1024], 0);
    loop {
        let count = content.read(&mut chunk).map_err(PutError::Read)?;
        if count == 0 {
            break;
        }
        file.write_all(&chunk[..count]).at("write", path)?;
        unsynced += count;
        if unsynced >= PIECE {
            file.sync_data().at("fsync", path)?;
            unsynced = 0;
        }
    }
    let mode = if executable { 0o755 } else { 0o644 };
    file.set_permissions(Permissions::from_mode(mode)).at("set the mode of", path)?;
    Ok(file.sync_all().at("fsync", path)?)
}

fn sync_folders(folder: &Path) -> Result<(), UnpackError> {
    for entry in fs::read_dir(folder).at("read", folder)? {
        let path = entry.at("read", folder)?.path();
        if path.is_dir() {
            sync_folders(&path)?;
        }
    }
    Ok(durable::sync_folder(folder)?)
}

#[cfg(test)]
mod tests {
    use flate2::{Compression, write::GzEncoder};
    use tar::Header;
    use tempfile::TempDir;

    use super::*;

    struct Case {
        folder: TempDir,
    }

    impl Case {
        fn new() -> Self {
            Self { folder: tempfile::tempdir().unwrap() }
        }

        /// Unpacks an archive with these entries; names are written as they are, which no honest tool would do.
        fn unpack(&self, entries: &[(&str, EntryType, u32, &[u8])]) -> Result<(), UnpackError> {
            let mut builder = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
            for (name, kind, mode, content) in entries {
                let mut header = Header::new_gnu();
                header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
                header.set_entry_type(*kind);
                header.set_mode(*mode);
                header.set_size(content.len() as u64);
                if kind.is_symlink() || kind.is_hard_link() {
                    header.as_old_mut().linkname[..11].copy_from_slice(b"/etc/passwd");
                }
                header.set_cksum();
                builder.append(&header, *content).unwrap();
            }
            self.unpack_bytes(&builder.into_inner().unwrap().finish().unwrap(), Room::ALL)
        }

        fn unpack_bytes(&self, bytes: &[u8], room: Room) -> Result<(), UnpackError> {
            let path = self.folder.path().join("artifact.tar.gz");
            fs::write(&path, bytes).unwrap();
            let into = self.target();
            let _ = fs::remove_dir_all(&into);
            fs::create_dir(&into).unwrap();
            archive_within(&path, &into, room)
        }

        fn target(&self) -> PathBuf {
            self.folder.path().join("into")
        }
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn an_archive_lands_in_its_folder_without_dangerous_modes() {
        let case = Case::new();
        case.unpack(&[
            ("etcd-v1/", EntryType::Directory, 0o700, b""),
            ("etcd-v1/etcd", EntryType::Regular, 0o6777, b"program"),
            ("./etcd-v1/doc/read.me", EntryType::Regular, 0o666, b"text"),
        ])
        .unwrap();
        let (program, text) = (case.target().join("etcd-v1/etcd"), case.target().join("etcd-v1/doc/read.me"));
        assert_eq!((fs::read(&program).unwrap(), mode(&program)), (b"program".to_vec(), 0o755));
        assert_eq!((fs::read(&text).unwrap(), mode(&text)), (b"text".to_vec(), 0o644));
    }

    #[test]
    fn an_entry_that_could_do_harm_is_refused_by_name() {
        for (name, kind, why) in [
            ("../evil", EntryType::Regular, "`../evil` leads out"),
            ("a/../../evil", EntryType::Regular, "`a/../../evil` leads out"),
            ("a/..", EntryType::Directory, "`a/..` leads out"),
            ("/tmp/evil", EntryType::Regular, "`/tmp/evil` has an absolute name"),
            ("soft", EntryType::Symlink, "`soft` is a link"),
            ("hard", EntryType::Link, "`hard` is a link"),
            ("tty", EntryType::Char, "`tty` is neither"),
            ("disk", EntryType::Block, "`disk` is neither"),
            ("pipe", EntryType::Fifo, "`pipe` is neither"),
        ] {
            let case = Case::new();
            let error =
                case.unpack(&[("good", EntryType::Regular, 0o644, b"x"), (name, kind, 0o644, b"")]).unwrap_err();
            assert!(error.to_string().contains(why), "{error}");
            assert_eq!(fs::read_dir(case.folder.path()).unwrap().count(), 2, "{name}: the archive and the folder");
        }
        let twice = [("same", EntryType::Regular, 0o644, b"1".as_slice()), ("./same", EntryType::Regular, 0o644, b"2")];
        let error = Case::new().unpack(&twice).unwrap_err().to_string();
        assert!(error.contains("`./same` is there twice"), "{error}");
    }

    #[test]
    fn a_cut_or_damaged_archive_is_refused_wherever_it_is_cut() {
        let case = Case::new();
        case.unpack(&[("a", EntryType::Regular, 0o644, b"one"), ("b", EntryType::Regular, 0o644, b"two")]).unwrap();
        let whole = fs::read(case.folder.path().join("artifact.tar.gz")).unwrap();
        for cut in 0..whole.len() {
            let error = case.unpack_bytes(&whole[..cut], Room::ALL).unwrap_err();
            assert!(matches!(error, UnpackError::Archive { .. }), "cut at {cut}: {error}");
        }
        assert!(case.unpack_bytes(b"<html>not found</html>", Room::ALL).is_err());
    }

    #[test]
    fn an_archive_that_grows_without_end_is_refused() {
        let case = Case::new();
        let content = vec![0; 100_000];
        let mut gz = GzEncoder::new(Vec::new(), Compression::fast());
        let mut builder = tar::Builder::new(&mut gz);
        for name in ["a", "b"] {
            let mut header = Header::new_gnu();
            header.set_size(content.len() as u64);
            builder.append_data(&mut header, name, content.as_slice()).unwrap();
        }
        builder.finish().unwrap();
        drop(builder);
        gz.flush().unwrap();
        let bytes = gz.finish().unwrap();
        case.unpack_bytes(&bytes, Room { bytes: 200_000, entries: 2 }).unwrap();
        for room in [Room { bytes: 199_999, entries: 9 }, Room { bytes: MAX_BYTES, entries: 1 }] {
            assert!(matches!(case.unpack_bytes(&bytes, room), Err(UnpackError::TooLarge { .. })));
        }
    }
}
