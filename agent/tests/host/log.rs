//! Runtime `process`: what is opened as whom. Another user may have the folder in which root is to open a file, or may not
//! read what root has written.

use std::{
    fs,
    io::Write,
    os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use agent::host::runtime::{Runtime, fitness::Needs};

use crate::process::{AGENT, Host};

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
