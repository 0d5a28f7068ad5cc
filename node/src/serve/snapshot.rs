//! The whole state as a stream, as `etcdctl snapshot save` takes it.
//!
//! The client holds what it has for whole where its length is a multiple of 512 and a SHA-256 over it all follows (etcd,
//! `hasChecksum` in client/v3/snapshot), so the bytes of the state are filled up with zeros.

use std::iter;

use futures_util::stream::{BoxStream, StreamExt};
use proto::etcdserverpb::{ResponseHeader, SnapshotResponse};
use sha2::{Digest, Sha256};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;

use crate::state::State;

/// What the length is filled up to.
const SECTOR_BYTES: usize = 512;
/// How many pieces wait for a slow client.
const AHEAD: usize = 2;

/// Sends a state that nobody changes any more.
pub(super) fn stream(
    state: State,
    version: String,
    header: Option<ResponseHeader>,
) -> BoxStream<'static, Result<SnapshotResponse, Status>> {
    let (sender, pieces) = mpsc::channel(AHEAD);
    tokio::task::spawn_blocking(move || {
        let response =
            |remaining_bytes, blob| Ok(SnapshotResponse { header, remaining_bytes, blob, version: version.clone() });
        // Written twice rather than held as bytes: it may be as large as the quota.
        let mut remaining = filled(&state).map(|piece| piece.len() as u64).sum::<u64>();
        let mut digest = Sha256::new();
        for piece in filled(&state) {
            digest.update(&piece);
            remaining -= piece.len() as u64;
            if sender.blocking_send(response(remaining, piece)).is_err() {
                return;
            }
        }
        let _ = sender.blocking_send(response(0, digest.finalize().to_vec()));
    });
    ReceiverStream::new(pieces).boxed()
}

fn filled(state: &State) -> impl Iterator<Item = Vec<u8>> {
    let mut length = 0;
    let pieces = state.snapshot().map(Some).chain(iter::once(None));
    pieces.map(move |piece| {
        let piece = piece.unwrap_or_else(|| vec![0; length_of_fill(length)]);
        length += piece.len();
        piece
    })
}

fn length_of_fill(length: usize) -> usize {
    length.next_multiple_of(SECTOR_BYTES) - length
}
