//! Drives the real binaries from outside: clusters, faults, workload, histories.

pub mod history;
