//! Members under a supervisor of the operator's own, which the agent asks.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use rustix::process::Signal;
use tests::{
    case::Case,
    cluster::Member,
    ended::{Ended, all_must_be},
    on_both,
    playbook::quoted,
    process::Process,
    rollout::{Ends, all_end},
    skip::skip,
    system::System,
    wait,
};

on_both! {
    members_under_runit, etcd #[ignore = "slow: the node's row shows the same"];
    #[ignore = "slow: a minute and a half; a member under runit is stopped by default"]
    a_stop_that_outlives_its_agent_keeps_its_record;
    #[ignore = "slow: a stop that outlives its agent shows the same"]
    a_member_that_outlives_its_stop_and_its_agent_keeps_its_record;
    a_member_that_is_a_shell_for_a_moment, etcd #[ignore = "slow: the node's row shows the same"];
    #[ignore = "slow: members under runit run by default"]
    members_whose_status_has_no_pid;
}

fn is_installed(program: &str) -> bool {
    let found =
        std::env::var("PATH").unwrap_or_default().split(':').any(|folder| Path::new(folder).join(program).exists());
    if !found {
        skip(&format!("{program} is not installed"));
    }
    found
}

fn script(path: &Path, text: &str) {
    fs::write(path, format!("#!/bin/sh\n{text}\n")).expect("written");
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("executable");
}

fn command_line(member: &Member) -> String {
    let words = member.flags.iter().map(|flag| format!(" '{flag}'")).collect::<String>();
    format!("'{}'{words}", member.binary().display())
}

fn lines(start: &[&str], stop: &[&str], status: &[&str]) -> Vec<String> {
    let list = |argv: &[&str]| argv.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(", ");
    let verbs = [("start", start), ("stop", stop), ("status", status)];
    let verbs = verbs.map(|(verb, argv)| format!("{verb}: [{}]", list(argv)));
    ["kind: command".to_owned()].into_iter().chain(verbs).collect()
}

/// Waits until the member runs under somebody else than this test's own start of it.
fn runs(member: &Member) {
    wait::until_blocking(&format!("{} to run", member.name), wait::GENEROUS, || {
        member.process().map(drop).ok_or_else(|| "nobody runs it".into())
    })
    .expect("it runs");
}

/// A supervisor per member, by pid; they end before the members do, or they would start those again.
struct Supervisors(Vec<Process>);

impl Drop for Supervisors {
    fn drop(&mut self) {
        for process in &self.0 {
            // runsv ends its service and itself.
            let _ = process.signal(Signal::TERM);
            let _ = process.ended(wait::GENEROUS);
        }
    }
}

fn service(member: &Member) -> PathBuf {
    member.dir.join("service")
}

fn supervise(member: &Member) -> Process {
    let service = service(member);
    fs::create_dir(&service).expect("a folder");
    script(&service.join("run"), &format!("exec 2>&1\nexec {} >>'{}'", command_line(member), member.log().display()));
    let pid = service.join("supervise/pid");
    script(
        &member.dir.join("status"),
        &format!("pid=$(cat '{}') && [ -n \"$pid\" ] || exit 3\necho \"$pid\"", pid.display()),
    );
    member.end(Signal::TERM).expect("ended");
    let process =
        Process::start(&["runsv".as_ref(), service.as_os_str()], &member.dir.join("runsv.log")).expect("runsv");
    runs(member);
    process
}

fn by_runit(member: &Member) -> Vec<String> {
    let (service, status) = (service(member), member.dir.join("status"));
    let [service, status] = [service, status].map(|path| path.to_string_lossy().into_owned());
    lines(&["sv", "-w", "30", "start", &service], &["sv", "-w", "30", "stop", &service], &[&status])
}

async fn upgrades(case: Case, supervisors: Supervisors) -> Vec<Ended> {
    case.cluster.ready().await.expect("ready again");
    let rollout = case.begin().await;
    let _before_the_members = supervisors;
    let agents = rollout.all("run").await;
    all_must_be(&agents, 0, "done");
    rollout.arrives().await;
    rollout.witness.end().await.expect("a testimony").is_sound(1).expect("sound");
    agents
}

async fn members_under_runit(system: System) {
    if !is_installed("runsv") {
        return;
    }
    let Some(mut case) = Case::of(system).await else { return };
    case.upgrade.runtime = by_runit;
    let supervisors = Supervisors(case.layout().members.iter().map(supervise).collect());
    upgrades(case, supervisors).await;
}

/// A stop that waits for its member's clients to go, as long as there is a file that says so.
fn by_runit_after_a_drain(member: &Member) -> Vec<String> {
    let [service, status, stop] = [service(member), member.dir.join("status"), member.dir.join("stop")]
        .map(|path| path.to_string_lossy().into_owned());
    lines(&["sv", "-w", "30", "start", &service], &[&stop], &[&status])
}

fn drain(member: &Member) -> (String, String) {
    let [draining, clients] = ["draining", "clients"].map(|name| member.dir.join(name).display().to_string());
    let wait = format!("while [ -e '{clients}' ]; do sleep 0.05; done; sv -w 30 stop '{}'", service(member).display());
    (format!("touch '{draining}'"), wait)
}

async fn a_stop_that_outlives_its_agent_keeps_its_record(system: System) {
    the_record_stands_until_it_has_ended(system, |begins, waits| format!("{begins}\n{waits}")).await;
}

