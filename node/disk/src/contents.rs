//! A file's bytes from its start to its end.

use std::{
    io::{self, Read, Write},
    sync::Arc,
};

use crate::{File, Folder};

/// Reads a file from its start.
pub struct Reader {
    file: Arc<dyn File>,
    at: u64,
    length: u64,
}

impl Reader {
    /// Of as many bytes as it has now.
    ///
    /// # Errors
    /// The system refuses.
    pub fn new(file: Arc<dyn File>) -> io::Result<Self> {
        let length = file.length()?;
        Ok(Self { file, at: 0, length })
    }

    /// How many bytes there are in all.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Leaves out so many bytes, or all that are left.
    pub fn skip_bytes(&mut self, bytes: u64) {
        self.at = self.at.saturating_add(bytes).min(self.length);
    }
}

impl Read for Reader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.length - self.at).unwrap_or(usize::MAX).min(into.len());
        self.file.read_at(&mut into[..left], self.at)?;
        self.at += left as u64;
        Ok(left)
    }
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Reader({} of {} bytes)", self.at, self.length)
    }
}

/// So much is written before it is made durable. What the disk has to take in one go keeps the log's next sync waiting.
const MOST_UNSYNCED_BYTES: u64 = 512 << 10;

/// Writes a file from its start, and makes it durable bit by bit; the last of it is left to whoever has the file.
pub struct Writer {
    file: Arc<dyn File>,
    at: u64,
    synced: u64,
    most_unsynced: u64,
}

impl Writer {
    /// Over whatever is there.
    pub fn new(file: Arc<dyn File>) -> Self {
        Self::syncing_each(MOST_UNSYNCED_BYTES, file)
    }

    /// Over whatever is there, with a sync whenever so many bytes are not durable.
    pub fn syncing_each(bytes: u64, file: Arc<dyn File>) -> Self {
        Self { file, at: 0, synced: 0, most_unsynced: bytes }
    }

    /// How many bytes were written.
    pub fn length(&self) -> u64 {
        self.at
    }
}

impl Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write_at(bytes, self.at)?;
        self.at += bytes.len() as u64;
        if self.at - self.synced >= self.most_unsynced {
            self.file.sync()?;
            self.synced = self.at;
        }
        Ok(bytes.len())
    }

    /// What was written is with the system already, and durable when the file is synced.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// All bytes of a file.
///
/// # Errors
/// The system refuses, `NotFound` among it.
pub fn read(folder: &dyn Folder, name: &str) -> io::Result<Vec<u8>> {
    let mut reader = Reader::new(folder.open(name)?)?;
    let mut bytes = Vec::with_capacity(usize::try_from(reader.length()).unwrap_or_default());
    reader.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Puts a file in place whole and durable: it is written aside under the other name, which no crash leaves half of.
///
/// # Errors
/// The system refuses: what had the name before still has it.
pub fn write_whole(folder: &dyn Folder, name: &str, aside: &str, bytes: &[u8]) -> io::Result<()> {
    let file = folder.create(aside)?;
    file.write_at(bytes, 0)?;
    file.sync()?;
    folder.rename(aside, name)?;
    folder.sync_names()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// What was written since the last sync, the most that ever was, and all.
    #[derive(Default)]
    struct Counting(Mutex<(u64, u64, u64)>);

    impl File for Counting {
        fn length(&self) -> io::Result<u64> {
            Ok(self.0.lock().unwrap().2)
        }

        fn read_at(&self, _: &mut [u8], _: u64) -> io::Result<()> {
            Ok(())
        }

        fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
            let (unsynced, most, all) = &mut *self.0.lock().unwrap();
            assert_eq!(offset, *all);
            *unsynced += bytes.len() as u64;
            *most = (*most).max(*unsynced);
            *all += bytes.len() as u64;
            Ok(())
        }

        fn sync(&self) -> io::Result<()> {
            self.0.lock().unwrap().0 = 0;
            Ok(())
        }
    }

    #[test]
    fn a_large_file_is_made_durable_bit_by_bit() {
        let file = Arc::new(Counting::default());
        let mut writer = Writer::new(file.clone());
        for _ in 0..51 {
            writer.write_all(&[7; 256 << 10]).unwrap();
        }
        assert_eq!(*file.0.lock().unwrap(), (256 << 10, 512 << 10, 51 << 18));
    }
}
