//! Connections that one member opens for another to call it by. Each opens some to every other: one that others cannot dial, for a
//! firewall or a wrong URL, takes part all the same, as over the streams of etcd's members (etcd, rafthttp).
//!
//! The bytes of a connection go in frames over a call. What is called over it shakes hands as everywhere else.

use std::{
    collections::{BTreeMap, VecDeque},
    io,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
};

use bytes::{Bytes, BytesMut};
use futures_util::{Stream, StreamExt, stream};
use proto::MemberId;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWriteExt, DuplexStream, ReadBuf, duplex, split},
    sync::mpsc,
};
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;

use super::wire::Frame;
use crate::host::{Listener, Socket, writes_through};

/// As many bytes wait between the two halves of a connection.
const BUFFER_BYTES: usize = 64 << 10;
/// As many frames wait to be sent.
const WINDOW: usize = 4;
/// As many connections a member needs to be called by: one for heartbeats, one for entries, one for all else.
pub(crate) const CONNECTIONS: usize = 3;

/// One end of such a connection.
pub(super) struct CallBack(DuplexStream);

impl Socket for CallBack {
    /// It is there because something came.
    fn poll_readable(&self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

impl AsyncRead for CallBack {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, into)
    }
}

writes_through!(0 of CallBack);

/// What others have opened to this member: of each the last ones, until they are used.
#[derive(Clone, Default)]
pub struct CallBacks {
    by_member: Arc<Mutex<BTreeMap<MemberId, Offer>>>,
}

#[derive(Default)]
struct Offer {
    /// The newest is last, and never more than [`CONNECTIONS`].
    unused: VecDeque<CallBack>,
    /// Whoever listens at the member's URL is another one.
    is_better: bool,
}

impl CallBacks {
    /// Keeps what a member opens. The frames that go back to it.
    pub(super) fn offer(
        &self,
        from: MemberId,
        frames: impl Stream<Item = Result<Bytes, Status>> + Send + Unpin + 'static,
    ) -> ReceiverStream<Frame> {
        let (theirs, own) = duplex(BUFFER_BYTES);
        self.with(from, |offer| {
            offer.unused.push_back(CallBack(own));
            if offer.unused.len() > CONNECTIONS {
                offer.unused.pop_front();
            }
        });
        carried(theirs, frames)
    }

    /// A connection to a member that cannot be dialled.
    pub(super) fn take(&self, to: MemberId) -> Option<CallBack> {
        self.with(to, |offer| offer.unused.pop_back())
    }

    /// The same, where dialling leads to another one.
    pub(super) fn take_better(&self, to: MemberId) -> Option<CallBack> {
        self.with(to, |offer| if offer.is_better { offer.unused.pop_back() } else { None })
    }

    /// Whether there is one.
    pub(super) fn has_any(&self, to: MemberId) -> bool {
        self.with(to, |offer| !offer.unused.is_empty())
    }

    /// Whoever was dialled in its place is another one. Whether there is a better way.
    pub(super) fn is_another(&self, called: MemberId) -> bool {
        self.with(called, |offer| {
            offer.is_better = true;
            !offer.unused.is_empty()
        })
    }

    fn with<T>(&self, member: MemberId, what: impl FnOnce(&mut Offer) -> T) -> T {
        what(self.by_member.lock().unwrap_or_else(PoisonError::into_inner).entry(member).or_default())
    }
}

/// Where calls come in over what this member has opened.
#[derive(Clone)]
pub(super) struct CalledBack(mpsc::Sender<CallBack>);

impl CalledBack {
    pub(super) fn new() -> (Self, Listener) {
        let (sender, connections) = mpsc::channel(WINDOW);
        let connections = ReceiverStream::new(connections).map(|socket| Ok(Box::new(socket) as Box<dyn Socket>));
        (Self(sender), connections.boxed())
    }

    /// Serves what comes over one that this member has opened, until it ends. It takes no place before it is used.
    pub(super) async fn serve(
        &self,
        mut frames: impl Stream<Item = Result<Bytes, Status>> + Send + Unpin + 'static,
        back: mpsc::Sender<Frame>,
    ) {
        let Some(Ok(first)) = frames.next().await else { return };
        let (theirs, own) = duplex(BUFFER_BYTES);
        if self.0.send(CallBack(own)).await.is_err() {
            return;
        }
        let mut answers = carried(theirs, stream::iter([Ok(first)]).chain(frames));
        while let Some(frame) = answers.next().await {
            if back.send(frame).await.is_err() {
                return;
            }
        }
    }

