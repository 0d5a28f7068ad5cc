//! The journal's file: records appended one by one, each on disk before the agent goes on.
//!
//! A line is a checksum (CRC-32, eight hexadecimal digits), a space and a record as JSON. The first line is the
//! [`Header`]; it comes with the file, which appears complete or not at all. Every later line was written by one
//! `write` and one `fdatasync`, so a crash can leave at most one line that is not whole, at the end: that one
//! was never acknowledged and is cut. Damage anywhere else is a disk's, and nothing is decided from what is left.
//!
//! What the records mean is not known here. Source: agent/PROTOCOL.md, I-6.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, Write},
    marker::PhantomData,
    path::{Path, PathBuf},
};

use flate2::Crc;
use proto::{ClusterId, MemberId};
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    host::files::durable::{self, Access, At, FileError},
    keys::host_id::HostId,
    unknown::{self, Keeps, Unknown, keeps},
    words::typed,
};

/// The one format that this release writes and reads.
pub const FORMAT: u32 = 1;

/// The first record: whose journal it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// How the rest is written: [`FORMAT`].
    pub format: u32,
    /// The cluster that the records are about.
    pub cluster: ClusterId,
    /// The host whose agent wrote them.
    pub host: HostId,
    /// The members of this host, by name, as the cluster knew them: so that a name is known without the cluster.
    pub members: BTreeMap<String, MemberId>,
    /// What a newer agent wrote beside it.
    #[serde(skip)]
    pub unknown: Unknown,
}

keeps! { Header }

impl Header {
    /// A header in the format of this release.
    pub fn new(cluster: ClusterId, host: HostId, members: BTreeMap<String, MemberId>) -> Self {
        Self { format: FORMAT, cluster, host, members, unknown: Unknown::default() }
    }
}

/// Why a journal cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    #[error(transparent)]
    File(#[from] FileError),
    /// A record could not be appended, for want of space for one; the file is as it was before.
    #[error("cannot append to {}", path.display())]
    Append { path: PathBuf, source: io::Error },
    /// An append failed before, and the file could not be brought back to where it was.
    #[error("{} is not to be trusted since an append to it failed", path.display())]
    Abandoned { path: PathBuf },
    /// A line that is not the last one does not match its checksum.
    #[error("{}, line {line}: damaged, and not by a crash, which can only cut the last line", path.display())]
    Damaged {
        path: PathBuf,
        /// Counted from 1.
        line: usize,
    },
    /// A line is whole but no record that this release knows.
    #[error("{}, line {line}: not a record that this release knows", path.display())]
    Unreadable {
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        source: serde_json::Error,
    },
    /// A format from the future.
    #[error("{} has format {found}, written by a newer agent; this one knows {FORMAT}", path.display())]
    Newer { path: PathBuf, found: u32 },
    /// It was written for another cluster.
    #[error(
        "{} belongs to cluster {found}, not to {expected}; correct `cluster.endpoints`, or where they are right put the \
         journal aside: mv {} {}", path.display(), typed(&path.to_string_lossy()),
        typed(&format!("{}.of-{found}", path.display()))
    )]
    OtherCluster {
        path: PathBuf,
        found: ClusterId,
        /// The cluster that was asked for.
        expected: ClusterId,
    },
    /// A record that cannot be written as JSON.
    #[error("a record cannot be written as JSON")]
    Record(#[source] serde_json::Error),
}

/// A journal of records `T`, open for appending by the one holder of the state directory.
#[derive(Debug)]
pub struct Journal<T> {
    path: PathBuf,
    file: File,
    header: Header,
    /// How far the file is acknowledged, in bytes.
    length: u64,
    /// An append left something behind that could not be cut.
    abandoned: bool,
    records: PhantomData<fn(T)>,
}

/// A journal and the records that were in it.
pub type Opened<T> = (Journal<T>, Vec<T>);

impl<T: Keeps> Journal<T> {
    /// Writes a journal with no record yet, in the place of whatever was there.
    pub fn create(path: &Path, header: Header) -> Result<Self, JournalError> {
        let length = write_whole::<T>(path, &header, &[])?;
        Self::at_end(path, header, length)
    }

    /// Opens a journal and reads its records; `None` when there is none. A torn tail is cut; what was read is durable
    /// before it is acted upon, whether or not whoever wrote it lived to see to that.
    pub fn open(path: &Path) -> Result<Option<Opened<T>>, JournalError> {
        let Some(bytes) = durable::read_if_there(path)? else { return Ok(None) };
        let Contents { header, records, length } = read(path, &bytes)?;
        let journal = Self::at_end(path, header, length)?;
        match length < bytes.len() as u64 {
            true => journal.cut().at("cut the torn tail of", path)?,
            false => journal.file.sync_data().at("make durable", path)?,
        }
        Ok(Some((journal, records)))
    }

    /// Reads a journal and touches nothing, for who only looks; another agent may be writing it.
    pub fn peek(path: &Path) -> Result<Option<(Header, Vec<T>)>, JournalError> {
        let Some(bytes) = durable::read_if_there(path)? else { return Ok(None) };
        read(path, &bytes).map(|contents| Some((contents.header, contents.records)))
    }

    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Refuses a journal of another cluster. Apart from [`Journal::open`], since a member that is down is started
    /// before anybody can say which cluster this is.
    pub fn check_cluster(&self, expected: ClusterId) -> Result<(), JournalError> {
        let found = self.header.cluster;
        if found == expected {
            Ok(())
        } else {
            Err(JournalError::OtherCluster { path: self.path.clone(), found, expected })
        }
    }

