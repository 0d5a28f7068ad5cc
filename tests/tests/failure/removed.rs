//! A member is removed from the cluster while it is being upgraded. Of etcd alone: the bundled node's members stay.

use proto::etcdserverpb::{MemberRemoveRequest, cluster_client::ClusterClient};
use tests::{agent::Agent, case::Case, cluster::Spec, rollout::Ends as _, system::System, wait};

#[tokio::test(flavor = "multi_thread")]
async fn a_member_that_is_removed_within_its_step_is_not_started_again() {
    // Else etcd wants its peers to be connected for 5 s before one of them may be removed.
    let lenient = |spec: &mut Spec| spec.flags.push("--strict-reconfig-check=false".into());
    let Some(mut case) = Case::path(System::Etcd, ("3.5", "3.6"), lenient).await else { return };
    case.upgrade.strategy = vec!["soak: 4s".into(), "join_window: 1s".into()];
    let playbook = case.write()[1].clone();
    let members = case.client(0).members().await.expect("a list");
    let id = members.iter().find(|member| member.name == "m2").expect("a member").id;
    let (new, agent) = (case.to.release.to_string(), Agent::start("run", &playbook, &[]).expect("started"));
    wait::until("m2 to run the new release", wait::GENEROUS, || async {
        let said = case.client(1).versions().await.map_err(|error| error.to_string())?;
        (said.server == new).then_some(()).ok_or(said.server)
    })
    .await
    .expect("it does");
    let mut cluster = ClusterClient::new(case.client(0).channel());
    cluster.member_remove(MemberRemoveRequest { id }).await.expect("removed");
    let agent = agent.ends().await;
    agent.must_be(1, "step_failed");
    assert!(agent.message().contains("was removed from the cluster in the middle of its step"), "{agent}");
    assert!(agent.message().contains("etcdctl member add m2"), "{agent}");
    let started = agent.events.iter().filter(|event| event.event == "member_started").count();
    assert_eq!(started, 1, "{agent}");
    assert_eq!(case.member(1).release().expect("it says"), case.to.release, "nothing is put back");
    let keys = case.keys().await;
    assert!(!keys.contains_key("step"), "{keys:?}");
}
