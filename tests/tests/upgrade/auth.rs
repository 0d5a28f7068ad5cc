//! Auth is on: root upgrades, and a user without the role is refused before anything is touched.
//!
//! Of etcd alone: the bundled node has neither users nor TLS.

use std::fs;

use tests::{case::Case, ended::all_must_be, playbook::quoted, rollout::Rollout, system::System};

/// Switches auth on: from then on the scenario's clients are root, and the agents are whom they are told to be.
async fn locked(mut case: Case, user: &str, password: &str) -> Rollout {
    case.client(0).enable_auth("secret", ("guest", "welcome")).await.expect("auth is on");
    case.cluster.layout.user = Some(("root".into(), "secret".into()));
    let file = case.layout().dir.join(format!("{user}.password"));
    fs::write(&file, format!("{password}\n")).expect("written");
    case.upgrade.cluster =
        vec![format!("auth: {{ user: {user}, password_file: {} }}", quoted(&file.to_string_lossy()))];
    case.begin().await
}

async fn root_upgrades(from: &str, to: &str, tls: bool) {
    let Some(mut case) = Case::path(System::Etcd, (from, to), |spec| spec.tls = tls).await else { return };
    if from == "3.4" {
        // Nobody changes a user meanwhile.
        case.upgrade.strategy.push("accept_hazards: [auth-34-35]".into());
    }
    let rollout = locked(case, "root", "secret").await;
    all_must_be(&rollout.all("run").await, 0, "done");
    rollout.done().await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "slow: with TLS it goes from 3.5 to 3.6 by default"]
async fn root_goes_from_3_4_to_3_5() {
    root_upgrades("3.4", "3.5", false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn root_with_tls_goes_from_3_5_to_3_6() {
    root_upgrades("3.5", "3.6", true).await;
}

async fn is_refused(from: &str, to: &str, user: &str, password: &str, reason: &str) {
    let Some(case) = Case::path(System::Etcd, (from, to), |_| {}).await else { return };
    let rollout = locked(case, user, password).await;
    let before = rollout.raft_status().await;
    for agent in rollout.all("run").await {
        agent.must_be(3, reason);
        assert!(agent.message().contains(user), "{}", agent.message());
    }
    assert_eq!(rollout.raft_status().await, before);
    rollout.end(0).await;
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
