//! The scripts, as a user types them.

mod build_releases;
mod cluster;
mod fetch_etcd;
mod hosts;
mod mirror;
mod mutants;
