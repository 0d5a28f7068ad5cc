//! Runtime `process`: which process is the node, however it was started.

use std::{fs, process::Child};

use agent::host::{
    process::process_id::ProcessId,
    runtime::{
        Status,
        discovery::{Belief, DiscoveryError},
        process::ProcessError,
    },
};

use crate::process::{Host, LIMIT, process};

#[tokio::test]
async fn a_node_that_somebody_else_started_is_recognised() {
    let mut host = Host::new();
    let mut child = host.by_hand(&["600"]);
    let seen = process(host.runtime().status().await.unwrap());
    assert_eq!(seen.identity.pid, child.id());
    assert_eq!(host.start().await, seen, "not started a second time");

    // Under a name that its file no longer has.
    fs::remove_file(host.path().join("releases/1.0.0-aaa/node")).unwrap();
    assert_eq!(process(host.runtime().status().await.unwrap()).identity, seen.identity);

    // With the arguments of the release it has now, not of the one it will get.
    host.command.argv[1] = "601".into();
    assert_eq!(host.runtime().status().await.unwrap(), Status::Stopped, "other arguments, another process");
    host.command.also_as = vec![vec!["/gone/node".into(), "600".into()]];
    assert_eq!(process(host.runtime().status().await.unwrap()).identity, seen.identity);

    host.runtime().stop(LIMIT, false).await.unwrap();
    child.wait().unwrap();
    assert_eq!(host.runtime().status().await.unwrap(), Status::Stopped);
}

