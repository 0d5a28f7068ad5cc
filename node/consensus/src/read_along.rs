//! What comes in piece by piece, read on a thread of its own meanwhile: network, disk and processor work at once.

use std::{
    io::{self, BufRead, Read},
    sync::mpsc::{Receiver, SyncSender, sync_channel},
    thread::{self, JoinHandle},
};

use bytes::Bytes;

use crate::threads::is_alone;

/// So many pieces wait for who reads.
const WAITING: usize = 4;

pub(crate) struct ReadAlong<T> {
    pieces: SyncSender<Bytes>,
    reading: JoinHandle<T>,
}

impl<T: Send + 'static> ReadAlong<T> {
    /// None where everything happens on this thread.
    pub(crate) fn begin(read: impl FnOnce(&mut dyn BufRead) -> T + Send + 'static) -> Option<Self> {
        if is_alone() {
            return None;
        }
        let (pieces, coming) = sync_channel(WAITING);
        let mut pieces_read = Pieces { coming, piece: Bytes::new() };
        Some(Self { pieces, reading: thread::spawn(move || read(&mut pieces_read)) })
    }

    /// Waits while too many are not read yet. Whoever reads may have given up, and says so at the end.
    pub(crate) fn push(&self, piece: Bytes) {
        let _ = self.pieces.send(piece);
    }

    /// What was read, now that nothing more comes; none where who read has panicked.
    pub(crate) fn end(self) -> Option<T> {
        drop(self.pieces);
        self.reading.join().ok()
    }
}

struct Pieces {
    coming: Receiver<Bytes>,
    piece: Bytes,
}

impl BufRead for Pieces {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        while self.piece.is_empty()
            && let Ok(next) = self.coming.recv()
        {
            self.piece = next;
        }
        Ok(&self.piece)
    }

    fn consume(&mut self, length: usize) {
        let _ = self.piece.split_to(length);
    }
}

impl Read for Pieces {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let length = self.fill_buf()?.read(into)?;
        self.consume(length);
        Ok(length)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_read_however_it_is_cut() {
        for length in [1, 7, 1 << 20] {
            let bytes: Bytes = (0..3_000_000_u32).map(|at| (at % 251) as u8).collect();
            let along = ReadAlong::begin(|pieces| {
                let mut read = Vec::new();
                pieces.read_to_end(&mut read).map(|_| read)
            });
            let (along, bytes) = (along.unwrap(), bytes.slice(..bytes.len().min(length * 100)));
            along.push(Bytes::new());
            (0..bytes.len()).step_by(length).for_each(|at| along.push(bytes.slice(at..bytes.len().min(at + length))));
            assert!(along.end().unwrap().unwrap() == bytes, "in pieces of {length}");
        }
    }

    #[test]
    fn who_gives_up_holds_up_nobody() {
        let along = ReadAlong::begin(|_| "given up").unwrap();
        (0..10 * WAITING).for_each(|_| along.push(Bytes::from_static(b"more")));
        assert_eq!(along.end(), Some("given up"));
    }

    #[tokio::test]
    async fn on_one_thread_nothing_is_read_meanwhile() {
        assert!(ReadAlong::begin(|_| ()).is_none());
    }
}
