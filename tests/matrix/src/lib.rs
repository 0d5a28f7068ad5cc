//! The upgrade matrix: every path, size and fault with real members on this machine, from a file and a seed.
//!
//! `file -> cells -> plan (seed, pure) -> faults (edits of it, pure) -> run -> judged after every step -> verdict`. A plan
//! that fails is made smaller as long as it fails. The members are the releases of the file, the agents whatever `--agent` names.
//! Not in this room: what an agent does; it is driven from outside, as anybody would.

pub mod chosen;
pub mod cli;
pub mod command;
pub mod etcdctl;
pub mod model;
pub mod past;
pub mod plan;
pub mod report;
pub mod run;
pub mod shrink;
pub mod verdict;

mod file;
