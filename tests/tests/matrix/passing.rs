//! Plans of every path, from seeds of their own: none may fail.

use std::fs;

use tests::{on_both, skip::build_or_skip, system::System};

use crate::{matrix, matrix_without_ptrace, of_builds, said, write};

/// How many plans of each system run here; `scripts/soak-matrix` runs more.
const PLANS: &str = "2";

on_both! {
    plans_from_seeds_pass, etcd #[ignore = "slow: the node's row shows the same"];
}

async fn plans_from_seeds_pass(system: System) {
    let minors = match system {
        System::Node => ["3.5", "3.6", "3.7"],
        System::Etcd => ["3.4", "3.5", "3.6"],
    };
    let builds: Option<Vec<_>> = minors.into_iter().map(|minor| build_or_skip(system, minor)).collect();
    let Some(builds) = builds else { return };
    let home = tempfile::tempdir().expect("a folder");
    let (file, junit) = (home.path().join("matrix.yaml"), home.path().join("junit.xml"));
    of_builds(&file, &builds, "mixed");
    // The same plans each time: what fails is then of the change, not of chance. Few steps with most kinds of them, and of faults.
    let seed = std::env::var("BATON_SEED").unwrap_or_else(|_| "82".into());
    let out = junit.to_string_lossy();
    let more = ["--sample", PLANS, "--jobs", "3", "--seed", &seed, "--junit", &out, "--output", "json"];
    let done = matrix(&file, &more);
    assert_eq!(done.status.code(), Some(0), "{}", said(&done));
    let result: serde_json::Value = serde_json::from_slice(&done.stdout).expect("one object");
    let plans = result["plans"].as_array().expect("a list");
    assert_eq!(plans.len().to_string(), PLANS);
    assert_eq!(result["reason"], "matrix_passed");
    let records = plans.iter().flat_map(|plan| plan["record"].as_array().expect("a list"));
    let (injected, missed): (Vec<_>, Vec<_>) = records.partition(|entry| entry["at_ms"].is_u64());
    assert!(!injected.is_empty(), "no fault of any plan came to pass: {result}");
    println!("counted: {system}: {PLANS} plans, {} faults injected, {} not", injected.len(), missed.len());
    let junit = fs::read_to_string(junit).expect("written");
    assert_eq!(junit.matches("<testcase ").count().to_string(), PLANS, "{junit}");
}

/// Restored, replaced, promoted, with users that must log in; each further plan begins on a copy of it.
#[test]
#[ignore = "slow: three plans of a minute each"]
fn plans_on_a_cluster_with_a_past_pass() {
    let builds: Option<Vec<_>> =
        ["3.4", "3.5", "3.6"].into_iter().map(|minor| build_or_skip(System::Etcd, minor)).collect();
    let Some(builds) = builds else { return };
    let home = tempfile::tempdir().expect("a folder");
    let file = home.path().join("matrix.yaml");
    let releases: Vec<_> = builds.iter().map(|build| (build.release.to_string(), build.bin.as_path())).collect();
    let listed: Vec<_> = releases.iter().map(|(release, source)| (release.as_str(), *source)).collect();
    let [old, from, to] = [0, 1, 2].map(|at| releases[at].0.as_str());
    write(&file, System::Etcd, &listed, &[&format!("{from} -> {to}")], "none, maintenance, alarm_raised");
    let then = format!("v2, write, user, auth on, {from}, replace m2, grant, compact, promote m3, restore, leases");
    let text = fs::read_to_string(&file).expect("written");
    let past = format!("    pasts: {{ old: {{ born: {old}, snapshot_count: 500, then: [{then}] }} }}\n");
    let tools = format!("    etcdctl: [{old}, {to}]\n");
    fs::write(&file, text.replace("    paths:", &(past + &tools + "    paths:"))).expect("written");
    let dir = home.path().join("kept");
    let kept = dir.to_string_lossy();
    let done = matrix(&file, &["--only=3-old/", "--dir", &kept, "--output", "json"]);
    assert_eq!(done.status.code(), Some(0), "{}", said(&done));
    let result: serde_json::Value = serde_json::from_slice(&done.stdout).expect("one object");
    let plans = result["plans"].as_array().expect("a list");
    assert_eq!(plans.len(), 3, "{result}");
    assert!(plans.iter().all(|plan| plan["verdict"] == "passed" && plan["past"] == "old"), "{result}");
    let pasts: Vec<_> = fs::read_dir(dir.join("pasts")).expect("kept").flatten().collect();
    assert_eq!(pasts.len(), 1, "raised once");
    assert_eq!(fs::read_dir(pasts[0].path()).expect("a folder").count(), 1, "and copied");
}

#[test]
fn a_matrix_whose_only_fault_cannot_be_shows_nothing() {
    let builds: Option<Vec<_>> = ["3.5", "3.6"].into_iter().map(|minor| build_or_skip(System::Node, minor)).collect();
    let Some(builds) = builds else { return };
    let home = tempfile::tempdir().expect("a folder");
    let file = home.path().join("matrix.yaml");
    of_builds(&file, &builds, "agent_killed");
    let done =
        matrix_without_ptrace(&file, home.path(), &["--only", "node/3.5.0-3.6.0/3/agent_killed/1", "--output", "json"]);
    assert_eq!(done.status.code(), Some(3), "{}", said(&done));
    let result: serde_json::Value = serde_json::from_slice(&done.stdout).expect("one object");
    assert_eq!(result["reason"], "matrix_shows_nothing", "{result}");
    let record = result["plans"][0]["record"].as_array().expect("a list");
    assert!(!record.is_empty(), "{result}");
    for entry in record {
        assert!(entry.to_string().contains("strace may not trace"), "{entry}");
    }
}
