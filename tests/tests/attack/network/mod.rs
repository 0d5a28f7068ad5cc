//! A liar on the network: somebody who listens where a member advertises, answers for another cluster, or has another's
//! certificate. What needs no real member is in `agent/tests/network/`.

mod certificates;
mod flood;
mod last_look;
mod late;
mod one_liar;
mod password;
mod plaintext;
mod stranger;

use std::{fs, path::PathBuf};

use tests::{
    agent::Agent,
    case::Case,
    cluster::{Cluster, Spec},
    ended::Ended,
    playbook::{Upgrade, quoted},
    rollout::Ends as _,
    skip::build_or_skip,
    system::System,
};

/// One member of etcd that also advertises `more`, a client URL.
async fn one(version: &str, tls: bool, more: Option<&str>) -> Option<Case> {
    let build = build_or_skip(System::Etcd, version)?;
    let spec = Spec { size: 1, tls, ..Spec::new(build.clone()) };
    let mut cluster = Cluster::laid_out(&spec).expect("laid out");
    let member = &mut cluster.layout.members[0];
    let urls: Vec<_> = [member.client_url.as_str()].into_iter().chain(more).collect();
    // A flag given twice counts as it was given last.
    member.flags.push(format!("--advertise-client-urls={}", urls.join(",")));
    cluster.begin().await.expect("up");
    let upgrade = Upgrade::new(&cluster.layout, &build);
    Some(Case { cluster, from: build.clone(), to: build, upgrade, hosts: vec![vec![0]] })
}

/// Switches auth on, and tells the playbook who root is.
async fn lock(case: &mut Case, password: &str) -> PathBuf {
    case.client(0).enable_auth(password, ("guest", "welcome")).await.expect("auth is on");
    case.cluster.layout.user = Some(("root".into(), password.into()));
    let file = case.layout().dir.join("password");
    fs::write(&file, format!("{password}\n")).expect("written");
    case.upgrade.cluster = vec![format!("auth: {{ user: root, password_file: {} }}", quoted(&file.to_string_lossy()))];
    file
}

/// `agent status` by the playbook of the first host.
async fn status(case: &Case) -> Ended {
    Agent::start("status", &case.write()[0], &[]).expect("started").ends().await
}

fn warnings(agent: &Ended) -> String {
    agent.result.as_ref().map(|result| result["warnings"].to_string()).unwrap_or_default()
}
