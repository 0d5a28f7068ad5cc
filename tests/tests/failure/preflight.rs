//! Artifacts that are not what they are said to be are found out before anything is touched.

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use tests::{agent::Ended, playbook::Upgrade, scene::Scene, skip::etcd_or_skip};

fn message(ended: &Ended) -> String {
    ended.result.as_ref().map(|result| result["message"].to_string()).unwrap_or_default()
}

fn script(path: &Path, real: &Path) {
    fs::write(path, format!("#!/bin/sh\nexec {} \"$@\"\n", real.display())).expect("written");
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("executable");
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
        for ended in scene.all("run", &playbooks).await.expect("ends") {
            assert_eq!((ended.exit, ended.reason()), (Some(3), "unprepared"), "{what}: {ended:#?}");
            assert!(message(&ended).contains(expected), "{what}: {ended:#?}");
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
    assert_eq!((ended.exit, ended.reason()), (Some(3), "unprepared"), "{ended:#?}");
    assert!(message(&ended).contains("is a script (#!/bin/sh), not a program"), "{ended:#?}");
    fs::remove_file(member.binary()).expect("removed");
    std::os::unix::fs::symlink(was, member.binary()).expect("linked");

    assert_eq!(scene.pids(), before, "nothing was touched");
    let seen = scene.end(0).await.expect("nothing lost");
    assert_eq!(seen.failed_attempts, 0);
}
