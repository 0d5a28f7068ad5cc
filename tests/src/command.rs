//! What `scripts/demo` and `scripts/bench-rollout` are asked for, and how they end.

use std::process::ExitCode;

use clap::Args;
use tokio::signal::unix::{SignalKind, signal};

use crate::{
    Error, releases,
    system::{Build, System},
};

#[derive(Args)]
/// A rollout, as a person asks for it.
pub struct Wanted {
    /// How many members.
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub size: usize,
    /// The release to start with [default: 3.5 of node, 3.4 of etcd].
    #[arg(long, value_name = "V")]
    pub from: Option<String>,
    /// The release to upgrade to [default: 3.6 of node, 3.5 of etcd].
    #[arg(long, value_name = "V")]
    pub to: Option<String>,
}

impl Wanted {
    /// The two releases of this system.
    ///
    /// # Errors
    /// One can't be had; the text says why.
    pub fn builds(&self, system: System) -> Result<(Build, Build), Error> {
        let (from, to) = system.main_job();
        let get = |wanted: &Option<String>, usual| releases::get(system, wanted.as_deref().unwrap_or(usual));
        Ok((get(&self.from, from)?, get(&self.to, to)?))
    }
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