    /// Frames for [`Self::serve`].
    pub(super) fn frames() -> (mpsc::Sender<Frame>, ReceiverStream<Frame>) {
        let (send, frames) = mpsc::channel(WINDOW);
        (send, ReceiverStream::new(frames))
    }
}

/// Writes what comes in frames to a connection; what is read there, in frames. Each ends with the other.
fn carried(
    connection: DuplexStream,
    mut frames: impl Stream<Item = Result<Bytes, Status>> + Send + Unpin + 'static,
) -> ReceiverStream<Frame> {
    let (mut read, mut write) = split(connection);
    let (send, out) = mpsc::channel(WINDOW);
    tokio::spawn(async move {
        let outwards = async {
            loop {
                let mut bytes = BytesMut::with_capacity(BUFFER_BYTES);
                match read.read_buf(&mut bytes).await {
                    Ok(1..) if send.send(Frame::of(bytes.freeze())).await.is_ok() => {}
                    _ => return,
                }
            }
        };
        let inwards = async {
            while let Some(Ok(bytes)) = frames.next().await {
                if write.write_all(&bytes).await.is_err() {
                    return;
                }
            }
        };
        tokio::select! {
            () = outwards => {}
            () = inwards => {}
        }
    });
    ReceiverStream::new(out)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const MEMBER: MemberId = MemberId(7);

    #[tokio::test]
    async fn a_member_that_opens_more_than_it_needs_keeps_the_last() {
        let offers = CallBacks::default();
        let opened: Vec<_> =
            (0..2 * CONNECTIONS).map(|_| offers.offer(MEMBER, stream::pending::<Result<Bytes, Status>>())).collect();
        for _ in 0..CONNECTIONS {
            assert!(offers.take(MEMBER).is_some());
        }
        assert!(offers.take(MEMBER).is_none() && !offers.has_any(MEMBER));
        let ended = opened.into_iter().take(CONNECTIONS);
        for mut frames in ended {
            assert!(frames.next().await.is_none(), "its other end is gone");
        }
    }

    /// Two members with a call between them.
    fn joined() -> (CallBacks, Listener) {
        let (offers, (called_back, listener)) = (CallBacks::default(), CalledBack::new());
        let (send, frames) = CalledBack::frames();
        let back = offers.offer(MEMBER, frames.map(Frame::read));
        tokio::spawn(async move { called_back.serve(back.map(Frame::read), send).await });
        (offers, listener)
    }

    #[tokio::test]
    async fn what_is_said_on_one_side_is_heard_on_the_other_and_so_is_the_end() {
        let (offers, mut listener) = joined();
        let mut here = offers.take(MEMBER).unwrap();
        assert!(offers.take(MEMBER).is_none(), "it is used once");
        let sent: Vec<u8> = (0..1_000_000_u32).map(|number| number as u8).collect();
        let expected = sent.clone();
        let writes = tokio::spawn(async move {
            here.write_all(&sent).await.unwrap();
            let mut answer = [0; 2];
            here.read_exact(&mut answer).await.unwrap();
            answer
        });
        let mut there = listener.next().await.unwrap().unwrap();
        let mut heard = vec![0; expected.len()];
        there.read_exact(&mut heard).await.unwrap();
        assert!(heard == expected);
        there.write_all(b"ok").await.unwrap();
        assert_eq!(writes.await.unwrap(), *b"ok");
        assert_eq!(there.read(&mut heard).await.unwrap(), 0, "the other side is gone");
    }

    #[tokio::test]
    async fn it_is_better_only_where_another_one_was_dialled() {
        let (offers, _listener) = joined();
        assert!(offers.take_better(MEMBER).is_none());
        assert!(!offers.is_another(MemberId(8)), "nothing is there for it");
        assert!(offers.is_another(MEMBER));
        assert!(offers.take_better(MEMBER).is_some());
        assert!(!offers.is_another(MEMBER), "it is used");
    }
}
