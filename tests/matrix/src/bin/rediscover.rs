//! `rediscover`: argv in, exit code out. `scripts/rediscover` runs it, with the releases that it needs.

use std::process::ExitCode;

use clap::Parser;
use matrix::past::cli::{Cli, carry_out};
use tokio::signal::unix::{SignalKind, signal};

#[tokio::main]
async fn main() -> ExitCode {
    let cli = Cli::parse();
    let ended = tokio::select! {
        ended = carry_out(&cli) => ended,
        // Every cluster ends with its plan, which ends with this.
        () = told_to_end() => Err("a signal asked for an end".into()),
    };
    match ended {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

async fn told_to_end() {
    let asked = |kind| async move {
        match signal(kind) {
            Ok(mut asked) => drop(asked.recv().await),
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        () = asked(SignalKind::interrupt()) => {}
        () = asked(SignalKind::terminate()) => {}
    }
}
