//! `agent`: argv in, exit code out.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(agent::command::main(std::env::args_os()))
}
