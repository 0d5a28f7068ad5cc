//! What an executable is before it is trusted: a program of its own, that nobody else may change, of a release that it
//! names itself, asked as the user that it is for (`probe.rs`).

use std::{
    fs::{self, File},
    io::{self, Read},
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::fs::PermissionsExt,
    },
    path::{Path, PathBuf},
    time::Duration,
};

use proto::Release;

use super::{
    exec::{self, ExecError, Output, Unwaited, quoted},
    launcher,
    path_owner::{self, PathOwnerError},
    probe,
};
use crate::{
    host::{
        files::durable::{At, FileError},
        process::{credentials::Credentials, process_id::ProcessId},
        runtime::launch::Answer,
    },
    words::said,
};

/// How long `--version` may take.
const LIMIT: Duration = Duration::from_secs(30);

/// Why a file will not do as a node's executable.
#[derive(Debug, thiserror::Error)]
pub enum ExecutableError {
    /// It could not be looked at.
    #[error(transparent)]
    File(#[from] FileError),
    /// Somebody else may change it, or could not be told from one who may.
    #[error(transparent)]
    Owner(#[from] PathOwnerError),
    /// It is a folder, a device or the like, or has no execute permission.
    #[error("{} is no executable file", path.display())]
    NotExecutable { path: PathBuf },
    /// It is a script or another file that the kernel hands to an interpreter: then the running process is the
    /// interpreter, and nothing can be said of the release it runs.
    #[error("{} is {what}, not a program: name the program that it starts", path.display())]
    Wrapper {
        path: PathBuf,
        /// `a script (#!/bin/sh)`, `no ELF file`.
        what: String,
    },
    /// The kernel would not run it here (elf(5), `e_machine`).
    #[error("{} is built for {built_for}, and this host is {}", path.display(), std::env::consts::ARCH)]
    OtherMachine { path: PathBuf, built_for: String },
    /// `--version` could not be run to its end.
    #[error("cannot ask {} for its version", path.display())]
    Ask { path: PathBuf, source: ExecError },
    /// It could not be run as that user.
    #[error("cannot ask {} for its version: {reason}", path.display())]
    NotRun { path: PathBuf, reason: String },
    /// It refuses the arguments that the member is started with.
    #[error(
        "{} refuses the arguments of {node}: {}; write those that only another release takes as `args: [{{ add: […], for: \
         … }}]`",
        path.display(), said(why)
    )]
    Arguments {
        path: PathBuf,
        /// The member's name.
        node: String,
        /// What it said: `flag provided but not defined: -enable-v2`.
        why: String,
    },
    /// It was run but named no version.
    #[error("{} --version ended with {how} and named no version{}", path.display(), quoted(output))]
    NoVersion {
        path: PathBuf,
        /// `exit 1`, `signal 9`.
        how: String,
        output: String,
    },
}

/// Refuses what is not a program in ELF form with execute permission (elf(5)).
pub fn check(path: &Path) -> Result<(), ExecutableError> {
    check_at(path, path)
}

/// Looks at the one path and speaks of the other.
fn check_at(here: &Path, path: &Path) -> Result<(), ExecutableError> {
    let metadata = fs::metadata(here).at("look at", path)?;
    if !metadata.is_file() || metadata.permissions().mode() & 0o111 == 0 {
        return Err(ExecutableError::NotExecutable { path: path.into() });
    }
    let head = head(&mut File::open(here).at("open", path)?).at("read", path)?;
    if !head.starts_with(ELF) {
        return Err(ExecutableError::Wrapper { path: path.into(), what: kind(&head) });
    }
    match foreign_machine(&head, std::env::consts::ARCH) {
        Some(built_for) => Err(ExecutableError::OtherMachine { path: path.into(), built_for }),
        None => Ok(()),
    }
}

/// The machine that an ELF file is built for, where it is not this one. A kernel of 64 bits may run its 32-bit sibling's, and
/// of a machine that is not in this table nothing is known.
fn foreign_machine(head: &[u8], host: &str) -> Option<String> {
    const MACHINES: [(u16, &str, &str); 6] = [
        (3, "x86", "x86_64"),
        (62, "x86_64", "x86_64"),
        (40, "arm", "aarch64"),
        (183, "aarch64", "aarch64"),
        (243, "riscv64", "riscv64"),
        (22, "s390x", "s390x"),
    ];
    let bytes: [u8; 2] = head.get(18..20)?.try_into().ok()?;
    let is_big_endian = head.get(5) == Some(&2);
    let machine = if is_big_endian { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) };
    let (_, name, runs_on) = MACHINES.iter().find(|(number, ..)| *number == machine)?;
    let is_known = MACHINES.iter().any(|(_, name, _)| *name == host);
    (is_known && *runs_on != host && *name != host).then(|| (*name).to_owned())
}

/// How a program in ELF form begins.
pub(crate) const ELF: &[u8] = b"\x7fELF";

