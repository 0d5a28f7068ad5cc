//! Limits of the shell that starts the agent: they are not the members'.

use std::{ffi::OsString, fs};

use tests::{agent::Agent, case::Case, on_both, rollout::Ends, system::System};

on_both! {
    a_members_files_may_grow_however_the_agent_was_started, etcd #[ignore = "slow: the node's row shows the same"];
}

/// Enough for the agent and the release that it unpacks, and not for a member that lives on.
const LIMITED: &str = "ulimit -S -f 400000; ulimit -S -n 200; exec \"$@\"";

/// What the kernel says of a member's process: the largest file and the number of files that it may have.
fn limits(case: &Case, index: usize) -> Vec<String> {
    let process = case.member(index).process().expect("it runs");
    let limits = fs::read_to_string(format!("/proc/{}/limits", process.pid)).expect("it runs");
    limits
        .lines()
        .filter(|line| line.starts_with("Max file size") || line.starts_with("Max open files"))
        .map(str::to_owned)
        .collect()
}

async fn a_members_files_may_grow_however_the_agent_was_started(system: System) {
    let Some(case) = Case::of(system).await else { return };
    let case = case.strategy(&["join_window: 0s"]);
    let before = limits(&case, 0);
    let wrap = |argv: Vec<OsString>| {
        ["/bin/sh", "-c", LIMITED, "limited"].map(OsString::from).into_iter().chain(argv).collect()
    };
    let playbooks = case.write();
    let agent = Agent::start_under("run", &playbooks[0], &[], wrap).expect("an agent");
    agent.ends().await.must_be(0, "partial");
    assert_eq!(limits(&case, 0), before);
    // It is another process by now.
    assert_eq!(case.releases().await[0], case.to.release.to_string());
}
