//! What one look at the cluster's gate costs where an entry is applied.

use std::{hint::black_box, time::Instant};

use node::{
    cluster::{Cluster, gate::Gate},
    features::{COUNTERS, FEATURES, LEASE_CHECKPOINT},
};

const LOOKS: u32 = 10_000_000;

fn main() {
    let version = proto::ClusterVersion { major: 3, minor: 7 };
    let features = FEATURES.known_at(version).map(|(feature, _)| (feature.name.to_owned(), true)).collect();
    let cluster = Cluster { version: Some(version), gate: Gate::Decided(features), ..Cluster::default() };
    let figures = [LEASE_CHECKPOINT, COUNTERS].map(|name| {
        let began = Instant::now();
        let is_on =
            (0..LOOKS).filter(|_| black_box(&cluster).is_enabled(black_box(name), black_box(&FEATURES))).count();
        assert_eq!(is_on, LOOKS as usize, "{name}");
        format!("{name} {:.1} ns", began.elapsed().as_secs_f64() * 1e9 / f64::from(LOOKS))
    });
    println!("a look at the gate, as apply takes it: {}", figures.join(", "));
}
