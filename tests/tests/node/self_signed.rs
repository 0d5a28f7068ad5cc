//! Members that make their certificates themselves: `--auto-tls`, `--peer-auto-tls`.

use std::fs;

use tests::{
    case::Case,
    certificates::Certificates,
    cluster::{Cluster, Spec},
    ended::all_must_be,
    etcdctl::Etcdctl,
    member::Member,
    playbook::Upgrade,
    skip::build_or_skip,
    system::System,
    wait::{self, GENEROUS},
};

use crate::nobody_panicked;

/// The certificate that a member shows its clients.
fn shown(member: &Member) -> std::path::PathBuf {
    member.dir.join("data/fixtures/client/cert.pem")
}

/// Three members of this release whose clients trust the certificates of all three.
async fn up(version: &str) -> Option<Cluster> {
    let build = build_or_skip(System::Node, version)?;
    let mut cluster = Cluster::laid_out(&Spec { tls: true, ..Spec::new(build) }).expect("laid out");
    for member in &mut cluster.layout.members {
        let named = ["cert-file", "key-file", "trusted-ca-file", "client-cert-auth"];
        member.flags.retain(|flag| !named.iter().any(|name| flag.contains(&format!("{name}="))));
        member.flags.extend(["--auto-tls".to_owned(), "--peer-auto-tls=true".to_owned()]);
        member.start().expect("started");
    }
    let Certificates { ca, .. } = cluster.layout.certificates.clone().expect("TLS");
    let mut all = String::new();
    for member in &cluster.layout.members {
        let made = wait::until("a certificate", GENEROUS, || async {
            fs::read_to_string(shown(member)).map_err(|error| error.to_string())
        });
        all.push_str(&made.await.expect("it is made"));
    }
    fs::write(ca, all).expect("written");
    cluster.ready().await.expect("up");
    cluster.settled(cluster.layout.release.cluster_version()).await.expect("settled");
    Some(cluster)
}

#[tokio::test(flavor = "multi_thread")]
async fn etcdctl_trusts_a_member_by_its_certificate_and_it_stays_over_a_restart() {
    let Some(etcd) = build_or_skip(System::Etcd, "3.6") else { return };
    let Some(mut cluster) = up("3.6").await else { return };
    let etcdctl = Etcdctl::new(&etcd, None);
    let own: Vec<_> = cluster.layout.members.iter().map(|member| fs::read(shown(member)).expect("read")).collect();
    let first = &mut cluster.layout.members[0];
    first.start_anew(first.flags.clone()).expect("started again");
    cluster.ready().await.expect("it is back, and is believed");
    let [first, second, _] = &cluster.layout.members[..] else { unreachable!("three members") };
    let now: Vec<_> = cluster.layout.members.iter().map(|member| fs::read(shown(member)).expect("read")).collect();
    assert!(own == now && own[0] != own[1]);
    let trusts = |at: &Member| format!("--cacert={}", shown(at).display());
    for (asked, flag, is_answered) in [
        (first, trusts(first), true),
        (second, trusts(second), true),
        (first, "--insecure-skip-tls-verify".into(), true),
        (first, trusts(second), false),
    ] {
        let arguments = ["put", "k", "v", &flag, "--insecure-transport=false", "--command-timeout=10s"];
        let output = etcdctl.output(std::slice::from_ref(&asked.client_url), &arguments).await;
        assert_eq!(output.status.success(), is_answered, "{flag}: {output:?}");
    }
    nobody_panicked(&cluster.layout);
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_drive_a_cluster_whose_certificates_they_are_told_of() {
    let (Some(from), Some(to)) = (build_or_skip(System::Node, "3.5"), build_or_skip(System::Node, "3.6")) else {
        return;
    };
    let Some(cluster) = up("3.5").await else { return };
    let upgrade = Upgrade::new(&cluster.layout, &to);
    let hosts = (0..cluster.layout.members.len()).map(|index| vec![index]).collect();
    let rollout = Case { cluster, from, to, upgrade, hosts }.begin().await;
    all_must_be(&rollout.all("run").await, 0, "done");
    rollout.done().await;
}
