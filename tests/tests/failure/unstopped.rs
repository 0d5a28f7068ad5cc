//! A process that does not end when it is told to. Either it serves on, or it waits for somebody.

use std::net::TcpStream;

use rustix::process::Signal;
use tests::{
    case::Case,
    ended::{all_must_be, one_must_fail},
    on_both,
    process::Process,
    system::System,
    wait,
};

on_both! {
    somebody_who_connects_and_says_nothing;
}

const PATIENT: [&str; 2] = ["join_window: 10s", "health: { timeout: 10s }"];

/// Becomes the program that it is given, and lets no SIGTERM through to it.
const DEAF: &str = "import os, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
os.execv(sys.argv[1], sys.argv[1:])";

/// Of the node alone: etcd, a Go program, takes the signal all the same.
#[tokio::test(flavor = "multi_thread")]
async fn a_member_that_outlives_its_stop_is_not_taken_for_another() {
    let Some(mut case) = Case::of(System::Node).await else { return };
    case.upgrade.every_node = vec!["stop: { timeout: 2s, kill: false }".into()];
    let (deaf, pid) = {
        let deaf = case.member(0);
        deaf.end(Signal::TERM).expect("it ends");
        let program = deaf.binary().display().to_string();
        let words = ["python3", "-c", DEAF, &program].map(str::to_owned).into_iter().chain(deaf.flags.clone());
        let process = Process::start(&words.collect::<Vec<_>>(), &deaf.log()).expect("started");
        (process, deaf.name.clone())
    };
    case.cluster.ready().await.expect("ready again");
    let rollout = case.strategy(&PATIENT).begin().await;
    let ended = rollout.all("run").await;
    assert_eq!(one_must_fail(&ended, "step_failed"), 0);
    let said = format!("{} {}", ended[0].message(), ended[0].warnings());
    assert!(said.contains(&format!("{pid} (pid {}) was told to stop, has not ended after 2s", deaf.pid)), "{said}");
    assert!(!said.contains("somebody else"), "{said}");
    assert_eq!(rollout.pids()[0], Some(deaf.pid), "nobody killed it");

    deaf.signal(Signal::KILL).expect("killed");
    all_must_be(&rollout.all("run").await, 0, "done");
    rollout.end(1).await;
}

/// etcd has closed its port by then, and waits for what is spoken on that connection (`embed.Etcd.Close`).
async fn somebody_who_connects_and_says_nothing(system: System) {
    let Some(mut case) = Case::path(system, ("3.5", "3.6"), |spec| spec.tls = false).await else { return };
    case.upgrade.every_node = vec!["stop: { timeout: 3s, kill: false }".into()];
    let silent = TcpStream::connect(("127.0.0.1", case.member(0).client_port)).expect("it listens");
    let mut rollout = case.strategy(&PATIENT).begin().await;
    let ended = rollout.all("run").await;
    if system == System::Etcd {
        assert_eq!(one_must_fail(&ended, "step_failed"), 0);
        let said = ended[0].message();
        let whose = format!("{}, of pid {} (", silent.local_addr().expect("an address"), std::process::id());
        assert!(said.contains("connections to its client port that have sent nothing yet"), "{said}");
        assert!(said.contains(&whose), "{whose}: {said}");
        drop(silent);
        let member = rollout.member(0);
        let gone = wait::until("it to end", wait::GENEROUS, || async {
            (!member.is_running()).then_some(()).ok_or_else(|| "it runs".to_owned())
        });
        gone.await.expect("it ends by itself");
        // Nobody holds the others up, who may be slow all the same.
        rollout.upgrade.every_node.clear();
        rollout.write();
        all_must_be(&rollout.all("run").await, 0, "done");
    } else {
        all_must_be(&ended, 0, "done");
    }
    rollout.end(1).await;
}
