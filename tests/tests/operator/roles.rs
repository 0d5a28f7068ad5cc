//! A new operator: the users are made as `agent init --print-role` says, and then every verb works as the one or the
//! other, or says what the role lacks. Of etcd alone: the bundled node has no users.

use std::{fs, process::Command};

use serde_json::Value;
use tests::{
    agent::executable,
    case::Case,
    ended::{Ended, all_must_leave},
    roles::Shell,
    rollout::Ends as _,
    system::System,
};

/// A cluster with both users, and root for the clients of the test.
async fn with_users(path: (&str, &str), tls: bool) -> Option<(Case, Shell)> {
    let mut case = Case::path(System::Etcd, path, |spec| spec.tls = tls).await?;
    let shell = Shell::of(case.layout(), &case.from);
    shell.makes_users();
    shell.adds("guest", &[]);
    case.cluster.layout.user = Some(("root".into(), shell.password("root")));
    Some((case, shell))
}

/// Types `agent VERB` on the first host as a user of etcd.
async fn types(case: &mut Case, shell: &Shell, verb: &str, user: &str) -> Ended {
    case.upgrade.cluster = if user.is_empty() { vec![] } else { vec![shell.auth(user)] };
    let playbook = case.write_one(0, &case.upgrade);
    tests::agent::Agent::start(verb, &playbook, &[]).expect("an agent").ends().await
}

/// What each of three users gets of a release; `looking` is whether it answers whoever may read the keys.
async fn each_user_gets_what_is_due(minor: &str, looking: bool) {
    let Some((mut case, shell)) = with_users((minor, minor), false).await else { return };
    case.upgrade.restart = Some("once".into());
    let before = case.raft_status().await;
    for (user, verb, reason, words) in [
        ("baton", "plan", "planned", ""),
        ("baton", "status", "looked", ""),
        ("baton-viewer", "plan", "planned", "who does not have the role root"),
        ("baton-viewer", "status", "looked", ""),
        ("guest", "plan", "not_root", "may not read the shared keys"),
        ("guest", "status", "looked", "permission denied"),
        ("guest", "run", "not_root", "does not have the role root"),
        ("baton-viewer", "run", "not_root", "does not have the role root"),
        ("", "plan", "auth_refused", "it wants a user"),
        ("", "run", "auth_refused", "it wants a user"),
    ] {
        let ended = types(&mut case, &shell, verb, user).await;
        let (reason, words) = match looking || user == "baton" {
            true => (reason, words),
            false if user.is_empty() => (reason, words),
            false => ("not_root", "does not have the role root"),
        };
        let refused = ["not_root", "auth_refused"].contains(&reason);
        ended.must_be(if refused { 3 } else { 0 }, reason);
        let said = format!("{} {}", ended.message(), ended.warnings());
        assert!(said.contains(words), "{ended}");
        assert_eq!(words.is_empty(), ended.unadvised_warnings().is_empty() && !refused, "{ended}");
        if reason == "planned" {
            let steps = ended.result.as_ref().and_then(|result| result["steps"].as_array()).map(Vec::len);
            assert!(steps.is_some_and(|steps| steps > 3), "{ended}");
        }
        if reason == "not_root" || user == "baton-viewer" && verb == "plan" {
            assert_eq!(ended.said("next"), "agent init --print-role", "{ended}");
        }
    }
    assert_eq!(case.raft_status().await, before, "nothing was touched");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "slow: 3.6 shows the same by default"]
async fn each_user_gets_what_is_due_on_3_4() {
    each_user_gets_what_is_due("3.4", true).await;
}

