//! The model checker: the shipped rollout machine on several hosts, in every order, with faults.
//!
//! Each test explores one scenario: every world that can be reached from a cluster on its old release, by
//! the moves of agents, members, leases and operators, and by the faults that the scenario allows. In each
//! of them nothing forbidden may happen (`judge.rs`, `endings.rs`), and from each the end must be within
//! reach once nothing goes wrong any more: the same commands run again, leases run out, what is late lands. A
//! search that is cut off is no verdict, and fails.
//!
//! What is modelled: the store and its Txns, late and lost ones too; leases, each by itself; journals and state directories;
//! members' processes, binaries, health and quorum; elections; the version's rise, and its fall by a downgrade; the
//! verbs; `abandon` and `--replace`; guarded commands, and what they do to their host (`errand.rs`). What is not: time (a lease may run out at any instant, 20 s pass at once), learners,
//! alarms, gates, hashes, the network between any two, torn writes, keep-alives (a process that stands still loses all of
//! its leases at once) and what performs the acts (`execute/`); nor a cancel of a downgrade that is done only after its
//! agent has lost the baton: that call compares nothing, so it may undo what a later run enabled, and a lower release that
//! does not start is put back. A registration and an end are of one instant with what comes before (`reduction.rs`).
//!
//! What is judged (PROTOCOL.md): `judge_check` I-2, I-3, R-2; `judge_stop` I-1, I-6, R-1, R-7, R-8, R-10, R-11 and
//! the hold of R-9; `judge_start` and `judge_rise`; `judge_downgrade` R-11; `follow` and `may_lift`;
//! `judge_guard`, `judge_errands` and `begin_command` R-13, and I-1, I-2, I-3 of a whole host; `judge_asking` that a question changes nothing;
//! `judge_place` and `judge_run` that a hop begins when the one before it is done, that none is undone afterwards, and that nobody writes
//! the run of another hop than its own;
//! `has_its_backup` and `back_up` R-14; `judge_ending` and `judge_exit` who may go home, and what is said of a member; the way back from every state, I-10.
//! The order of members is nobody's safety: the golden plans and unit tests hold that.

// A test binary of several files: what is allowed in tests is allowed in all of it.
#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic)]

mod acts;
mod canonical;
mod digest;
mod down;
mod downgrade;
mod endings;
mod errand;
mod faults;
mod guards;
mod hops;
mod judge;
mod make;
mod moves;
mod mutants;
mod names;
mod pairs;
mod reduced;
mod reduction;
mod scenario;
mod search;
mod singles;
mod store;
mod trace;
mod verdict;
mod way;
mod world;

use verdict::{must_all_be_sound, must_be_found, must_be_sound};

/// More states than any scenario has; what a search remembers of each is some 60 bytes.
const BOUND: usize = 60_000_000;

macro_rules! sound {
    ($($(#[$mark:meta])* $name:ident: $scenario:expr;)*) => {
        $(#[test]
        $(#[$mark])*
        fn $name() {
            let scenario: fn(&str) -> $crate::scenario::Scenario = $scenario;
            $crate::must_be_sound(scenario(stringify!($name)));
        })*
    };
}
use sound;
