//! An `:authority` that is malformed, and that etcd takes.
//!
//! Clients of etcd 3.4 send `http://HOST:PORT` where they ask a certain endpoint, those of 3.5.0 `#initially=[…]`, and both, up to
//! 3.5.1 at least, the path of a Unix socket. The HTTP library resets such a stream as malformed, before a service sees it. So it is
//! changed on its way in, to one of the same length that is well-formed (`block.rs`); no service looks at it.
//!
//! What is to be changed is decided in `frames.rs`, without I/O. Nothing is held, copied or looked at on a connection whose first request
//! is well-formed: it is read directly from then on.

mod block;
mod frames;
pub(super) mod fuzzing;
mod huffman;

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

pub use fuzzing::{fuzz, seeds};

use crate::host::writes_through;
use frames::Frames;

/// A client's connection, as it is to be read.
pub(super) struct Mended<S> {
    socket: S,
    /// While anything may have to be changed.
    reading: Option<Box<Reading>>,
}

struct Reading {
    frames: Frames,
    /// What may be read, and how much of it was.
    passed_on: Vec<u8>,
    read: usize,
}

impl<S> Mended<S> {
    pub(super) fn new(socket: S) -> Self {
        let reading = Reading { frames: Frames::new(), passed_on: Vec::new(), read: 0 };
        Self { socket, reading: Some(Box::new(reading)) }
    }
}

impl Reading {
    /// Whether there was anything.
    fn give(&mut self, into: &mut ReadBuf<'_>) -> bool {
        let left = &self.passed_on[self.read..];
        let given = left.len().min(into.remaining());
        into.put_slice(&left[..given]);
        self.read += given;
        if self.read == self.passed_on.len() {
            self.passed_on.clear();
            self.read = 0;
        }
        given > 0
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Mended<S> {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let Self { socket, reading } = self.get_mut();
        while let Some(state) = reading {
            if into.remaining() == 0 || state.give(into) {
                return Poll::Ready(Ok(()));
            }
            if state.frames.is_done() {
                break;
            }
            let before = into.filled().len();
            ready!(Pin::new(&mut *socket).poll_read(context, into))?;
            match &into.filled()[before..] {
                [] => state.frames.end(&mut state.passed_on),
                came => state.frames.take(came, &mut state.passed_on),
            }
            into.set_filled(before);
        }
        *reading = None;
        Pin::new(socket).poll_read(context, into)
    }
}

writes_through!(socket of Mended<S: AsyncWrite>);

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod authority_test;
