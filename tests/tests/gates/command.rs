//! `agent gates`: one feature by its exit code, all of them with why, and the same again as it changes.

use std::{
    fs::{self, File},
    path::Path,
    process::{Command, Stdio},
};

use proto::etcdserverpb::{MemberAddRequest, cluster_client::ClusterClient};
use serde_json::{Value, json};
use tests::{
    agent,
    cluster::{Cluster, Spec},
    ended::Ended,
    skip::build_or_skip,
    system::System,
    wait::{self, GENEROUS},
};

use tonic::transport::Endpoint;

use crate::nodes::{GATE, Nodes, row};

fn feature(shown: &Ended) -> &Value {
    shown.must_be(0, "looked");
    row(&shown.result.as_ref().expect("a result")["features"])
}

/// Waits until the table says this of the feature.
async fn until(nodes: &Nodes, playbook: &Path, reason: &str, why: &str) {
    wait::until(&format!("the gate to be {reason}: {why}"), GENEROUS, async || {
        let shown = nodes.run_one("gates", playbook).await;
        let is_so = feature(&shown)["reason"] == reason && feature(&shown)["why"] == why;
        if is_so { Ok(()) } else { Err(shown.to_string()) }
    })
    .await
    .expect("so");
}

/// What `agent gates` prints for people, and its exit code.
fn printed(words: &[&str]) -> (String, String, Option<i32>) {
    let ended = Command::new(agent::executable().expect("an agent")).arg("gates").args(words).output().expect("run");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    (text(ended.stdout), text(ended.stderr), ended.status.code())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_feature_is_true_or_false_and_why_with_members_against_it_away_and_missing() {
    let mut nodes = Nodes::start("3.6", [true; 3]).await;
    let playbook = nodes.playbooks("kind: Restart\nrestart: { id: x }", "")[0].clone();
    let typed = playbook.to_string_lossy().into_owned();
    until(&nodes, &playbook, "wanted", "every voter wants it").await;
    nodes.run_with("gates", &playbook, &[GATE]).await.must_be(0, "looked");
    assert_eq!(printed(&[&typed, GATE]), ("true\n".into(), String::new(), Some(0)));
    let urls = [0, 1, 2].map(|at| nodes.url(at)).join(",");
    assert_eq!(printed(&["--endpoints", &urls, GATE]), ("true\n".into(), String::new(), Some(0)));

    // One is against it, first at work, then away: its proposal stands.
    nodes.configure(1, false);
    nodes.restart(1, "3.6").await;
    until(&nodes, &playbook, "kept_off", "false on m2").await;
    nodes.end(1);
    until(&nodes, &playbook, "kept_off", "false on m2 (does not answer)").await;
    let shown = nodes.run_one("gates", &playbook).await;
    let wishes = json!({ "m1": true, "m2": false, "m3": true });
    assert_eq!((&feature(&shown)["false_on"], &feature(&shown)["proposals"]), (&json!(["m2"]), &wishes), "{shown}");
    let off = nodes.run_with("gates", &playbook, &[GATE]).await;
    off.must_be(1, "feature_off");
    assert_eq!(off.result.expect("a result")["feature"], json!({ "name": GATE, "enabled": false, "known": true }));
    assert_eq!(printed(&[&typed, GATE]), ("false\n".into(), String::new(), Some(1)));
    let (text, _, exit) = printed(&[&typed]);
    assert!(text.contains("on: m1, m3; off: m2") && text.contains("\nm2 does not answer: "), "{text}");
    assert_eq!(exit, Some(0), "{text}");

    // A name that no member knows is off, and a person hears of it.
    let (text, warning, exit) = printed(&[&typed, "ClusterLeaseCheckpiont"]);
    assert_eq!((text.as_str(), exit), ("false\n", Some(1)));
    assert!(
        warning
            .contains(&format!("no feature ClusterLeaseCheckpiont, so it is off; there are: ClusterCounters, {GATE}")),
        "{warning}"
    );

    // Without a quorum nobody can say.
    nodes.end(2);
    nodes.run_with("gates", &playbook, &[GATE]).await.must_be(10, "no_answer");
    nodes.run_one("gates", &playbook).await.must_be(10, "no_answer");
    nodes.end(0);
    nodes.run_with("gates", &playbook, &[GATE]).await.must_be(3, "unreachable");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_voter_that_never_ran_is_what_an_undecided_gate_waits_for() {
    let nodes = Nodes::start("3.6", [true; 3]).await;
    let playbook = nodes.playbooks("kind: Restart\nrestart: { id: x }", "")[0].clone();
    let channel = Endpoint::try_from(nodes.url(0)).expect("an address").connect().await.expect("connected");
    let id = wait::until("a member to be added", GENEROUS, async || {
        let mut members = ClusterClient::new(channel.clone());
        let request = MemberAddRequest { peer_urls: vec!["http://127.0.0.1:1".into()], is_learner: false };
        let added = members.member_add(request).await.map_err(|status| status.to_string())?;
        Ok(added.into_inner().member.expect("a member").id)
    })
    .await
    .expect("added");
    let waited = [format!("{id:x}")];
    wait::until("the gate to wait for it", GENEROUS, async || {
        let shown = nodes.run_one("gates", &playbook).await;
        let (reason, waits) = (&feature(&shown)["reason"], &feature(&shown)["waiting_for"]);
        let why = feature(&shown)["why"].as_str().unwrap_or_default();
        let is_so = reason == "undecided" && *waits == json!(waited) && why.ends_with("(never started)");
        if is_so { Ok(()) } else { Err(shown.to_string()) }
    })
    .await
    .expect("so");
    nodes.run_with("gates", &playbook, &[GATE]).await.must_be(1, "feature_off");
}

/// The lines of a file, as far as they are whole.
fn lines(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).expect("readable");
    text.rsplit_once('\n').map_or_else(Vec::new, |(whole, _)| whole.lines().map(str::to_owned).collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_says_each_change_once() {
    let mut nodes = Nodes::start("3.6", [true; 3]).await;
    let playbook = nodes.playbooks("kind: Restart\nrestart: { id: x }", "")[0].clone();
    let folder = tempfile::tempdir().expect("a folder");
    let watch = |name: &str, more: &[&str]| {
        let path = folder.path().join(name);
        let out = File::create(&path).expect("made");
        let mut command = Command::new(agent::executable().expect("an agent"));
        command.arg("gates").arg(&playbook).args(more).arg("--watch").stdin(Stdio::null()).stdout(out);
        (command.spawn().expect("started"), path)
    };
    let (mut one, of_one) = watch("one", &[GATE]);
    let (mut all, of_all) = watch("all", &[]);
    let says = async |path: &Path, last: &str| {
        wait::until(&format!("{} to say {last}", path.display()), GENEROUS, async || {
            let lines = lines(path);
            if lines.last().is_some_and(|line| line.ends_with(last)) { Ok(()) } else { Err(lines.join("\n")) }
        })
        .await
        .expect("said");
    };
    says(&of_one, "true").await;
    says(&of_all, &format!("{GATE} on: every voter wants it")).await;
    nodes.configure(2, false);
    nodes.restart(2, "3.6").await;
    says(&of_one, "false").await;
    says(&of_all, &format!("{GATE} off: false on m3")).await;
    for watch in [&mut one, &mut all] {
        watch.kill().expect("killed");
        watch.wait().expect("ended");
    }
    for path in [of_one, of_all] {
        let lines = lines(&path);
        assert!(lines.windows(2).all(|pair| pair[0] != pair[1]), "{lines:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn etcd_has_no_gates_and_that_is_said() {
    let Some(build) = build_or_skip(System::Etcd, "3.6") else { return };
    let cluster = Cluster::laid_out(&Spec { tls: false, ..Spec::new(build) }).expect("laid out");
    cluster.begin().await.expect("up");
    let urls: Vec<_> = cluster.layout.members.iter().map(|member| member.client_url.clone()).collect();
    let urls = urls.join(",");
    let (text, error, exit) = printed(&["--endpoints", &urls]);
    assert_eq!(exit, Some(0), "{error}");
    assert!(
        text.contains("no cluster feature gates: no member (of release 3.6.") && text.contains("no release of etcd"),
        "{text}"
    );
    let (text, error, exit) = printed(&["--endpoints", &urls, GATE]);
    assert_eq!((text.as_str(), exit), ("", Some(3)), "neither true nor false");
    assert!(error.contains("has cluster feature gates") && error.contains("reason no_gates"), "{error}");
}
