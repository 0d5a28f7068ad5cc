//! Cluster version and feature gate on real members (KEP-4647).

use std::time::Duration;

use proto::{ClusterVersion, etcdserverpb::maintenance_client::MaintenanceClient, gates::feature_gate_status};
use rustix::process::Signal;
use tests::{
    client::Client,
    cluster::{Cluster, Spec},
    skip::build_or_skip,
    system::System,
    wait::{self, GENEROUS},
};
use tokio::{sync::oneshot, task::JoinHandle};
use tonic::{Code, Status};

use crate::{QUICK, nobody_panicked};

const ON: &str = "--cluster-feature-gates=ClusterLeaseCheckpoint=true";
const OFF: &str = "--cluster-feature-gates=ClusterLeaseCheckpoint=false";

/// What a member says of the feature; `None` where there is no cluster version that has it.
async fn told(client: &Client) -> Result<Option<bool>, Status> {
    let mut maintenance = MaintenanceClient::new(client.channel());
    let features = feature_gate_status(&mut maintenance, [""; 0]).await?;
    Ok(features.get("ClusterLeaseCheckpoint").copied())
}

async fn all_say(cluster: &Cluster, wanted: Option<bool>) {
    for member in &cluster.layout.members {
        let client = cluster.layout.client(member).expect("a client");
        wait::until(&format!("{} to say {wanted:?}", member.name), GENEROUS, || async {
            match told(&client).await {
                Ok(said) if said == wanted => Ok(()),
                other => Err(format!("it says {other:?}")),
            }
        })
        .await
        .expect("agreed");
    }
}

/// Asks a member all the time, from before it runs: each answer that was another than the one before it.
fn follow(client: Client, mut over: oneshot::Receiver<()>) -> JoinHandle<Vec<Option<bool>>> {
    tokio::spawn(async move {
        let mut answers = Vec::new();
        while over.try_recv().is_err() {
            if let Ok(said) = told(&client).await
                && answers.last() != Some(&said)
            {
                answers.push(said);
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        answers
    })
}

fn laid_out(version: &str, flags: &[&str]) -> Option<Cluster> {
    let build = build_or_skip(System::Node, version)?;
    let flags = flags.iter().map(ToString::to_string).collect();
    Some(Cluster::laid_out(&Spec { flags, ..Spec::new(build) }).expect("laid out"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_cluster_decides_once_and_a_member_s_other_flag_changes_it() {
    let Some(mut cluster) = laid_out("3.6", &[&QUICK[..], &[ON]].concat()) else { return };
    let clients = cluster.layout.members.iter().map(|member| cluster.layout.client(member).expect("a client"));
    let followers: Vec<_> = clients
        .map(|client| {
            let (ends, over) = oneshot::channel();
            (ends, follow(client, over))
        })
        .collect();
    cluster.begin().await.expect("up");
    all_say(&cluster, Some(true)).await;
    for (ends, answers) in followers {
        let _ = ends.send(());
        let answers = answers.await.expect("asked");
        let steps: Vec<_> = [None, Some(false), Some(true)].into_iter().filter(|step| answers.contains(step)).collect();
        assert_eq!(answers, steps, "it comes on once, and nothing is taken back");
    }
    // All the flags are asked, whoever leads: one that refuses is enough.
    for (flag, wanted) in [(OFF, false), (ON, true)] {
        let member = &mut cluster.layout.members[1];
        member.flags.retain(|flag| !flag.starts_with("--cluster-feature-gates"));
        member.flags.push(flag.into());
        member.end(Signal::TERM).expect("ended");
        member.start().expect("started");
        all_say(&cluster, Some(wanted)).await;
    }
    nobody_panicked(&cluster.layout);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mixed_cluster_keeps_every_gate_off_until_the_last_member_is_new() {
    let Some(new) = build_or_skip(System::Node, "3.6") else { return };
    let Some(cluster) = laid_out("3.5", &[&QUICK[..], &[ON]].concat()) else { return };
    cluster.begin().await.expect("up");
    let client = |index: usize| cluster.layout.client(&cluster.layout.members[index]).expect("a client");
    assert_eq!(told(&client(0)).await.expect_err("3.5 does not know it").code(), Code::Unimplemented);

    for (done, member) in (1..).zip(&cluster.layout.members) {
        member.end(Signal::TERM).expect("ended");
        member.install(&new).expect("installed");
        member.start().expect("started");
        cluster.ready().await.expect("every member serves");
        if done == 3 {
            break;
        }
        cluster.settled(ClusterVersion { major: 3, minor: 5 }).await.expect("the version stays");
        for index in 0..3 {
            match told(&client(index)).await {
                Ok(said) => assert!(index < done && said != Some(true), "m{} of {done}: {said:?}", index + 1),
                Err(status) => assert!(index >= done && status.code() == Code::Unimplemented, "{status}"),
            }
        }
    }
    cluster.settled(ClusterVersion { major: 3, minor: 6 }).await.expect("the version rises");
    all_say(&cluster, Some(true)).await;
    nobody_panicked(&cluster.layout);
}
