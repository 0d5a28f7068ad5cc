//! Looking at the cluster: everything the planner knows comes from here.
//!
//! Asks, and hands on what was answered; decides nothing about what to do. What one look found is a
//! [`view::ClusterView`]; [`Observer`] makes the look. The rules by which raw answers become leader, readiness and
//! equality of data are pure and have rooms of their own: [`leader`], [`health`], and the comparison in [`hash`].

pub mod access;
pub mod activity;
pub mod answer;
pub mod awake;
pub mod canary;
pub mod clock;
pub mod cluster;
pub mod database;
mod diagnosis;
pub mod difference;
pub mod directory;
pub mod downgrade;
pub mod error;
pub mod evidence;
mod expected;
mod fault;
pub mod feature;
pub mod handover;
pub mod hash;
pub mod health;
mod http;
mod introduction;
pub mod leader;
mod line;
mod listed;
pub mod local;
mod login;
pub mod member;
mod membership;
pub mod metrics;
pub mod peer_port;
pub mod peers;
pub mod permission;
mod queue;
mod releases;
mod removal;
mod reported;
pub mod role;
mod round;
pub mod secret_file;
mod spoken;
mod tls;
mod validity;
pub mod view;
mod voice;

pub use cluster::Observer;
pub use error::ObserveError;
pub use handover::HandOver;
pub use hash::Hashes;
