//! A program that is to be run: which file it is, who may change it, and running it as its own user, bounded.

pub mod capabilities;
pub mod exec;
pub mod executable;
pub mod flags;
pub mod gated;
pub mod go_build;
pub mod hook;
pub mod launcher;
pub mod path_owner;
pub mod probe;
pub mod program_path;
pub mod trial;
