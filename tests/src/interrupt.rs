//! An end asked for from outside: Ctrl-C, a plain kill, a closed terminal.

use tokio::signal::unix::{SignalKind, signal};

use crate::Error;

/// Waits for SIGINT, SIGTERM or SIGHUP, and says so; an error of the system's as it is.
pub async fn interrupted() -> Error {
    let signals = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()].map(signal);
    match signals {
        [Ok(mut interrupt), Ok(mut terminate), Ok(mut hangup)] => {
            tokio::select! { _ = interrupt.recv() => (), _ = terminate.recv() => (), _ = hangup.recv() => () };
            "interrupted".into()
        }
        [Err(error), ..] | [_, Err(error), _] | [.., Err(error)] => error.into(),
    }
}
