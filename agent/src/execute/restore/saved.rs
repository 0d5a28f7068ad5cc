//! The file that a cluster is made from, judged before anything is touched: whole, and of which cluster.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use rustix::fs::OFlags;
use sha2::{Digest as _, Sha256};

use crate::observe::database::{content::NotUnderstood, origin::Origin};

/// The SHA-256 of all before it comes last, as `etcdctl snapshot save` writes it.
const CHECKSUM: usize = 32;
const PIECE: usize = 1 << 20;

/// A file whose checksum is right.
#[derive(Clone, Debug, PartialEq)]
pub struct Saved {
    pub path: PathBuf,
    /// How long it is, its checksum included.
    pub bytes: u64,
    pub sha256: crate::sha256::Sha256,
    /// What it says of its cluster; `None` where it is no database of etcd's.
    pub origin: Option<Origin>,
}

/// Why nothing is made from a file.
#[derive(Debug, thiserror::Error)]
pub enum Unusable {
    #[error("{} cannot be read: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("{} is no file", .0.display())]
    NotAFile(PathBuf),
    #[error(
        "{} does not end in the checksum of what it holds: it is torn or damaged, or was copied from a data directory; only what \
         `agent backup` or `etcdctl snapshot save` has written is restored", .0.display()
    )]
    Torn(PathBuf),
    #[error("{}: {source}", path.display())]
    NotUnderstood { path: PathBuf, source: NotUnderstood },
    /// It was judged, and is another one now.
    #[error("{} was changed while it was copied", .0.display())]
    Changed(PathBuf),
}

impl Saved {
    /// Reads all of it.
    ///
    /// # Errors
    /// [`Unusable`].
    pub fn read(path: &Path) -> Result<Self, Unusable> {
        let mut file = open(path)?;
        let (bytes, sha256) = digest(path, &mut file, &mut io::sink())?;
        let origin = match Origin::read(file) {
            Ok(origin) => Some(origin),
            Err(NotUnderstood::Unread(error)) if error.is_no_database() => None,
            Err(source) => return Err(Unusable::NotUnderstood { path: path.into(), source }),
        };
        Ok(Self { path: path.into(), bytes, sha256, origin })
    }

    /// Of a file that is not there any more, and from which all was made before.
    pub fn gone(path: &Path) -> Self {
        Self { path: path.into(), bytes: 0, sha256: crate::sha256::Sha256([0; 32]), origin: None }
    }

    /// Writes a copy, which is what was judged.
    ///
    /// # Errors
    /// [`Unusable`]; what was written by then is left.
    pub fn copy(&self, to: &mut File) -> Result<(), Unusable> {
        let (bytes, sha256) = digest(&self.path, &mut open(&self.path)?, to)?;
        match (bytes, sha256) == (self.bytes, self.sha256) {
            true => Ok(()),
            false => Err(Unusable::Changed(self.path.clone())),
        }
    }
}

/// To open a pipe or a device may wait for ever, or do something already.
pub(super) fn open(path: &Path) -> Result<File, Unusable> {
    let failed = |source| Unusable::File { path: path.into(), source };
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits();
    let file = OpenOptions::new().read(true).custom_flags(flags as i32).open(path).map_err(failed)?;
    match file.metadata().map_err(failed)?.is_file() {
        true => Ok(file),
        false => Err(Unusable::NotAFile(path.into())),
    }
}

/// Length and checksum of what goes from the one to the other, where the checksum at its end is right.
fn digest(path: &Path, from: &mut File, to: &mut impl io::Write) -> Result<(u64, crate::sha256::Sha256), Unusable> {
    let failed = |source| Unusable::File { path: path.into(), source };
    let (mut digest, mut bytes, mut last) = (Sha256::new(), 0, Vec::new());
    let mut piece = vec![0; PIECE];
    loop {
        let read = from.read(&mut piece).map_err(failed)?;
        if read == 0 {
            break;
        }
        to.write_all(&piece[..read]).map_err(failed)?;
        bytes += read as u64;
        last.extend_from_slice(&piece[..read]);
        let sure = last.len().saturating_sub(CHECKSUM);
        digest.update(&last[..sure]);
        last.drain(..sure);
    }
    match <[u8; CHECKSUM]>::try_from(last) {
        Ok(checksum) if digest.finalize()[..] == checksum && bytes > CHECKSUM as u64 => {
            Ok((bytes, crate::sha256::Sha256(checksum)))
        }
        _ => Err(Unusable::Torn(path.into())),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn only_a_file_with_its_checksum_is_restored() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("saved");
        let content = [7; 3000];
        let whole = [&content[..], &Sha256::digest(content)].concat();
        for (bytes, is_whole) in [
            (whole.clone(), true),
            (whole[..3031].to_vec(), false),
            (whole[1..].to_vec(), false),
            (content.to_vec(), false),
            (Sha256::digest([0; 0]).to_vec(), false), // nothing, and its checksum
            (Vec::new(), false),
        ] {
            fs::write(&path, &bytes).unwrap();
            let read = Saved::read(&path);
            assert_eq!(read.is_ok(), is_whole, "{read:?}");
        }
        fs::write(&path, &whole).unwrap();
        let saved = Saved::read(&path).unwrap();
        assert_eq!((saved.bytes, saved.origin.clone()), (3032, None));
        let mut copy = tempfile::tempfile().unwrap();
        saved.copy(&mut copy).unwrap();
        let other = [8; 3000];
        fs::write(&path, [&other[..], &Sha256::digest(other)].concat()).unwrap();
        assert!(matches!(saved.copy(&mut copy), Err(Unusable::Changed(_))));
        assert!(matches!(Saved::read(folder.path()), Err(Unusable::NotAFile(_))));
        assert!(matches!(Saved::read(Path::new("/dev/zero")), Err(Unusable::NotAFile(_))));
    }
}
