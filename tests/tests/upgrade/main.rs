//! Whole upgrades of real clusters under load, an agent per host and all of them at once.

mod artifact;
mod auth;
mod backup;
mod canary;
mod command;
mod hops;
mod one;
mod path;
mod release_files;
