//! `agent-matrix`: argv in, exit code out. `agent matrix` runs it.

use std::{ffi::OsString, process::ExitCode};

use agent::{
    command::{self, Outcome},
    event::trouble::Trouble,
    host::program::launcher,
    report::file::json::Facts,
};
use clap::Parser;
use matrix::cli::Cli;

fn main() -> ExitCode {
    // It asks each release what it is, as the agent does: through a launcher.
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|verb| verb == launcher::SUBCOMMAND) {
        let order = arguments.next();
        return launcher::main(order.as_deref().and_then(|order| order.to_str()));
    }
    ExitCode::from(run(std::env::args_os().collect()))
}

fn run(arguments: Vec<OsString>) -> u8 {
    let cli = match Cli::try_parse_from(&arguments) {
        Ok(cli) => cli,
        Err(error) => return command::misread(&error, &arguments),
    };
    let outcome = carry_out(&cli).unwrap_or_else(|trouble| {
        let stop = trouble.stop("matrix", Some(&cli.matrix.matrix.to_string_lossy()), false);
        Outcome { stop, facts: Facts::default(), text: String::new() }
    });
    command::print(&outcome, cli.output)
}

fn carry_out(cli: &Cli) -> Result<Outcome, Trouble> {
    command::log_to_stderr(&cli.log)?;
    let runtime = command::several_threads()?;
    let ended = runtime.block_on(matrix::command::matrix(&cli.matrix));
    // Whoever waits for an agent that was just killed may wait long.
    runtime.shutdown_background();
    ended
}
