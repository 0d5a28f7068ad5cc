//! The bundled raft node.
//!
//! Which release it is stands here and nowhere else, and nothing else does: another stamp compiles this file alone, and
//! all that it calls is compiled with the library.

use std::process::ExitCode;

/// What this binary says it is: `NODE_RELEASE` at build time, else the newest.
const RELEASE: &str = match option_env!("NODE_RELEASE") {
    Some(release) => release,
    None => "3.7.0",
};

fn main() -> ExitCode {
    node::process::run(RELEASE)
}
