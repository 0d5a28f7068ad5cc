//! The records of etcd's log (WAL), one after the other, while etcd may write it.
//!
//! A file is a sequence of frames: 8 bytes with the length of the record, and in their highest byte how much it is padded; then a
//! `walpb.Record` with a checksum (CRC-32C) of all data before it in the log. Behind the last one come zeros, as a file is made 64 MB long
//! beforehand. The last record may be torn: etcd writes it when it likes. Source: etcd v3.6.14, `server/storage/wal/decoder.go`.

use std::{
    fs::File,
    io::{BufReader, Read},
};

use prost::Message;

use super::{Unread, folder::Folder};

/// A longer record is not read, in bytes: etcd warns of requests that may be longer than 10 MiB.
const MAX_RECORD: u64 = 16 << 20;
/// etcd takes a record with a whole sector of zeros in it for one that a crash has torn, in bytes.
const SECTOR: usize = 512;
const HEAD: u64 = 8;
/// In the head: how long the record is, whether it is padded, and by how many bytes.
const LENGTH: u64 = 0x00ff_ffff_ffff_ffff;
const IS_PADDED: u64 = 1 << 63;
const PADDING: u64 = 0x7;

/// `walpb.Record`
#[derive(Clone, PartialEq, Message)]
pub(super) struct Record {
    #[prost(int64, optional, tag = "1")]
    pub(super) kind: Option<i64>,
    #[prost(uint32, optional, tag = "2")]
    pub(super) checksum: Option<u32>,
    #[prost(bytes = "vec", optional, tag = "3")]
    pub(super) data: Option<Vec<u8>>,
}

/// The types of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Metadata = 1,
    Entry = 2,
    State = 3,
    Checksum = 4,
    Snapshot = 5,
}

impl Kind {
    fn of(number: i64) -> Option<Self> {
        [Self::Metadata, Self::Entry, Self::State, Self::Checksum, Self::Snapshot]
            .into_iter()
            .find(|kind| *kind as i64 == number)
    }
}

/// Where a log is read, and how much of it.
#[derive(Debug)]
pub(super) struct Records<'a> {
    folder: &'a Folder,
    /// The files that are not opened yet.
    names: std::slice::Iter<'a, String>,
    /// `None` before the first and behind the last one.
    file: Option<Open>,
    checksum: u32,
    /// How many bytes may be read yet.
    left: &'a mut u64,
    bytes: Vec<u8>,
}

#[derive(Debug)]
struct Open {
    file: BufReader<File>,
    /// In bytes, as it was when it was opened.
    length: u64,
    /// Where the next frame begins.
    at: u64,
}

/// What came of one frame.
enum Frame {
    Record(Kind, Vec<u8>),
    /// The file has no more.
    End,
    /// It is not whole, and in the last file that is the end, too.
    Torn,
}

impl<'a> Records<'a> {
    /// Reads these files of a log, which follow each other, and no more than so many bytes.
    pub(super) fn of(folder: &'a Folder, names: &'a [String], left: &'a mut u64) -> Self {
        Self { folder, names: names.iter(), file: None, checksum: 0, left, bytes: Vec::new() }
    }

    /// The next record; `None` at the end.
    ///
    /// # Errors
    /// [`Unread`], after which nothing follows.
    pub(super) fn next(&mut self) -> Result<Option<(Kind, Vec<u8>)>, Unread> {
        loop {
            if self.file.is_none() {
                let Some(name) = self.names.next() else { return Ok(None) };
                let file = self.folder.file(name)?;
                let length = file.metadata()?.len();
                self.file = Some(Open { file: BufReader::with_capacity(1 << 16, file), length, at: 0 });
            }
            match self.frame()? {
                Frame::Record(kind, data) => return Ok(Some((kind, data))),
                Frame::End => self.file = None,
                Frame::Torn if self.names.len() == 0 => self.file = None,
                Frame::Torn => return Err(Unread::Damaged),
            }
        }
    }

    fn frame(&mut self) -> Result<Frame, Unread> {
        let Some(Open { file, length: end, at }) = &mut self.file else { return Ok(Frame::End) };
        let mut head = [0; HEAD as usize];
        let left = *end - *at;
        if left < HEAD {
            return Ok(if left == 0 { Frame::End } else { Frame::Torn });
        }
        if !fill(file, &mut head)? {
            return Ok(Frame::Torn);
        }
        let head = u64::from_le_bytes(head);
        if head == 0 {
            return Ok(Frame::End);
        }
        let length = head & LENGTH;
        let padding = if head & IS_PADDED == 0 { 0 } else { (head >> 56) & PADDING };
        let whole = length + padding;
        if whole > left - HEAD {
            return Ok(Frame::Torn);
        }
        match self.left.checked_sub(HEAD + whole).filter(|_| length <= MAX_RECORD) {
            Some(less) => *self.left = less,
            None => return Err(Unread::TooLong),
        }
        self.bytes.resize(whole as usize, 0);
        if !fill(file, &mut self.bytes)? {
            return Ok(Frame::Torn);
        }
        let begins = *at + HEAD;
        *at = begins + whole;
        match self.record(length as usize) {
            Some((kind, data)) => Ok(Frame::Record(kind, data)),
            None if has_lost_a_sector(&self.bytes, begins) => Ok(Frame::Torn),
            None => Err(Unread::Damaged),
        }
    }

    /// What was read, where its checksum is right.
    fn record(&mut self, length: usize) -> Option<(Kind, Vec<u8>)> {
        let record = Record::decode(self.bytes.get(..length)?).ok()?;
        let (kind, checksum) = (Kind::of(record.kind?)?, record.checksum.unwrap_or_default());
        let data = record.data.unwrap_or_default();
        match kind {
            // With it a file begins: it goes on from there. Who begins in the middle has none of his own.
            Kind::Checksum if self.checksum != 0 && self.checksum != checksum => return None,
            Kind::Checksum => self.checksum = checksum,
            _ => {
                let now = crc32c::crc32c_append(self.checksum, &data);
                if now != checksum && !cfg!(fuzzing) {
                    return None;
                }
                self.checksum = now;
            }
        }
        Some((kind, data))
    }
}

/// Whether there was as much.
fn fill(file: &mut impl Read, bytes: &mut [u8]) -> Result<bool, Unread> {
    match file.read_exact(bytes) {
        Ok(()) => Ok(true),
        // It was cut meanwhile, as etcd does once it is full.
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Whether a whole sector of these bytes, which begin there in their file, is zeros.
fn has_lost_a_sector(bytes: &[u8], begins: u64) -> bool {
    let first = SECTOR - (begins % SECTOR as u64) as usize;
    let (first, rest) = bytes.split_at(first.min(bytes.len()));
    std::iter::once(first)
        .chain(rest.chunks(SECTOR))
        .any(|sector| !sector.is_empty() && sector.iter().all(|byte| *byte == 0))
}