/// The first bytes of a file, enough to know its kind.
pub(crate) fn head(file: &mut File) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    file.take(128).read_to_end(&mut head)?;
    Ok(head)
}

/// What a file that is no program is, by its first bytes.
pub(crate) fn kind(head: &[u8]) -> String {
    match head.split(|byte| *byte == b'\n').next() {
        Some(line) if line.starts_with(b"#!") => format!("a script ({})", String::from_utf8_lossy(line).trim()),
        _ => "no ELF file".into(),
    }
}

/// Runs it with `--version` as this user and takes the first version in what it says (`etcd Version: 3.5.30`).
///
/// # Errors
/// Among others: somebody else than root and that user may change it.
pub async fn release(path: &Path, user: &Credentials) -> Result<Release, ExecutableError> {
    release_by(&launcher::own(), path, user).await
}

/// Whether it says by which Go it was made: etcd does, and the bundled node does not.
///
/// # Errors
/// As for [`release`].
pub async fn is_etcd(path: &Path, user: &Credentials) -> Result<bool, ExecutableError> {
    let asked = run(&launcher::own(), path_owner::open(path, &user.writers())?, path, user, &[]).await;
    let ended = asked.map_err(|source| ExecutableError::Ask { path: path.into(), source })?;
    Ok(ended.is_success() && ended.stdout.lines().any(|line| line.starts_with("Go Version:")))
}

/// As [`release`], with another program as launcher, which must do as [`launcher::main`]: for callers that are not the
/// agent.
pub async fn release_by(launcher: &[String], path: &Path, user: &Credentials) -> Result<Release, ExecutableError> {
    ask(launcher, path_owner::open(path, &user.writers())?, path, user).await
}

/// As [`release`], of a program that runs: the very file that its process executes, whatever has its name by now, and as
/// nobody else than the process runs as.
pub async fn release_of_process(process: ProcessId, user: &Credentials) -> Result<Release, ExecutableError> {
    let path = PathBuf::from(format!("/proc/{}/exe", process.pid));
    let flags = rustix::fs::OFlags::PATH | rustix::fs::OFlags::CLOEXEC;
    let program = rustix::fs::open(&path, flags, rustix::fs::Mode::empty()).at("open", &path)?;
    // Asked after it was opened: the file is this process's, and this process is that user's.
    let is_its = Credentials::of_process(process.pid).at("look at", &path)? == *user;
    match process.is_alive().at("look at", &path)? && is_its {
        true => ask(&launcher::own(), program, &path, user).await,
        false => Err(io::Error::from(io::ErrorKind::NotFound)).at("look at", &path)?,
    }
}

/// Has it read the arguments that a member is to be started with. etcd and the bundled node parse their flags before they
/// print a version, and start nothing; both end with 2 where one is wrong. Any other end says nothing about the arguments.
/// Gives what the program warns of.
///
/// # Errors
/// It refuses them; or somebody else than root and that user may change it.
pub async fn check_arguments(
    path: &Path,
    user: &Credentials,
    node: &str,
    arguments: &[String],
) -> Result<Vec<String>, ExecutableError> {
    let program = path_owner::open(path, &user.writers())?;
    let Ok(ended) = run(&launcher::own(), program, path, user, arguments).await else { return Ok(Vec::new()) };
    match ended.code {
        Some(WRONG_USAGE) => {
            let (node, why) = (node.to_owned(), fault_in(ended.output()).to_owned());
            Err(ExecutableError::Arguments { path: path.into(), node, why })
        }
        Some(0) => Ok(warnings_in(&ended.stderr).map(|warning| format!("{node}: {warning}")).collect()),
        _ => Ok(Vec::new()),
    }
}

/// How many warnings of a program are passed on.
const MAX_WARNINGS: usize = 8;

/// What the bundled node says of flags that it takes and that count for nothing; etcd says nothing here.
fn warnings_in(output: &str) -> impl Iterator<Item = &str> {
    output.lines().filter_map(|line| line.strip_prefix("warning: ")).map(said).take(MAX_WARNINGS)
}

/// The exit code of Go's `flag` package, and so of etcd, for a flag that is not known or has a wrong value.
const WRONG_USAGE: i32 = 2;

/// The line that says what is wrong: etcd has its usage behind it.
fn fault_in(output: &str) -> &str {
    let mut lines = output.lines().map(str::trim).filter(|line| !line.is_empty());
    lines
        .clone()
        .find(|line| line.contains("flag") || line.starts_with("error:"))
        .or_else(|| lines.next())
        .unwrap_or("exit 2")
}

pub(super) async fn run(
    launcher: &[String],
    program: OwnedFd,
    path: &Path,
    user: &Credentials,
    arguments: &[String],
) -> Result<exec::Ended, ExecError> {
    let argv = probe::argv(launcher, path, &user.clone().that_may_be_had(), arguments);
    exec::run_with(&argv, program.into(), LIMIT, &Output::Kept, Unwaited::KilledInItsSession).await
}

