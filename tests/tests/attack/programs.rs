//! Programs of another user, which root is to run: what listens at a member's address, what lies where a member's program
//! is looked for, what is to be installed, and hooks.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, chown, symlink},
    path::Path,
    process::Command,
};

use rustix::process::Signal;
use tests::{
    agent::{Agent, executable},
    case::Case,
    ended::Ended,
    playbook::{Upgrade, quoted, started_by_the_agent},
    ports::Ports,
    process::Process,
    rollout::{Ends, Rollout},
    spy::{NOBODY, Spy},
    system::System,
    wait,
};

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("its mode is set");
}

/// A refusal that names what to type, and changed nothing.
fn must_say(ended: &Ended, command: &str) {
    ended.must_be(3, "unprepared");
    assert!(ended.message().contains(command), "{command}: {ended}");
}

/// Every run of the spy was by nobody, without a variable; and there was one.
fn was_run_by_nobody(spy: &Spy) {
    let told = spy.told().expect("readable");
    assert!(!told.is_empty(), "it was never asked");
    for line in told.lines() {
        assert_eq!(line, format!("euid {NOBODY} env 0"), "{told}");
    }
}

/// Any user may listen where a member is down, or where it advertises that it listens.
#[tokio::test(flavor = "multi_thread")]
async fn init_does_not_run_as_root_what_listens_in_a_members_place() {
    let Some(mut case) = Case::with(System::Node, |spec| spec.size = 1).await else { return };
    let Some(spy) = Spy::make(&case.from.release.to_string()).expect("a spy") else { return };
    let ports = Ports::lease(1).expect("a port");
    let member = &mut case.cluster.layout.members[0];
    let url = format!("http://127.0.0.1:{}", ports.numbers[0]);
    let _listening = spy.listen("spy", NOBODY, ports.numbers[0], member.client_port).expect("it listens");
    let flags = member.flags.iter().map(|flag| match flag.starts_with("--advertise-client-urls=") {
        true => format!("--advertise-client-urls={url}"),
        false => flag.clone(),
    });
    member.start_anew(flags.collect()).expect("started");
    case.cluster.ready().await.expect("ready");

    let agent = executable().expect("an agent");
    let init = || {
        let typed = ["init", "--endpoints", &url, "--kind", "restart", "--id", "x"];
        let done = Command::new(&agent).args(typed).env("A_SECRET", "of root").output().expect("it ran");
        (done.status.code(), String::from_utf8_lossy(&[done.stdout, done.stderr].concat()).into_owned())
    };
    let (exit, said) = init();
    was_run_by_nobody(&spy);
    assert!(exit == Some(0) && said.contains("user: nobody"), "{said}");

    // What others may change is not even written down.
    mode(spy.program().parent().expect("a folder"), 0o777);
    let (exit, said) = init();
    assert!(exit != Some(0) && said.contains("chmod go-w"), "{said}");
}

/// A name may lead to two addresses of a host, and any user may listen at the second one, with a program of any name.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_goes_by_no_listener_of_another_user() {
    let Some(mut case) = Case::with(System::Node, |spec| spec.size = 1).await else { return };
    let Some(spy) = Spy::make(&case.from.release.to_string()).expect("a spy") else { return };
    let ports = Ports::lease(1).expect("a port");
    let url = format!("http://127.0.0.1:{}", ports.numbers[0]);
    let member = &mut case.cluster.layout.members[0];
    let to = member.client_port;
    let flags = member.flags.iter().map(|flag| match flag.starts_with("--advertise-client-urls=") {
        true => format!("{flag},{url}"),
        false => flag.clone(),
    });
    member.start_anew(flags.collect()).expect("started");
    case.cluster.ready().await.expect("ready");
    let case = case.strategy(&["join_window: 0s", "allow_downtime: true"]);
    let playbook = &case.write()[0];
    let plan = || Agent::start("plan", playbook, &[]).expect("an agent").ends();

    // Root's own may be another member of this host, and the one in the playbook the wrong one.
    let roots = spy.listen("node", 0, ports.numbers[0], to).expect("it listens");
    let ended = plan().await;
    ended.must_be(3, "unprepared");
    let who = format!("pid {} (user root, {})", roots.pid(), spy.at("node").display());
    assert!(ended.message().contains(&who), "{who}: {ended}");
    drop(roots);
    let _theirs = spy.listen("node", NOBODY, ports.numbers[0], to).expect("it listens");
    plan().await.must_be(0, "planned");
}

