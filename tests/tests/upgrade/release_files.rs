//! What a minor drops, and what it brings: flags and a configuration file that change with the binary.

use std::{fs, path::PathBuf};

use tests::{
    case::Case,
    cluster::{Cluster, Member},
    ended::all_must_be,
    on_both,
    playbook::{quoted, started_by_the_agent},
    system::System,
};

on_both! {
    a_configuration_file_goes_live_with_its_binary, etcd #[ignore = "slow: the node's row shows the same"];
}

/// A flag that stops 3.6 from starting.
const GONE: &str = "--enable-v2=false";
/// A flag that 3.5 does not know.
const NEW: &str = "--feature-gates=InitialCorruptCheck=true";

/// The flags that every release takes, and beside them those for some.
fn with_args(member: &Member) -> Vec<String> {
    let mut lines = started_by_the_agent(member);
    lines.retain(|line| !line.contains(GONE));
    lines.push("args:".into());
    lines.push(format!("  - {{ add: [{}], for: \"<3.6\" }}", quoted(GONE)));
    lines.push(format!("  - {{ add: [{}], for: \">=3.6\" }}", quoted(NEW)));
    lines
}

fn command_line(member: &Member) -> Vec<String> {
    let pid = member.process().expect("it runs").pid;
    let bytes = fs::read(format!("/proc/{pid}/cmdline")).expect("readable");
    String::from_utf8_lossy(&bytes).split_terminator('\0').map(str::to_owned).collect()
}

/// Of etcd alone: every release of the bundled node takes the same flags.
#[tokio::test(flavor = "multi_thread")]
async fn flags_that_a_minor_drops_go_with_it() {
    let path = ("3.5", "3.6");
    let Some(mut case) = Case::path(System::Etcd, path, |spec| spec.flags.push(GONE.into())).await else { return };
    case.upgrade.runtime = with_args;
    let rollout = case.begin().await;
    all_must_be(&rollout.all("run").await, 0, "done");
    for member in &rollout.layout().members {
        let flags = command_line(member);
        assert!(flags.iter().any(|flag| flag == NEW) && !flags.iter().any(|flag| flag == GONE), "{flags:?}");
    }
    rollout.done().await;
}

/// The quota that the new file sets: seen in the metrics of a member that read it.
const QUOTA: u32 = 3_221_225_472;

/// What the old file says and the new one does not: a key that stops etcd 3.6 from starting.
fn only_in_the_old(system: System) -> &'static str {
    match system {
        System::Node => "snapshot-count: 5000",
        System::Etcd => "enable-v2: false",
    }
}

fn next_file(member: &Member) -> PathBuf {
    member.dir.join("next.yaml")
}

/// Lets every member take its flags from a file, as most hosts have it; the old file has a key that a new
/// one must not have, and the other way round.
async fn with_files(cluster: &mut Cluster) {
    let old = only_in_the_old(cluster.layout.system);
    for member in &mut cluster.layout.members {
        let flags = member.configure(old).expect("started again");
        let next = format!("{flags}quota-backend-bytes: {QUOTA}\n");
        fs::write(next_file(member), next).expect("written");
    }
    cluster.ready().await.expect("ready again");
}

fn switched_file(member: &Member) -> Vec<String> {
    let [path, source] = [member.config(), next_file(member)].map(|path| quoted(&path.to_string_lossy()));
    vec!["files:".into(), format!("  - {{ path: {path}, source: {source}, for: \">=3.6\" }}")]
}

async fn a_configuration_file_goes_live_with_its_binary(system: System) {
    // etcd's file has other names for what its flags say of TLS.
    let Some(mut case) = Case::path(system, ("3.5", "3.6"), |spec| spec.tls = false).await else { return };
    with_files(&mut case.cluster).await;
    case.upgrade.node = switched_file;
    let rollout = case.begin().await;
    all_must_be(&rollout.all("run").await, 0, "done");
    for (index, member) in rollout.layout().members.iter().enumerate() {
        let file = fs::read_to_string(member.config()).expect("readable");
        assert!(file.contains(&QUOTA.to_string()) && !file.contains(only_in_the_old(system)), "{file}");
        let quota = rollout.client(index).metric("etcd_server_quota_backend_bytes").await.expect("the figure");
        assert_eq!(quota, f64::from(QUOTA), "{} reads it", member.name);
    }
    rollout.done().await;
}
