//! A process that looks like a member: its program lies beside the member's, and it names the member's data folder. It may
//! keep a run from taking the member down, and never the member from coming back.

use std::{
    fs,
    os::unix::process::CommandExt,
    path::PathBuf,
    process::{Child, Command, Stdio},
};

use tests::{
    case::Case,
    cluster::Member,
    playbook::quoted,
    process::{Process, copy_program},
    rollout::{Ends, Rollout},
    system::System,
    wait,
};

/// It ends with this value.
struct Lookalike(Child);

impl Drop for Lookalike {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A shell beside the member's program, under a name of its own.
fn program(member: &Member) -> PathBuf {
    let program = member.bin().join("tool");
    if !program.exists() {
        copy_program(&fs::canonicalize("/bin/sh").expect("a shell"), &program).expect("copied");
    }
    program
}

/// A shell elsewhere that becomes it, with the member's data folder, after this script.
fn lookalike(member: &Member, first: &str) -> Lookalike {
    let script = format!(
        "{first}; exec {} -c 'kill -STOP $$' --data-dir={}/data",
        program(member).display(),
        member.dir.display()
    );
    let mut command = Command::new("/bin/sh");
    command.args(["-c", &script]).process_group(0).stdin(Stdio::null());
    Lookalike(command.spawn().expect("started"))
}

async fn begin() -> Option<Rollout> {
    Some(Case::of(System::Node).await?.strategy(&["join_window: 0s"]).begin().await)
}

#[tokio::test(flavor = "multi_thread")]
async fn one_beside_a_member_is_named_before_anything_is_stopped() {
    let Some(mut rollout) = begin().await else { return };
    let before = rollout.pids();
    let early = lookalike(rollout.member(0), ":");
    let pid = early.0.id();
    let stands = || match Process::under(&rollout.member(0).bin()).len() {
        2 => Ok(()),
        count => Err(format!("{count} processes")),
    };
    wait::until_blocking("the lookalike", wait::GENEROUS, stands).expect("it runs");
    for verb in ["plan", "run"] {
        let ended = rollout.one(verb, 0).await;
        ended.must_be(3, "unprepared");
        assert!(ended.message().contains(&format!("pid {pid} (user ")), "{ended}");
    }
    drop(early);
    // Since preflight hours may have passed; here a hook is what happens in between.
    let script = format!(
        "setsid {} -c 'kill -STOP $$' --data-dir={}/data & sleep 0.5",
        program(rollout.member(0)).display(),
        rollout.member(0).dir.display()
    );
    rollout.upgrade.extra = vec![format!("hooks: {{ before_node: [[/bin/sh, -c, {}]] }}", quoted(&script))];
    rollout.write();
    let ended = rollout.one("run", 0).await;
    assert!(ended.exit == Some(1) && ended.to_string().contains("runs on what is this node's"), "{ended}");
    for process in Process::under(&rollout.member(0).bin()) {
        if !before.contains(&Some(process.pid)) {
            process.signal(rustix::process::Signal::KILL).expect("killed");
            process.ended(wait::GENEROUS).expect("gone");
        }
    }
    assert_eq!(rollout.pids(), before, "nothing was stopped");
    rollout.end(0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_comes_after_the_stop_keeps_no_member_down() {
    let Some(rollout) = begin().await else { return };
    let member = rollout.member(0).process().expect("it runs").pid;
    let _late = lookalike(rollout.member(0), &format!("while [ -e /proc/{member}/exe ]; do :; done"));
    let ended = rollout.start(0).ends().await;
    ended.must_be(0, "partial");
    assert!(ended.to_string().contains("started all the same"), "{ended}");
    assert_eq!(rollout.releases().await[0], rollout.to.release.to_string());
    rollout.end(1).await;
}

/// Waits for the end of a process, then shows other arguments than it was started with, and does not hear SIGTERM.
const DISGUISE: &str = r#"
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
arguments = b"".join(b"\0" + word for word in os.environb[b"SHOWN"].split(b"\n")) + b"\0"
fields = open("/proc/self/stat").read().rsplit(")", 1)[1].split()
start, end = int(fields[45]), int(fields[46])
shown = b"x" * (end - start - len(arguments)) + arguments
memory = open("/proc/self/mem", "r+b", 0)
memory.seek(start)
while os.path.exists("/proc/%s/exe" % os.environ["AFTER"]):
    pass
memory.write(shown)
time.sleep(600)
"#;

/// A python beside the member's program that has the very arguments of the member as soon as that has ended.
fn double(member: &Member) -> Lookalike {
    let pid = member.process().expect("it runs").pid;
    let shown = fs::read_to_string(format!("/proc/{pid}/cmdline")).expect("its command line");
    let shown: Vec<_> = shown.trim_end_matches('\0').split('\0').skip(1).collect();
    let told = |what: &str| {
        let told = Command::new("python3").args(["-c", &format!("import sys; print({what}, end='')")]).output();
        String::from_utf8(told.expect("python3").stdout).expect("a path")
    };
    let python = member.bin().join("python");
    if !python.exists() {
        let program = fs::canonicalize(told("sys.executable")).expect("its program");
        copy_program(&program, &python).expect("copied");
    }
    let mut command = Command::new(python);
    command.args(["-c", DISGUISE, &"x".repeat(1 << 14)]).env("PYTHONHOME", told("sys.base_prefix"));
    command.env("AFTER", pid.to_string()).env("SHOWN", shown.join("\n")).process_group(0).stdin(Stdio::null());
    Lookalike(command.spawn().expect("started"))
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "slow: one that comes after the stop shows the same by default"]
async fn exact_doubles_after_the_stop_keep_no_member_down() {
    for count in [1, 2] {
        let Some(rollout) = begin().await else { return };
        let mut doubles: Vec<_> = (0..count).map(|_| double(rollout.member(0))).collect();
        let ended = rollout.start(0).ends().await;
        ended.must_be(0, "partial");
        assert!(ended.to_string().contains("started all the same"), "{ended}");
        assert_eq!(rollout.releases().await[0], rollout.to.release.to_string());
        for double in &mut doubles {
            assert!(double.0.try_wait().expect("looked at").is_none(), "it was stopped");
        }
        drop(doubles);
        rollout.end(1).await;
    }
}