/// Puts another program in the place of the first member's, by a link of root's.
fn point_to(rollout: &Rollout, program: &Path) {
    let link = rollout.member(0).binary();
    let fresh = link.with_extension("new");
    symlink(program, &fresh).expect("linked");
    fs::rename(fresh, link).expect("replaced");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_members_program_is_asked_as_its_user() {
    let Some(mut case) = Case::of(System::Node).await else { return };
    let Some(spy) = Spy::make(&case.from.release.to_string()).expect("a spy") else { return };
    case.upgrade.runtime =
        |member| started_by_the_agent(member).into_iter().chain(["user: nobody".to_owned()]).collect();
    let rollout = case.begin().await;
    let before = rollout.pids();
    let folder = rollout.member(0).bin().join("releases/by-hand");
    fs::create_dir(&folder).expect("made");
    chown(&folder, Some(NOBODY), Some(NOBODY)).expect("given away");
    spy.give(&folder.join("node"), NOBODY).expect("given away");
    point_to(&rollout, &folder.join("node"));
    for verb in ["plan", "run"] {
        // It is not what runs: neither goes on.
        rollout.one(verb, 0).await.must_be(3, "unprepared");
    }
    was_run_by_nobody(&spy);

    // Where the member is root's, so is its program, or it is not asked at all.
    let roots = Upgrade { runtime: started_by_the_agent, ..rollout.upgrade.clone() };
    rollout.write_one(0, &roots);
    let told = spy.told().expect("readable");
    for verb in ["plan", "run"] {
        let ended = rollout.one(verb, 0).await;
        assert!(ended.exit != Some(0) && ended.to_string().contains("chown root "), "{ended}");
    }
    assert_eq!(spy.told().expect("readable"), told, "it was not asked");
    assert_eq!(rollout.pids(), before, "nothing was touched");
    rollout.end(0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_others_may_change_is_not_installed() {
    let Some(case) = Case::of(System::Node).await else { return };
    let Some(spy) = Spy::make(&case.to.release.to_string()).expect("a spy") else { return };
    let mut rollout = case.begin().await;
    let before = rollout.pids();
    let open = rollout.layout().dir.join("open");
    fs::create_dir(&open).expect("made");
    spy.give(&open.join("node"), 0).expect("copied");
    mode(&open, 0o777);
    rollout.upgrade.source = open.join("node");
    rollout.write();
    for verb in ["plan", "run"] {
        must_say(&rollout.one(verb, 0).await, &format!("type: chmod go-w {}; or give it a `sha256`", open.display()));
    }
    // By its checksum it may lie anywhere; but where it lies it is not run.
    let checksum = tests::cluster::sha256(&open.join("node")).expect("readable");
    rollout.upgrade.artifact = vec![format!("sha256: \"{checksum}\"")];
    rollout.write();
    rollout.one("plan", 0).await.must_be(0, "planned");
    assert_eq!(spy.told().expect("readable"), "", "it was not asked");
    // Nor is anything written where others may write.
    let bin = rollout.member(0).bin();
    mode(&bin, 0o777);
    for verb in ["plan", "run"] {
        must_say(&rollout.one(verb, 0).await, &format!("chmod go-w {}", bin.display()));
    }
    assert_eq!(rollout.pids(), before, "nothing was touched");
    rollout.end(0).await;
}

/// Hours may lie between preflight and a member's turn; here a hook is what happens in between.
#[tokio::test(flavor = "multi_thread")]
async fn a_release_that_was_changed_since_is_refused_before_the_stop() {
    let Some(case) = Case::of(System::Node).await else { return };
    let mut rollout = case.strategy(&["join_window: 0s"]).begin().await;
    let before = rollout.pids();
    let script =
        format!(r#"for it in "${{0%/*}}"/releases/{}-*/node; do echo more >> "$it"; done"#, rollout.to.release);
    rollout.upgrade.extra = hooks(&["/bin/sh", "-c", &script, "{{binary}}"]);
    rollout.write();
    let ended = rollout.one("run", 0).await;
    assert!(ended.exit == Some(1) && ended.to_string().contains("was changed since it was installed"), "{ended}");
    assert_eq!(rollout.pids(), before, "nothing was stopped");
    // Nor is it believed by the next run.
    let again = rollout.one("run", 0).await;
    assert!(again.exit == Some(3) && again.message().contains("was changed since it was installed"), "{again}");
    assert_eq!(rollout.pids(), before, "nothing was stopped");
    rollout.end(0).await;
}

fn hooks(before: &[&str]) -> Vec<String> {
    let words: Vec<_> = before.iter().map(|word| quoted(word)).collect();
    vec![format!("hooks: {{ before_node: [[{}]] }}", words.join(", "))]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hook_that_others_may_change_is_refused_before_anything_begins() {
    let Some(case) = Case::of(System::Node).await else { return };
    let mut rollout = case.begin().await;
    let before = rollout.pids();
    let hook = rollout.layout().dir.join("drain");
    fs::write(&hook, "#!/bin/sh\ntouch \"$0.ran\"\n").expect("written");
    mode(&hook, 0o777);
    rollout.upgrade.extra = hooks(&[&hook.display().to_string()]);
    rollout.write();
    for verb in ["plan", "run"] {
        must_say(&rollout.one(verb, 0).await, &format!("chmod go-w {}", hook.display()));
    }
    assert!(!rollout.layout().dir.join("drain.ran").exists());
    assert!(!rollout.keys().await.contains_key("run"), "nothing was begun");
    assert_eq!(rollout.pids(), before);
    rollout.end(0).await;
}

/// Whoever writes a playbook says what runs as root.
#[tokio::test(flavor = "multi_thread")]
async fn a_playbook_that_others_may_change_is_not_carried_out() {
    let Some(case) = Case::of(System::Node).await else { return };
    let rollout = case.begin().await;
    let before = rollout.pids();
    let playbook = &rollout.playbooks[0];
    let folder = playbook.parent().expect("it lies in a folder");
    for (place, open, closed) in [(playbook.as_path(), 0o666, 0o644), (folder, 0o777, 0o755)] {
        mode(place, open);
        for verb in ["plan", "run", "rollback"] {
            must_say(&rollout.one(verb, 0).await, &format!("chmod go-w {}", place.display()));
        }
        mode(place, closed);
    }
    // Its owner was chosen by naming the file, as with sudo(8).
    chown(playbook, Some(NOBODY), Some(NOBODY)).expect("given away");
    rollout.one("plan", 0).await.must_be(0, "planned");
    assert_eq!(rollout.pids(), before);
    rollout.end(0).await;
}

/// The member may go by another agent's hand in the next moment: nothing may still be done for the step that was ended.
#[tokio::test(flavor = "multi_thread")]
async fn a_hook_ends_with_its_agent() {
    let Some(case) = Case::of(System::Node).await else { return };
    let mut rollout = case.strategy(&["join_window: 0s"]).begin().await;
    let pids = rollout.layout().dir.join("pids");
    let script = "sleep 600 & echo $$ $! > \"$0.new\"; mv \"$0.new\" \"$0\"; wait";
    rollout.upgrade.extra = hooks(&["/bin/sh", "-c", script, &pids.display().to_string()]);
    rollout.write();
    let agents: Vec<_> = (0..3).map(|host| rollout.start(host)).collect();
    let read = || fs::read_to_string(&pids).map_err(|error| error.to_string());
    let told = wait::until_blocking("a hook", wait::GENEROUS, read).expect("it runs");
    let hook: Vec<_> = told.split_whitespace().map(|pid| Process::open(pid.parse().expect("a pid"))).collect();
    for agent in &agents {
        let process = agent.process().expect("it runs");
        process.signal(Signal::INT).expect("told");
        process.signal(Signal::TERM).expect("told again");
    }
    for agent in agents {
        assert_eq!(agent.ends().await.exit, Some(10));
    }
    for process in hook.into_iter().flatten() {
        let ended = process.ended(wait::GENEROUS);
        // A test that fails leaves nothing behind.
        let _ = process.signal(Signal::KILL);
        ended.expect("it ended");
    }
    rollout.end(0).await;
}
