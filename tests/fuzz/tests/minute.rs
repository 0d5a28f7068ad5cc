//! `scripts/fuzz` as a test.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::process::Command;

#[test]
#[ignore = "slow: a build of its own, and a minute for each decoder"]
fn nothing_is_found_in_a_minute_each() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/fuzz");
    let output = Command::new(script).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    println!("counted: {said}");
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
}
