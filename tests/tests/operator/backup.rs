//! `agent backup`: one member's database in a file, which each system's own tools take.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
};

use rustix::process::Signal;
use serde_json::Value;
use tests::{agent, case::Case, on_both, restored::restored, system::System};

on_both! {
    a_backup_is_what_the_systems_own_tools_restore;
}

/// The command's exit code and object.
fn backed_up(playbook: &Path, dir: &Path, more: &[&str]) -> (Option<i32>, Value) {
    let mut command = Command::new(agent::executable().expect("an agent"));
    command.args(["backup", "--output", "json"]).arg(playbook).arg("--dir").arg(dir).args(more);
    let output = command.output().expect("run");
    (output.status.code(), serde_json::from_slice(&output.stdout).expect("an object"))
}

fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).expect("a folder").map(|entry| entry.expect("an entry").file_name());
    let mut names: Vec<_> = entries.map(|name| name.into_string().expect("text")).collect();
    names.sort();
    names
}

async fn a_backup_is_what_the_systems_own_tools_restore(system: System) {
    let release = match system {
        System::Node => "3.6",
        System::Etcd => "3.5",
    };
    let Some(case) = Case::path(system, (release, release), |_| {}).await else { return };
    for number in 0..5 {
        case.client(0).put(&format!("key-{number}"), "value").await.expect("put");
    }
    // One that is down is not asked.
    case.member(2).end(Signal::KILL).expect("killed");
    let playbook = case.write_one(0, &case.upgrade);
    let dir = case.layout().dir.join("backups");
    fs::create_dir(&dir).expect("made");
    let header = case.client(0).status().await.expect("status").header.expect("a header");
    let older = ["20200101T000000Z", "20210101T000000Z"].map(|at| format!("local-{:x}-{at}.db", header.cluster_id));
    let older = [&*older[0], &*older[1], "mine.db"];
    older.iter().for_each(|name| fs::write(dir.join(name), "older").expect("written"));

    let (exit, said) = backed_up(&playbook, &dir, &["--keep", "2"]);
    assert_eq!((exit, &said["reason"]), (Some(0), &"backed_up".into()), "{said}");
    let file = PathBuf::from(said["backup"]["file"].as_str().expect("a path"));
    assert_eq!(said["backup"]["removed"], serde_json::json!([older[0]]), "{said}");
    let own = file.file_name().and_then(|name| name.to_str()).expect("a name");
    assert_eq!(names(&dir), [older[1], own, older[2]], "nothing else is left or gone");
    assert_eq!(fs::metadata(&file).expect("a file").permissions().mode() & 0o777, 0o600, "it has everybody's data");
    assert_eq!(said["backup"]["bytes"], fs::metadata(&file).expect("a file").len());
    let bytes = fs::read(&file).expect("read");
    let checksum: String = bytes[bytes.len() - 32..].iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(said["backup"]["sha256"], checksum, "{said}");
    if system == System::Etcd {
        // The first revision is nobody's.
        assert_eq!(said["backup"]["revision"], 6, "{said}");
    }
    let output = restored(&case, &case.from, &file, &case.layout().dir.join("restored"));
    assert!(output.status.success(), "{output:?}");

    // One bit of it, and no tool takes it.
    let mut bytes = fs::read(&file).expect("read");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&file, bytes).expect("written");
    let output = restored(&case, &case.from, &file, &case.layout().dir.join("damaged"));
    assert!(!output.status.success(), "{output:?}");

    // A playbook may say where.
    let mut upgrade = case.upgrade.clone();
    upgrade.extra.push(format!("backup: {{ dir: {}, keep: 1 }}", dir.display()));
    let output = Command::new(agent::executable().expect("an agent"))
        .args(["backup", "--output", "json"])
        .arg(case.write_one(0, &upgrade))
        .output()
        .expect("run");
    let said: Value = serde_json::from_slice(&output.stdout).expect("an object");
    assert_eq!(said["reason"], "backed_up", "{said}");
    assert_eq!(names(&dir).len(), 2, "one, and what is none of them: {said}");
    let playbook = case.write_one(0, &case.upgrade);

    let before = names(&dir);
    let (exit, said) = backed_up(&playbook, &dir.join("absent"), &[]);
    assert_eq!((exit, &said["reason"]), (Some(2), &"usage".into()), "{said}");
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o777)).expect("set");
    let (exit, said) = backed_up(&playbook, &dir, &[]);
    assert_eq!(exit, Some(3), "anybody may exchange files there: {said}");
    assert_eq!(names(&dir), before);

    (0..2).for_each(|index| case.member(index).end(Signal::KILL).expect("killed"));
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o700)).expect("set");
    let (exit, said) = backed_up(&playbook, &dir, &[]);
    assert_eq!((exit, &said["reason"]), (Some(3), &"unreachable".into()), "{said}");
    assert_eq!(names(&dir), before, "no part of one is left");
}
