//! `agent`: argv in, exit code out.

use std::process::ExitCode;

use agent::host::launcher;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    if arguments.next().as_deref() == Some(launcher::SUBCOMMAND) {
        return launcher::main(arguments.next().as_deref());
    }
    ExitCode::SUCCESS
}
