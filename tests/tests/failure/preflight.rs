//! Artifacts that are not what they are said to be are found out before anything is touched.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
    process::Command,
};

use tests::{
    case::Case,
    cluster::Member,
    mounted::Mounted,
    on_both,
    playbook::{Upgrade, quoted, started_by_the_agent},
    rollout::Rollout,
    skip::{build_or_skip, skip},
    system::System,
};

on_both! {
    a_host_on_which_a_stopped_member_could_not_be_started_is_refused_before_the_stop, etcd #[ignore = "slow: the node's row shows the same"];
    what_is_not_as_promised_is_refused_and_nothing_is_touched, etcd #[ignore = "slow: the node's row shows the same"];
    a_release_reads_its_flags_before_it_prints_its_version;
    a_full_data_disk_is_refused_before_the_stop;
}

/// The old process lives on with the files that it has; a new one would need more.
async fn a_full_data_disk_is_refused_before_the_stop(system: System) {
    let Some(mut case) = Case::of(system).await else { return };
    case.upgrade.strategy = vec!["join_window: 0s".into()];
    let rollout = case.begin().await;
    let before = rollout.pids();
    let data = rollout.member(0).dir.join("data");
    let (file, head) = what_says_whose_it_is(&data);
    let full = match Mounted::tmpfs(&data, 1 << 20) {
        Ok(disk) => disk,
        Err(error) => return skip(&format!("no tmpfs can be mounted: {error}")),
    };
    // With nothing there its data would be gone, and that is another refusal.
    fs::create_dir_all(file.parent().expect("a folder")).expect("made");
    fs::write(&file, head).expect("written");
    for verb in ["run", "plan"] {
        let ended = rollout.one(verb, 0).await;
        ended.must_be(3, "unprepared");
        assert!(ended.message().contains("are free where its data lies"), "{verb}: {ended}");
        assert_eq!(rollout.pids(), before, "{verb}: nothing was touched");
    }
    drop(full);
    rollout.one("plan", 0).await.must_be(0, "planned");
    rollout.end(0).await;
}

/// The file that has a member's id at its beginning, and as much of it: of etcd's log, or of the bundled node.
fn what_says_whose_it_is(data: &Path) -> (PathBuf, Vec<u8>) {
    let logs = fs::read_dir(data.join("member/wal")).into_iter().flatten().map(|entry| entry.expect("a file").path());
    let log = logs.filter(|path| path.extension().is_some_and(|extension| extension == "wal")).min();
    let file = log.unwrap_or_else(|| data.join("identity"));
    let mut head = fs::read(&file).expect("read");
    head.truncate(4096);
    (file, head)
}

/// What the agent counts on when it tries a member's arguments on the release to come.
async fn a_release_reads_its_flags_before_it_prints_its_version(system: System) {
    let Some(build) = build_or_skip(system, system.unwanted()) else { return };
    for (arguments, code) in [
        (&["--name", "m1", "--heartbeat-interval=100"][..], 0),
        (&["--config-file", "/no/such/file"], 0),
        (&["--name", "m1", "--no-such-flag=1"], 2),
        (&["--heartbeat-interval=soon"], 2),
    ] {
        let ended = Command::new(build.executable()).args(arguments).arg("--version").output().expect("run");
        let said = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(code), "{arguments:?}: {said}");
        let flag = arguments.last().and_then(|word| word.trim_start_matches('-').split('=').next()).expect("a flag");
        assert!(code == 0 || said.contains(flag), "{arguments:?}: {said}");
    }
}

fn script(path: &Path, real: &Path) {
    fs::write(path, format!("#!/bin/sh\nexec {} \"$@\"\n", real.display())).expect("written");
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("executable");
}

/// While the first member's link leads there, these commands are refused with these words.
async fn is_refused_with_a_link_to(file: &Path, rollout: &Rollout, verbs: &[&str], words: &str) {
    let link = rollout.member(0).binary();
    let was = fs::read_link(&link).expect("a link");
    fs::remove_file(&link).expect("removed");
    symlink(file, &link).expect("linked");
    rollout.write();
    for verb in verbs {
        let ended = rollout.one(verb, 0).await;
        ended.must_be(3, "unprepared");
        assert!(ended.message().contains(words), "{ended}");
    }
    fs::remove_file(&link).expect("removed");
    symlink(was, &link).expect("linked");
}

/// The member's own flags, with one line of `runtime` more or another flag.
fn with_line(member: &Member, line: &str) -> Vec<String> {
    started_by_the_agent(member).into_iter().chain([line.to_owned()]).collect()
}

