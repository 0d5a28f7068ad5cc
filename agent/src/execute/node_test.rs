use std::{
    fs,
    os::unix::fs::symlink,
    process::{Child, Command, Stdio},
};

use tempfile::TempDir;

use super::*;
use crate::{host::files::state_dir::StateDir, playbook::Playbook};

struct Case {
    folder: TempDir,
    node: OwnNode,
    _state: StateDir,
}

impl Case {
    /// A restart's only node, with these lines.
    fn new(lines: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for release in ["3.5.1-aaaaaaaaaaaa", "3.5.2-bbbbbbbbbbbb"] {
            let releases = folder.path().join("releases").join(release);
            fs::create_dir_all(&releases).unwrap();
            fs::copy("/bin/sleep", releases.join("etcd")).unwrap();
        }
        symlink("releases/3.5.1-aaaaaaaaaaaa/etcd", folder.path().join("current")).unwrap();
        let head = "apiVersion: baton/v1\nkind: Restart\nrestart: { id: x }\ncluster: { name: c, endpoints: [\"http://h:1\"] }\n";
        let path = folder.path().join("restart.yaml");
        fs::write(&path, format!("{head}state_dir: state\nnodes:\n  - name: m1\n{lines}")).unwrap();
        let playbook = Playbook::load(&path).unwrap();
        let state = StateDir::open(&playbook.state_dir).unwrap();
        let node = OwnNode::open(&playbook.nodes[0], MemberId(1), &state, None).unwrap();
        Self { folder, node, _state: state }
    }
}

const COMMAND: &str = "    runtime: { kind: command, start: [start], stop: [stop], status: [status] }\n";
const FILES: &str = "    files: [{ path: conf, source: conf-3.6, for: \">=3.6\" }]\n";

#[tokio::test]
async fn without_a_binary_the_members_own_word_chooses_what_goes_with_its_release() {
    let mut case = Case::new(&format!("{COMMAND}{FILES}"));
    let unknown = case.node.current().await.unwrap();
    let error = case.node.check_release(&unknown).unwrap_err();
    assert!(error.to_string().contains("m1: its release is not known"), "{error}");

    case.node.reported = Some(Release::new(3, 6, 5));
    let reported = case.node.current().await.unwrap();
    assert_eq!(reported, Side { release: Release::new(3, 6, 5), executable: None });
    case.node.check_release(&reported).unwrap();
    assert_eq!(case.node.files_for(&reported.release).unwrap().len(), 1);

    // A step that was begun goes on with the release that it began with, whether or not the member answers.
    case.node.reported = None;
    case.node.sides = Some(Sides { old: reported.clone(), new: reported.clone(), binary: None });
    assert_eq!(case.node.current().await.unwrap(), reported);
}

#[tokio::test]
async fn a_release_that_nobody_knows_is_refused_only_where_something_goes_by_it() {
    let start = |word: &str| format!("    runtime: {{ kind: command, start: [{word}], stop: [a], status: [b] }}\n");
    for (lines, is_refused) in
        [(start("--version"), false), (start("\"a-{{node}}\""), false), (start("\"a-{{version}}\""), true)]
    {
        let case = Case::new(&lines);
        let side = case.node.current().await.unwrap();
        assert_eq!(case.node.check_release(&side).is_err(), is_refused, "{lines}");
    }
}

struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn a_process_that_is_not_what_the_link_names_is_refused_with_both() {
    let runtime = "    runtime: { kind: process, argv: [\"{{binary}}\", \"600\"], log: log }\n    binary: current\n";
    let mut case = Case::new(runtime);
    let link = case.folder.path().join("current");
    case.node.look_up().await.unwrap();
    case.node.check_what_runs(&case.node.status().await.unwrap()).unwrap();
    let mut command = Command::new(&link);
    let child = loop {
        // Another test was starting a process while the copy was written.
        match command.arg("600").stdin(Stdio::null()).spawn() {
            Err(error) if error.kind() == std::io::ErrorKind::ExecutableFileBusy => {
                command = Command::new(&link);
            }
            child => break Running(child.unwrap()),
        }
    };
    // A program that has just taken a process over has no arguments for a moment.
    let seen = async {
        loop {
            if let Some(process) = case.node.status().await.unwrap().process() {
                break process.identity.pid;
            }
            tokio::task::yield_now().await;
        }
    };
    assert_eq!(tokio::time::timeout(std::time::Duration::from_secs(60), seen).await, Ok(child.0.id()));
    case.node.check_what_runs(&case.node.status().await.unwrap()).unwrap();

    fs::remove_file(&link).unwrap();
    symlink("releases/3.5.2-bbbbbbbbbbbb/etcd", &link).unwrap();
    let error = case.node.check_what_runs(&case.node.status().await.unwrap()).unwrap_err();
    assert!(
        error.to_string().contains("runs")
            && error.to_string().contains("3.5.1-aaaaaaaaaaaa/etcd")
            && error.to_string().contains("3.5.2-bbbbbbbbbbbb/etcd"),
        "{error}"
    );
}