async fn ask(
    launcher: &[String],
    program: OwnedFd,
    path: &Path,
    user: &Credentials,
) -> Result<Release, ExecutableError> {
    // By the descriptor: what is looked at is what is run.
    check_at(&PathBuf::from(format!("/proc/self/fd/{}", program.as_raw_fd())), path)?;
    let asked = run(launcher, program, path, user, &[]).await;
    let ended = asked.map_err(|source| ExecutableError::Ask { path: path.into(), source })?;
    if let Some(reason) = not_run(&ended) {
        return Err(ExecutableError::NotRun { path: path.into(), reason });
    }
    let named = first_release(&ended.stdout).or_else(|| first_release(&ended.stderr));
    named.filter(|_| ended.is_success()).ok_or_else(|| ExecutableError::NoVersion {
        path: path.into(),
        output: ended.output().to_owned(),
        how: ended.how.clone(),
    })
}

/// Why the launcher did not become the program.
fn not_run(ended: &exec::Ended) -> Option<String> {
    match serde_json::from_str(ended.stdout.lines().next_back()?) {
        Ok(Answer::Failed { reason }) if !ended.is_success() => Some(reason),
        _ => None,
    }
}

fn first_release(text: &str) -> Option<Release> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+')));
    words.map(|word| word.trim_start_matches('v').trim_end_matches('.')).find_map(|word| word.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_version_is_found_in_what_programs_say() {
        for (text, release) in [
            ("etcd Version: 3.5.30\nGit SHA: 1a2b3c4\nGo Version: go1.25.1\n", Some("3.5.30")),
            ("node 3.6.0", Some("3.6.0")),
            ("tool v1.2.3, built 2026.", Some("1.2.3")),
            ("release 3.7.0-rc.1.", Some("3.7.0-rc.1")),
            ("address 127.0.0.1 only", None),
            ("", None),
        ] {
            assert_eq!(first_release(text).map(|r| r.to_string()).as_deref(), release, "{text:?}");
        }
    }

    #[test]
    fn what_a_program_warns_of_is_passed_on() {
        let told =
            "warning: --cluster-feature-gates: A=false counts for nothing\nelse\n warning: not one\nwarning: b\n";
        let found: Vec<_> = warnings_in(told).collect();
        assert_eq!(found, ["--cluster-feature-gates: A=false counts for nothing", "b"]);
        let many = "warning: x\n".repeat(20);
        assert_eq!(warnings_in(&many).count(), MAX_WARNINGS);
    }

    #[test]
    fn the_line_that_says_what_is_wrong_is_found() {
        for (output, expected) in [
            (
                "flag provided but not defined: -enable-v2\nUsage:\n\n  etcd [flags]",
                "flag provided but not defined: -enable-v2",
            ),
            (
                "{\"level\":\"warn\"}\ninvalid value \"x\" for flag -a: parse error\nUsage:",
                "invalid value \"x\" for flag -a: parse error",
            ),
            ("error: --x: there is no such setting", "error: --x: there is no such setting"),
            ("\n  no idea\nat all", "no idea"),
            ("", "exit 2"),
        ] {
            assert_eq!(fault_in(output), expected);
        }
    }

    #[test]
    fn a_program_for_another_machine_is_told_by_its_head() {
        for (data, machine, host, expected) in [
            (1, [62, 0], "x86_64", None),
            (1, [183, 0], "x86_64", Some("aarch64")),
            (1, [62, 0], "aarch64", Some("x86_64")),
            (1, [3, 0], "x86_64", None),
            (1, [40, 0], "aarch64", None),
            (2, [0, 22], "x86_64", Some("s390x")),
            (1, [0xff, 0xff], "x86_64", None), // nobody knows
            (1, [62, 0], "loongarch64", None),
        ] {
            let mut head = b"\x7fELF\x02".to_vec();
            head.push(data);
            head.resize(18, 0);
            head.extend(machine);
            assert_eq!(foreign_machine(&head, host).as_deref(), expected, "{machine:?} on {host}");
        }
        assert_eq!(foreign_machine(ELF, "x86_64"), None, "a file that ends before it says so");
    }

    #[test]
    fn a_wrapper_is_refused_by_name_and_kind() {
        let folder = tempfile::tempdir().unwrap();
        for (name, content, mode, expected) in [
            ("script", "#!/bin/sh -e\nexec etcd\n", 0o755, "script is a script (#!/bin/sh -e), not a program"),
            ("text", "hello", 0o755, "text is no ELF file, not a program"),
            ("empty", "", 0o755, "empty is no ELF file, not a program"),
            ("plain", "\x7fELF", 0o644, "plain is no executable file"),
        ] {
            let path = folder.path().join(name);
            fs::write(&path, content).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let error = check(&path).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        assert!(matches!(check(folder.path()), Err(ExecutableError::NotExecutable { .. })));
    }
}
