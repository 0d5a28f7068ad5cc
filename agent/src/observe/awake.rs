//! Time in which this process runs. A process that was frozen finds every limit passed when it wakes, though nobody was
//! late.

use std::time::Duration;

use tokio::time::sleep;

/// In such pieces time is counted: of a freeze one piece counts.
const PIECE: Duration = Duration::from_secs(1);

/// Waits until this process has run for so long.
pub async fn awake_for(limit: Duration) {
    let mut left = limit;
    while !left.is_zero() {
        let piece = left.min(PIECE);
        sleep(piece).await;
        left -= piece;
    }
}

/// What comes of it; `None` where this process has run for so long without it.
pub async fn within<T>(limit: Duration, future: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        biased;
        done = future => Some(done),
        () = awake_for(limit) => None,
    }
}
