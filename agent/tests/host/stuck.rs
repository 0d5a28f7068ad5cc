//! Runtime `process`: a launcher that its node's user has stopped keeps nobody waiting for ever.

use std::{
    fs::{self, File},
    process::{Child, Command},
    time::{Duration, Instant},
};

use agent::host::{
    process::process_id::{ProcessHandle, ProcessId},
    runtime::{Runtime, Status, fitness::Needs, process::ProcessError},
};
use rustix::process::Signal;

use crate::process::{Host, LIMIT, order, session};

/// A launcher that was stopped while it held the lock. It cannot execute the node, as somebody still writes that file.
async fn stopped_launcher(host: &Host) -> (Child, ProcessHandle) {
    let program = fs::canonicalize(&host.command.argv[0]).unwrap();
    let writer = File::options().append(true).open(program).unwrap();
    let child = session(host, &order(host, ProcessId::own().unwrap(), u64::MAX), &[]);
    let begun = Instant::now();
    while !host.nodes().join("orders-1.json").exists() {
        assert!(begun.elapsed() < LIMIT, "it was never on file");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let handle = ProcessId::of(child.id()).unwrap().unwrap().open().unwrap().unwrap();
    handle.signal(Signal::STOP).unwrap();
    drop(writer);
    (child, handle)
}

#[tokio::test]
async fn a_launcher_that_was_stopped_is_ended_and_the_node_started() {
    let host = Host::new();
    let (mut child, _) = stopped_launcher(&host).await;
    // Who only looks leaves it alone.
    let error = host.runtime().peek().await.unwrap_err().to_string();
    let expected = format!("pid {} holds {}", child.id(), host.nodes().join("orders-1.lock").display());
    assert!(error.contains(&expected) && error.ends_with(&format!("type: kill -KILL {}", child.id())), "{error}");
    assert_eq!(host.runtime().status().await.unwrap(), Status::Stopped);
    child.wait().unwrap();
    host.start().await;
}

/// As one that stands still before it is on file, or on a disk that takes no file.
#[tokio::test]
async fn a_launcher_that_is_not_on_file_is_known_by_its_arguments() {
    let host = Host::new();
    let (mut child, _) = stopped_launcher(&host).await;
    fs::remove_file(host.nodes().join("orders-1.json")).unwrap();
    assert_eq!(host.runtime().status().await.unwrap(), Status::Stopped);
    child.wait().unwrap();
    host.start().await;
}

#[tokio::test]
async fn whoever_else_holds_the_lock_is_named() {
    let host = Host::new();
    fs::create_dir_all(host.nodes()).unwrap();
    let lock = File::create(host.nodes().join("orders-1.lock")).unwrap();
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let mut child = Command::new("sleep").arg("600").stdin(lock).spawn().unwrap();
    let error = host.runtime().status().await.unwrap_err();
    let busy = matches!(&error, ProcessError::Busy { holder: Some(pid), .. } if *pid == child.id());
    assert!(busy && error.to_string().contains(&format!("type: kill -KILL {}", child.id())), "{error}");
    child.kill().unwrap();
    child.wait().unwrap();
    host.start().await;
}

/// Signals must be heard meanwhile, and nobody be left behind.
#[tokio::test]
async fn a_try_as_the_nodes_user_can_be_given_up() {
    if !nix::unistd::Uid::effective().is_root() {
        return eprintln!("skipped: another user takes root");
    }
    let mut host = Host::new();
    let told = host.path().join("pid");
    let script = "echo $$ > \"$0.new\"; mv \"$0.new\" \"$0\"; kill -STOP $$";
    host.launcher = ["/bin/sh", "-c", script, &told.display().to_string()].map(String::from).to_vec();
    host.command.user = Some("nobody".into());
    let (runtime, needs) = (Runtime::Process(host.runtime()), Needs::default());
    let begun = async {
        while !told.exists() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::select! {
        fit = runtime.check(&needs) => panic!("{fit:?}"),
        () = begun => {}
    }
    let pid = fs::read_to_string(&told).unwrap().trim().parse().unwrap();
    assert_eq!(ProcessId::of(pid).unwrap(), None, "it was killed");
}
