//! `scripts/cluster`: the command behind it, which outlives itself.

use std::{
    path::Path,
    process::{Command, Output},
};

use tests::{cluster::Layout, on_both, process, skip::build_or_skip, system::System};

on_both! {
    a_cluster_goes_up_lives_on_goes_down_and_up_again;
    a_base_port_gives_each_member_its_two, etcd #[ignore = "slow: the node's row shows the same"];
    where_to_is_lower_the_playbooks_lead_down, etcd #[ignore = "slow: the node's row shows the same"];
}

fn cluster(verb: &str, dir: &Path, more: &[&str]) -> Output {
    let command = env!("CARGO_BIN_EXE_cluster");
    Command::new(command).arg(verb).arg("--dir").arg(dir).args(more).output().expect("it runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Whatever happens in a test, its members end.
struct Ends<'a>(&'a Path);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        process::kill_all_under(self.0);
    }
}

async fn a_cluster_goes_up_lives_on_goes_down_and_up_again(system: System) {
    let (from, to) = system.main_job();
    if build_or_skip(system, from).and(build_or_skip(system, to)).is_none() {
        return;
    }
    let home = tempfile::tempdir().expect("a folder");
    let _ends = Ends(home.path());

    let wanted = ["--system", system.name(), "--release", from, "--to", to, "--", "--quota-backend-bytes=100000000"];
    let up = cluster("up", home.path(), &wanted);
    let layout = Layout::load(home.path()).map_err(|error| format!("{error}: {up:?}")).expect("a cluster");
    assert_eq!(text(&up.stdout), format!("{}\n", layout.endpoints().join(",")), "the endpoints alone: {up:?}");
    for member in &layout.members {
        let playbook = std::fs::read_to_string(member.dir.join("upgrade.yaml")).expect("a playbook");
        assert!(
            playbook.contains("--quota-backend-bytes=100000000") && playbook.contains(&format!("to: {to}.")),
            "{playbook}"
        );
    }
    let client = || layout.client(&layout.members[0]).expect("a client");
    client().put("k", "v").await.expect("written");
    let status = cluster("status", home.path(), &[]);
    assert!(
        status.status.success() && text(&status.stdout).contains(&format!("cluster version {from}.0")),
        "{status:?}"
    );

    assert!(cluster("down", home.path(), &[]).status.success());
    assert!(layout.members.iter().all(|member| !member.is_running()));
    let status = cluster("status", home.path(), &[]);
    assert!(!status.status.success() && text(&status.stdout).contains("m3  "), "{status:?}");

    let other = cluster("up", home.path(), &["--size", "5"]);
    assert!(!other.status.success() && text(&other.stderr).contains("has another cluster"), "{other:?}");
    let again = cluster("up", home.path(), &[]);
    assert_eq!(again.stdout, up.stdout, "{again:?}");
    assert_eq!(client().get("k").await.expect("read").map(|kv| kv.value), Some(b"v".to_vec()));
    assert!(cluster("down", home.path(), &[]).status.success());
}

async fn a_base_port_gives_each_member_its_two(system: System) {
    let Some(_build) = build_or_skip(system, "3.5") else { return };
    let home = tempfile::tempdir().expect("a folder");
    let _ends = Ends(home.path());
    let ports = tests::ports::Ports::lease_in_a_row(6).expect("six ports in a row");
    let first = ports.numbers[0];
    let up = cluster("up", home.path(), &["--system", system.name(), "--base-port", &first.to_string()]);
    let urls = [0, 2, 4].map(|offset| format!("http://127.0.0.1:{}", first + offset));
    assert_eq!(text(&up.stdout), format!("{}\n", urls.join(",")), "{up:?}");
    let layout = Layout::load(home.path()).expect("a cluster");
    assert_eq!(layout.members.iter().map(|member| member.peer_port).collect::<Vec<_>>(), [1, 3, 5].map(|o| first + o));
}

async fn where_to_is_lower_the_playbooks_lead_down(system: System) {
    if build_or_skip(system, "3.6").and(build_or_skip(system, "3.5")).is_none() {
        return;
    }
    let home = tempfile::tempdir().expect("a folder");
    let _ends = Ends(home.path());
    let up = cluster("up", home.path(), &["--system", system.name(), "--size", "1", "--release", "3.6", "--to", "3.5"]);
    let layout = Layout::load(home.path()).map_err(|error| format!("{error}: {up:?}")).expect("a cluster");
    let playbook = layout.members[0].dir.join("upgrade.yaml");
    let text = std::fs::read_to_string(&playbook).expect("a playbook");
    assert!(text.contains("kind: Downgrade") && text.contains("to: 3.5."), "{text}");
    let valid = Command::new(tests::agent::executable().expect("an agent")).arg("validate").arg(&playbook).status();
    assert!(valid.expect("it runs").success(), "{text}");
}
