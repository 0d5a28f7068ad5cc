//! Drives the real binaries from outside: clusters, faults, workload, histories.
//!
//! Nothing here knows how the agent is made. What scenarios are made of is the crate `lab`; here is what only tests
//! want: cases, skips, and faults that the lab has no use for.

pub use lab::{
    Error, agent, certificates, chance, client, cluster, ended, events, fault, history, member, metrics, mounted,
    network, newcomer, observer, playbook, ports, process, raft_status, sick, system, wait, watcher, witness, workload,
};

pub mod balancer;
pub mod brake;
pub mod case;
pub mod command;
pub mod etcdctl;
pub mod fetched;
pub mod journal;
pub mod liar;
pub mod machine;
pub mod much;
pub mod newcomers;
mod on_both;
pub mod past;
pub mod probe;
pub mod releases;
pub mod restored;
pub mod roles;
pub mod rollout;
pub mod side_by_side;
pub mod skip;
pub mod spread;
pub mod spy;
pub mod trapdoor;
pub mod web;
