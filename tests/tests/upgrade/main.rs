//! Whole upgrades of real clusters under load, an agent per host and all of them at once.

mod artifact;
mod auth;
mod command;
mod path;
mod release_files;

use tests::{
    cluster::{Cluster, Spec},
    ended::Ended,
    etcd::Etcd,
    skip::etcd_or_skip,
};

/// A cluster of the first release, and the second one.
async fn cluster(from: &str, to: &str, change: impl FnOnce(&mut Spec)) -> Option<(Cluster, Etcd)> {
    let (from, to) = (etcd_or_skip(from)?, etcd_or_skip(to)?);
    let mut spec = Spec::new(from);
    change(&mut spec);
    Some((Cluster::up(&spec).await.expect("up"), to))
}

fn all_done(agents: &[Ended]) {
    for agent in agents {
        agent.must_be(0, "done");
    }
}
