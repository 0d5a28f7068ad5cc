//! A file that is read on a thread of its own, a piece ahead of whoever takes it: disk and processor work at once.

use std::{
    io::{self, BufRead, Read},
    sync::mpsc::{Receiver, SyncSender, sync_channel},
    thread,
};

/// The bytes of a piece.
const PIECE: usize = 2 << 20;
/// One is taken, one waits, one is being read.
const PIECES: usize = 3;

pub(crate) struct ReadAhead {
    pieces: Receiver<io::Result<Vec<u8>>>,
    used: SyncSender<Vec<u8>>,
    piece: Vec<u8>,
    at: usize,
}

impl ReadAhead {
    /// The file, from where it stands.
    pub(crate) fn of(file: impl Read + Send + 'static) -> Self {
        let (read, pieces) = sync_channel(PIECES);
        let (used, free) = sync_channel(PIECES);
        for _ in 0..PIECES {
            // There is room for all of them, and nobody else has the other end.
            let _ = used.send(Vec::with_capacity(PIECE));
        }
        thread::spawn(move || pass_on(file, &free, &read));
        Self { pieces, used, piece: Vec::new(), at: 0 }
    }
}

/// Until the end of the file, an error, or nobody takes any more.
fn pass_on(mut file: impl Read, free: &Receiver<Vec<u8>>, read: &SyncSender<io::Result<Vec<u8>>>) {
    while let Ok(mut piece) = free.recv() {
        piece.clear();
        let done = file.by_ref().take(PIECE as u64).read_to_end(&mut piece);
        let goes_on = matches!(done, Ok(length) if length > 0);
        if read.send(done.map(|_| piece)).is_err() || !goes_on {
            return;
        }
    }
}

impl BufRead for ReadAhead {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        // A piece with nothing in it was the last one.
        if self.at == self.piece.len()
            && let Ok(next) = self.pieces.recv()
        {
            let used = std::mem::replace(&mut self.piece, next?);
            self.at = 0;
            // The first is none of them, and at the end nobody wants one.
            let _ = (used.capacity() > 0).then(|| self.used.send(used));
        }
        Ok(&self.piece[self.at..])
    }

    fn consume(&mut self, length: usize) {
        self.at += length;
    }
}

impl Read for ReadAhead {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let length = self.fill_buf()?.read(into)?;
        self.consume(length);
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use std::{fs::File, io::Write};

    use super::*;

    #[test]
    fn a_file_is_read_whole_and_ends() {
        for length in [0, 1, PIECE - 1, PIECE, PIECE + 1, 9 * PIECE + 7] {
            let bytes: Vec<u8> = (0..length).map(|at| (at % 251) as u8).collect();
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(&bytes).unwrap();
            std::io::Seek::rewind(&mut file).unwrap();
            let (mut read_ahead, mut read) = (ReadAhead::of(file), Vec::new());
            read_ahead.read_to_end(&mut read).unwrap();
            assert!(read == bytes, "{length}");
            assert_eq!(read_ahead.read(&mut [0]).unwrap(), 0, "{length}");
        }
    }

    #[test]
    fn who_takes_only_the_start_leaves_no_thread_behind() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&vec![1; 9 * PIECE]).unwrap();
        std::io::Seek::rewind(&mut file).unwrap();
        let mut read_ahead = ReadAhead::of(file);
        assert_eq!(read_ahead.read(&mut [0; 10]).unwrap(), 10);
        let ReadAhead { pieces, used, .. } = read_ahead;
        drop(used);
        // What is under way may still come; then the other end is gone.
        while pieces.recv().is_ok() {}
    }

    #[test]
    fn what_cannot_be_read_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let mut read_ahead = ReadAhead::of(File::open(folder.path()).unwrap());
        assert_eq!(read_ahead.read(&mut [0]).unwrap_err().kind(), io::ErrorKind::IsADirectory);
    }
}
