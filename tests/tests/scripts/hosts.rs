//! `scripts/hosts`: hosts that outlive the command, and are gone when they are no longer wanted.

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

use tests::{machine::disk_or_skip, process::Process, skip::build_or_skip, system::System};

fn hosts(verb: &str, dir: &Path, disk: &Path, more: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hosts"));
    command.arg(verb).arg("--dir").arg(dir).args(more).env("BATON_HOSTS", disk).output().expect("it runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Whatever happens in a test, its hosts end.
struct Ends<'a>(&'a Path, &'a Path);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        hosts("down", self.0, self.1, &[]);
    }
}

/// The bridge of these hosts by its number, which no later bridge has: the name may be another test's by then.
fn bridge(said: &str) -> Option<(String, String)> {
    let address = said.lines().find_map(|line| line.strip_prefix("h1  ")?.split(' ').next())?;
    let name = format!("bh{}", address.split('.').nth(2)?);
    let index = fs::read_to_string(format!("/sys/class/net/{name}/ifindex")).ok()?;
    Some((name, index))
}

#[test]
fn a_host_goes_up_lives_on_is_reached_by_ssh_and_goes_down() {
    let Some(disk) = disk_or_skip() else { return };
    let (from, to) = System::Node.main_job();
    if build_or_skip(System::Node, from).and(build_or_skip(System::Node, to)).is_none() {
        return;
    }
    let home = tempfile::tempdir().expect("a folder");
    let dir = home.path().join("hosts");
    let _ends = Ends(&dir, &disk);

    let up = hosts("up", &dir, &disk, &["--size", "1"]);
    assert!(up.status.success(), "{up:?}");
    let before = bridge(&text(&up.stdout)).expect("a bridge");
    let keeper = fs::read_to_string(dir.join("keeper")).expect("a number").parse().expect("a number");
    let keeper = Process::open(keeper).expect("it outlives the command");
    assert!(keeper.is_alive());

    let ssh = |command: &str| {
        let done = Command::new("ssh").arg("-F").arg(dir.join("ssh_config")).args(["h1", command]).output();
        done.expect("there is ssh")
    };
    let looked = ssh("hostname; systemctl is-active node.service");
    assert_eq!(text(&looked.stdout), "h1\nactive\n", "{looked:?}");
    let planned = ssh("agent plan /etc/baton/upgrade.yaml --output json");
    assert!(planned.status.success() && text(&planned.stdout).contains("\"planned\""), "{planned:?}");
    let inventory = fs::read_to_string(dir.join("inventory.yml")).expect("an inventory");
    assert!(inventory.contains("baton_members: [m1]"), "{inventory}");

    let again = hosts("up", &dir, &disk, &[]);
    assert!(!again.status.success() && text(&again.stderr).contains("are up already"), "{again:?}");

    let down = hosts("down", &dir, &disk, &[]);
    assert!(down.status.success() && !dir.exists() && !keeper.is_alive(), "{down:?}");
    assert_ne!(fs::read_to_string(format!("/sys/class/net/{}/ifindex", before.0)).ok(), Some(before.1));
    let again = hosts("down", &dir, &disk, &[]);
    assert!(!again.status.success() && text(&again.stderr).contains("no hosts of"), "{again:?}");
}

#[test]
fn a_folder_with_other_files_is_left_alone() {
    let Some(disk) = disk_or_skip() else { return };
    let home = tempfile::tempdir().expect("a folder");
    let other = home.path().join("README");
    fs::write(&other, "mine").expect("written");
    let up = hosts("up", home.path(), &disk, &[]);
    assert!(!up.status.success() && text(&up.stderr).contains("has files of somebody else"), "{up:?}");
    let down = hosts("down", home.path(), &disk, &[]);
    assert!(!down.status.success() && fs::read_to_string(other).is_ok_and(|text| text == "mine"), "{down:?}");
}
