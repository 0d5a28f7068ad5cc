//! The sizes a log works with. Of the format are the least that they may be: a log that was zeroed less far is taken for one that
//! was cut off.

/// How large things are, in bytes. The default is for a node in service; small ones make tests thorough.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// A segment is full at this size; a record that is larger gets a segment of its own.
    pub segment_bytes: u32,
    /// How far ahead of the records the active segment is zeroed, one step at a time: a batch that goes into zeroed
    /// blocks changes no metadata of the file system, and no batch waits for a whole segment of zeroes.
    pub zeroed_bytes: u32,
    /// Payloads of the newest entries stay in memory up to this size; older ones are read from disk.
    pub tail_bytes: usize,
}

impl Options {
    /// What a new segment begins with.
    pub(crate) fn first_zeroed_bytes(&self) -> u32 {
        self.segment_bytes.min(self.zeroed_bytes)
    }

    /// So many zeroes are durable behind records that are, if the segment has room for them.
    pub(crate) fn margin(&self) -> u32 {
        self.zeroed_bytes / 2
    }
}

impl Default for Options {
    fn default() -> Self {
        Self { segment_bytes: 16 << 20, zeroed_bytes: 1 << 20, tail_bytes: 4 << 20 }
    }
}
