//! Work on this host that may take minutes, such as the checksum of an archive, on a thread of its own: whoever waits
//! for it can be interrupted. It is not: it goes on until it is done or the process ends.

use tokio::task::spawn_blocking;

/// Does this work off the threads that wait for signals.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}
