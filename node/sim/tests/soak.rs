//! The simulation in short: seeds pass, a disk that is lost among them, and one seed twice is the same to the byte.

#![allow(clippy::unwrap_used)]

use std::process::Command;

fn sim(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_sim")).args(arguments).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "sim {arguments:?}: {said}{}", String::from_utf8_lossy(&output.stderr));
    said
}

/// Sixteen processor seconds or so; scripts/soak-node takes as long as one likes.
#[test]
fn seeds_pass() {
    println!("counted: {}", sim(&["soak", "--minutes", "100", "--seeds", "8", "--seconds", "40"]).replace('\n', "; "));
}

#[test]
fn seeds_pass_in_which_a_disk_is_lost() {
    println!(
        "counted: {}",
        sim(&["soak", "--minutes", "100", "--seeds", "8", "--seconds", "30", "--disk"]).replace('\n', "; ")
    );
}

#[test]
fn a_seed_gives_the_same_run_twice() {
    assert!(sim(&["replays", "3", "--seconds", "20"]).starts_with("the same"));
}
