//! Artifacts of every kind become releases.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
};

use agent::{
    host::release::{
        artifact::{Artifact, ArtifactError, Installed, Source, Underway, install},
        digest::Sha256,
        link::Link,
        unpack::UnpackError,
    },
    words::with_causes,
};
use proto::Release;
use tempfile::TempDir;

use crate::web::{Turn, Web};

struct Case {
    folder: TempDir,
}

impl Case {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn releases(&self) -> PathBuf {
        self.at("releases")
    }

    fn write(&self, name: &str, content: &[u8], mode: u32) -> PathBuf {
        let path = self.at(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    /// A folder laid out as etcd's release archives are.
    fn release_folder(&self) -> PathBuf {
        self.write("src/etcd-v3.5.30/etcd", b"\x7fELF the server", 0o755);
        self.write("src/etcd-v3.5.30/etcdctl", b"\x7fELF the client", 0o755);
        self.write("src/etcd-v3.5.30/README.md", b"text", 0o644);
        self.at("src")
    }

    fn release_archive(&self) -> Vec<u8> {
        let gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        let mut builder = tar::Builder::new(gz);
        builder.append_dir_all(".", self.release_folder()).unwrap();
        builder.into_inner().unwrap().finish().unwrap()
    }

    async fn install(&self, artifact: &Artifact) -> Result<Installed, ArtifactError> {
        install(artifact, &self.releases(), &self.at("downloads"), &|_| {}).await
    }

    /// The names in the folder of releases.
    fn installed(&self) -> Vec<String> {
        let entries = fs::read_dir(self.releases()).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.retain(|name| name != ".baton-lock");
        names.sort();
        names
    }
}

fn local(path: impl AsRef<Path>) -> Artifact {
    let source = Source::Path(path.as_ref().into());
    Artifact { release: Release::new(3, 5, 30), source, sha256: None, executable: None }
}

#[tokio::test]
async fn a_folder_an_archive_and_a_download_become_the_same_release() {
    let case = Case::new();
    let archive = case.release_archive();
    let web = Web::serve(&archive, &[Turn::Whole]);
    let artifacts = [
        (local(case.release_folder()), Sha256::of_folder(&case.release_folder()).unwrap()),
        (local(case.write("etcd.tar.gz", &archive, 0o644)), Sha256::of(&archive)),
        (
            Artifact { source: Source::Url(web.url.clone()), sha256: Some(Sha256::of(&archive)), ..local("") },
            Sha256::of(&archive),
        ),
    ];
    for (artifact, sha256) in artifacts {
        let case = Case { folder: tempfile::tempdir_in(case.folder.path()).unwrap() };
        let first = case.install(&artifact).await.unwrap();
        let folder = case.releases().join(format!("3.5.30-{}", sha256.short()));
        assert_eq!(first.executable, folder.join("etcd-v3.5.30/etcd"));
        assert_eq!((first.sha256, first.is_new, &first.folder), (sha256, true, &folder));
        assert_eq!(fs::read(&first.executable).unwrap(), b"\x7fELF the server");
        assert_eq!(fs::metadata(&first.executable).unwrap().permissions().mode() & 0o7777, 0o755);
        assert_eq!(fs::read(folder.join("etcd-v3.5.30/README.md")).unwrap(), b"text");
        let again = case.install(&artifact).await.unwrap();
        assert_eq!(again, Installed { is_new: false, ..first });
        assert_eq!(case.installed().len(), 1);
    }
    assert_eq!(web.asked(), [None], "downloaded once");
}

#[tokio::test]
async fn one_executable_is_a_release_too() {
    let case = Case::new();
    let program = case.write("node-3.6.0", b"\x7fELF program", 0o755);
    let installed = case.install(&local(&program)).await.unwrap();
    assert_eq!(installed.executable, installed.folder.join("node-3.6.0"));
    let named = Artifact { executable: Some("node".into()), release: Release::new(3, 6, 0), ..local(&program) };
    let installed = case.install(&named).await.unwrap();
    assert_eq!(installed.executable, installed.folder.join("node"));

    // From a URL, where it has no execute permission.
    let web = Web::serve(b"\x7fELF program", &[Turn::Whole]);
    let sha256 = Some(Sha256::of(b"\x7fELF program"));
    let artifact =
        Artifact { source: Source::Url(web.url.clone()), sha256, release: Release::new(3, 7, 0), ..local("") };
    let installed = case.install(&artifact).await.unwrap();
    assert_eq!(installed.executable, installed.folder.join("artifact"));
    assert_eq!(case.installed().len(), 3);
}

#[tokio::test]
async fn the_executable_is_found_or_asked_for() {
    let case = Case::new();
    for name in ["src/a/tool", "src/b/tool", "src/b/other"] {
        case.write(name, b"\x7fELF", 0o755);
    }
    let named = |name: &str| Artifact { executable: Some(name.into()), ..local(case.at("src")) };
    let error = case.install(&local(case.at("src"))).await.unwrap_err().to_string();
    assert!(error.ends_with("holds `a/tool`, `b/other`, `b/tool`: name the node's with `executable`"), "{error}");
    for (name, found) in [("other", Some("b/other")), ("a/tool", Some("a/tool")), ("tool", None), ("absent", None)] {
        match (case.install(&named(name)).await, found) {
            (Ok(installed), Some(found)) => assert_eq!(installed.executable, installed.folder.join(found)),
            (Err(ArtifactError::NoSuchExecutable { .. }), None) => {}
            (other, _) => panic!("{name}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn what_is_refused_leaves_nothing() {
    let case = Case::new();
    let wrong = Some(Sha256::of(b"another"));
    let script = case.write("wrapper", b"#!/bin/sh\nexec etcd\n", 0o755);
    let web = Web::serve(b"x", &[Turn::Whole]);
    let linked = case.release_folder();
    for (artifact, expected) in [
        (local(&script), "wrapper is a script (#!/bin/sh): expected a folder, a program or a .tar.gz"),
        (local(case.write("page.html", b"<html>", 0o644)), "page.html is no ELF file"),
        (Artifact { sha256: wrong, ..local(&script) }, "has the SHA-256"),
        (Artifact { sha256: wrong, ..local(&linked) }, "has the SHA-256"),
        (Artifact { source: Source::Url(web.url.clone()), ..local("") }, "needs `sha256`"),
        (local(case.at("absent")), "cannot look at"),
        (local(case.write("cut.tar.gz", &case.release_archive()[..200], 0o644)), "is no whole .tar.gz archive"),
    ] {
        let error = case.install(&artifact).await.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        assert_eq!(case.installed(), Vec::<String>::new(), "{expected}");
    }
    symlink("/etc/passwd", linked.join("link")).unwrap();
    let error = case.install(&local(linked)).await.unwrap_err().to_string();
    assert!(error.contains("link is a link"), "{error}");
    assert_eq!((case.installed(), web.asked()), (vec![], vec![]));
}

#[tokio::test]
async fn an_archive_cannot_write_outside_its_folder() {
    let case = Case::new();
    let mut builder = tar::Builder::new(flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast()));
    let mut header = tar::Header::new_gnu();
    header.as_old_mut().name[..10].copy_from_slice(b"../../evil");
    header.set_size(4);
    header.set_mode(0o755);
    header.set_cksum();
    builder.append(&header, b"\x7fELF".as_slice()).unwrap();
    let archive = case.write("evil.tar.gz", &builder.into_inner().unwrap().finish().unwrap(), 0o644);
    let error = case.install(&local(archive)).await.unwrap_err();
    assert!(matches!(error, ArtifactError::Unpack(UnpackError::Entry { .. })), "{error}");
    assert!(error.to_string().contains("`../../evil`"), "{error}");
    assert_eq!((case.installed(), case.at("evil").exists()), (vec![], false));
}

/// Whoever waits for it, for instance a person with Ctrl-C, is heard while a large artifact is read.
#[tokio::test]
async fn a_wait_for_an_artifact_can_be_given_up() {
    let case = Case::new();
    let large = case.write("etcd", b"\x7fELF", 0o755);
    fs::OpenOptions::new().write(true).open(&large).unwrap().set_len(2 << 30).unwrap();
    let tried = tokio::time::timeout(std::time::Duration::from_millis(100), case.install(&local(large))).await;
    assert!(tried.is_err(), "it was waited for to its end: {tried:?}");
}

/// A pipe would be waited for as long as its owner likes.
#[tokio::test]
async fn what_is_no_file_is_not_waited_for() {
    let case = Case::new();
    let pipe = case.at("etcd");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let endless = case.write("endless", b"\x7fELF", 0o755);
    fs::OpenOptions::new().write(true).open(&endless).unwrap().set_len(1 << 42).unwrap();
    let error = case.install(&local(endless)).await.unwrap_err();
    assert!(matches!(error, ArtifactError::Unpack(UnpackError::TooLarge { .. })), "{error}");
    let error = case.install(&local(pipe)).await.unwrap_err().to_string();
    assert!(error.contains("etcd is a folder, device, pipe or socket"), "{error}");
}

/// Agents of two clusters on one host, each with a state directory of its own. The server learns that nobody listens any
/// more from another thread than the one that waits for its end.
#[tokio::test(flavor = "multi_thread")]
async fn a_download_that_hangs_holds_up_no_other_agent() {
    let case = Case::new();
    let archive = case.release_archive();
    let web = Web::serve(&archive, &[Turn::Hang(10)]);
    let slow = Artifact { source: Source::Url(web.url.clone()), sha256: Some(Sha256::of(&archive)), ..local("") };
    let (began, begun) = tokio::sync::watch::channel(false);
    let (downloads, told) = (case.at("others"), |_| _ = began.send_replace(true));
    let (releases, mut begun) = (case.releases(), begun);
    let hanging = install(&slow, &releases, &downloads, &told);
    let other = async {
        begun.wait_for(|begun| *begun).await.unwrap();
        case.install(&local(case.at("src"))).await.unwrap()
    };
    tokio::select! {
        hung = hanging => panic!("{hung:?}"),
        installed = other => assert!(installed.is_new),
    }
}

#[tokio::test]
async fn an_agent_that_unpacks_is_waited_for_and_that_is_told() {
    let case = Case::new();
    fs::create_dir(case.releases()).unwrap();
    // Whoever may read the folder may lock it, and is not waited for (flock(2)).
    let folder = fs::File::open(case.releases()).unwrap();
    rustix::fs::flock(&folder, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let lock = fs::File::create(case.at("releases/.baton-lock")).unwrap();
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let other = std::sync::Mutex::new(Some(lock));
    let told = |underway| {
        assert_eq!(underway, Underway::Another(case.releases()));
        other.lock().unwrap().take();
    };
    let artifact = local(case.release_folder());
    assert!(install(&artifact, &case.releases(), &case.at("downloads"), &told).await.unwrap().is_new);
    assert!(other.lock().unwrap().is_none(), "it was waited for");
}

/// Whoever may write the artifact swaps it again and again; what is installed is what its checksum was compared for.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_installed_is_what_was_compared() {
    let good = b"\x7fELF good".repeat(20_000);
    let evil = b"\x7fELF evil".repeat(20_000);
    let case = Case::new();
    let path = case.write("etcd", &good, 0o755);
    let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let (swapped, done, contents) = (path.clone(), stop.clone(), [evil, good.clone()]);
    let swapper = std::thread::spawn(move || {
        let fresh = swapped.with_extension("new");
        for content in contents.iter().cycle().take_while(|_| !done.load(std::sync::atomic::Ordering::Relaxed)) {
            fs::write(&fresh, content).unwrap();
            fs::set_permissions(&fresh, fs::Permissions::from_mode(0o755)).unwrap();
            fs::rename(&fresh, &swapped).unwrap();
        }
    });
    let artifact = Artifact { sha256: Some(Sha256::of(&good)), ..local(&path) };
    let (mut installed, mut refused) = (0, 0);
    while installed < 20 || refused < 20 {
        match case.install(&artifact).await {
            Ok(found) => {
                installed += 1;
                assert!(fs::read(&found.executable).unwrap() == good, "another file was installed under its checksum");
                fs::remove_dir_all(&found.folder).unwrap();
            }
            Err(ArtifactError::OtherSha256 { .. }) => refused += 1,
            Err(error) => panic!("{error}"),
        }
    }
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    swapper.join().unwrap();
}

#[tokio::test]
async fn a_folder_is_not_believed_by_its_name() {
    let case = Case::new();
    let artifact = local(case.write("etcd", b"\x7fELF good", 0o755));
    let name = format!("releases/3.5.30-{}/etcd", Sha256::of(b"\x7fELF good").short());
    let there = case.write(&name, b"\x7fELF evil", 0o755);
    let error = case.install(&artifact).await.unwrap_err().to_string();
    let folder = there.parent().unwrap().display();
    assert!(error.contains("holds something else") && error.ends_with(&format!("rm -r {folder}")), "{error}");
    assert_eq!(fs::read(&there).unwrap(), b"\x7fELF evil", "it is left as it is");

    // The same content was put there by somebody else: it stays, and is known from now on.
    fs::write(&there, b"\x7fELF good").unwrap();
    assert!(!case.install(&artifact).await.unwrap().is_new);
    fs::write(&there, b"\x7fELF evil").unwrap();
    let error = case.install(&artifact).await.unwrap_err().to_string();
    assert!(error.contains("was changed since it was installed"), "{error}");
    assert_eq!(case.installed().len(), 1, "nothing is left beside it");
}

#[tokio::test]
async fn folders_that_others_may_write_to_are_refused() {
    let case = Case::new();
    let artifact = local(case.release_folder());
    let pinned = Artifact { sha256: Some(Sha256::of_folder(&case.release_folder()).unwrap()), ..artifact.clone() };
    let open = |name: &str, mode| fs::set_permissions(case.at(name), fs::Permissions::from_mode(mode)).unwrap();
    open("src/etcd-v3.5.30", 0o777);
    let error = case.install(&artifact).await.unwrap_err().to_string();
    assert!(error.starts_with("the artifact has no `sha256`, and ") && error.contains("chmod go-w "), "{error}");
    assert!(agent::host::release::artifact::check(&artifact, &case.releases()).is_err());
    // What it holds is known beforehand: then it may lie anywhere. But it is not run there.
    assert_eq!(agent::host::release::artifact::check(&pinned, &case.releases()).unwrap(), None);
    case.install(&pinned).await.unwrap();

    open("src/etcd-v3.5.30", 0o755);
    let release = case.releases().join(&case.installed()[0]);
    for (place, mode) in [("releases".to_owned(), 0o755), (release.display().to_string(), 0o755)] {
        open(&place, 0o777);
        for error in [
            with_causes(&case.install(&pinned).await.unwrap_err()),
            with_causes(&agent::host::release::artifact::check(&pinned, &case.releases()).unwrap_err()),
        ] {
            assert!(error.contains("0777") && error.contains("chmod go-w "), "{error}");
        }
        open(&place, mode);
    }
    case.install(&pinned).await.unwrap();
}

#[tokio::test]
async fn leftovers_go_and_releases_stay() {
    let case = Case::new();
    case.write("releases/.baton-unfinished-3.5.30-0123456789ab/etcd", b"half", 0o755);
    let old = case.write("releases/3.4.23-aaaaaaaaaaaa/etcd", b"\x7fELF old", 0o755);
    case.write("releases/3.3.0-bbbbbbbbbbbb/etcd", b"\x7fELF older", 0o755);
    symlink("releases/3.4.23-aaaaaaaaaaaa/etcd", case.at("current")).unwrap();
    let binary = Link::open(&case.at("current")).unwrap();
    let installed = case.install(&local(case.release_folder())).await.unwrap();
    assert_eq!(case.installed().len(), 3);
    binary.switch(&installed.executable).unwrap();
    assert_eq!(binary.current().unwrap(), installed.executable.canonicalize().unwrap());
    binary.switch(&old).unwrap();
    assert_eq!(fs::read(case.at("current")).unwrap(), b"\x7fELF old");
}

/// What the umask of a shell would do: it belongs to a whole process, so the test runs itself once more under it.
#[tokio::test]
async fn a_release_made_under_a_strict_umask_can_be_used_by_its_user() {
    const INNER: &str = "BATON_TEST_UNDER_UMASK";
    if std::env::var_os(INNER).is_none() {
        let this = std::env::current_exe().unwrap();
        let name = "artifact::a_release_made_under_a_strict_umask_can_be_used_by_its_user";
        let script = "umask 077 && exec \"$0\" \"$@\"";
        let mut again = std::process::Command::new("sh");
        again.args(["-c", script]).arg(this).args(["--exact", name]).env(INNER, "yes");
        let output = again.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"));
        return;
    }
    let case = Case::new();
    let archive = case.write("etcd.tar.gz", &case.release_archive(), 0o644);
    for source in [archive, case.release_folder(), case.at("src/etcd-v3.5.30/etcd")] {
        let case = Case { folder: tempfile::tempdir_in(case.folder.path()).unwrap() };
        let installed = case.install(&local(source)).await.unwrap();
        let folders = installed.executable.ancestors().skip(1).take_while(|folder| *folder != case.folder.path());
        for folder in folders {
            let mode = fs::metadata(folder).unwrap().permissions().mode() & 0o777;
            assert_eq!(mode, 0o755, "{}", folder.display());
        }
    }
}
