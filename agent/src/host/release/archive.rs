//! A `.tar.gz` that anybody may have made: unpacked entry by entry, within bounds.
//!
//! Nothing lands outside the folder: an entry with an absolute name, with `..` in it, or that is a link or a device
//! is refused by its name, and so is the whole artifact. All that is inflated counts: headers, names, and what follows the
//! archive's end. So the extensions that give an entry a long name are read here, within bounds, and not by the library,
//! which reads them whole. Source: tar(5); POSIX, "pax Interchange Format".

use std::{
    cell::Cell,
    fs::File,
    io::{self, BufReader, Read},
    path::{Component, Path, PathBuf},
    rc::Rc,
};

use flate2::read::MultiGzDecoder;
use tar::{Archive, Entry, EntryType, PaxExtensions};

use super::{
    digest::{Hashing, MAX_DEPTH, MAX_ENTRIES},
    unpack::{MAX_BYTES, PutError, UnpackError, Unpacked, key, put, sync_folders},
};
use crate::host::files::durable::{self, At};

/// The longest name, in bytes (PATH_MAX, limits.h).
const MAX_NAME: u64 = 4096;
/// The longest extension, in bytes: a name, and whatever else an archiver has to say of one entry.
const MAX_EXTENSION: u64 = 64 << 10;
/// What may follow an archive's end, in bytes: archivers fill up their last record.
const MAX_TRAILING: u64 = 1 << 20;

/// How much may be unpacked.
#[derive(Clone, Copy)]
struct Room {
    /// Bytes, as they are inflated.
    bytes: u64,
    /// Entries, those that only describe another among them.
    entries: usize,
}

impl Room {
    const ALL: Self = Self { bytes: MAX_BYTES, entries: MAX_ENTRIES };
}

/// Unpacks a `.tar.gz` into an empty folder.
pub(crate) fn archive(file: File, path: &Path, into: &Path) -> Result<Unpacked, UnpackError> {
    archive_within(file, path, into, Room::ALL)
}

fn archive_within(file: File, path: &Path, into: &Path, room: Room) -> Result<Unpacked, UnpackError> {
    let left = Rc::new(Cell::new(Some(room.bytes)));
    let mut file = Hashing::new(file);
    let inflated = Inflated { reader: MultiGzDecoder::new(BufReader::new(&mut file)), left: left.clone() };
    let mut archive = Archive::new(inflated);
    let mut unpacking = Unpacking { path, into, left: &left, described: None, executables: Default::default() };
    for (number, entry) in archive.entries().map_err(|error| unpacking.failed(error))?.raw(true).enumerate() {
        let entry = entry.map_err(|error| unpacking.failed(error))?;
        if number >= room.entries || left.get().is_none_or(|left| entry.size() > left) {
            return Err(unpacking.too_large());
        }
        unpacking.take(entry)?;
    }
    // An archive that is cut where an entry ends looks whole to tar; its gzip trailer is missing.
    left.set(left.get().map(|left| left.min(MAX_TRAILING)));
    let executables = std::mem::take(&mut unpacking.executables);
    io::copy(&mut archive.into_inner(), &mut io::sink()).map_err(|error| unpacking.failed(error))?;
    io::copy(&mut file, &mut io::sink()).at("read", path)?;
    sync_folders(into)?;
    Ok(Unpacked { sha256: file.sha256(), executables })
}

/// What is inflated, as long as there is room; `left` is `None` once there was more.
struct Inflated<R> {
    reader: R,
    left: Rc<Cell<Option<u64>>>,
}

impl<R: Read> Read for Inflated<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.left.get().unwrap_or_default();
        // One more than may be: else a stream that just fits could not be told from one that does not.
        let most = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX).saturating_add(1));
        let count = self.reader.read(&mut buffer[..most])?;
        self.left.set(left.checked_sub(count as u64));
        match self.left.get() {
            Some(_) => Ok(count),
            None => Err(io::Error::other("it is too large")),
        }
    }
}

/// An archive that is being unpacked.
struct Unpacking<'a> {
    path: &'a Path,
    into: &'a Path,
    left: &'a Cell<Option<u64>>,
    /// What an extension says of the entry that follows.
    described: Option<Described>,
    executables: std::collections::BTreeMap<String, super::digest::Sha256>,
}

#[derive(Default)]
struct Described {
    name: Option<Vec<u8>>,
    size: Option<u64>,
    is_sparse: bool,
}