/// What the state directory held is lost with it: the way back then goes by the playbook, or not at all.
#[test]
fn files_of_a_lost_state_directory_go_back_by_the_playbook() {
    let old = "{ path: conf, source: conf-3.5, for: \"<3.6\" }";
    let new = "{ path: conf, source: conf-3.6, for: \">=3.6\" }";
    for (files, live, then, refused) in [
        (format!("{old}, {new}"), "of 3.6", "of 3.5", false),
        (new.to_owned(), "of 3.6", "of 3.6", true),
        // Never switched, or seen to by hand: not the agent's to touch.
        (format!("{old}, {new}"), "by hand", "by hand", false),
        (new.to_owned(), "by hand", "by hand", false),
    ] {
        let mut case = Case::new(&format!("{COMMAND}    files: [{files}]\n"));
        let at = |name: &str| case.folder.path().join(name);
        for (name, content) in [("conf", live), ("conf-3.5", "of 3.5"), ("conf-3.6", "of 3.6")] {
            fs::write(at(name), content).unwrap();
        }
        let side = |release| Side { release, executable: None };
        let sides = Sides { old: side(Release::new(3, 5, 30)), new: side(Release::new(3, 6, 5)), binary: None };
        let checked = case.node.check_way_back(&sides);
        assert_eq!(
            checked.as_ref().is_err_and(|why| why.to_string().contains("conf is that of 3.6.5")),
            refused,
            "{checked:?}"
        );
        case.node.sides = Some(sides);
        for _ in 0..2 {
            case.node.switch(Binary::Old).unwrap();
            assert_eq!(fs::read_to_string(at("conf")).unwrap(), then, "{files}, {live}");
        }
        // What is saved comes back, whatever the playbook has.
        fs::write(at("conf"), "before").unwrap();
        case.node.switch(Binary::New).unwrap();
        case.node.check_way_back(case.node.sides.as_ref().unwrap()).unwrap();
        case.node.switch(Binary::Old).unwrap();
        assert_eq!(fs::read_to_string(at("conf")).unwrap(), "before");
    }
}

#[tokio::test]
async fn a_program_that_does_not_say_its_release_keeps_no_member_down_whose_step_says_it() {
    let runtime = "    runtime: { kind: command, start: [\"{{version}}\"], stop: [stop], status: [status] }\n";
    let mut case = Case::new(&format!("{runtime}    binary: current\n"));
    let (link, program) = (case.folder.path().join("current"), case.folder.path().join("silent"));
    fs::write(&program, "no program").unwrap();
    fs::remove_file(&link).unwrap();
    symlink(&program, &link).unwrap();
    let side = |patch, executable: &Path| Side {
        release: Release::new(3, 5, patch),
        executable: Some(fs::canonicalize(executable).unwrap()),
    };
    let other = side(2, Path::new("/bin/sleep"));
    for (old, is_known) in [(None, false), (Some(other.clone()), false), (Some(side(1, &program)), true)] {
        case.node.sides = old.map(|old| Sides { old, new: other.clone(), binary: None });
        assert!(case.node.current().await.is_err());
        for in_step in [true, false] {
            case.node.runtime = None;
            let known = if in_step { case.node.look_up_in_step().await } else { case.node.look_up().await };
            assert_eq!(known.is_ok(), is_known, "{:?}", case.node.sides);
            let start = case.node.runtime.as_ref().map(|runtime| match runtime {
                Runtime::Command(command) => command.start.concat(),
                other => panic!("{other:?}"),
            });
            assert_eq!(start.as_deref(), is_known.then_some("3.5.1"));
        }
    }
}

/// `agent plan` makes no folder, and a run makes its own.
#[test]
fn a_log_in_a_state_directory_that_is_to_come_stands_in_no_plans_way() {
    for (log, is_to_come) in [("", true), (", log: elsewhere/m1.log", false)] {
        let case = Case::new(&format!("    runtime: {{ kind: process, argv: [/bin/sleep, \"9\"]{log} }}\n"));
        assert!(!case.node.log_is_to_come(), "{log}: the folder is there");
        fs::remove_dir_all(case.folder.path().join("state")).unwrap();
        assert_eq!(case.node.log_is_to_come(), is_to_come, "{log}");
    }
}
