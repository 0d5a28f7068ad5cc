//! A process of this host that runs: who it is, as whom it runs, with which limits, at which addresses.

pub mod cgroup;
pub mod connections;
pub mod credentials;
pub mod limits;
pub mod listener;
pub mod member_setting;
pub(crate) mod parent;
pub mod process_id;
pub mod snapshot;