#[tokio::test]
async fn two_processes_that_could_be_the_node_are_an_error() {
    let host = Host::new();
    let mut children = [host.by_hand(&["600"]), host.by_hand(&["600"])];
    for _ in 0..2 {
        let error = host.runtime().status().await.unwrap_err();
        let ProcessError::Discovery(DiscoveryError::Several { mut pids, .. }) = error else { panic!("{error}") };
        pids.sort_unstable();
        let mut expected = children.each_ref().map(Child::id);
        expected.sort_unstable();
        assert_eq!(pids, expected);
        let error = host.runtime().start().await.unwrap_err();
        assert!(error.to_string().contains("runs more than once"), "{error}");
    }
    for child in &mut children {
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

#[tokio::test]
async fn a_node_started_with_other_arguments_is_not_started_a_second_time() {
    // A shell that suspends itself takes any arguments after its script, and so etcd's flags.
    let mut host = Host::new();
    fs::copy(fs::canonicalize("/bin/sh").unwrap(), host.path().join("releases/1.0.0-aaa/node")).unwrap();
    let line = |data: &'static str| vec!["-c", "kill -STOP $$", "--name", "orders-1", "--data-dir", data];
    let mut neighbour = host.by_hand(&line("/srv/2"));
    let mut child = host.by_hand(&[line("/srv/1"), vec!["--debug"]].concat());
    host.command.argv.truncate(1);
    host.command.argv.extend(line("/srv/1").iter().map(ToString::to_string));
    let refused = |error: String| {
        assert!(error.contains(&format!("pid {} ", child.id())) && error.contains("`--debug`"), "{error}");
    };
    refused(host.runtime().status().await.unwrap_err().to_string());
    refused(host.runtime().start().await.unwrap_err().to_string());
    refused(host.runtime().stop(LIMIT, false).await.unwrap_err().to_string());
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(host.runtime().status().await.unwrap(), Status::Stopped, "the neighbour is another node");
    host.start().await;
    neighbour.kill().unwrap();
    neighbour.wait().unwrap();
}

#[tokio::test]
async fn a_file_about_another_process_is_not_believed() {
    let host = Host::new();
    fs::create_dir(host.nodes()).unwrap();
    let own = ProcessId::own().unwrap();
    let recycled = ProcessId { start_time: own.start_time - 1, ..own };
    let file = host.nodes().join("orders-1.json");
    fs::write(&file, serde_json::json!({"format": 1, "identity": recycled, "exe": "/x"}).to_string()).unwrap();
    assert_eq!(host.runtime().status().await.unwrap(), Status::Stopped);
    fs::write(&file, "{\"format\": 1, ").unwrap();
    let error = host.runtime().status().await.unwrap_err();
    assert!(matches!(error, ProcessError::Discovery(DiscoveryError::BadFile { .. })), "{error}");
}

/// Anybody may run a copy of any program with any arguments, and keep the agent from its work, if it could.
#[tokio::test]
async fn what_another_user_runs_is_not_the_node_whatever_it_looks_like() {
    if !nix::unistd::Uid::effective().is_root() {
        return eprintln!("skipped: another user takes root");
    }
    let mut host = Host::new();
    let line = ["-c", "kill -STOP $$", "--name", "orders-1", "--data-dir", "/srv/1"];
    fs::copy(fs::canonicalize("/bin/sh").unwrap(), host.path().join("releases/1.0.0-aaa/node")).unwrap();
    host.command.argv.truncate(1);
    host.command.argv.extend(line.map(String::from));
    let mut stranger = host.by_hand_as(65534, &line);
    let mut other = host.by_hand_as(65534, &[&line[..], &["--debug"]].concat());
    assert_eq!(host.runtime().status().await.unwrap(), Status::Stopped);
    let mut own = host.by_hand(&line);
    assert_eq!(process(host.runtime().status().await.unwrap()).identity.pid, own.id());
    own.kill().unwrap();
    own.wait().unwrap();
    assert_eq!(host.runtime().status().await.unwrap(), Status::Stopped);
    // It is said where the node answers and is not found.
    let nearest = agent::host::runtime::Runtime::Process(host.runtime()).nearest().unwrap();
    assert!(nearest.contains("it runs as nobody, and by the playbook it is root's"), "{nearest}");

    // As the user of the node it is the node.
    host.command.user = Some("nobody".into());
    other.kill().unwrap();
    other.wait().unwrap();
    assert_eq!(process(host.runtime().status().await.unwrap()).identity.pid, stranger.id());
    stranger.kill().unwrap();
    stranger.wait().unwrap();
    // Root's own is not started a second time as somebody else.
    let mut roots = host.by_hand(&line);
    let error = host.runtime().status().await.unwrap_err().to_string();
    assert!(error.contains("it runs as root, and by the playbook it is nobody's"), "{error}");
    roots.kill().unwrap();
    roots.wait().unwrap();
}

/// A set-id program of root's in the folder of `binary`, such as `/usr/bin`, makes such a process of any user's.
#[tokio::test]
async fn what_looks_like_a_node_is_refused_while_that_runs_and_keeps_it_down_no_more() {
    if !nix::unistd::Uid::effective().is_root() {
        return eprintln!("skipped: another user takes root");
    }
    let mut host = Host::new();
    let line = ["-c", "kill -STOP $$", "--name", "orders-1", "--data-dir", "/srv/1"];
    fs::copy(fs::canonicalize("/bin/sh").unwrap(), host.path().join("releases/1.0.0-aaa/node")).unwrap();
    host.command.argv.truncate(1);
    host.command.argv.extend(line.map(String::from));
    host.command.user = Some("nobody".into());
    let (runtime, node) = (host.runtime(), host.start().await);
    runtime.check_alone(&node).unwrap();
    for (uid, arguments) in [(0, line.to_vec()), (65534, [&line[..], &["--debug"]].concat())] {
        let mut second = host.by_hand_as(uid, &arguments);
        while fs::read(format!("/proc/{}/cmdline", second.id())).unwrap().is_empty() {}
        let error = runtime.check_alone(&node).unwrap_err().to_string();
        let who = if uid == 0 { "root" } else { "nobody" };
        assert!(error.contains(&format!("pid {} (user {who}, {}", second.id(), host.path().display())), "{error}");
        second.kill().unwrap();
        second.wait().unwrap();
    }

    let mut second = host.by_hand(&line);
    while fs::read(format!("/proc/{}/cmdline", second.id())).unwrap().is_empty() {}
    runtime.stop(LIMIT, false).await.unwrap();
    // Whoever has not stopped it does not know which of them is the node.
    runtime.status().await.unwrap_err();
    runtime.start().await.unwrap_err();
    let started = process(runtime.start_stopped().await.unwrap().status);
    assert_ne!(started.identity.pid, second.id());
    assert_eq!(process(runtime.status().await.unwrap()), started);
    second.kill().unwrap();
    second.wait().unwrap();
}

/// What runs as the node's user can look exactly like it, as often as it likes.
#[tokio::test]
async fn once_the_agent_has_stopped_a_node_only_what_it_has_started_is_that_node() {
    let host = Host::new();
    let (runtime, first) = (host.runtime(), host.start().await);
    let mut lookalikes = [host.by_hand(&["600"]), host.by_hand(&["600"])];
    runtime.stop(LIMIT, false).await.unwrap();
    assert!(!first.identity.is_alive().unwrap());
    let error = runtime.status().await.unwrap_err().to_string();
    assert!(error.contains("runs more than once"), "{error}");

    let runtime = runtime.believing(Belief::Started(None));
    assert_eq!(runtime.status().await.unwrap(), Status::Stopped);
    let second = process(runtime.start_stopped().await.unwrap().status);
    assert!(lookalikes.iter().all(|likeness| likeness.id() != second.identity.pid));
    assert_eq!(process(runtime.start_stopped().await.unwrap().status), second, "not started twice");
    // As on a disk that takes no file.
    fs::remove_file(host.nodes().join("orders-1.json")).unwrap();
    let without_file = runtime.clone().believing(Belief::Started(Some(second.identity)));
    assert_eq!(process(without_file.status().await.unwrap()), second);

    without_file.stop(LIMIT, false).await.unwrap();
    assert!(!second.identity.is_alive().unwrap());
    // As on the way back, after it ended by itself: nothing else is stopped.
    without_file.stop(LIMIT, false).await.unwrap();
    for likeness in &mut lookalikes {
        assert!(likeness.try_wait().unwrap().is_none(), "it was stopped");
    }
    // An agent that comes later cannot tell them from the node either, and starts it.
    process(host.runtime().start_stopped().await.unwrap().status);
    for likeness in &mut lookalikes {
        likeness.kill().unwrap();
        likeness.wait().unwrap();
    }
}

/// By a person or a supervisor, while no agent was there.
#[tokio::test]
async fn a_stopped_node_that_somebody_else_has_started_is_seen_by_an_agent_that_comes_later() {
    let host = Host::new();
    host.start().await;
    host.runtime().stop(LIMIT, false).await.unwrap();
    let mut child = host.by_hand(&["600"]);
    while fs::read_link(format!("/proc/{}/exe", child.id())).is_ok_and(|exe| !exe.starts_with(host.path())) {}
    assert_eq!(process(host.runtime().start_stopped().await.unwrap().status).identity.pid, child.id());
    child.kill().unwrap();
    child.wait().unwrap();
}
