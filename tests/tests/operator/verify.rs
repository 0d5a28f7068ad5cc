//! `agent verify`: the members by id and peer URLs, as a unit asks before it starts one; the room for a backup.

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    process::{Command, Output},
};

use proto::{
    MemberId,
    etcdserverpb::{MemberAddRequest, MemberRemoveRequest, cluster_client::ClusterClient},
};
use rustix::process::Signal;
use serde_json::{Value, json};
use tests::{
    agent,
    cluster::{Cluster, Spec},
    playbook::Upgrade,
    skip::build_or_skip,
    system::System,
    wait::{self, GENEROUS},
};

type Expected = BTreeMap<MemberId, Vec<String>>;

fn verify(playbook: &Path, more: &[&str]) -> Output {
    let mut command = Command::new(agent::executable().expect("an agent"));
    command.args(["verify", "membership", "--output", "json"]).arg(playbook).args(more).output().expect("run")
}

/// Its exit code, and the object.
fn verified(playbook: &Path, more: &[&str]) -> (i32, Value) {
    let output = verify(playbook, more);
    let object = serde_json::from_slice(&output.stdout).expect("an object");
    (output.status.code().expect("a code"), object)
}

async fn differences_are_found_and_no_answer_is_none(system: System, minor: &str) {
    let Some(build) = build_or_skip(system, minor) else { return };
    let cluster = Cluster::up(&Spec::new(build.clone())).await.expect("up");
    let layout = &cluster.layout;
    let written = Upgrade::new(layout, &build).write_one(layout, 0).expect("written");
    let text = fs::read_to_string(&written).expect("readable");
    let expect = |expected: &Expected| {
        fs::write(&written, format!("{text}\nexpect_members: {}\n", json!(expected))).expect("written");
    };
    assert_eq!(verified(&written, &[]).1["reason"], "playbook", "it expects nothing yet");

    let client = layout.client(&layout.members[0]).expect("a client");
    let members = client.members().await.expect("a list");
    let are: Expected = members.iter().map(|member| (MemberId(member.id), member.peer_urls.clone())).collect();
    expect(&are);
    let (exit, object) = verified(&written, &[]);
    assert_eq!((exit, &object["reason"]), (0, &json!("members_as_expected")), "{object}");
    let printed = Command::new(agent::executable().expect("an agent"))
        .args(["verify", "membership", "--print"])
        .arg(&written)
        .output();
    let printed = String::from_utf8(printed.expect("run").stdout).expect("text");
    fs::write(&written, format!("{text}\n{printed}")).expect("written");
    assert_eq!(verified(&written, &[]).1["reason"], "members_as_expected", "what is printed is taken: {printed}");

    let (first, second) = (MemberId(members[0].id), MemberId(members[1].id));
    let mut others = are.clone();
    others.remove(&first);
    others.insert(second, vec!["http://127.0.0.1:9".into()]);
    others.insert(MemberId(9), vec!["http://127.0.0.1:99".into()]);
    expect(&others);
    let (exit, object) = verified(&written, &[]);
    assert_eq!((exit, &object["reason"]), (3, &json!("members_differ")), "{object}");
    let of = |id: MemberId| {
        let all = object["differences"].as_array().expect("a list");
        all.iter().find(|one| one["member"] == id.to_string()).map(|one| one["difference"].clone())
    };
    assert_eq!(of(first), Some(json!("unexpected")), "{object}");
    assert_eq!(of(second), Some(json!("elsewhere")), "{object}");
    assert_eq!(of(MemberId(9)), Some(json!("missing")), "{object}");

    // One that was added and never started is a member.
    expect(&are);
    let mut changing = ClusterClient::new(client.channel());
    let request = MemberAddRequest { peer_urls: vec!["http://127.0.0.1:99".into()], is_learner: true };
    // etcd wants members that have been connected for a while.
    let added = wait::until("a learner to be added", GENEROUS, || {
        let (mut changing, request) = (changing.clone(), request.clone());
        async move { changing.member_add(request).await.map_err(|status| status.to_string()) }
    });
    let added = added.await.expect("added").into_inner().member.expect("a member").id;
    let (exit, object) = verified(&written, &[]);
    assert_eq!((exit, &object["differences"][0]["difference"]), (3, &json!("unexpected")), "{object}");
    changing.member_remove(MemberRemoveRequest { id: added }).await.expect("removed");
    assert_eq!(verified(&written, &[]).0, 0);

    // Without a quorum nobody can say; a host that starts after a power cut goes on.
    for member in &layout.members[1..] {
        member.end(Signal::KILL).expect("killed");
    }
    for more in [&[][..], &["--require-answer"]] {
        let (exit, object) = verified(&written, more);
        let wanted = if more.is_empty() { (0, json!("members_unknown")) } else { (3, json!("unreachable")) };
        assert_eq!((exit, object["reason"].clone()), wanted, "{object}");
    }
    layout.members[0].end(Signal::KILL).expect("killed");
    let (exit, object) = verified(&written, &[]);
    assert_eq!((exit, &object["reason"]), (0, &json!("members_unknown")), "{object}");
    assert!(object["warnings"][0].as_str().expect("a warning").contains("were not compared"), "{object}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "slow: etcd 3.6 and the node find them by default"]
async fn differences_are_found_by_etcd_3_4() {
    differences_are_found_and_no_answer_is_none(System::Etcd, "3.4").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn differences_are_found_by_etcd_3_6() {
    differences_are_found_and_no_answer_is_none(System::Etcd, "3.6").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn differences_are_found_by_the_node() {
    differences_are_found_and_no_answer_is_none(System::Node, "3.6").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn room_for_a_backup_is_told() {
    let Some(build) = build_or_skip(System::Etcd, "3.6") else { return };
    let cluster = Cluster::up(&Spec::new(build.clone())).await.expect("up");
    let playbook = Upgrade::new(&cluster.layout, &build).write_one(&cluster.layout, 0).expect("written");
    let storage = |dir: &Path| {
        let mut command = Command::new(agent::executable().expect("an agent"));
        command.args(["verify", "storage", "--output", "json", "--dir"]).arg(dir).arg(&playbook);
        let output = command.output().expect("run");
        let object: Value = serde_json::from_slice(&output.stdout).expect("an object");
        (output.status.code(), object["reason"].clone())
    };
    let member = &cluster.layout.members[0];
    assert_eq!(storage(&member.dir), (Some(0), json!("room")));
    assert_eq!(storage(Path::new("/proc")), (Some(3), json!("no_room")), "nothing can be written there");
    assert_eq!(storage(&member.dir.join("none")), (Some(2), json!("usage")));
    cluster.layout.members.iter().for_each(|member| member.end(Signal::KILL).expect("killed"));
    assert_eq!(storage(&member.dir), (Some(3), json!("unreachable")));
}
