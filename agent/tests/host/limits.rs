//! Runtime `process`: a node has the resource limits that it had, not those of whoever starts the agent.

use std::fs;

use agent::host::runtime::{Runtime, fitness::Needs};

use crate::process::{AGENT, Host, LIMIT};

/// Soft and hard limit of a process, by its name in `/proc`.
fn limit(pid: u32, name: &str) -> (String, String) {
    let limits = fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
    let mut words = limits.lines().find_map(|line| line.strip_prefix(name)).unwrap().split_ascii_whitespace();
    (words.next().unwrap().into(), words.next().unwrap().into())
}

/// A shell's limits, and with less than root's rights what comes before the launcher.
fn under(limits: &str, before: &str) -> Vec<String> {
    ["/bin/sh", "-c", &format!("{limits}; exec {before} \"$0\" \"$@\""), AGENT, "__launch"].map(String::from).to_vec()
}

/// Without the right to raise a hard limit, which root has outside of most containers.
fn without_right() -> &'static str {
    if nix::unistd::Uid::effective().is_root() { "setpriv --bounding-set -sys_resource --" } else { "" }
}

#[tokio::test]
async fn a_node_has_the_limits_that_it_had_before_it_was_stopped() {
    let mut host = Host::new();
    host.launcher = under("ulimit -S -n 300", "");
    host.start().await;
    host.runtime().stop(LIMIT, false).await.unwrap();

    host.launcher = under("ulimit -S -n 100; ulimit -S -f 2000", "");
    let second = host.start().await.identity.pid;
    assert_eq!(limit(second, "Max open files").0, "300");
    assert_eq!(limit(second, "Max file size").0, "unlimited");
    host.runtime().stop(LIMIT, false).await.unwrap();

    // More than it had is no harm.
    host.launcher = under("ulimit -S -n 400", "");
    let third = host.start().await.identity.pid;
    assert_eq!(limit(third, "Max open files").0, "400");
}

/// Nobody has seen it run: then nothing of the shell's may end it.
#[tokio::test]
async fn a_node_that_was_down_is_started_without_a_limit_that_may_end_it() {
    let mut host = Host::new();
    host.launcher = under("ulimit -S -f 2000; ulimit -S -t 3000; ulimit -S -v 9000000; ulimit -S -d 8000000", "");
    let pid = host.start().await.identity.pid;
    for name in ["Max file size", "Max cpu time", "Max address space", "Max data size"] {
        assert_eq!(limit(pid, name).0, "unlimited", "{name}");
    }
}

#[tokio::test]
async fn limits_that_cannot_be_had_are_refused_while_the_node_runs() {
    let mut host = Host::new();
    let check = async |host: &Host| Runtime::Process(host.runtime()).check(&Needs::default()).await;
    host.launcher = under("ulimit -n 300", "");
    host.start().await;
    for (limits, name, option) in [
        ("ulimit -f 2000", "Max file size", "fsize=unlimited:unlimited"),
        ("ulimit -n 100", "Max open files", "nofile=300:300"),
    ] {
        // What is only the soft limit may be raised by anybody.
        host.launcher = under(&limits.replace(" -", " -S -"), without_right());
        check(&host).await.unwrap();
        host.launcher = under(limits, without_right());
        let error = check(&host).await.unwrap_err().to_string();
        assert!(error.contains(&format!("it would have {name} ")), "{error}");
        assert!(error.contains(&format!("prlimit --pid $$ --{option}")), "{error}");
    }

    // Down, it is started with fewer files, and not where it would be killed.
    host.runtime().stop(LIMIT, false).await.unwrap();
    let pid = host.start().await.identity.pid;
    assert_eq!(limit(pid, "Max open files"), ("100".into(), "100".into()));
    host.runtime().stop(LIMIT, false).await.unwrap();
    host.launcher = under("ulimit -f 2000", without_right());
    let error = host.start_error().await;
    assert!(error.contains("prlimit --pid $$ --fsize=unlimited:unlimited"), "{error}");
}
