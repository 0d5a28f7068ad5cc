//! The same behind TLS on both ports, by a user of etcd's.

use tests::{case::Case, certificates::Certificates, on_both, roles::Shell, rollout::Ends as _, system::System};

use crate::replace::leader_is_replaced;

on_both! {
    the_leader_is_replaced_behind_tls, etcd #[ignore = "slow: with a user, too, it is shown by default"];
}

async fn the_leader_is_replaced_behind_tls(system: System) {
    let release = system.main_job().1;
    let Some(case) = Case::path(system, (release, release), |spec| spec.tls = true).await else { return };
    a_certificate_of_another_authority_is_refused(&case).await;
    leader_is_replaced(case).await;
}

async fn a_certificate_of_another_authority_is_refused(case: &Case) {
    let mut newcomers = case.newcomers(1);
    let newcomer = &mut newcomers.members[0];
    let others = Certificates::create(&newcomer.dir.join("others")).expect("made");
    newcomer.flags.retain(|flag| !flag.starts_with("--peer-cert-file"));
    newcomer.flags.push(format!("--peer-cert-file={}", others.server.cert.display()));
    let refused = case.replace("m1", &newcomer.name).start(case, newcomer).ends().await;
    refused.must_be(3, "unprepared");
    assert!(refused.message().contains("no member would let it in"), "{refused}");
    assert_eq!(case.client(0).members().await.expect("a list").len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_leader_is_replaced_by_a_user_behind_tls() {
    let path = ("3.6", "3.6");
    let Some(mut case) = Case::path(System::Etcd, path, |spec| spec.tls = true).await else { return };
    let shell = Shell::of(case.layout(), &case.from);
    shell.makes_users();
    case.cluster.layout.user = Some(("root".into(), shell.password("root")));
    case.upgrade.cluster = vec![shell.auth("baton")];
    leader_is_replaced(case).await;
}
