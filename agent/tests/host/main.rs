//! What the agent does to its own host, on real processes, files and sockets.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by them")]

mod artifact;
mod command_crash;
mod discovery;
mod download;
mod executable;
mod limits;
mod log;
mod process;
mod process_crash;
mod stuck;
mod web;
