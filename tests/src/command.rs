//! What `scripts/demo` and `scripts/bench-rollout` are asked for, and how they end.

use std::process::ExitCode;

use clap::Args;
use tokio::signal::unix::{SignalKind, signal};

use crate::Error;

#[derive(Args)]
/// A rollout, as a person asks for it.
pub struct Wanted {
    /// How many members.
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub size: usize,
    /// The release to start with.
    #[arg(long, value_name = "V", default_value = "3.4")]
    pub from: String,
    /// The release to upgrade to.
    #[arg(long, value_name = "V", default_value = "3.5")]
    pub to: String,
}

/// Does the work until it ends or is interrupted; to drop it ends every process that it started.
pub async fn end_of(work: impl Future<Output = Result<ExitCode, Error>>) -> ExitCode {
    let done = tokio::select! {
        done = work => done,
        signal = interrupted() => Err(signal),
    };
    done.unwrap_or_else(|error| {
        eprintln!("error: {error}");
        ExitCode::FAILURE
    })
}

/// Waits for SIGINT, SIGTERM or SIGHUP, and says so; an error of the system's as it is.
async fn interrupted() -> Error {
    let signals = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()].map(signal);
    match signals {
        [Ok(mut interrupt), Ok(mut terminate), Ok(mut hangup)] => {
            tokio::select! { _ = interrupt.recv() => (), _ = terminate.recv() => (), _ = hangup.recv() => () };
            "interrupted".into()
        }
        [Err(error), ..] | [_, Err(error), _] | [.., Err(error)] => error.into(),
    }
}
