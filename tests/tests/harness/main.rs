//! The harness itself on real clusters: what it reports is only worth something if it catches what it is for.

mod auth;
mod cluster;
mod machine;
mod observer;
mod workload;
