//! The segment that is written.
//!
//! Records are gathered and go to disk together. They land in blocks that were zeroed and synced before, so that their own sync
//! changes no metadata, and so that a file that ends within its records was cut off by something else than a crash. Who writes more at
//! once than what was zeroed with earlier batches waits for that.

use std::time::Instant;

use disk::Folder;

use crate::{
    contents::Place,
    entry::LogIndex,
    error::{At, WalError},
    marks::Marks,
    measured::Measured,
    named_file::NamedFile,
    options::Options,
    record::Record,
    segment::{HEADER, Header, UNFINISHED, name},
};

/// The last segment of a log, open for writing.
pub(crate) struct Active {
    pub(crate) number: u64,
    pub(crate) file: NamedFile,
    /// The greatest index of an entry in it, whether or not the entry still stands.
    pub(crate) top: Option<LogIndex>,
    /// Where the durable records end.
    end: u32,
    /// Records that go to disk with the next commit.
    gathered: Vec<u8>,
    /// Up to here the file has blocks.
    zeroed: u32,
    /// Up to here records are taken.
    capacity: u32,
    step: u32,
    margin: u32,
}

impl Active {
    /// Makes a segment after one that ends at `previous`, of a spare where there is one, for a record of `size` bytes and
    /// more. When it has its name it is whole and durable.
    pub(crate) fn create(
        folder: &dyn Folder,
        options: &Options,
        (number, previous): (u64, u32),
        marks: &Marks,
        size: u32,
        spare: Option<Spare>,
    ) -> Result<Self, WalError> {
        let mut opening = vec![0; HEADER as usize];
        for record in marks.records() {
            record.encode(number, opening.len() as u32, HEADER, &mut opening);
        }
        let end = opening.len() as u32;
        let header = Header { whole: end, number, first: marks.next, previous };
        opening[..HEADER as usize].copy_from_slice(&header.encode());
        let capacity = options.segment_bytes.max(end + size);
        let spare = spare.map_or_else(|| Spare::create(folder, options), Ok)?;
        let file = spare.become_segment(folder, &name(number), &opening)?;
        let zeroed = end.max(options.first_zeroed_bytes());
        let (step, margin) = (options.zeroed_bytes, options.margin());
        Ok(Self { number, file, top: None, end, gathered: Vec::new(), zeroed, capacity, step, margin })
    }

    /// Goes on with a segment whose records end here, and its durable zeroes there.
    pub(crate) fn reopen(file: NamedFile, number: u64, (end, zeroed): (u32, u32), options: &Options) -> Self {
        let (capacity, step, margin) = (options.segment_bytes, options.zeroed_bytes, options.margin());
        Self { number, file, top: None, end, gathered: Vec::new(), zeroed, capacity, step, margin }
    }

    /// Whether a record of so many bytes still fits.
    pub(crate) fn has_room(&self, size: u32) -> bool {
        u64::from(self.next()) + u64::from(size) <= u64::from(self.capacity)
    }

    /// Whether it is time to make a spare: half of the room is used up.
    pub(crate) fn is_half_full(&self) -> bool {
        self.end >= self.capacity / 2
    }

    /// Takes a record for the next commit.
    pub(crate) fn gather(&mut self, record: &Record) -> Place {
        let (offset, size) = (self.next(), record.size());
        record.encode(self.number, offset, self.end, &mut self.gathered);
        if let Record::Entry(entry) = record {
            self.top = self.top.max(Some(entry.id.index));
        }
        Place { segment: self.number, offset, size }
    }

    /// Makes durable what was gathered, and says where the records end. How long that took is noted.
    pub(crate) fn commit(&mut self, measured: &Measured) -> Result<u32, WalError> {
        if !self.gathered.is_empty() {
            if self.zero_ahead(self.next(), self.margin)? {
                self.file.sync()?;
            }
            let began = Instant::now();
            self.file.write(&self.gathered, self.end.into())?;
            measured.writes.observe(began.elapsed());
            measured.written_bytes.add(self.gathered.len() as u64);
            self.end = self.next();
            self.gathered.clear();
            self.gathered.shrink_to(self.step as usize);
            // So that the next one, if it is small, does not wait.
            self.zero_ahead(self.end, self.margin + self.step / 4)?;
            let began = Instant::now();
            self.file.sync()?;
            measured.syncs.observe(began.elapsed());
        }
        Ok(self.end)
    }

    /// Writes zeroes where there are fewer than so many behind this offset, a step at least; whether there were.
    fn zero_ahead(&mut self, from: u32, bytes: u32) -> Result<bool, WalError> {
        let (least, most) = (from.saturating_add(bytes), self.capacity.max(from));
        if self.zeroed >= least.min(most) {
            return Ok(false);
        }
        let wanted = least.max(self.zeroed.saturating_add(self.step)).min(most);
        self.file.write(&vec![0; (wanted - self.zeroed) as usize], self.zeroed.into())?;
        self.zeroed = wanted;
        Ok(true)
    }

    /// Where the next record goes.
    fn next(&self) -> u32 {
        self.end + self.gathered.len() as u32
    }
}

/// A file for the next segment, zeroed. It is made before it is needed: so neither who waits for a record waits for a new
/// file's blocks, nor does a lack of descriptors that passes end the log.
pub(crate) struct Spare(NamedFile);

impl Spare {
    pub(crate) fn create(folder: &dyn Folder, options: &Options) -> Result<Self, WalError> {
        let file = NamedFile::create(folder, UNFINISHED)?;
        file.write(&vec![0; options.first_zeroed_bytes() as usize], 0)?;
        Ok(Self(file))
    }

    /// With durable blocks, so that who needs it waits for little; `None` where there is no room for it now.
    pub(crate) fn ahead_of_need(folder: &dyn Folder, options: &Options) -> Option<Self> {
        let made = Self::create(folder, options).and_then(|spare| spare.0.sync().map(|()| spare));
        if made.is_err() {
            // What there is of it takes room that the log may need.
            let _ = folder.remove(UNFINISHED);
        }
        made.ok()
    }

    /// Has its name only when all of it is durable.
    fn become_segment(self, folder: &dyn Folder, name: &str, opening: &[u8]) -> Result<NamedFile, WalError> {
        let Self(file) = self;
        file.write(opening, 0)?;
        file.sync()?;
        let path = folder.path(name);
        folder.rename(UNFINISHED, name).at("make", &path)?;
        folder.sync_names().at("make durable the name of", &path)?;
        Ok(file.renamed(path))
    }
}
