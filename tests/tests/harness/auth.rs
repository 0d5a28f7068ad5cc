//! Clients prove who they are, over TLS and with a password, and again when a restarted member has
//! forgotten them. Of etcd alone: the bundled node has neither users nor TLS.

use rustix::process::Signal;
use tests::{
    client::{Access, Client},
    cluster::{Cluster, Spec},
    skip::build_or_skip,
    system::System,
    workload::{Load, Workload},
};
use tonic::Code;

#[tokio::test(flavor = "multi_thread")]
async fn root_writes_through_restarts_and_another_user_may_not() {
    let Some(build) = build_or_skip(System::Etcd, "3.5") else { return };
    let cluster = Cluster::up(&Spec { tls: true, ..Spec::new(build) }).await.expect("up");
    let layout = &cluster.layout;
    let client = |access: &Access| Client::new(&layout.members[0].client_url, access).expect("a client");
    client(&layout.access()).enable_auth("secret", ("guest", "welcome")).await.expect("auth is on");

    let nobody = Access { certificates: layout.certificates.clone(), user: Some(("guest".into(), "welcome".into())) };
    let refused = client(&nobody).put("k", "v").await.expect_err("guest has no role");
    assert_eq!(refused.code(), Code::PermissionDenied, "{refused}");

    let root = Access { user: Some(("root".into(), "secret".into())), ..layout.access() };
    let workload = Workload::start(&layout.endpoints(), &root, &Load::default()).expect("clients");
    workload.more(100).await.expect("under way");
    for member in &layout.members {
        member.end(Signal::TERM).expect("ended");
        member.start().expect("started");
        tests::wait::until("the member to serve root again", tests::wait::GENEROUS, || async {
            let client = Client::new(&member.client_url, &root).map_err(|error| error.to_string())?;
            client.get("k").await.map_err(|status| status.to_string())
        })
        .await
        .expect("serves");
        workload.more(100).await.expect("under way again");
    }
    let outcome = workload.finish().expect("an outcome");
    let verified = outcome.verify(&layout.endpoints(), &root).await.expect("answers");
    assert_eq!(verified.lost, []);
    verified.history.expect("linearizable");
}