async fn a_host_on_which_a_stopped_member_could_not_be_started_is_refused_before_the_stop(system: System) {
    let Some(mut case) = Case::of(system).await else { return };
    case.upgrade.strategy = vec!["join_window: 0s".into()];
    let mut rollout = case.begin().await;
    let before = rollout.pids();
    let sound = rollout.upgrade.clone();
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
        // Found after the stop, it would keep the member down until it is put back.
        (
            Upgrade {
                runtime: |m| with_line(m, "args: [{ add: [--no-such-flag=1], for: \">=3.6\" }]"),
                ..sound.clone()
            },
            "refuses the arguments of m1: ",
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
        rollout.upgrade = upgrade;
        rollout.write();
        // Only to try shows it to root, and a plan tries nothing.
        let verbs = if expected == "/sys" { &["run"][..] } else { &["run", "plan"] };
        for verb in verbs {
            let ended = rollout.one(verb, 0).await;
            assert_eq!((ended.exit, ended.reason()), (Some(3), "unprepared"), "{verb}: {expected}: {ended}");
            assert!(ended.message().contains(expected), "{verb}: {expected}: {ended}");
            assert_eq!(rollout.pids(), before, "{verb}: {expected}: nothing was touched");
        }
    }

    // The order of its flags does not count: one that a release dropped is moved to `args` so.
    rollout.upgrade = Upgrade {
        runtime: |m| {
            let mut lines = started_by_the_agent(m);
            assert!([3, 4].iter().all(|at| lines[*at].contains("--") && lines[*at].contains('=')), "{lines:?}");
            lines.swap(3, 4);
            lines
        },
        ..sound.clone()
    };
    rollout.write();
    rollout.one("plan", 0).await.must_be(0, "planned");

    // Somebody has switched the link and not restarted the member.
    rollout.upgrade = sound;
    let by_hand = rollout.member(0).bin().join("by-hand");
    tests::process::copy_program(&rollout.to.executable(), &by_hand).expect("copied");
    is_refused_with_a_link_to(&by_hand, &rollout, &["run", "plan"], "but `binary` leads to").await;
    assert_eq!(rollout.pids(), before, "nothing was touched");
    assert_eq!(rollout.end(0).await.failed_attempts, 0);
}

async fn what_is_not_as_promised_is_refused_and_nothing_is_touched(system: System) {
    let Some(mut case) = Case::of(system).await else { return };
    let Some(other) = build_or_skip(system, system.unwanted()) else { return };
    case.upgrade.strategy = vec!["join_window: 0s".into()];
    let mut rollout = case.begin().await;
    let before = rollout.pids();
    let sound = rollout.upgrade.clone();
    let wrapper = rollout.layout().dir.join("wrapper");
    script(&wrapper, &rollout.to.executable());
    let zeros = "0".repeat(64);
    let cases = [
        (
            "another release",
            Upgrade { source: other.executable(), ..sound.clone() },
            &*format!("the artifact is {}", other.release),
        ),
        ("a shell wrapper", Upgrade { source: wrapper, ..sound.clone() }, "is a script (#!/bin/sh)"),
        (
            "another checksum",
            Upgrade { artifact: vec![format!("sha256: \"{zeros}\"")], ..sound.clone() },
            "has the SHA-256",
        ),
        ("nothing there", Upgrade { source: rollout.layout().dir.join("nothing"), ..sound.clone() }, "nothing"),
    ];
    for (what, upgrade, expected) in cases {
        rollout.upgrade = upgrade;
        rollout.write();
        let mut all = vec![rollout.one("plan", 0).await];
        all.extend(rollout.all("run").await);
        for ended in all {
            ended.must_be(3, "unprepared");
            assert!(ended.message().contains(expected), "{what}: {ended}");
        }
        let keys = rollout.keys().await;
        assert!(!["run", "baton", "step"].iter().any(|key| keys.contains_key(*key)), "{what}: {keys:?}");
    }

    // The link itself names a script: which release runs behind it, nobody can say.
    rollout.upgrade = sound;
    let hidden = rollout.member(0).bin().join("wrapper");
    script(&hidden, &rollout.from.executable());
    is_refused_with_a_link_to(&hidden, &rollout, &["run"], "is a script (#!/bin/sh), not a program").await;
    assert_eq!(rollout.pids(), before, "nothing was touched");
    assert_eq!(rollout.end(0).await.failed_attempts, 0);
}