/// The stop command tells the member and ends; the member serves on for its clients.
async fn a_member_that_outlives_its_stop_and_its_agent_keeps_its_record(system: System) {
    let in_the_background = |begins, waits| format!("({waits}) </dev/null >/dev/null 2>&1 &\n{begins}");
    the_record_stands_until_it_has_ended(system, in_the_background).await;
}

async fn the_record_stands_until_it_has_ended(system: System, stop: impl Fn(String, String) -> String) {
    if !is_installed("runsv") {
        return;
    }
    let Some(mut case) = Case::of(system).await else { return };
    case.upgrade.runtime = by_runit_after_a_drain;
    let supervisors = Supervisors(case.layout().members.iter().map(supervise).collect());
    for member in &case.layout().members {
        let (begins, waits) = drain(member);
        script(&member.dir.join("stop"), &stop(begins, waits));
    }
    case.cluster.ready().await.expect("ready again");
    let rollout = case.begin().await;
    let _before_the_members = supervisors;
    let member = rollout.member(0).clone();
    let clients = member.dir.join("clients");
    fs::write(&clients, "").expect("written");

    let agent = rollout.start(0);
    wait::until_blocking("the stop to begin", wait::GENEROUS, || {
        member.dir.join("draining").exists().then_some(()).ok_or_else(|| "not yet".into())
    })
    .expect("it begins");
    agent.process().expect("it runs").signal(Signal::KILL).expect("killed");
    agent.ends().await;
    let record = rollout.keys().await["step"].clone();

    let again: Vec<_> = (0..3).map(|host| rollout.start(host)).collect();
    // Many times as long as it would take to find the member ready and to call the step over.
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(rollout.keys().await.get("step"), Some(&record), "the record stands as it stood");
    assert!(member.is_running());
    fs::remove_file(clients).expect("removed");
    all_must_be(&all_end(again).await, 0, "done");
    rollout.arrives().await;
    rollout.witness.end().await.expect("a testimony").is_sound(1).expect("sound");
}

/// Scripts whose `start` leaves a shell running that becomes the member a moment later, under one pid, as with
/// `exec chpst … etcd` in a service of runit's.
fn by_a_shell_that_becomes_it(member: &Member) -> Vec<String> {
    let [start, stop, status] = ["start", "stop", "status"].map(|name| member.dir.join(name).display().to_string());
    lines(&[&start], &[&stop], &[&status])
}

async fn a_member_that_is_a_shell_for_a_moment(system: System) {
    let Some(mut case) = Case::of(system).await else { return };
    case.upgrade.runtime = by_a_shell_that_becomes_it;
    let case = case.strategy(&["join_window: 0s"]);
    let member = case.member(0).clone();
    let (dir, log) = (member.dir.display(), member.log().display().to_string());
    script(&member.dir.join("run"), &format!("sleep 1; exec {}", command_line(&member)));
    script(&member.dir.join("start"), &format!("setsid '{dir}/run' </dev/null >>'{log}' 2>&1 &\necho $! >'{dir}/pid'"));
    let gone = format!("pid=$(cat '{dir}/pid')\nis_up() {{ [ -e /proc/$pid/exe ]; }}");
    script(&member.dir.join("stop"), &format!("{gone}\nkill $pid\nwhile is_up; do sleep 0.05; done"));
    script(&member.dir.join("status"), &format!("{gone}\nis_up || exit 3\necho $pid"));
    fs::write(member.dir.join("pid"), member.process().expect("it runs").pid.to_string()).expect("written");
    let rollout = case.begin().await;
    rollout.one("run", 0).await.must_be(0, "partial");
    assert_eq!(rollout.releases().await[0], rollout.to.release.to_string());
    rollout.end(1).await;
}

/// start-stop-daemon's files of a member: its pid, and its command line, which only `start` has.
fn by_start_stop_daemon(member: &Member) -> Vec<String> {
    let (pid, run) = (member.dir.join("pid"), member.dir.join("run"));
    let [pid, run] = [pid, run].map(|path| path.to_string_lossy().into_owned());
    let tool = "start-stop-daemon";
    lines(
        &[tool, "--start", "--background", "--make-pidfile", "--pidfile", &pid, "--exec", &run],
        &[tool, "--stop", "--pidfile", &pid, "--remove-pidfile", "--retry", "TERM/30/KILL/5"],
        // Its exit codes are those of the Linux Standard Base; it prints no pid.
        &[tool, "--status", "--pidfile", &pid],
    )
}

async fn members_whose_status_has_no_pid(system: System) {
    if !is_installed("start-stop-daemon") {
        return;
    }
    let Some(mut case) = Case::path(system, ("3.5", "3.6"), |_| {}).await else { return };
    case.upgrade.runtime = by_start_stop_daemon;
    for member in &case.layout().members {
        let run = member.dir.join("run");
        script(&run, &format!("exec {} >>'{}' 2>&1", command_line(member), member.log().display()));
        member.end(Signal::TERM).expect("ended");
        let start = Command::new("start-stop-daemon")
            .args(["--start", "--background", "--make-pidfile", "--pidfile"])
            .arg(member.dir.join("pid"))
            .arg("--exec")
            .arg(run)
            .status();
        assert!(start.expect("start-stop-daemon").success());
        runs(member);
    }
    for agent in upgrades(case, Supervisors(Vec::new())).await {
        assert!(agent.warnings().contains("pid"), "that the executable was not compared is said: {agent}");
    }
}
