use std::fs;

use super::*;

fn sh(script: &str) -> Vec<String> {
    ["/bin/sh", "-c", script].map(String::from).to_vec()
}

const LONG: Duration = Duration::from_secs(60);

#[tokio::test]
async fn a_command_ends_in_its_own_way() {
    for (script, code, how) in
        [("exit 0", Some(0), "exit 0"), ("exit 3", Some(3), "exit 3"), ("kill -9 $$", None, "signal 9")]
    {
        let ended = run(&sh(script), LONG, &Output::Kept).await.unwrap();
        assert_eq!((ended.code, ended.how.as_str()), (code, how), "{script}");
    }
}

#[tokio::test]
async fn output_is_bounded_and_its_end_is_kept() {
    let ended = run(&sh("yes spam | head -c 3000000; echo the end; echo why >&2"), LONG, &Output::Kept).await.unwrap();
    assert!(ended.stdout.len() <= OUTPUT_KEPT && ended.stdout.ends_with("spam\nthe end"));
    assert_eq!(ended.output(), "why");
}

#[tokio::test]
async fn a_command_over_its_time_is_killed_with_its_children() {
    let folder = tempfile::tempdir().unwrap();
    let pid_file = folder.path().join("pid");
    let script = format!("sleep 600 & echo $! > {}; echo waiting; wait", pid_file.display());
    let begun = Instant::now();
    let error = run(&sh(&script), Duration::from_millis(500), &Output::Kept).await.unwrap_err();
    assert!(error.to_string().ends_with("was killed: waiting"), "{error}");
    assert!(begun.elapsed() < Duration::from_secs(30));
    let pid: u32 = fs::read_to_string(pid_file).unwrap().trim().parse().unwrap();
    let child = crate::host::process::process_id::ProcessId::of(pid);
    while matches!(&child, Ok(Some(identity)) if identity.is_alive().unwrap()) {
        assert!(begun.elapsed() < Duration::from_secs(30), "the child of the command survived");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn a_command_that_nobody_waits_for_is_killed_with_its_children_unless_it_is_to_go_on() {
    for (unwaited, goes_on) in [(Unwaited::Killed, false), (Unwaited::GoesOn, true)] {
        let folder = tempfile::tempdir().unwrap();
        let pid_file = folder.path().join("pid");
        let script = sh(&format!("sleep 600 & echo $$ $! > {}.new; mv {0}.new {0}; wait", pid_file.display()));
        let waited = run_with(&script, Stdio::null(), LONG, &Output::Kept, unwaited);
        let begun = async {
            while !pid_file.exists() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::select! {
            ended = waited => panic!("{ended:?}"),
            () = begun => {}
        }
        let pids = fs::read_to_string(&pid_file).unwrap();
        let pids = pids.split_whitespace().map(|pid| Pid::from_raw(pid.parse().unwrap()).unwrap());
        for pid in pids {
            let is_alive = || {
                let found = crate::host::process::process_id::ProcessId::of(pid.as_raw_pid() as u32);
                found.unwrap().is_some()
            };
            let begun = Instant::now();
            while !goes_on && is_alive() {
                assert!(begun.elapsed() < LONG, "{pid:?} survived");
                sleep(REAP_PAUSE);
            }
            assert_eq!(is_alive(), goes_on);
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

/// A process that is traced is not to be reaped before its tracer has heard of its end (ptrace(2)), which this one never
/// does: as one that cannot be killed.
const TRACER: &str = "import ctypes, os, sys, time; n = ctypes.c_long(0); \
    done = ctypes.CDLL(None).ptrace(ctypes.c_long(0x4206), int(sys.argv[1]), n, n); \
    open(\"new\", \"w\").write(f\"{done} {os.getpid()}\"); os.rename(\"new\", \"traced\"); time.sleep(600)";

#[tokio::test]
async fn a_command_that_cannot_be_killed_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let script = format!(
        "cd {}; echo waiting; setsid python3 -c '{TRACER}' $$ >&- 2>&- & exec sleep 600",
        folder.path().display()
    );
    let ended = timeout(LONG, run(&sh(&script), Duration::from_secs(5), &Output::Kept)).await;
    let Ok(traced) = fs::read_to_string(folder.path().join("traced")) else {
        return eprintln!("skipped: there is no python3 here that traces within 5 s");
    };
    let (done, tracer) = traced.split_once(' ').unwrap();
    kill_process(Pid::from_raw(tracer.parse().unwrap()).unwrap(), Signal::KILL).unwrap();
    if done != "0" {
        return eprintln!("skipped: no process may be traced here");
    }
    let error = ended.expect("it is left").unwrap_err();
    let ExecError::TimedOut { unkilled: Some(pid), .. } = error else { panic!("{error}") };
    assert!(error.to_string().ends_with(&format!("and could not be killed (pid {pid}): waiting")), "{error}");
}

#[tokio::test]
async fn what_a_command_leaves_running_does_not_hold_the_agent_up() {
    let begun = Instant::now();
    let ended = run(&sh("sleep 600 & echo $!"), LONG, &Output::Kept).await.unwrap();
    assert!(begun.elapsed() < Duration::from_secs(30));
    let pid = Pid::from_raw(ended.stdout.parse().unwrap()).unwrap();
    rustix::process::kill_process(pid, Signal::KILL).unwrap();
}

#[tokio::test]
async fn output_to_a_file_is_that_of_the_last_run() {
    let folder = tempfile::tempdir().unwrap();
    let output = Output::File(folder.path().join("start.log"));
    for word in ["first, longer", "second"] {
        let ended = run(&sh(&format!("echo {word}; echo {word} >&2")), LONG, &output).await.unwrap();
        assert_eq!(ended.output(), format!("{word}\n{word}"));
    }
}

/// What a command leaves running has the file open, and may be another user's.
#[tokio::test]
async fn output_to_a_file_is_read_from_its_end_however_large_it_was_made() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stop.log");
    // A hole: more than memory holds, and nothing on the disk.
    let script = format!("truncate -s 8T {}; echo the end", path.display());
    let ended = run(&sh(&script), LONG, &Output::File(path)).await.unwrap();
    assert!(ended.stdout.len() <= OUTPUT_KEPT && ended.stdout.ends_with("the end"), "{}", ended.how);
}

#[tokio::test]
async fn what_cannot_be_run_is_named() {
    assert!(matches!(run(&[], LONG, &Output::Kept).await, Err(ExecError::Empty)));
    let error = run(&["/nowhere/tool".into()], LONG, &Output::Kept).await.unwrap_err();
    assert_eq!(error.to_string(), "cannot run /nowhere/tool");
}

#[test]
fn a_message_has_the_end_of_what_was_printed() {
    assert_eq!(quoted(""), "");
    assert_eq!(quoted("no room"), ": no room");
    let long = format!("{}the reason", "99\n".repeat(1_000));
    let shown = quoted(&long);
    assert!(shown.starts_with(": …") && shown.ends_with("the reason"), "{shown}");
    assert_eq!(shown.chars().count(), OUTPUT_SHOWN + 3);
}
