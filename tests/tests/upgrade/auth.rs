//! Auth is on: root upgrades, and a user without the role is refused before anything is touched.

use std::fs;

use tests::{
    client::Client,
    cluster::{Cluster, Layout},
    playbook::{Upgrade, quoted},
    rollout::Rollout,
    standing::Standing,
};

use crate::{all_done, cluster};

/// Switches auth on; from then on the layout's clients are root.
async fn lock(cluster: &Cluster) -> Layout {
    let mut layout = cluster.layout.clone();
    let client = Client::new(&layout.members[0].client_url, &layout.access()).expect("a client");
    client.enable_auth("secret", ("guest", "welcome")).await.expect("auth is on");
    layout.user = Some(("root".into(), "secret".into()));
    layout
}

fn upgrade_as(layout: &Layout, to: &tests::etcd::Etcd, user: &str, password: &str) -> Upgrade {
    let file = layout.dir.join(format!("{user}.password"));
    fs::write(&file, format!("{password}\n")).expect("written");
    let auth = format!("auth: {{ user: {user}, password_file: {} }}", quoted(&file.to_string_lossy()));
    Upgrade { cluster: vec![auth], ..Upgrade::new(layout, to) }
}

async fn root_upgrades(from: &str, to: &str, tls: bool) {
    let Some((cluster, to)) = cluster(from, to, |spec| spec.tls = tls).await else { return };
    let layout = lock(&cluster).await;
    let playbooks = upgrade_as(&layout, &to, "root", "secret").write(&layout).expect("playbooks");
    let rollout = Rollout::begin(&layout, playbooks, &to.release).await.expect("under way");
    all_done(&rollout.run_all().await.expect("ended"));
    rollout.done().await.expect("sound");
}

#[tokio::test(flavor = "multi_thread")]
async fn root_goes_from_3_4_to_3_5() {
    root_upgrades("3.4", "3.5", false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn root_with_tls_goes_from_3_5_to_3_6() {
    root_upgrades("3.5", "3.6", true).await;
}

async fn is_refused(from: &str, to: &str, user: &str, password: &str, reason: &str) {
    let Some((cluster, to)) = cluster(from, to, |_| {}).await else { return };
    let layout = lock(&cluster).await;
    let playbooks = upgrade_as(&layout, &to, user, password).write(&layout).expect("playbooks");
    let rollout = Rollout::begin(&layout, playbooks, &to.release).await.expect("under way");
    let before = Standing::of(&layout).await.expect("seen");
    for agent in rollout.run_all().await.expect("ended") {
        agent.must_be(3, reason);
        assert!(agent.message().contains(user), "{}", agent.message());
    }
    assert_eq!(Standing::of(&layout).await.expect("seen"), before);
    let seen = rollout.sound().await.expect("sound");
    assert_eq!(seen.observed.outages, [], "nobody went down");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_without_the_role_is_refused_on_3_4() {
    is_refused("3.4", "3.5", "guest", "welcome", "not_root").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_without_the_role_is_refused_on_3_5() {
    is_refused("3.5", "3.6", "guest", "welcome", "not_root").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_password_is_refused() {
    is_refused("3.4", "3.5", "root", "wrong", "auth_refused").await;
}
