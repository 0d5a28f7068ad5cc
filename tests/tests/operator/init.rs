//! `agent init`: its playbook is validated, planned and run as it is.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use serde_json::Value;
use tests::{
    agent::executable, case::Case, cluster::Spec, ended::all_must_leave, on_both, rollout::Rollout, system::System,
};

on_both! {
    what_it_writes_is_run_without_an_edit, etcd #[ignore = "slow: the node's row, and one of etcd with TLS, show the same"];
    a_plain_file_comes_with_what_makes_it_a_link, etcd #[ignore = "slow: the node's row shows the same"];
    what_it_cannot_know_is_asked_for, etcd #[ignore = "slow: the node's row shows the same"];
}

fn agent(arguments: &[&str]) -> Output {
    Command::new(executable().expect("an agent")).args(arguments).output().expect("it ran")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path in UTF-8")
}

/// A cluster, and what is always typed for it.
struct Init {
    case: Case,
    endpoints: String,
    to: String,
    source: PathBuf,
}

impl Init {
    async fn of(system: System) -> Option<Self> {
        Self::with(system, |_| {}).await
    }

    async fn with(system: System, change: impl FnOnce(&mut Spec)) -> Option<Self> {
        let case = Case::with(system, change).await?;
        // One is enough to find all of them.
        let endpoints = case.member(1).client_url.clone();
        let (to, source) = (case.to.release.to_string(), case.to.executable());
        Some(Self { case, endpoints, to, source })
    }

    /// Types `agent init` for a release.
    fn typed(&self, more: &[&str]) -> Output {
        let known = ["init", "--endpoints", &self.endpoints, "--to", &self.to, "--artifact", text(&self.source)];
        agent(&[&known, more].concat())
    }

    /// Has this host's playbook written.
    fn write(&self, host: usize) -> PathBuf {
        let member = self.case.member(host);
        let (file, state) = (member.dir.join("init.yaml"), member.state_dir());
        let more = ["--member", &member.name, "--state-dir", text(&state), "-o", text(&file)];
        let written = self.typed(&more);
        assert_eq!(written.status.code(), Some(0), "{}", said(&written));
        file
    }
}

/// As an object.
fn object(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_default()
}

async fn what_it_writes_is_run_without_an_edit(system: System) {
    let Some(init) = Init::of(system).await else { return };
    let before = init.case.raft_status().await;
    let files: Vec<_> = (0..3).map(|host| init.write(host)).collect();
    assert_eq!(init.case.raft_status().await, before, "nothing was touched");
    for (host, file) in files.iter().enumerate() {
        let playbook = fs::read_to_string(file).expect("it is there");
        let validated = agent(&["validate", text(file), "--output", "json"]);
        let read = &object(&validated)["playbook"];
        assert_eq!(validated.status.code(), Some(0), "{}\n{playbook}", said(&validated));
        assert_eq!(read["cluster"]["endpoints"].as_array().map(Vec::len), Some(3), "{playbook}");
        let member = init.case.member(host);
        assert_eq!(read["nodes"][0]["binary"], text(&member.binary()), "{playbook}");
        assert_eq!(read["nodes"][0]["runtime"]["log"], text(&member.log()), "{playbook}");
        let planned = agent(&["plan", text(file), "--output", "json"]);
        assert_eq!(object(&planned)["reason"], "planned", "{}\n{playbook}", said(&planned));
        // What the agent's own schema says of it is a matter of the agent's own tests.
        assert!(!playbook.contains("CHECK: put the release"), "{playbook}");
    }
    let mut rollout: Rollout = init.case.begin().await;
    rollout.playbooks = files;
    let agents = rollout.all("run").await;
    all_must_leave(&agents, 0, "done", "done");
    rollout.done().await;
}

async fn a_plain_file_comes_with_what_makes_it_a_link(system: System) {
    let Some(init) = Init::of(system).await else { return };
    let member = init.case.member(0);
    // As a package lays it.
    let plain = fs::read_link(member.binary()).expect("a link");
    member.end(rustix::process::Signal::TERM).expect("ended");
    fs::remove_file(member.binary()).expect("removed");
    fs::copy(member.bin().join(plain), member.binary()).expect("copied");
    member.start().expect("started");
    init.case.cluster.ready().await.expect("ready");

    let file = init.write(0);
    let playbook = fs::read_to_string(&file).expect("it is there");
    let commands: Vec<_> = playbook.lines().filter_map(|line| line.trim().strip_prefix("#   ")).collect();
    assert_eq!(commands.len(), 2, "{playbook}");
    for command in commands {
        let done = Command::new("sh").args(["-c", command]).status().expect("a shell");
        assert!(done.success(), "{command}");
    }
    // As it says there, too.
    member.end(rustix::process::Signal::TERM).expect("ended");
    member.start().expect("started");
    init.case.cluster.ready().await.expect("ready");
    let planned = agent(&["plan", text(&file), "--output", "json"]);
    assert_eq!(object(&planned)["reason"], "planned", "{}\n{playbook}", said(&planned));
}

