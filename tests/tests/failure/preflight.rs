//! Artifacts that are not what they are said to be are found out before anything is touched.

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use tests::{
    cluster::Member,
    playbook::{Upgrade, quoted, started_by_the_agent},
    scene::Scene,
    skip::etcd_or_skip,
};

fn script(path: &Path, real: &Path) {
    fs::write(path, format!("#!/bin/sh\nexec {} \"$@\"\n", real.display())).expect("written");
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("executable");
}

/// The member's own flags, with one line of `runtime` more or another flag.
fn with_line(member: &Member, line: &str) -> Vec<String> {
    started_by_the_agent(member).into_iter().chain([line.to_owned()]).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_on_which_a_stopped_member_could_not_be_started_is_refused_before_the_stop() {
    let (Some(old), Some(new)) = (etcd_or_skip("3.4"), etcd_or_skip("3.5")) else { return };
    let scene = Scene::set(&old, old.release.cluster_version()).await.expect("up");
    let before = scene.pids();
    let sound = Upgrade { strategy: vec!["gather: 0s".into()], ..Upgrade::new(scene.layout(), &new) };
    let cases = [
        (Upgrade { runtime: |m| with_line(m, "user: no-such-user"), ..sound.clone() }, "`user`: there is no user"),
        (Upgrade { runtime: |m| with_line(m, "cwd: /no/such/folder"), ..sound.clone() }, "`cwd`: /no/such/folder"),
        // Nobody may make files there, root neither.
        (
            Upgrade { node: |_| vec!["files: [{ path: /sys/conf, source: /etc/hostname }]".into()], ..sound.clone() },
            "/sys",
        ),
        // Without a flag that it was started with, a member is not found, and is not started a second time.
        (
            Upgrade {
                runtime: |m| {
                    let mut lines = started_by_the_agent(m);
                    lines.insert(3, "  - --debug".into());
                    lines
                },
                ..sound.clone()
            },
            "was started otherwise than the playbook says: it does not have `--debug`",
        ),
        // Nothing that it was started with is its own in this playbook, yet it answers.
        (
            Upgrade {
                runtime: |m| {
                    let log = format!("log: {}", quoted(&m.log().to_string_lossy()));
                    vec!["kind: process".into(), "argv: [\"{{binary}}\", --debug]".into(), log]
                },
                ..sound.clone()
            },
            "answers, but no process of this host is it by the playbook",
        ),
    ];
    for (upgrade, expected) in cases {
        let playbooks = upgrade.write(scene.layout()).expect("playbooks");
        // Only to try shows it to root, and a plan tries nothing.
        let verbs = if expected == "/sys" { &["run"][..] } else { &["run", "plan"] };
        for verb in verbs {
            let ended = scene.one(verb, &playbooks[0]).await.expect("ends");
            assert_eq!((ended.exit, ended.reason()), (Some(3), "unprepared"), "{verb}: {expected}: {ended:#?}");
            assert!(ended.message().contains(expected), "{verb}: {expected}: {ended:#?}");
            assert_eq!(scene.pids(), before, "{verb}: {expected}: nothing was touched");
        }
    }

    // Somebody has switched the link and not restarted the member.
    let member = &scene.layout().members[0];
    let was = fs::read_link(member.binary()).expect("a link");
    let by_hand = member.bin().join("by-hand");
    fs::copy(new.executable(), &by_hand).expect("copied");
    fs::remove_file(member.binary()).expect("removed");
    std::os::unix::fs::symlink(&by_hand, member.binary()).expect("linked");
    let playbooks = sound.write(scene.layout()).expect("playbooks");
    for verb in ["run", "plan"] {
        let ended = scene.one(verb, &playbooks[0]).await.expect("ends");
        ended.must_be(3, "unprepared");
        assert!(ended.message().contains("but `binary` leads to"), "{verb}: {ended:#?}");
    }
    fs::remove_file(member.binary()).expect("removed");
    std::os::unix::fs::symlink(was, member.binary()).expect("linked");
    assert_eq!(scene.pids(), before, "nothing was touched");
    let seen = scene.end(0).await.expect("nothing lost");
    assert_eq!(seen.failed_attempts, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_as_promised_is_refused_and_nothing_is_touched() {
    let (Some(old), Some(new)) = (etcd_or_skip("3.4"), etcd_or_skip("3.5")) else { return };
    let Some(other) = etcd_or_skip("3.5.1") else { return };
    let scene = Scene::set(&old, old.release.cluster_version()).await.expect("up");
    let before = scene.pids();
    let sound = Upgrade { strategy: vec!["gather: 0s".into()], ..Upgrade::new(scene.layout(), &new) };
    let wrapper = scene.layout().dir.join("wrapper");
    script(&wrapper, &new.executable());
    let zeros = "0".repeat(64);
    let cases = [
        ("another patch", Upgrade { source: other.executable(), ..sound.clone() }, "the artifact is 3.5.1"),
        ("a shell wrapper", Upgrade { source: wrapper, ..sound.clone() }, "is a script (#!/bin/sh)"),
        (
            "another checksum",
            Upgrade { artifact: vec![format!("sha256: \"{zeros}\"")], ..sound.clone() },
            "has the SHA-256",
        ),
        ("nothing there", Upgrade { source: scene.layout().dir.join("nothing"), ..sound.clone() }, "nothing"),
    ];
    for (what, upgrade, expected) in cases {
        let playbooks = upgrade.write(scene.layout()).expect("playbooks");
        let mut all = vec![scene.one("plan", &playbooks[0]).await.expect("ends")];
        all.extend(scene.all("run", &playbooks).await.expect("ends"));
        for ended in all {
            ended.must_be(3, "unprepared");
            assert!(ended.message().contains(expected), "{what}: {ended:#?}");
        }
        for key in ["run", "baton", "down"] {
            assert!(scene.key(key).await.expect("readable").is_null(), "{what}: {key}");
        }
    }

    // The link itself names a script: which release runs behind it, nobody can say.
    let member = &scene.layout().members[0];
    let was = fs::read_link(member.binary()).expect("a link");
    let hidden = member.bin().join("wrapper");
    script(&hidden, &old.executable());
    fs::remove_file(member.binary()).expect("removed");
    std::os::unix::fs::symlink(&hidden, member.binary()).expect("linked");
    let playbooks = sound.write(scene.layout()).expect("playbooks");
    let ended = scene.one("run", &playbooks[0]).await.expect("ends");
    ended.must_be(3, "unprepared");
    assert!(ended.message().contains("is a script (#!/bin/sh), not a program"), "{ended:#?}");
    fs::remove_file(member.binary()).expect("removed");
    std::os::unix::fs::symlink(was, member.binary()).expect("linked");

    assert_eq!(scene.pids(), before, "nothing was touched");
    let seen = scene.end(0).await.expect("nothing lost");
    assert_eq!(seen.failed_attempts, 0);
}
