//! A snapshot on its way to another member.

use std::{
    io::{self, Read},
    time::Duration,
};

use bytes::Bytes;
use consensus::{Outgoing, aside};
use disk::Reader;
use tokio::sync::mpsc;
use tonic::Status;

use super::{traffic::PeerTraffic, wire::Frame};

/// A snapshot goes in pieces of this size, in bytes,
const PIECE: usize = 1 << 20;
/// and a member that takes none for so long takes no more. The whole may take as long as it does.
const PROGRESS: Duration = Duration::from_secs(20);

/// A snapshot, in pieces.
///
/// # Errors
/// It cannot be read, or the member takes no more of it.
pub(super) async fn send_file(
    snapshot: Outgoing,
    send: mpsc::Sender<Frame>,
    traffic: &PeerTraffic,
) -> Result<(), Status> {
    let Outgoing { offer, mut file } = snapshot;
    let failed = |error: io::Error| Status::internal(error.to_string());
    let give = async |bytes: Bytes| {
        traffic.sent_bytes.add(bytes.len() as u64);
        let gone = |_| Status::unavailable("the member took no more of the snapshot");
        within(PROGRESS, async { send.send(Frame::of(bytes)).await.map_err(gone) }).await
    };
    give(offer).await?;
    loop {
        let (rest, bytes) = aside(move || piece(file)).await.map_err(failed)?.map_err(failed)?;
        if bytes.is_empty() {
            return Ok(());
        }
        give(bytes).await?;
        file = rest;
    }
}

/// The next piece, which at the end is empty, and what is left.
fn piece(mut file: Reader) -> io::Result<(Reader, Bytes)> {
    let mut bytes = Vec::with_capacity(PIECE);
    file.by_ref().take(PIECE as u64).read_to_end(&mut bytes)?;
    Ok((file, bytes.into()))
}

/// # Errors
/// It takes longer.
pub(super) async fn within<T>(limit: Duration, call: impl Future<Output = Result<T, Status>>) -> Result<T, Status> {
    let late = |_| Status::deadline_exceeded(format!("no answer within {} ms", limit.as_millis()));
    tokio::time::timeout(limit, call).await.map_err(late)?
}
