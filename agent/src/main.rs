//! `agent`: argv in, exit code out.

use std::process::ExitCode;

use agent::{command, host::program::launcher};

fn main() -> ExitCode {
    // A launcher becomes a node: nothing of an agent, not even a thread, may have begun.
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|verb| verb == launcher::SUBCOMMAND) {
        let order = arguments.next();
        return launcher::main(order.as_deref().and_then(|order| order.to_str()));
    }
    ExitCode::from(command::main(std::env::args_os()))
}
