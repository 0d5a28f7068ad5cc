//! Runtime `process`: what is opened as whom. Another user may have the folder in which root is to open a file, or may not
//! read what root has written.

use std::{
    fs,
    io::Write,
    os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use agent::host::runtime::{Runtime, Status, fitness::Needs};
use lab::mounted::Mounted;

use crate::process::{AGENT, Host, LIMIT, process, until};

/// `nobody`, whose node it is.
const NOBODY: u32 = 65534;

/// A node of nobody's whose log is in a folder of nobody's, and a file that only root may read; `None` is a skip.
fn nobodys() -> Option<(Host, PathBuf)> {
    if !nix::unistd::Uid::effective().is_root() {
        eprintln!("skipped: two users take root");
        return None;
    }
    let mut host = Host::new();
    let folder = host.path().join("log");
    fs::create_dir(&folder).unwrap();
    chown(&folder, Some(NOBODY), Some(NOBODY)).unwrap();
    host.command.user = Some("nobody".into());
    host.command.log = folder.join("node.log");
    let secret = host.path().join("secret");
    fs::write(&secret, "secret").unwrap();
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
    Some((host, secret))
}

async fn fault(host: &Host) -> Option<(&'static str, String)> {
    let unfit = Runtime::Process(host.runtime()).check(&Needs::default()).await.err()?;
    Some((unfit.field, unfit.fault))
}

async fn start_error(host: &Host) -> String {
    let error = host.runtime().start().await.unwrap_err().to_string();
    assert_eq!(host.running(), Vec::<u32>::new(), "{error}");
    error
}

#[tokio::test]
async fn a_link_in_the_place_of_a_log_leads_root_nowhere() {
    let Some((host, secret)) = nobodys() else { return };
    let log = &host.command.log;
    for hard in [false, true] {
        if hard {
            fs::hard_link(&secret, log).unwrap()
        } else {
            symlink(&secret, log).unwrap()
        }
        let (field, fault) = fault(&host).await.unwrap();
        assert!(field == "log" && fault.starts_with("nobody cannot append to"), "{field}: {fault}");
        let error = start_error(&host).await;
        let expected = format!("cannot open the log {} as nobody: ", log.display());
        assert!(error.contains(&expected) && error.contains("chown -h nobody "), "{error}");
        assert_eq!(fs::read_to_string(&secret).unwrap(), "secret");
        fs::remove_file(log).unwrap();
    }
    assert_eq!(fault(&host).await, None);
    host.start().await;
    let found = fs::metadata(log).unwrap();
    assert_eq!((found.uid(), found.mode() & 0o777), (NOBODY, 0o640), "opened as the user that it runs as");
}

#[tokio::test]
async fn a_log_in_roots_folder_needs_no_leave_of_its_nodes_user() {
    let Some((mut host, _)) = nobodys() else { return };
    host.command.log = host.path().join("node.log");
    assert_eq!(fault(&host).await, None);
    host.start().await;
    assert_eq!(fs::metadata(&host.command.log).unwrap().uid(), 0);
}

#[tokio::test]
async fn root_opens_no_log_of_its_own_in_a_folder_of_anothers() {
    let Some((mut host, secret)) = nobodys() else { return };
    host.command.user = None;
    for _ in 0..2 {
        let (field, fault) = fault(&host).await.unwrap();
        assert!(field == "log" && fault.contains("belongs to uid 65534"), "{field}: {fault}");
        let error = start_error(&host).await;
        assert!(error.contains("belongs to uid 65534") && error.contains("chown -h root "), "{error}");
        // With something there, and with nothing.
        let _ = symlink(&secret, &host.command.log);
    }
    assert_eq!(fs::read_to_string(&secret).unwrap(), "secret");
}

/// Started though its log cannot be used, as it was stopped for its step; what is warned of.
async fn started_all_the_same(host: &Host) -> String {
    start_error(host).await;
    let started = host.runtime().start_stopped().await.unwrap();
    assert_eq!(host.running(), [process(started.status).identity.pid]);
    host.runtime().stop(LIMIT, true).await.unwrap();
    let [warning] = &started.warnings[..] else { panic!("{:?}", started.warnings) };
    assert!(warning.contains(&format!("cannot open the log {}", host.command.log.display())), "{warning}");
    warning.clone()
}

#[tokio::test]
async fn a_stopped_node_is_started_without_its_log_and_its_output_is_kept() {
    let Some((mut host, secret)) = nobodys() else { return };
    host.start().await; // makes the state directory
    host.runtime().stop(LIMIT, true).await.unwrap();
    let instead = host.nodes().join("orders-1.log");
    assert!(!instead.exists(), "with a sound log there is no other");
    let sound = host.command.clone();

    // What is found there is the choice of the node's user: root's file is not for it.
    fs::remove_file(&sound.log).unwrap();
    symlink(&secret, &sound.log).unwrap();
    let warning = started_all_the_same(&host).await;
    assert!(warning.contains("chown -h nobody ") && warning.contains(&instead.display().to_string()), "{warning}");
    let found = fs::metadata(&instead).unwrap();
    assert_eq!((found.uid(), found.mode() & 0o777), (0, 0o600));

    // Its folder is gone, and there is nowhere to put its output.
    fs::remove_dir_all(sound.log.parent().unwrap()).unwrap();
    fs::remove_file(&instead).unwrap();
    fs::create_dir(&instead).unwrap();
    let warning = started_all_the_same(&host).await;
    let folder = sound.log.parent().unwrap().display();
    assert!(warning.contains(&format!("mkdir -p {folder} && chown nobody {folder}")), "{warning}");
    assert!(warning.contains("its output goes to /dev/null"), "{warning}");
    fs::remove_dir(&instead).unwrap();

    // Root's own log in a folder that another has.
    fs::create_dir(sound.log.parent().unwrap()).unwrap();
    chown(sound.log.parent().unwrap(), Some(NOBODY), Some(NOBODY)).unwrap();
    host.command.user = None;
    let warning = started_all_the_same(&host).await;
    assert!(warning.contains("belongs to uid 65534") && warning.contains("chown -h root "), "{warning}");
    assert_eq!(fs::read_to_string(&secret).unwrap(), "secret");
}

#[tokio::test]
async fn what_a_node_prints_that_has_no_log_is_kept_in_the_state_directory() {
    let mut host = Host::python("import time; print('said', flush=True); time.sleep(600)");
    host.command.log = host.path().join("absent/node.log");
    let folder = host.path().join("absent");
    for printed in ["said\n", "said\nsaid\n"] {
        let started = host.runtime().start_stopped().await.unwrap();
        assert!(started.warnings[0].contains(&format!("; type: mkdir -p {}", folder.display())), "{started:?}");
        let kept = host.nodes().join("orders-1.log");
        until("it is kept", || fs::read_to_string(&kept).is_ok_and(|text| text == printed)).await;
        host.runtime().stop(LIMIT, true).await.unwrap();
    }
}

#[tokio::test]
async fn a_stopped_node_is_started_from_a_state_directory_that_became_read_only() {
    let host = Host::new();
    let first = host.start().await;
    host.runtime().stop(LIMIT, true).await.unwrap();
    let Ok(read_only) = Mounted::read_only(&host.nodes()) else {
        return eprintln!("skipped: nothing can be mounted here");
    };
    assert_eq!(host.runtime().status().await.unwrap(), Status::Stopped);
    let started = host.runtime().start_stopped().await.unwrap();
    assert!(started.warnings[0].contains("Read-only file system"), "{started:?}");
    let second = process(started.status);
    assert_ne!(second.identity, first.identity);
    assert_eq!(process(host.runtime().status().await.unwrap()), second, "found by its looks");
    // The way back: what was started is stopped, and another takes its place.
    host.runtime().stop(LIMIT, true).await.unwrap();
    let third = process(host.runtime().start_stopped().await.unwrap().status);
    assert_eq!(host.running(), [third.identity.pid]);
    drop(read_only);
    host.runtime().stop(LIMIT, true).await.unwrap();
    assert_eq!(host.running(), Vec::<u32>::new());
}

#[tokio::test]
async fn a_stopped_node_is_started_from_a_state_directory_that_became_full() {
    let host = Host::new();
    let Ok(disk) = Mounted::tmpfs(&host.nodes(), 64 << 10) else {
        return eprintln!("skipped: nothing can be mounted here");
    };
    host.start().await;
    host.runtime().stop(LIMIT, true).await.unwrap();
    disk.fill().unwrap();
    let started = host.runtime().start_stopped().await.unwrap();
    assert!(started.warnings[0].contains("No space left on device"), "{started:?}");
    assert_eq!(process(host.runtime().status().await.unwrap()), process(started.status));
    host.runtime().stop(LIMIT, true).await.unwrap();
    assert_eq!(host.running(), Vec::<u32>::new());
}

/// What the launcher says, as nobody, of a file that is to take another's place.
fn tried(old: Option<&Path>, new: &Path) -> Result<(), String> {
    let switched = serde_json::json!({ "old": old, "new": new });
    let order =
        serde_json::json!({ "user": "nobody", "folders": [], "programs": [], "log": null, "switched": switched });
    let mut command = Command::new(AGENT);
    let mut child = command.args(["__launch", "trial"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(order.to_string().as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    output.status.success().then_some(()).ok_or_else(|| String::from_utf8(output.stdout).unwrap())
}

#[test]
fn what_a_nodes_user_can_read_now_it_must_be_able_to_read_when_it_is_switched() {
    let Some((host, closed)) = nobodys() else { return };
    let open = host.path().join("open");
    fs::write(&open, "").unwrap();
    for (old, new, fits) in [
        (Some(&open), &open, true),
        (Some(&open), &closed, false),
        (Some(&closed), &closed, true), // read by root alone, then as now
        (None, &open, true),
        (None, &closed, false),
    ] {
        let said = tried(old.map(PathBuf::as_path), new);
        assert_eq!(said.is_ok(), fits, "{old:?} {new:?}: {said:?}");
        if let Err(reason) = said {
            assert!(reason.contains("cannot read") && reason.contains("Permission denied"), "{reason}");
        }
    }
}

/// Of what its user put there no more is told than that user may read.
#[tokio::test]
async fn the_last_words_of_a_log_are_read_with_the_rights_of_who_may_choose_it() {
    let Some((mut host, secret)) = nobodys() else { return };
    let log = host.command.log.clone();
    let named = format!("its log is {}", log.display());
    let told = async |host: &Host| Runtime::Process(host.runtime()).last_words().await;
    assert_eq!(told(&host).await, named);
    for hard in [false, true] {
        if hard {
            fs::hard_link(&secret, &log).unwrap()
        } else {
            symlink(&secret, &log).unwrap()
        }
        assert_eq!(told(&host).await, named, "a hard link: {hard}");
        fs::remove_file(&log).unwrap();
    }
    nix::unistd::mkfifo(&log, nix::sys::stat::Mode::S_IRWXU).unwrap();
    chown(&log, Some(NOBODY), None).unwrap();
    assert_eq!(told(&host).await, named);
    fs::remove_file(&log).unwrap();

    let in_roots_folder = host.path().join("node.log");
    for path in [log, in_roots_folder] {
        fs::write(&path, "first\nno space left\n").unwrap();
        host.command.log = path.clone();
        assert_eq!(told(&host).await, format!("its log {} says last: first | no space left", path.display()));
    }
    // Without a user of its own, root reads nothing in another's folder.
    host.command.user = None;
    host.command.log = host.path().join("log/node.log");
    assert_eq!(told(&host).await, named);
}

/// Its log may be there again by then, with what an earlier process wrote.
#[tokio::test]
async fn the_last_words_are_those_of_the_file_that_was_written() {
    let mut host = Host::python("print('no space left', flush=True)");
    let folder = host.path().join("absent");
    let (log, kept) = (folder.join("node.log"), host.nodes().join("orders-1.log"));
    host.command.log = log.clone();
    let told = async || Runtime::Process(host.runtime()).last_words().await;
    let ends = async || {
        let node = process(host.runtime().start_stopped().await.unwrap().status).identity;
        until("it has ended", || !node.is_alive().unwrap()).await;
    };

    ends().await;
    fs::create_dir(&folder).unwrap();
    fs::write(&log, "long ago\n").unwrap();
    assert_eq!(told().await, format!("its log {} says last: no space left", kept.display()));

    // What an earlier process wrote there is no cause.
    ends().await;
    assert_eq!(told().await, format!("its log {} says last: no space left", log.display()));

    // Nowhere to write: what either file holds is of an earlier start.
    fs::remove_dir_all(&folder).unwrap();
    fs::remove_file(&kept).unwrap();
    fs::create_dir(&kept).unwrap();
    ends().await;
    fs::create_dir(&folder).unwrap();
    fs::write(&log, "long ago\n").unwrap();
    assert_eq!(told().await, "its log is /dev/null");
}
