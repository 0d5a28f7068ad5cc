//! The playbook's user is changed while a member is down: that is no lost quorum, and members are not worn out by logins.
//! Of etcd alone: the bundled node has no users.

use std::fs;

use proto::etcdserverpb::{AuthUserAddRequest, AuthenticateRequest, auth_client::AuthClient};
use tests::{agent::Agent, case::Case, rollout::Ends as _, system::System, wait};
use tonic::{Request, client::Grpc, codegen::http::uri::PathAndQuery};
use tonic_prost::ProstCodec;

use super::lock;

/// What members have to check, altogether.
async fn logins(case: &Case) -> f64 {
    let mut logins = 0.0;
    for member in [0, 2] {
        let metrics = case.client(member).metrics().await.expect("metrics");
        let started = metrics.family("grpc_server_started_total");
        logins += started.iter().filter(|(labels, _)| labels.contains("\"Authenticate\"")).map(|(_, n)| n).sum::<f64>();
    }
    logins
}

async fn change_password(case: &Case) {
    let mut auth = AuthClient::new(case.client(0).channel());
    let login = AuthenticateRequest { name: "root".into(), password: "secret".into() };
    let token = auth.authenticate(login).await.expect("a token").into_inner().token;
    // Name and password have the same numbers as where a user is added.
    let change = AuthUserAddRequest { name: "root".into(), password: "other".into(), ..Default::default() };
    let mut change = Request::new(change);
    change.metadata_mut().insert("token", token.parse().expect("ASCII"));
    let mut member = Grpc::new(case.client(0).channel());
    member.ready().await.expect("it serves");
    let path = PathAndQuery::from_static("/etcdserverpb.Auth/UserChangePassword");
    member.unary(change, path, ProstCodec::<_, ()>::default()).await.expect("changed");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "slow: a minute; a wrong password is refused in upgrade by default"]
async fn a_password_that_is_changed_within_a_step_is_said_to_be_refused() {
    let Some(case) = Case::path(System::Etcd, ("3.5", "3.6"), |_| {}).await else { return };
    let mut case = case.strategy(&["join_window: 1s", "health: { timeout: 8s }", "stall_timeout: 50s"]);
    case.upgrade.strategy.retain(|line| line != "soak: 0s");
    // The step outlasts `etcdctl` on a slow machine: the password changes within it.
    case.upgrade.strategy.push("soak: 8s".into());
    let password = lock(&mut case, "secret").await;
    let playbook = case.write()[1].clone();
    let before = case.member(1).process().expect("up").pid;
    let agent = Agent::start("run", &playbook, &[]).expect("started");
    wait::until("m2 to be started again", wait::GENEROUS, || async {
        if !case.keys().await.contains_key("step") {
            return Err("there is no record".to_owned());
        }
        match case.member(1).process() {
            Some(process) if process.pid != before => Ok(()),
            _ => Err("not yet".to_owned()),
        }
    })
    .await
    .expect("it is");
    change_password(&case).await;
    let asked = logins(&case).await;
    let agent = agent.ends().await;
    let asked = logins(&case).await - asked;
    agent.must_be(1, "auth_refused");
    for words in ["m2", "user `root`"] {
        assert!(agent.message().contains(words), "{agent}");
    }
    assert!(agent.said("left").contains("step lock"), "{agent}");
    // A few in each two seconds, of the agent and of its keep-alives; it was some twelve a second.
    assert!(asked < 60.0, "{asked} logins");
    fs::write(password, "other\n").expect("written");
    let agent = Agent::start("run", &playbook, &[]).expect("started").ends().await;
    agent.must_be(0, "partial");
}
