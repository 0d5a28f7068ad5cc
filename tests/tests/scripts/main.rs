//! The scripts, as a user types them.

mod cluster;
mod fetch_etcd;
mod mirror;
