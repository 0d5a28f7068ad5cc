//! Connections: two pipes, and an end of each at both hosts.

use std::{
    collections::VecDeque,
    io,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard},
    task::{Context, Poll, Waker, ready},
};

use node::host::Socket;
use simulated_disk::Chance;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::{HostId, Link, Micros, Network};

/// As many bytes are on the way at once, as a system's buffers hold.
const WINDOW: usize = 256 << 10;
/// Until what was lost is sent again.
const RETRANSMIT: Micros = 200_000;

/// One way.
#[derive(Default)]
struct Pipe {
    /// What is on the way, with the time when it is there.
    on_the_way: VecDeque<(Micros, Vec<u8>)>,
    /// What is there and was not read yet.
    arrived: VecDeque<u8>,
    on_the_way_bytes: usize,
    /// When the link is free again for this connection.
    busy_until: Micros,
    /// What was written since the network last looked.
    written: Vec<u8>,
    /// Whoever writes has closed it.
    is_closed: bool,
    has_ended: bool,
    is_reset: bool,
    /// One end is without power: nothing moves any more.
    is_silent: bool,
    /// Nobody reads any more.
    is_unread: bool,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

type Shared = Arc<Mutex<Pipe>>;

pub(super) struct Connection {
    hosts: (HostId, HostId),
    there: Shared,
    back: Shared,
}

fn lock(pipe: &Shared) -> MutexGuard<'_, Pipe> {
    pipe.lock().unwrap()
}

impl Connection {
    pub(super) fn open(network: &Network, from: HostId, to: HostId) -> (Self, SimSocket, SimSocket) {
        let (there, back) = (Shared::default(), Shared::default());
        let near = SimSocket { read: back.clone(), write: there.clone(), _network: network.clone() };
        let far = SimSocket { read: there.clone(), write: back.clone(), _network: network.clone() };
        (Self { hosts: (from, to), there, back }, near, far)
    }

    pub(super) fn has(&self, host: HostId) -> bool {
        self.hosts.0 == host || self.hosts.1 == host
    }

    pub(super) fn is_between(&self, one: HostId, other: HostId) -> bool {
        self.hosts == (one, other) || self.hosts == (other, one)
    }

    pub(super) fn is_silent(&self) -> bool {
        lock(&self.there).is_silent
    }

    /// Nothing moves on it any more, and nobody is told.
    pub(super) fn silence(&self) {
        for pipe in [&self.there, &self.back] {
            lock(pipe).is_silent = true;
        }
    }

    pub(super) fn reset(&self, wakers: &mut Vec<Waker>) {
        for pipe in [&self.there, &self.back] {
            let mut pipe = lock(pipe);
            pipe.is_reset = true;
            pipe.arrived.clear();
            pipe.on_the_way.clear();
            wakers.extend(pipe.reader.take());
            wakers.extend(pipe.writer.take());
        }
    }

    /// Whether nobody at either end has it any more.
    pub(super) fn is_over(&self) -> bool {
        Arc::strong_count(&self.there) == 1 && Arc::strong_count(&self.back) == 1
    }

    pub(super) fn deliver(
        &self,
        now: Micros,
        link: impl Fn(HostId, HostId) -> Link,
        chance: &mut Chance,
        wakers: &mut Vec<Waker>,
        mut delivered: impl FnMut((HostId, HostId), u64),
    ) {
        let (from, to) = self.hosts;
        for (pipe, from, to) in [(&self.there, from, to), (&self.back, to, from)] {
            let bytes = lock(pipe).move_on(now, link(from, to), chance, wakers);
            if bytes > 0 {
                delivered((from, to), bytes);
            }
        }
    }
}

impl Pipe {
    fn move_on(&mut self, now: Micros, link: Link, chance: &mut Chance, wakers: &mut Vec<Waker>) -> u64 {
        if self.is_silent || self.is_reset {
            return 0;
        }
        if !self.written.is_empty() {
            let bytes = std::mem::take(&mut self.written);
            let starts = self.busy_until.max(now);
            let takes = 1000 * bytes.len() as u64 / link.bytes_per_ms.max(1);
            self.busy_until = starts + takes;
            let mut due = self.busy_until + link.delay + chance.below(link.delay as usize + 1) as Micros;
            if link.lost_percent > 0 && chance.below(100) < link.lost_percent {
                due += RETRANSMIT;
            }
            // In order: nothing overtakes what was sent before it.
            due = due.max(self.on_the_way.back().map_or(0, |(due, _)| *due));
            self.on_the_way.push_back((due, bytes));
        }
        let mut delivered = 0;
        while !link.is_cut && self.on_the_way.front().is_some_and(|(due, _)| *due <= now) {
            let Some((_, bytes)) = self.on_the_way.pop_front() else { break };
            delivered += bytes.len() as u64;
            self.on_the_way_bytes -= bytes.len();
            if !self.is_unread {
                self.arrived.extend(bytes);
            }
        }
        let ends = self.is_closed && self.on_the_way.is_empty() && !link.is_cut && !self.has_ended;
        self.has_ended |= ends;
        if delivered > 0 || ends {
            wakers.extend(self.reader.take());
            wakers.extend(self.writer.take());
        }
        delivered
    }

    /// Until there is something to read, or nothing any more.
    fn poll_arrived(&mut self, context: &Context<'_>) -> Poll<io::Result<()>> {
        if self.is_reset {
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        }
        if self.arrived.is_empty() && !self.has_ended {
            self.reader = Some(context.waker().clone());
            return Poll::Pending;
        }
        Poll::Ready(Ok(()))
    }

    fn room(&self) -> usize {
        WINDOW.saturating_sub(self.on_the_way_bytes + self.arrived.len())
    }
}

/// One end of a connection.
pub(super) struct SimSocket {
    read: Shared,
    write: Shared,
    /// Lives as long as any of its connections.
    _network: Network,
}

impl Socket for SimSocket {
    fn poll_readable(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        lock(&self.read).poll_arrived(context)
    }
}

impl AsyncRead for SimSocket {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let mut pipe = lock(&self.read);
        ready!(pipe.poll_arrived(context))?;
        let length = into.remaining().min(pipe.arrived.len());
        let (first, second) = pipe.arrived.as_slices();
        let from_first = length.min(first.len());
        into.put_slice(&first[..from_first]);
        into.put_slice(&second[..length - from_first]);
        pipe.arrived.drain(..length);
        let writer = pipe.writer.take();
        drop(pipe);
        // There is room again.
        writer.into_iter().for_each(Waker::wake);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for SimSocket {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let mut pipe = lock(&self.write);
        if pipe.is_reset || pipe.is_closed {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        let length = pipe.room().min(bytes.len());
        if length == 0 && !bytes.is_empty() {
            pipe.writer = Some(context.waker().clone());
            return Poll::Pending;
        }
        pipe.written.extend_from_slice(&bytes[..length]);
        pipe.on_the_way_bytes += length;
        Poll::Ready(Ok(length))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        lock(&self.write).is_closed = true;
        Poll::Ready(Ok(()))
    }
}

impl Drop for SimSocket {
    fn drop(&mut self) {
        lock(&self.write).is_closed = true;
        lock(&self.read).is_unread = true;
    }
}
