//! What lies beside the log, to tell whose that is and of when: the identity once more, and the count of starts. A folder of the log that
//! is another member's, or older than the rest of the data directory, shows by it.

use std::{io, path::Path};

use crc32c::crc32c;
use disk::Folder;
use prost::Message;

use super::{At, IdentityError, Kept};
use crate::{cluster::member::Starts, stored::entry as stored};

/// The format that is written, and the newest that is read.
const FORMAT: u32 = 1;
/// Not a segment's: the log does not look at it.
pub(super) const NAME: &str = "starts";

impl Kept {
    /// The number of its next start, where the folder of the log counts the same.
    pub(super) fn next(&self, path: &Path, log: &dyn Folder, was_there: bool) -> Result<Starts, IdentityError> {
        let starts = Starts(self.starts.0.saturating_add(1));
        // The log's count is written first: it is that of the identity, or one more where a crash came between the two.
        match read(log)? {
            None if self.starts > Starts(0) => Err(IdentityError::Missing { path: log.path(NAME) }),
            Some(counted) if counted < self.starts => Err(IdentityError::Older { path: log.path("") }),
            Some(counted) if counted > starts && !was_there => Err(IdentityError::Missing { path: path.into() }),
            Some(counted) if counted > starts => Err(IdentityError::Older { path: path.into() }),
            _ => Ok(starts),
        }
    }

    /// Whether the folder of the log says that it is this member's. One that an earlier release has made says nothing.
    pub(super) fn owns(&self, log: &dyn Folder) -> Result<bool, IdentityError> {
        let path = log.path(super::NAME);
        let bytes = match disk::read(log, super::NAME) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(source) => return Err(IdentityError::Io { doing: "read", path, source }),
        };
        let of = super::read(&path, &bytes)?;
        if (of.cluster, of.member, of.incarnation) == (self.cluster, self.member, self.incarnation) {
            return Ok(true);
        }
        let other = match of.member == self.member {
            true => "another data directory".to_owned(),
            false => format!("member {} of cluster {}", of.member, of.cluster),
        };
        Err(IdentityError::Mixed { path: log.path(""), member: self.member, cluster: self.cluster, other })
    }
}

/// None where it was never written.
pub(super) fn read(log: &dyn Folder) -> Result<Option<Starts>, IdentityError> {
    let path = log.path(NAME);
    let bytes = match disk::read(log, NAME) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(IdentityError::Io { doing: "read", path, source }),
    };
    match stored::Started::decode(&*bytes) {
        Ok(read) if read.format > FORMAT => Err(IdentityError::Newer { path, found: read.format }),
        Ok(read) if read.checksum == checksum(&read) && read.starts > 0 => Ok(Some(Starts(read.starts))),
        _ => Err(IdentityError::Damaged { path }),
    }
}

pub(super) fn write(log: &dyn Folder, starts: Starts) -> Result<(), IdentityError> {
    let mut started = stored::Started { format: FORMAT, starts: starts.0, checksum: 0 };
    started.checksum = checksum(&started);
    disk::write_whole(log, NAME, "starts.tmp", &started.encode_to_vec()).at("write", &log.path(NAME))
}

fn checksum(started: &stored::Started) -> u32 {
    crc32c(&stored::Started { checksum: 0, ..*started }.encode_to_vec())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs;

    use super::*;

    /// What was written once is read by every later release. Never written anew: another meaning is another field.
    #[test]
    fn the_bytes_are_those_that_were_first_written_and_a_damaged_bit_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let log = disk::real(folder.path()).unwrap();
        assert_eq!(read(&*log).unwrap(), None);
        write(&*log, Starts(300)).unwrap();
        let path = folder.path().join(NAME);
        let bytes = fs::read(&path).unwrap();
        let golden = [b"\x08\x01\x10\xac\x02\x7d", &crc32c(b"\x08\x01\x10\xac\x02").to_le_bytes()[..]].concat();
        assert_eq!(bytes, golden);
        assert_eq!(read(&*log).unwrap(), Some(Starts(300)));
        for at in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[at / 8] ^= 1 << (at % 8);
            fs::write(&path, flipped).unwrap();
            assert!(read(&*log).is_err(), "bit {at}");
        }
        for length in 0..bytes.len() {
            fs::write(&path, &bytes[..length]).unwrap();
            assert!(read(&*log).is_err(), "cut off at {length}");
        }
    }
}