    /// Appends one record, on disk when this returns: one `write`, one `fdatasync`.
    pub fn append(&mut self, record: &T) -> Result<(), JournalError> {
        if self.abandoned {
            return Err(JournalError::Abandoned { path: self.path.clone() });
        }
        let line = line(record)?;
        match self.file.write_all(&line).and_then(|()| self.file.sync_data()) {
            Ok(()) => {
                self.length += line.len() as u64;
                Ok(())
            }
            Err(source) => {
                // Half a line with a whole one after it would read as damage.
                self.abandoned = self.cut().is_err();
                Err(JournalError::Append { path: self.path.clone(), source })
            }
        }
    }

    /// Puts these records, of these members, in the place of all others in one rename: a crash leaves the old or
    /// the new ones.
    pub fn rewrite(&mut self, members: BTreeMap<String, MemberId>, records: &[T]) -> Result<(), JournalError> {
        let header = Header { members, ..self.header.clone() };
        let length = write_whole(&self.path, &header, records)?;
        *self = Self::at_end(&self.path, header, length)?;
        Ok(())
    }

    fn at_end(path: &Path, header: Header, length: u64) -> Result<Self, JournalError> {
        let file = durable::open(path, OFlags::WRONLY | OFlags::APPEND, 0)?;
        Ok(Self { path: path.into(), file, header, length, abandoned: false, records: PhantomData })
    }

    fn cut(&self) -> io::Result<()> {
        self.file.set_len(self.length)?;
        self.file.sync_all()
    }
}

fn write_whole<T: Keeps>(path: &Path, header: &Header, records: &[T]) -> Result<u64, JournalError> {
    let mut bytes = line(header)?;
    for record in records {
        bytes.extend(line(record)?);
    }
    durable::write(path, &bytes, &Access::PRIVATE)?;
    Ok(bytes.len() as u64)
}

fn line(record: &impl Keeps) -> Result<Vec<u8>, JournalError> {
    unknown::written(record).map(|json| line_of(&json)).map_err(JournalError::Record)
}

fn line_of(json: &Value) -> Vec<u8> {
    let json = json.to_string();
    format!("{:08x} {json}\n", checksum(json.as_bytes())).into_bytes()
}

fn checksum(bytes: &[u8]) -> u32 {
    let mut crc = Crc::new();
    crc.update(bytes);
    crc.sum()
}

struct Contents<T> {
    header: Header,
    records: Vec<T>,
    /// How many bytes of the file they fill; what follows is a torn tail.
    length: u64,
}

fn read<T: Keeps>(path: &Path, bytes: &[u8]) -> Result<Contents<T>, JournalError> {
    let (mut header, mut records, mut rest) = (None, Vec::new(), bytes);
    for number in 1.. {
        let Some(json) = next_line(&mut rest) else { break };
        let unreadable = |source| JournalError::Unreadable { path: path.into(), line: number, source };
        if number == 1 {
            header = Some(read_header(path, json)?);
        } else {
            records.push(record(json).map_err(unreadable)?);
        }
    }
    let damaged = JournalError::Damaged { path: path.into(), line: records.len() + 1 + usize::from(header.is_some()) };
    match header {
        Some(header) if is_torn_tail(rest) => {
            Ok(Contents { header, records, length: (bytes.len() - rest.len()) as u64 })
        }
        _ => Err(damaged),
    }
}

/// Takes one whole line off the front; `None`, with `rest` untouched, when there is none.
fn next_line<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let end = rest.iter().position(|byte| *byte == b'\n')?;
    let json = checked(&rest[..end])?;
    *rest = &rest[end + 1..];
    Some(json)
}

/// The record in a line without its end, if the checksum is that of the record.
fn checked(line: &[u8]) -> Option<&[u8]> {
    let (sum, json) = line.split_at_checked(9)?;
    let digits = sum[..8].iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) && sum[8] == b' ';
    let sum = str::from_utf8(sum.get(..8)?).ok().filter(|_| digits)?;
    (u32::from_str_radix(sum, 16) == Ok(checksum(json))).then_some(json)
}

/// Whether one append that was cut off can have left these bytes: part of one line, perhaps with zeroes where data
/// never reached the disk. Any whole line in there is an acknowledged record behind damage.
fn is_torn_tail(tail: &[u8]) -> bool {
    let kept = tail.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    let line = tail[..kept].strip_suffix(b"\n").unwrap_or(&tail[..kept]);
    !line.contains(&b'\n') && (1..line.len()).all(|start| checked(&line[start..]).is_none())
}

fn record<T: Keeps>(json: &[u8]) -> Result<T, serde_json::Error> {
    unknown::read(serde_json::from_slice(json)?)
}

fn read_header(path: &Path, json: &[u8]) -> Result<Header, JournalError> {
    #[derive(Deserialize)]
    struct Format {
        format: u32,
    }
    let unreadable = |source| JournalError::Unreadable { path: path.into(), line: 1, source };
    match serde_json::from_slice(json).map_err(unreadable)? {
        Format { format: FORMAT } => record(json).map_err(unreadable),
        Format { format: found } => Err(JournalError::Newer { path: path.into(), found }),
    }
}

#[cfg(test)]
#[path = "file_test.rs"]
mod tests;