/// 3.5.28 to 3.5.31 answer `Status` to the role root alone.
#[tokio::test(flavor = "multi_thread")]
async fn each_user_gets_what_is_due_on_3_5() {
    each_user_gets_what_is_due("3.5", false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_user_gets_what_is_due_on_3_6() {
    each_user_gets_what_is_due("3.6", true).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "slow: 3.6 shows the same by default"]
async fn each_user_gets_what_is_due_on_3_7() {
    each_user_gets_what_is_due("3.7", true).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_operator_takes_a_cluster_with_auth_up() {
    let Some((case, shell)) = with_users(("3.5", "3.6"), true).await else { return };
    let files: Vec<_> = (0..3).map(|host| written(&case, &shell, host)).collect();
    let viewed = case.write_one(0, &case.upgrade);
    let mut rollout = case.begin().await;
    rollout.playbooks = files;
    for ended in [rollout.one("plan", 0).await, rollout.one("status", 1).await] {
        ended.must_succeed();
        assert!(ended.unadvised_warnings().is_empty(), "{ended}");
    }
    all_must_leave(&rollout.all("run").await, 0, "done", "done");
    rollout.arrives().await;

    // What runs now answers whoever may read the keys.
    rollout.upgrade.cluster = vec![shell.auth("baton-viewer")];
    let upgrade = rollout.upgrade.clone();
    assert_eq!(rollout.write_one(0, &upgrade), viewed);
    let mut looks = vec![];
    for verb in ["status", "plan"] {
        looks.push(tests::agent::Agent::start(verb, &viewed, &[]).expect("an agent").ends().await);
    }
    looks[0].must_be(0, "looked");
    let result = looks[0].result.clone().unwrap_or_default();
    assert_eq!(result["run_state"]["done"]["result"], "reached", "{}", looks[0]);
    looks[1].must_be(0, "planned");
    rollout.done().await;
}

/// What `agent init` writes for this host as the user that was made for it.
fn written(case: &Case, shell: &Shell, host: usize) -> std::path::PathBuf {
    let member = case.member(host);
    let (file, state, password) = (member.dir.join("init.yaml"), member.state_dir(), shell.password_file("baton"));
    let mut command = Command::new(executable().expect("an agent"));
    command.args(["init", "--endpoints", &member.client_url, "--to", &case.to.release.to_string(), "--artifact"]);
    command.arg(case.to.executable()).args(["--member", &member.name]).args(certificates(case));
    command.args(["--user", "baton", "--password-file"]);
    let done = command.arg(password).arg("--state-dir").arg(state).arg("-o").arg(&file).output().expect("it ran");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    file
}

/// What is typed for https.
fn certificates(case: &Case) -> Vec<String> {
    let files = case.layout().certificates.as_ref().expect("certificates");
    let typed = [("--ca", &files.ca), ("--cert", &files.client.cert), ("--key", &files.client.key)];
    typed.into_iter().flat_map(|(flag, file)| [flag.to_owned(), file.to_string_lossy().into_owned()]).collect()
}

/// Nobody is asked for it, and where somebody is, no user is needed.
#[tokio::test(flavor = "multi_thread")]
async fn roles_are_printed_without_a_cluster_and_for_one() {
    let print = |more: &[&str]| {
        let mut command = Command::new(executable().expect("an agent"));
        let done = command.args(["init", "--print-role"]).args(more).output().expect("it ran");
        let text = String::from_utf8_lossy(&done.stdout).into_owned();
        (done.status.code(), text, String::from_utf8_lossy(&done.stderr).into_owned())
    };
    let (code, text, _) = print(&[]);
    assert_eq!(code, Some(0));
    assert!(text.contains("Enough in etcd 3.4.0 to 3.4.41, 3.5.0 to 3.5.27, 3.5.32 and later 3.5"), "{text}");
    assert!(text.contains("Status is answered to no other"), "{text}");
    let (code, text, _) = print(&["--output", "json"]);
    let object: Value = serde_json::from_str(&text).expect("an object");
    assert_eq!((code, &object["reason"], &object["changed"]), (Some(0), &"shown".into(), &false.into()));
    assert_eq!(object["roles"]["releases"].as_array().map(Vec::len), Some(8), "{text}");
    let (code, _, error) = print(&["--endpoints", "http://127.0.0.1:1"]);
    assert_eq!(code, Some(3), "{error}");
    assert!(error.contains("nobody says which release runs at http://127.0.0.1:1"), "{error}");
    let (code, _, error) = print(&["--to", "3.6.14"]);
    assert_eq!(code, Some(2), "{error}");

    let Some((case, _)) = with_users(("3.5", "3.6"), true).await else { return };
    let url = &case.member(0).client_url;
    let files = certificates(&case);
    let files: Vec<_> = files.iter().map(String::as_str).collect();
    let (code, text, error) = print(&[&["--endpoints", url][..], &files].concat());
    assert_eq!(code, Some(0), "{error}");
    assert!(text.contains(&format!("ETCDCTL_CACERT={}\n", files[1])), "{text}");
    assert!(text.contains(&format!("ETCDCTL_ENDPOINTS={url}\n")), "{text}");
    assert!(text.contains(&format!("etcd {}, which runs here", case.from.release)), "{text}");
    let missing = fs::metadata(case.layout().dir.join("etc-baton/baton.password")).map(|file| file.len());
    assert_eq!(missing.ok(), Some(33), "a password of 32 characters");
}
