//! Opens, makes and replaces files for the agent, which may be root, so that no other user decides which file it is.
//!
//! The way to a file is walked from `/`, one descriptor after the other (`walk.rs`), and each folder and link on it
//! must be such that only root and the agent's own user can change it (`rule.rs`): as sshd has it for keys
//! (`StrictModes`, sshd_config(5)). What is done then is done by name in the folder that is held open (`place.rs`), and
//! what is opened is judged by its descriptor. So nothing can be exchanged between the check and the use.
//!
//! What the content means, and what may be written where, is not known here.

mod access;
mod error;
pub(crate) mod place;
mod rule;
mod walk;

#[cfg(test)]
mod attacks_test;

pub use access::Access;
pub(crate) use error::At;
pub use error::{FileError, Unguarded};
pub(crate) use place::{Content, Place, is_unfinished, wait_for_writes};
pub(crate) use walk::Folder;
