//! What a running process was started as: all that it takes to start it again, read off `/proc`.

use std::{
    collections::BTreeMap,
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    time::Duration,
};

use nix::unistd::{Uid, User};
use rustix::fs::OFlags;

use super::{
    cgroup,
    credentials::Credentials,
    member_setting::variables_of,
    process_id::{command_line, read_bounded},
};
use crate::host::{
    program::exec::{self, Output},
    runtime::discovery::undeleted,
};

/// A process as it was started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    pub pid: u32,
    /// Its program as it was named, absolute, its links not followed.
    pub program: PathBuf,
    /// Its arguments, the program not among them.
    pub arguments: Vec<String>,
    pub env: BTreeMap<String, String>,
    pub cwd: PathBuf,
    /// Its user, where that is not this one.
    pub user: Option<String>,
    pub credentials: Credentials,
    /// The file that its output goes to, if it goes to one.
    pub log: Option<PathBuf>,
    /// The unit of systemd that it is the main process of.
    pub unit: Option<String>,
    /// Whether another file has its executable's name by now, or none.
    pub is_replaced: bool,
    /// Whether it runs in a container.
    pub is_contained: bool,
}

impl Snapshot {
    /// Looks at a process that runs.
    ///
    /// # Errors
    /// It has ended, or this user may not see it.
    pub async fn of(pid: u32) -> io::Result<Self> {
        let proc = PathBuf::from(format!("/proc/{pid}"));
        let exe = fs::read_link(proc.join("exe"))?;
        let cwd = fs::read_link(proc.join("cwd"))?;
        let env = variables_of(pid)?;
        let argv = command_line(pid)?;
        let name = undeleted(exe.clone());
        let program = argv.first().and_then(|word| named(word, &exe, &cwd, env.get("PATH"))).unwrap_or(name);
        let credentials = Credentials::of_process(pid)?;
        let uid = Uid::from_raw(credentials.uid);
        // One without a name could not be written down, and would be started as this user.
        let nameless = || io::Error::other(format!("it runs as uid {uid}, which is no user of this host"));
        let user = match uid == Uid::effective() {
            true => None,
            false => Some(User::from_uid(uid)?.ok_or_else(nameless)?.name),
        };
        Ok(Self {
            pid,
            program,
            arguments: argv.into_iter().skip(1).collect(),
            env,
            cwd,
            user,
            credentials,
            log: [1, 2].into_iter().find_map(|fd| written(pid, fd)),
            unit: unit(pid).await,
            is_replaced: undeleted(exe.clone()) != exe,
            is_contained: fs::read_link(proc.join("ns/pid"))? != fs::read_link("/proc/self/ns/pid")?,
        })
    }

    /// What it executes, whatever has become of the file's name.
    pub fn executable(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}/exe", self.pid))
    }
}

/// The path by which this word named that executable.
fn named(word: &str, exe: &Path, cwd: &Path, path: Option<&String>) -> Option<PathBuf> {
    let candidates: Vec<PathBuf> = match word.contains('/') {
        true => vec![cwd.join(word)],
        false => path.into_iter().flat_map(|path| std::env::split_paths(path)).map(|dir| dir.join(word)).collect(),
    };
    let is_it = |candidate: &PathBuf| fs::canonicalize(candidate).is_ok_and(|found| found == exe);
    candidates.into_iter().find(is_it).map(|path| path.components().collect())
}

/// The regular file that a process writes to by this descriptor. The text of its link alone says nothing: a file that the
/// process may only read, or one of that name elsewhere, would be opened for it by root (proc(5), `/proc/pid/fdinfo`).
fn written(pid: u32, descriptor: u32) -> Option<PathBuf> {
    let link = PathBuf::from(format!("/proc/{pid}/fd/{descriptor}"));
    let info = read_bounded(&format!("/proc/{pid}/fdinfo/{descriptor}")).ok()?;
    let info = String::from_utf8_lossy(&info).into_owned();
    let flags = info.lines().find_map(|line| line.strip_prefix("flags:"))?;
    let flags = OFlags::from_bits_retain(u32::from_str_radix(flags.trim(), 8).ok()?);
    if !flags.intersects(OFlags::WRONLY | OFlags::RDWR) {
        return None;
    }
    let path = fs::read_link(&link).ok()?;
    let (open, named) = (fs::metadata(&link).ok()?, fs::symlink_metadata(&path).ok()?);
    let is_same = (open.dev(), open.ino()) == (named.dev(), named.ino());
    (open.is_file() && is_same).then_some(path)
}

/// A process may live in a service that did not start it, such as that of the login that its starter came by.
async fn unit(pid: u32) -> Option<String> {
    let unit = cgroup::service_of(pid)?;
    let argv = ["systemctl", "show", "--value", "-p", "MainPID", "--", &unit].map(str::to_owned);
    let shown = exec::run(&argv, Duration::from_secs(5), &Output::Kept).await.ok()?.stdout;
    (shown.trim() == pid.to_string()).then_some(unit)
}

