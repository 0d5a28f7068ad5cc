//! The life of features over releases that know different ones: a default that changes in a patch and with a minor, a lock, a name
//! that is dropped (KEP-4647, "Register New Feature Gates", "Feature Removal").

use proto::{
    ClusterVersion,
    etcdserverpb::{FeatureGateStatusRequest, maintenance_client::MaintenanceClient},
};
use rustix::process::Signal;
use tests::{
    cluster::Cluster,
    skip::build_or_skip,
    system::{Build, System},
    wait::{self, GENEROUS},
};

use crate::{QUICK, nobody_panicked, up};

const LEASES: &str = "ClusterLeaseCheckpoint";
const COMPRESSION: &str = "ClusterSnapshotCompression";
const COUNTERS: &str = "ClusterCounters";

fn minor(minor: u64) -> ClusterVersion {
    ClusterVersion { major: 3, minor }
}

/// Waits until each member says this of these features.
async fn all_say(cluster: &Cluster, wanted: [(&str, bool); 3]) {
    let names = wanted.map(|(name, _)| name.to_owned()).to_vec();
    for member in &cluster.layout.members {
        let client = cluster.layout.client(member).expect("a client");
        wait::until(&format!("{} to say {wanted:?}", member.name), GENEROUS, || async {
            let mut maintenance = MaintenanceClient::new(client.channel());
            let request = FeatureGateStatusRequest { features: names.clone() };
            let answer = maintenance.feature_gate_status(request).await.map_err(|status| status.to_string())?;
            let said: Vec<_> = answer.into_inner().features.into_iter().map(|f| (f.name, f.enabled)).collect();
            let is_it = said.iter().map(|(name, on)| (&**name, *on)).eq(wanted);
            if is_it { Ok(()) } else { Err(format!("it says {said:?}")) }
        })
        .await
        .expect("agreed");
    }
}

async fn restart(cluster: &mut Cluster, index: usize, build: &Build, flag: Option<&str>) {
    let member = &mut cluster.layout.members[index];
    member.flags.retain(|flag| !flag.starts_with("--cluster-feature-gates"));
    member.flags.extend(flag.map(str::to_owned));
    member.end(Signal::TERM).expect("ended");
    member.install(build).expect("installed");
    member.start().expect("started");
    cluster.ready().await.expect("it serves");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_minors_further_one_default_has_changed_one_feature_is_locked_and_one_name_is_gone() {
    let (Some(v3_8), Some(v3_9)) = (build_or_skip(System::Node, "3.8"), build_or_skip(System::Node, "3.9")) else {
        return;
    };
    let off = "--cluster-feature-gates=ClusterCounters=false";
    let Some(mut cluster) = up("3.7", &[&QUICK[..], &[off]].concat()).await else { return };
    cluster.settled(minor(7)).await.expect("settled");
    all_say(&cluster, [(LEASES, true), (COMPRESSION, false), (COUNTERS, false)]).await;

    for index in 0..3 {
        restart(&mut cluster, index, &v3_8, Some(off)).await;
    }
    cluster.settled(minor(8)).await.expect("risen");
    // A flag against a lock keeps nobody from starting, and counts for nothing.
    all_say(&cluster, [(LEASES, true), (COMPRESSION, true), (COUNTERS, true)]).await;

    // Refused by name: it would be a typing error, or a wish for what is gone.
    let member = &mut cluster.layout.members[0];
    member.flags.push("--cluster-feature-gates=ClusterLeaseCheckpoint=true".into());
    member.end(Signal::TERM).expect("ended");
    member.install(&v3_9).expect("installed");
    let process = member.start().expect("started");
    process.ended(GENEROUS).expect("it does not start");
    let words = member.last_words();
    assert!(words.contains("`ClusterLeaseCheckpoint` is wrong: expected one of ClusterSnapshotCompression"), "{words}");

    let without = "--cluster-feature-gates=ClusterSnapshotCompression=true";
    for index in 0..3 {
        let member = &mut cluster.layout.members[index];
        member.flags.retain(|flag| !flag.starts_with("--cluster-feature-gates"));
        if index == 0 {
            member.flags.push(without.into());
            member.start().expect("started");
            cluster.ready().await.expect("it serves");
        } else {
            restart(&mut cluster, index, &v3_9, Some(without)).await;
        }
        // Whoever has dropped the name answers as those who have it locked.
        all_say(&cluster, [(LEASES, true), (COMPRESSION, true), (COUNTERS, true)]).await;
    }
    cluster.settled(minor(9)).await.expect("risen");
    all_say(&cluster, [(LEASES, true), (COMPRESSION, true), (COUNTERS, true)]).await;
    nobody_panicked(&cluster.layout);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_patch_with_another_default_flips_nothing_whoever_leads_until_all_have_it() {
    let Some(patch) = build_or_skip(System::Node, "3.6.1") else { return };
    let Some(mut cluster) = up("3.6", &QUICK).await else { return };
    cluster.settled(minor(6)).await.expect("settled");
    let (off, on) = (
        [(LEASES, false), (COMPRESSION, false), (COUNTERS, false)],
        [(LEASES, false), (COMPRESSION, false), (COUNTERS, true)],
    );
    all_say(&cluster, off).await;
    restart(&mut cluster, 0, &patch, None).await;
    for index in [0, 1, 0] {
        cluster.layout.make_leader(&cluster.layout.members[index]).await.expect("it leads");
        all_say(&cluster, off).await;
    }
    for index in [1, 2] {
        all_say(&cluster, off).await;
        restart(&mut cluster, index, &patch, None).await;
    }
    all_say(&cluster, on).await;
    nobody_panicked(&cluster.layout);
}