async fn what_it_cannot_know_is_asked_for(system: System) {
    let Some(init) = Init::of(system).await else { return };
    let endpoints = ["init", "--endpoints", &init.endpoints];
    let runs = init.case.from.release.to_string();

    let missing = agent(&endpoints);
    assert_eq!(missing.status.code(), Some(2), "{}", said(&missing));
    assert!(said(&missing).contains(&format!("--to RELEASE is missing: the members run {runs}")), "{}", said(&missing));

    let stranger = init.typed(&["--member", "m9"]);
    assert_eq!(stranger.status.code(), Some(2), "{}", said(&stranger));
    assert!(said(&stranger).contains("no member `m9`; its members are m1, m2, m3"), "{}", said(&stranger));

    let wrong_way = init.typed(&["--kind", "downgrade"]);
    assert_eq!(wrong_way.status.code(), Some(2), "{}", said(&wrong_way));

    // A file that is there stays as it is.
    let file = init.case.layout().dir.join("mine.yaml");
    fs::write(&file, "mine").expect("written");
    let there = init.typed(&["--member", "m1", "-o", text(&file)]);
    assert_eq!(there.status.code(), Some(2), "{}", said(&there));
    assert_eq!(fs::read_to_string(&file).expect("it is there"), "mine");
    let forced = init.typed(&["--member", "m1", "-o", text(&file), "--force", "--output", "json"]);
    assert_eq!(object(&forced)["reason"], "written", "{}", said(&forced));
    assert_ne!(fs::read_to_string(&file).expect("it is there"), "mine");

    // Without a release there is a restart, of all members that run here, on stdout.
    let restart = agent(&[&endpoints[..], &["--kind", "restart", "--id", "OPS-1"]].concat());
    assert_eq!(restart.status.code(), Some(0), "{}", said(&restart));
    let path = init.case.layout().dir.join("restart.yaml");
    fs::write(&path, &restart.stdout).expect("written");
    let validated = agent(&["validate", text(&path), "--output", "json"]);
    assert_eq!(validated.status.code(), Some(0), "{}\n{}", said(&validated), said(&restart));
    assert_eq!(object(&validated)["playbook"]["nodes"].as_array().map(Vec::len), Some(3), "{}", said(&restart));
    let planned = agent(&["plan", text(&path), "--output", "json"]);
    assert_eq!(object(&planned)["reason"], "planned", "{}", said(&planned));

    // One that does not answer is not taken for one of this host.
    init.case.member(2).end(rustix::process::Signal::KILL).expect("killed");
    let silent = init.typed(&["--member", "m3"]);
    assert_eq!(silent.status.code(), Some(3), "{}", said(&silent));
    assert!(said(&silent).contains("m3 does not run on this host, or does not answer"), "{}", said(&silent));
}

/// The bundled node has neither yet.
#[tokio::test(flavor = "multi_thread")]
async fn certificates_and_a_user_are_taken_over_and_no_password() {
    let Some(mut init) = Init::with(System::Etcd, |spec| spec.tls = true).await else { return };
    init.case.client(0).enable_auth("secret", ("guest", "welcome")).await.expect("auth is on");
    init.case.cluster.layout.user = Some(("root".into(), "secret".into()));
    let password = init.case.layout().dir.join("password");
    fs::write(&password, "secret").expect("written");
    let plain = init.typed(&["--member", "m1"]);
    assert_eq!(plain.status.code(), Some(2), "{}", said(&plain));
    assert!(said(&plain).contains("https wants --ca"), "{}", said(&plain));

    let files = init.case.layout().certificates.clone().expect("it has some");
    let (file, state) = (init.case.member(0).dir.join("init.yaml"), init.case.member(0).state_dir());
    let known = ["--ca", text(&files.ca), "--cert", text(&files.client.cert), "--key", text(&files.client.key)];
    let user = ["--user", "root", "--password-file", text(&password)];
    let here = ["--member", "m1", "--state-dir", text(&state), "-o", text(&file)];
    let written = init.typed(&[&known[..], &user, &here].concat());
    assert_eq!(written.status.code(), Some(0), "{}", said(&written));
    let playbook = fs::read_to_string(&file).expect("it is there");
    assert!(!playbook.contains("secret"), "{playbook}");
    // etcd does not support a rolling upgrade from 3.4 to 3.5 with authentication on.
    let planned = agent(&["plan", text(&file), "--output", "json"]);
    assert_eq!(object(&planned)["reason"], "hazard", "{}\n{playbook}", said(&planned));
    assert!(said(&planned).contains("auth-34-35, of m1"), "{}", said(&planned));
    let accepting = ["plan", text(&file), "--accept-hazard", "auth-34-35", "--output", "json"];
    let planned = object(&agent(&accepting));
    assert_eq!(planned["reason"], "planned", "{planned}\n{playbook}");
    assert!(planned["next"].to_string().contains(" --accept-hazard auth-34-35"), "{planned}");
}

/// etcd 3.6 knows no `--enable-v2` any more.
#[tokio::test(flavor = "multi_thread")]
async fn a_flag_that_the_new_release_dropped_is_named() {
    let flag = |spec: &mut Spec| spec.flags.push("--enable-v2=false".into());
    let Some(case) = Case::path(System::Etcd, ("3.5", "3.6"), flag).await else { return };
    let endpoints = case.member(1).client_url.clone();
    let (to, source) = (case.to.release.to_string(), case.to.executable());
    let init = Init { case, endpoints, to, source };
    let written = init.typed(&["--member", "m1", "--output", "json"]);
    let warnings = object(&written)["warnings"].to_string();
    assert_eq!(written.status.code(), Some(0), "{}", said(&written));
    assert!(warnings.contains("refuses the arguments of m1") && warnings.contains("enable-v2"), "{warnings}");

    let nowhere = init.case.member(0).dir.join("nowhere");
    let typed =
        ["init", "--endpoints", &init.endpoints, "--to", &init.to, "--artifact", text(&nowhere), "--output", "json"];
    let warnings = object(&agent(&typed))["warnings"].to_string();
    assert!(warnings.contains("the artifact: ") && warnings.contains("nowhere"), "{warnings}");
}