/// Of an environment what the member itself reads, and the names of what is kept out of a file: a playbook is read by
/// many, and a process's environment by few.
pub fn carried(env: &BTreeMap<String, String>) -> (BTreeMap<String, String>, Vec<String>) {
    // etcd reads no name with anything else in it.
    let is_name = |name: &str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let is_own = |name: &str| is_name(name) && (name.starts_with("ETCD_") || GO.contains(&name));
    let (secret, plain): (Vec<_>, Vec<_>) =
        env.iter().filter(|(name, _)| is_own(name)).partition(|(name, value)| is_secret(name, value));
    let plain = plain.into_iter().map(|(name, value)| (name.clone(), value.clone())).collect();
    (plain, secret.into_iter().map(|(name, _)| name.clone()).collect())
}

/// What Go's runtime reads (Go, package `runtime`, "Environment Variables").
const GO: [&str; 5] = ["GODEBUG", "GOGC", "GOMAXPROCS", "GOMEMLIMIT", "GOTRACEBACK"];

/// Whether a setting holds a secret: by its name, or as a URL with a password in it. Paths of keys are none.
pub fn is_secret(name: &str, value: &str) -> bool {
    let name = name.to_ascii_lowercase().replace('-', "_");
    let is_named = ["password", "passwd", "secret", "credential"].iter().any(|word| name.contains(word));
    let has_user = value.split_once("://").is_some_and(|(_, rest)| {
        rest.split('/').next().unwrap_or_default().rsplit_once('@').is_some_and(|(user, _)| user.contains(':'))
    });
    (is_named && !name.ends_with("_file")) || has_user
}

#[cfg(test)]
mod tests {
    use std::{os::unix::fs::symlink, process::Command};

    use super::*;

    #[test]
    fn only_what_the_member_reads_is_carried_and_no_secret() {
        let env = [
            ("ETCD_NAME", "a"),
            ("ETCD_PEER_KEY_FILE", "/etc/key.pem"),
            ("ETCD_INITIAL_CLUSTER_TOKEN", "orders"),
            ("ETCD_ROOT_PASSWORD", "hunter2"),
            ("ETCD_\nhooks: {}\n#password", "x"),
            ("ETCD_DISCOVERY_PROXY", "http://me:hunter2@proxy:3128"),
            ("ETCDCTL_PASSWORD", "hunter2"),
            ("GOGC", "50"),
            ("HOME", "/root"),
            ("AWS_SECRET_ACCESS_KEY", "x"),
        ];
        let env = env.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let (carried, withheld) = carried(&env);
        assert_eq!(
            carried.keys().collect::<Vec<_>>(),
            ["ETCD_INITIAL_CLUSTER_TOKEN", "ETCD_NAME", "ETCD_PEER_KEY_FILE", "GOGC"]
        );
        assert_eq!(withheld, ["ETCD_DISCOVERY_PROXY", "ETCD_ROOT_PASSWORD"]);
    }

    #[tokio::test]
    async fn a_process_is_seen_as_it_was_started() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().canonicalize().unwrap();
        let link = home.join("current");
        symlink(fs::canonicalize("/bin/sleep").unwrap(), &link).unwrap();
        let log = fs::File::create(home.join("log")).unwrap();
        for program in [link.to_str().unwrap(), "./current"] {
            let mut command = Command::new(program);
            command.arg("600").current_dir(&home).env_clear().env("ETCD_NAME", "a").stdout(log.try_clone().unwrap());
            let mut child = command.spawn().unwrap();
            // Its arguments are there a moment after its executable is.
            while command_line(child.id()).unwrap().is_empty() {}
            let seen = Snapshot::of(child.id()).await.unwrap();
            child.kill().unwrap();
            child.wait().unwrap();
            assert_eq!((&seen.program, &seen.arguments[..]), (&link, &["600".to_owned()][..]));
            assert_eq!((seen.env.len(), &seen.cwd, &seen.log), (1, &home, &Some(home.join("log"))));
            assert_eq!((seen.user, seen.is_contained), (None, false));
        }
    }

    #[test]
    fn only_a_file_that_a_process_writes_to_is_its_log() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap().join("log");
        let writes = fs::File::create(&path).unwrap();
        let reads = fs::File::open(&path).unwrap();
        let of = |file: &fs::File| written(std::process::id(), std::os::fd::AsRawFd::as_raw_fd(file) as u32);
        assert_eq!((of(&writes), of(&reads)), (Some(path.clone()), None));
        fs::remove_file(&path).unwrap();
        fs::write(path.with_file_name("log (deleted)"), "another's").unwrap();
        assert_eq!(of(&writes), None, "another file has that name");
    }
}
