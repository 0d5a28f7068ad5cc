//! The log from outside: on a real folder, and on a simulated disk with every fault that a disk has.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

mod contract;
mod damage;
mod failing_disk;
mod format;
mod model;
mod power_loss;
mod real_folder;
mod spare;
mod workload;
