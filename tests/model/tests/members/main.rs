//! The model checker of Scale and Replace: the shipped machine on several hosts, while members come and go.
//!
//! Each test explores one scenario: every world that can be reached from a cluster as it stands, by the moves of agents, members,
//! leases and calls, and by the faults that the scenario allows. In each of them nothing forbidden may happen (`judge.rs`), and from
//! each the end must be within reach once nothing goes wrong any more: the same commands run again on all hosts that live, leases
//! run out, what is late arrives, and persons do what only they can: take a learner out that is nobody's, and give a newcomer up
//! whose host is gone for good.
//!
//! What is modelled: the store and its Txns, late and lost ones too; leases; the list of members, and calls that change it at any later
//! time, never, or not at all as the server's own checks refuse them (`cluster.rs`); looks of which the list is newer than the view
//! and the keys; data directories, and who wrote them; processes, their crashes and restarts; elections; directories that are emptied,
//! hosts that die for good; persons who add, promote and remove. What is not: time, alarms, versions, TLS, disks that fill, two seats on a
//! host, and what performs the acts (`execute/`). A registration and an end are of one instant with what comes before.
//!
//! What is judged is listed in `judge.rs`.

// A test binary of several files: what is allowed in tests is allowed in all of it.
#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic)]

mod acts;
#[path = "../model/canonical.rs"]
#[allow(dead_code, reason = "the rollout's model sorts hosts by what can be told of them blindly")]
mod canonical;
mod cluster;
mod digest;
mod faults;
mod held;
mod judge;
mod moves;
mod mutants;
#[path = "../model/names.rs"]
#[allow(dead_code, reason = "the rollout's model has copied hosts")]
mod names;
mod pairs;
mod scenario;
#[path = "../model/search.rs"]
mod search;
mod singles;
#[path = "../model/store.rs"]
mod store;
mod trace;
#[path = "../model/verdict.rs"]
mod verdict;
mod world;

use verdict::{must_all_be_sound, must_be_found, must_be_sound};

/// More states than any scenario has.
const BOUND: usize = 40_000_000;
