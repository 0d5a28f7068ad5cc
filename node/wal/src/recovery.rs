//! Opening a log: one pass over its segments, and the torn tail cut.
//!
//! What was read is made durable before anybody acts upon it: whoever wrote it may have died before the sync. The last
//! batch is even written again, because after a failed sync the system can show what the disk never took.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use bytes::Bytes;

use disk::Folder;

use crate::{
    active::Active,
    contents::{Contents, Place},
    entry::LogIndex,
    error::{At, WalError},
    marks::Marks,
    named_file::NamedFile,
    options::Options,
    record::Record,
    segment::{self, Damage, HEADER, Header, NotASegment, Scan, UNFINISHED},
    writer::{Closed, Writer},
};

/// A log as it was found.
pub(crate) struct Recovered {
    pub(crate) contents: Contents,
    pub(crate) files: BTreeMap<u64, NamedFile>,
    pub(crate) writer: Writer,
}

/// A segment and its header.
struct Found {
    header: Header,
    file: NamedFile,
}

/// Reads the log; makes one where there is none.
pub(crate) fn recover(folder: Arc<dyn Folder>, options: Options) -> Result<Recovered, WalError> {
    let path = folder.path("");
    let names = folder.names().at("list", &path)?;
    if names.iter().any(|name| name == UNFINISHED) {
        folder.remove(UNFINISHED).at("remove", &folder.path(UNFINISHED))?;
    }
    let mut numbers: Vec<u64> = names.iter().filter_map(|name| segment::number(name)).collect();
    numbers.sort_unstable();
    let leftover = before_the_last_gap(&numbers);
    let found = numbers[leftover..].iter().map(|number| find(&*folder, *number)).collect::<Result<Vec<_>, _>>()?;
    if found.is_empty() {
        return create(folder, options);
    }

    let (contents, closed, active) = read(&*folder, &found, &options)?;
    for number in &numbers[..leftover] {
        let name = segment::name(*number);
        folder.remove(&name).at("remove", &folder.path(&name))?;
    }
    folder.sync_names().at("sync", &path)?;
    let files = found.into_iter().map(|found| (found.header.number, found.file)).collect();
    let writer = Writer {
        folder,
        options,
        active,
        spare: None,
        closed,
        marks: contents.marks().clone(),
        measured: Arc::default(),
    };
    Ok(Recovered { contents, files, writer })
}

fn create(folder: Arc<dyn Folder>, options: Options) -> Result<Recovered, WalError> {
    let active = Active::create(&*folder, &options, (1, 0), &Marks::default(), 0, None)?;
    let files = BTreeMap::from([(active.number, active.file.clone())]);
    let contents = Contents::new(LogIndex(0), options.tail_bytes);
    let writer = Writer {
        folder,
        options,
        active,
        spare: None,
        closed: VecDeque::new(),
        marks: Marks::default(),
        measured: Arc::default(),
    };
    Ok(Recovered { contents, files, writer })
}

/// How many segments are only there because a removal was cut short: the disk may forget removals in any order. That
/// the others hold the whole log is checked once they are read.
fn before_the_last_gap(numbers: &[u64]) -> usize {
    let gap = numbers.windows(2).rposition(|pair| pair[0] + 1 != pair[1]);
    gap.map_or(0, |at| at + 1)
}

fn find(folder: &dyn Folder, number: u64) -> Result<Found, WalError> {
    let file = NamedFile::open(folder, &segment::name(number))?;
    let length = file.length()?.min(HEADER.into());
    match Header::decode(&file.read(0, length as usize)?) {
        Ok(header) if header.number == number => Ok(Found { header, file }),
        Ok(_) => Err(file.damaged(0, format!("the header of segment {number}"))),
        Err(NotASegment::Damaged { expected }) => Err(file.damaged(0, expected)),
        Err(NotASegment::Newer { format }) => Err(WalError::Newer { path: file.path, found: format }),
    }
}

/// Replays the segments, oldest first.
fn read(
    folder: &dyn Folder,
    found: &[Found],
    options: &Options,
) -> Result<(Contents, VecDeque<Closed>, Active), WalError> {
    let first = found[0].header;
    let mut contents = Contents::new(first.first, options.tail_bytes);
    let mut closed = VecDeque::new();
    for pair in found.windows(2) {
        let (this, end) = (&pair[0], pair[1].header.previous);
        let bytes = this.bytes()?;
        let scan = segment::scan_earlier(&bytes, this.header.number, end).map_err(|damage| this.damaged(damage))?;
        let top = this.replay(&scan, &mut contents)?;
        closed.push_back(Closed { number: this.header.number, top });
    }

    let last = &found[found.len() - 1];
    let bytes = last.bytes()?;
    let scan = segment::scan_last(&bytes, &last.header, options).map_err(|damage| last.damaged(damage))?;
    let top = last.replay(&scan, &mut contents)?;
    if first.number > 1 && contents.first() != contents.marks().floor() {
        return Err(WalError::Missing { path: folder.path(&segment::name(first.number - 1)) });
    }
    let zeroed = last.settle(&scan, &bytes, options)?;
    let mut active = Active::reopen(last.file.clone(), last.header.number, (scan.end, zeroed), options);
    active.top = top;
    Ok((contents, closed, active))
}

impl Found {
    fn bytes(&self) -> Result<Bytes, WalError> {
        let length = self.file.length()?;
        match u32::try_from(length) {
            Ok(length) => Ok(self.file.read(0, length as usize)?.into()),
            Err(_) => Err(self.file.damaged(u32::MAX.into(), "the end of the segment")),
        }
    }

    /// Does again what the records say; gives the greatest index of an entry among them.
    fn replay(&self, scan: &Scan, contents: &mut Contents) -> Result<Option<LogIndex>, WalError> {
        if self.header.first != contents.marks().next {
            let expected = format!("the header of a segment that goes on with entry {}", contents.marks().next);
            return Err(self.file.damaged(0, expected));
        }
        let mut top = None;
        for (offset, decoded) in &scan.records {
            let record = &decoded.record;
            contents.check(record).map_err(|refusal| {
                self.file.damaged((*offset).into(), format!("a record that can follow ({refusal})"))
            })?;
            if let Record::Entry(entry) = record {
                top = top.max(Some(entry.id.index));
            }
            let place = Place { segment: self.header.number, offset: *offset, size: decoded.size };
            contents.replay(record, place);
        }
        Ok(top)
    }

    /// Writes the last batch again and zeroes over whatever is behind it, and as far ahead as they belong, durably; says how far.
    fn settle(&self, scan: &Scan, bytes: &[u8], options: &Options) -> Result<u32, WalError> {
        let batch = scan.records.last().map_or(scan.end, |(_, decoded)| decoded.durable);
        let torn = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1).max(scan.end as usize);
        let mut again = bytes[batch as usize..torn].to_vec();
        again[(scan.end - batch) as usize..].fill(0);
        let shortest = segment::shortest(scan.end, &self.header, options);
        // As many as there are, too: who goes on need not write them while somebody waits.
        let there = (bytes.len() as u32).min(shortest.saturating_add(2 * options.zeroed_bytes));
        again.resize(again.len().max(shortest.max(there).saturating_sub(batch) as usize), 0);
        self.file.write(&again, batch.into())?;
        self.file.sync()?;
        Ok(batch + again.len() as u32)
    }

    fn damaged(&self, damage: Damage) -> WalError {
        self.file.damaged(damage.offset.into(), damage.expected)
    }
}
