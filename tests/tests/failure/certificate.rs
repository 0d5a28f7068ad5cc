//! The agent's own certificate, which ends while a run goes on: no member is stopped that nobody would let it see again.

use std::{fs, time::Duration};

use tests::{
    case::Case,
    certificates::{Authority, Identity},
    ended::all_must_be,
    on_both,
    playbook::quoted,
    system::System,
};

on_both! {
    no_member_is_stopped_with_a_certificate_that_soon_ends, etcd #[ignore = "slow: the node's row shows the same"];
}

async fn no_member_is_stopped_with_a_certificate_that_soon_ends(system: System) {
    let Some(case) = Case::path(system, ("3.5", "3.6"), |spec| spec.tls = true).await else { return };
    let authority = Authority::open(&case.layout().dir.join("tls")).expect("it was made");
    let client = case.layout().certificates.clone().expect("with TLS").client;
    let lasting = |name, life| authority.lasting(name, Duration::from_secs(life)).expect("given out");
    let (short, long) = (lasting("short", 30), lasting("long", 24 * 3600));
    let copies = |from: &Identity| {
        let copy = |from: &std::path::Path, to: &std::path::Path| format!("cp {} {}", from.display(), to.display());
        format!("{} && {}", copy(&from.cert, &client.cert), copy(&from.key, &client.key))
    };
    let takes = |identity: &Identity| {
        fs::copy(&identity.cert, &client.cert).expect("copied");
        fs::copy(&identity.key, &client.key).expect("copied");
    };

    let mut rollout = case.strategy(&["join_window: 2s"]).begin().await;
    for (identity, fault) in [
        (authority.expired("ended").expect("given out"), " ended at 2"),
        (authority.later("later").expect("given out"), " is valid from 2"),
    ] {
        takes(&identity);
        let refused = rollout.one("plan", 0).await;
        refused.must_be(3, "credentials");
        let said = format!("the agent's certificate {}{fault}", client.cert.display());
        assert!(refused.message().contains(&said), "{refused}");
    }

    // It is replaced once the agent has looked at it, and the agent looks at its files each second.
    let hook = format!("[\"/bin/sh\", \"-c\", {}]", quoted(&format!("{} && sleep 2", copies(&short))));
    rollout.upgrade.extra = vec![format!("hooks: {{ before_node: [{hook}] }}")];
    rollout.write();
    takes(&long);
    let before = rollout.pids();
    let failed = rollout.one("run", 0).await;
    failed.must_be(1, "step_failed");
    let said = format!("the agent's certificate {} ends at ", client.cert.display());
    assert!(failed.message().contains(&said), "{failed}");
    assert!(failed.warnings().contains(&said), "a day is soon: {failed}");
    assert_eq!(rollout.pids(), before, "no member was stopped");

    rollout.upgrade.extra.clear();
    rollout.write();
    let refused = rollout.one("run", 0).await;
    refused.must_be(3, "unprepared");
    assert!(refused.message().contains(&said), "{refused}");

    // All of them, however long one takes to come.
    takes(&long);
    all_must_be(&rollout.together().await, 0, "done");
    rollout.end(1).await;
}
