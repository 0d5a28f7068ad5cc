//! The observer sees one member down as one, and two as two.

use rustix::process::Signal;
use tests::{
    cluster::{Cluster, Spec},
    fault,
    observer::Observer,
    on_both,
    skip::build_or_skip,
    system::System,
};

on_both! {
    members_that_go_down_one_after_the_other_are_one_at_a_time, etcd #[ignore = "slow: the node's row shows the same"];
    a_double_stop_is_caught, etcd #[ignore = "slow: the node's row shows the same"];
    a_member_that_stands_still_is_down, etcd #[ignore = "slow: the node's row shows the same"];
}

async fn cluster(system: System) -> Option<Cluster> {
    Some(Cluster::up(&Spec::new(build_or_skip(system, "3.5")?)).await.expect("up"))
}

async fn members_that_go_down_one_after_the_other_are_one_at_a_time(system: System) {
    let Some(cluster) = cluster(system).await else { return };
    let observer = Observer::start(&cluster.layout);
    for member in &cluster.layout.members {
        member.end(Signal::KILL).expect("killed");
        member.start().expect("started");
        cluster.ready().await.expect("ready again");
        observer.has_looked();
    }
    let report = observer.finish().expect("a report");
    assert_eq!(report.max_members_down, 1, "{report:?}");
    let seen: Vec<_> = report.outages.iter().map(|outage| outage.member.as_str()).collect();
    assert_eq!(seen, ["m1", "m2", "m3"], "each was seen down once, and up again: {report:?}");
    assert!(report.outages.iter().all(|outage| outage.to.is_some()), "{report:?}");
}

async fn a_double_stop_is_caught(system: System) {
    let Some(cluster) = cluster(system).await else { return };
    let observer = Observer::start(&cluster.layout);
    let (first, second) = (&cluster.layout.members[0], &cluster.layout.members[1]);
    first.end(Signal::KILL).expect("killed");
    second.end(Signal::KILL).expect("killed");
    first.start().expect("started");
    second.start().expect("started");
    cluster.ready().await.expect("ready again");
    let report = observer.finish().expect("a report");
    assert_eq!((report.max_members_down, report.worst), (2, vec!["m1".into(), "m2".into()]));
}

async fn a_member_that_stands_still_is_down(system: System) {
    let Some(cluster) = cluster(system).await else { return };
    let observer = Observer::start(&cluster.layout);
    let frozen = cluster.layout.members[0].process().expect("it runs");
    fault::freeze(&frozen).expect("frozen");
    cluster.layout.members[1].end(Signal::KILL).expect("killed");
    observer.has_looked();
    cluster.layout.members[1].start().expect("started");
    fault::thaw(&frozen).expect("thawed");
    cluster.ready().await.expect("ready again");
    assert_eq!(observer.finish().expect("a report").max_members_down, 2);
}
