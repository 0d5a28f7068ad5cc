//! Runtime `process`: whoever is killed, and when, a node is neither lost nor started twice.

use std::{
    env, fs,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use agent::host::{process::process_id::ProcessId, runtime::Status};

use crate::process::{AGENT, Host, LIMIT, order, process, session};

/// An agent that starts the node of `BATON_TEST_HOST`, for the tests below to kill.
#[test]
#[ignore = "run by other tests, as an agent to kill"]
fn as_an_agent() {
    let Ok(order) = env::var("BATON_TEST_ORDER") else { return };
    let (command, nodes) = serde_json::from_str(&order).unwrap();
    let runtime = agent::host::runtime::process::ProcessRuntime::new(command, nodes);
    let runtime = runtime.with_launcher(vec![AGENT.into(), "__launch".into()]);
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(runtime.start()).unwrap();
}

#[tokio::test]
async fn an_agent_killed_while_it_starts_a_node_leaves_one_or_none() {
    let mut started = [0, 0];
    for delay_us in (0..30).map(|step| step * 700) {
        let host = Host::new();
        let mut agent = Command::new(env::current_exe().unwrap())
            .args(["--exact", "process_crash::as_an_agent", "--ignored"])
            .env("BATON_TEST_ORDER", serde_json::to_string(&(&host.command, host.nodes())).unwrap())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        thread::sleep(Duration::from_micros(delay_us));
        agent.kill().unwrap();
        agent.wait().unwrap();
        let seen = host.runtime().status().await.unwrap();
        if seen == Status::Stopped {
            // Whatever was seen by a later agent stays true, however late a launcher of the dead one is.
            thread::sleep(Duration::from_millis(30));
            assert_eq!(host.running(), Vec::<u32>::new(), "killed after {delay_us} us");
        }
        let then = host.start().await;
        assert_eq!(host.running(), [then.identity.pid], "killed after {delay_us} us");
        if seen != Status::Stopped {
            assert_eq!(process(seen.clone()), then);
        }
        started[usize::from(seen != Status::Stopped)] += 1;
        host.runtime().stop(LIMIT, false).await.unwrap();
    }
    eprintln!("killed before the node ran: {}, after: {}", started[0], started[1]);
}

#[tokio::test]
async fn a_launcher_killed_at_any_of_its_calls_leaves_one_or_none() {
    if Command::new("strace").arg("-V").stdout(Stdio::null()).status().is_err() {
        return eprintln!("skipped: there is no strace, which kills the launcher at a chosen system call");
    }
    // All calls that change something, and the first that does not return; but for one for each signal that there is.
    let calls = "setsid,flock,openat,write,fchmod,fsync,rename,dup2,dup3,umask,chdir,execve,rt_sigprocmask,prlimit64";
    for number in 1.. {
        let host = Host::new();
        let inject = format!("inject={calls}:signal=KILL:when={number}");
        // Without the first exec, which makes it the launcher. Past the last, the node's own calls are let alone.
        let tracer = ["strace", "-o", "/dev/null", "-b", "execve", "-e", &inject].map(String::from);
        let order = order(&host, ProcessId::own().unwrap(), u64::MAX);
        let mut child = session(&host, &order, &tracer);
        drop(child.stdout.take());
        let begun = Instant::now();
        let unkilled = loop {
            if child.try_wait().unwrap().is_some() {
                break false;
            }
            if !host.running().is_empty() {
                break true;
            }
            assert!(begun.elapsed() < LIMIT, "call {number}");
            thread::sleep(Duration::from_millis(1));
        };
        let then = host.start().await;
        assert_eq!(host.running(), [then.identity.pid], "killed at call {number}");
        host.runtime().stop(LIMIT, true).await.unwrap();
        child.wait().unwrap();
        if unkilled {
            assert!(number > 10, "only {number} calls");
            return eprintln!("killed at each of {} calls", number - 1);
        }
    }
}

#[tokio::test]
async fn a_launcher_that_comes_late_starts_nothing() {
    let host = Host::new();
    let own = ProcessId::own().unwrap();
    let gone = ProcessId { start_time: own.start_time + 1, ..own };
    for (order, reason) in [
        (order(&host, own, 0), "the order to start it came too late"),
        (order(&host, gone, u64::MAX), "the agent that ordered it has ended"),
    ] {
        let output = session(&host, &order, &[]).wait_with_output().unwrap();
        let answer = String::from_utf8(output.stdout).unwrap();
        assert!(answer.contains(reason), "{answer}");
        assert_eq!(host.running(), Vec::<u32>::new());
        assert!(!fs::exists(host.nodes().join("orders-1.json")).unwrap());
    }
}
