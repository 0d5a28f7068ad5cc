//! A short soak of each system on every run of the tests; `scripts/soak-agent` does longer ones.

#![allow(clippy::panic, reason = "a test that cannot go on fails")]

use std::process::Command;

use tests::{on_both, skip::build_or_skip, system::System};

on_both! {
    agents_that_are_killed_at_random_come_to_the_end, etcd #[ignore = "slow: the node's row shows the same"];
}

async fn agents_that_are_killed_at_random_come_to_the_end(system: System) {
    let minors = match system {
        System::Node => ["3.5", "3.6", "3.7"],
        System::Etcd => ["3.4", "3.5", "3.6"],
    };
    if minors.into_iter().any(|minor| build_or_skip(system, minor).is_none()) {
        return;
    }
    let soak = Command::new(env!("CARGO_BIN_EXE_soak-agent")).args(["8", "--system", system.name()]).output();
    let done = soak.expect("it runs");
    println!("{}", String::from_utf8_lossy(&done.stdout));
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    for line in String::from_utf8_lossy(&done.stdout).lines().filter(|line| line.starts_with("kills ")) {
        println!("counted: {system}: {line}");
    }
}