impl Unpacking<'_> {
    fn failed(&self, source: io::Error) -> UnpackError {
        match self.left.get() {
            Some(_) => UnpackError::Archive { path: self.path.into(), source },
            None => self.too_large(),
        }
    }

    fn too_large(&self) -> UnpackError {
        UnpackError::TooLarge { path: self.path.into() }
    }

    fn refused(&self, name: &[u8], why: &'static str) -> UnpackError {
        UnpackError::Entry { path: self.path.into(), entry: String::from_utf8_lossy(name).into_owned(), why }
    }

    fn take(&mut self, mut entry: Entry<'_, impl Read>) -> Result<(), UnpackError> {
        match entry.header().entry_type() {
            EntryType::XGlobalHeader => Ok(()),
            EntryType::GNULongName => {
                let mut name = self.extension(&mut entry, MAX_NAME)?;
                name.truncate(name.iter().position(|byte| *byte == 0).unwrap_or(name.len()));
                self.described.get_or_insert_default().name = Some(name);
                Ok(())
            }
            // Of a link, which is refused by its own name.
            EntryType::GNULongLink => self.extension(&mut entry, MAX_NAME).map(drop),
            EntryType::XHeader => {
                let extension = self.extension(&mut entry, MAX_EXTENSION)?;
                self.describe(&extension)
            }
            _ => self.put(&mut entry),
        }
    }

    fn extension(&self, entry: &mut Entry<'_, impl Read>, most: u64) -> Result<Vec<u8>, UnpackError> {
        if entry.size() > most {
            return Err(self.refused(&entry.path_bytes(), "has a name or description that is too long"));
        }
        let mut extension = Vec::new();
        entry.read_to_end(&mut extension).map_err(|error| self.failed(error))?;
        Ok(extension)
    }

    fn describe(&mut self, extension: &[u8]) -> Result<(), UnpackError> {
        let mut described = self.described.take().unwrap_or_default();
        for pair in PaxExtensions::new(extension) {
            let pair = pair.map_err(|error| self.failed(error))?;
            let size = || std::str::from_utf8(pair.value_bytes()).ok()?.parse().ok();
            match pair.key_bytes() {
                b"path" => described.name = Some(pair.value_bytes().to_vec()),
                // One that cannot be read is another size than the header's.
                b"size" => described.size = Some(size().unwrap_or(u64::MAX)),
                key => described.is_sparse |= key.starts_with(b"GNU.sparse."),
            }
        }
        self.described = Some(described);
        Ok(())
    }

    fn put(&mut self, entry: &mut Entry<'_, impl Read>) -> Result<(), UnpackError> {
        let described = self.described.take().unwrap_or_default();
        let name = described.name.unwrap_or_else(|| entry.path_bytes().into_owned());
        let refused = |why| self.refused(&name, why);
        if described.size.is_some_and(|size| size != entry.size()) {
            return Err(refused("has two sizes"));
        }
        let text = String::from_utf8_lossy(&name).into_owned();
        let place = inside(Path::new(&text)).map_err(refused)?;
        let target = self.into.join(&place);
        match entry.header().entry_type() {
            _ if described.is_sparse => Err(refused("is a sparse file")),
            EntryType::GNUSparse => Err(refused("is a sparse file")),
            EntryType::Directory => Ok(durable::create_folder(&target, 0o755)?),
            EntryType::Regular | EntryType::Continuous => {
                let executable = entry.header().mode().is_ok_and(|mode| mode & 0o111 != 0);
                let put = match put(entry, &target, executable) {
                    Err(PutError::Write(error)) if error.source.kind() == io::ErrorKind::AlreadyExists => {
                        return Err(refused("is there twice"));
                    }
                    Err(PutError::Write(error)) => return Err(UnpackError::File(error)),
                    Err(PutError::Read(source)) => return Err(self.failed(source)),
                    Ok(put) => put,
                };
                if executable {
                    self.executables.insert(key(place.as_os_str()), put.sha256);
                }
                Ok(())
            }
            EntryType::Symlink | EntryType::Link => Err(refused("is a link")),
            _ => Err(refused("is neither a file nor a folder")),
        }
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
    match inside.components().count() <= MAX_DEPTH && inside.as_os_str().len() as u64 <= MAX_NAME {
        true => Ok(inside),
        false => Err("lies too deep"),
    }
}

#[cfg(test)]
#[path = "archive_test.rs"]
mod tests;
