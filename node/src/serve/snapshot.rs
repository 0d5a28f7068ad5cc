//! The whole state as a stream, as `etcdctl snapshot save` takes it.
//!
//! The client holds what it has for whole where its length is a multiple of 512 and a SHA-256 over it all follows (etcd,
//! `hasChecksum` in client/v3/snapshot), so the bytes of the state are filled up with zeros.

use std::{
    iter,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures_util::stream::{self, BoxStream, StreamExt};
use proto::etcdserverpb::{ResponseHeader, SnapshotResponse};
use sha2::{Digest, Sha256};
use tokio::{
    runtime::Handle,
    sync::{Semaphore, SemaphorePermit, mpsc},
    time::timeout,
};
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;

use crate::state::{Form, State};

/// What the length is filled up to.
const SECTOR_BYTES: usize = 512;
/// How many pieces wait for a slow client.
const AHEAD: usize = 2;
/// A client that takes none for so long gets no more.
const PROGRESS: Duration = Duration::from_secs(30);
/// As many are sent at once: each has a thread, of which a runtime has a bounded number, and others need them, too.
static PLACES: Semaphore = Semaphore::const_new(8);

/// Waits until one may be sent.
pub(super) async fn place() -> Option<SemaphorePermit<'static>> {
    PLACES.acquire().await.ok()
}

/// Sends a state that nobody changes any more.
pub(super) fn stream(
    state: State,
    form: Form,
    version: String,
    header: Option<ResponseHeader>,
    place: Option<SemaphorePermit<'static>>,
) -> BoxStream<'static, Result<SnapshotResponse, Status>> {
    let (sender, pieces) = mpsc::channel(AHEAD);
    let (is_late, runtime) = (Arc::new(AtomicBool::new(false)), Handle::current());
    let late = is_late.clone();
    tokio::task::spawn_blocking(move || {
        let _place = place;
        let give = |response| match runtime.block_on(timeout(PROGRESS, sender.send(response))) {
            Ok(given) => given.is_ok(),
            Err(_) => {
                late.store(true, Ordering::Relaxed);
                false
            }
        };
        let response =
            |remaining_bytes, blob| Ok(SnapshotResponse { header, remaining_bytes, blob, version: version.clone() });
        // Written twice rather than held as bytes: it may be as large as the quota.
        let mut remaining = filled(&state, form).map(|piece| piece.len() as u64).sum::<u64>();
        let mut digest = Sha256::new();
        for piece in filled(&state, form) {
            digest.update(&piece);
            remaining -= piece.len() as u64;
            if !give(response(remaining, piece)) {
                return;
            }
        }
        give(response(0, digest.finalize().to_vec()));
    });
    let end = stream::once(async move { is_late.load(Ordering::Relaxed) }).filter_map(async |is_late| {
        let text = format!("nothing of the snapshot was taken for {} s", PROGRESS.as_secs());
        is_late.then(|| Err(Status::deadline_exceeded(text)))
    });
    ReceiverStream::new(pieces).chain(end).boxed()
}

fn filled(state: &State, form: Form) -> impl Iterator<Item = Vec<u8>> {
    let mut length = 0;
    let pieces = state.snapshot(form).map(Some).chain(iter::once(None));
    pieces.map(move |piece| {
        let piece = piece.unwrap_or_else(|| vec![0; length_of_fill(length)]);
        length += piece.len();
        piece
    })
}

fn length_of_fill(length: usize) -> usize {
    length.next_multiple_of(SECTOR_BYTES) - length
}
