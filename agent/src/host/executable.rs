//! What an executable is before it is trusted: a program of its own, of a release that it names itself.

use std::{
    fs::{self, File},
    io::Read,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    time::Duration,
};

use proto::Release;

use super::{
    durable::{At, FileError},
    exec::{self, ExecError, Output, quoted},
};

/// How long `--version` may take.
const LIMIT: Duration = Duration::from_secs(30);

/// Why a file will not do as a node's executable.
#[derive(Debug, thiserror::Error)]
pub enum ExecutableError {
    /// It could not be looked at.
    #[error(transparent)]
    File(#[from] FileError),
    /// It is a folder, a device or the like, or has no execute permission.
    #[error("{} is no executable file", path.display())]
    NotExecutable {
        /// The file.
        path: PathBuf,
    },
    /// It is a script or another file that the kernel hands to an interpreter: then the running process is the
    /// interpreter, and nothing can be said of the release it runs.
    #[error("{} is {what}, not a program: name the program that it starts", path.display())]
    Wrapper {
        /// The file.
        path: PathBuf,
        /// `a script (#!/bin/sh)`, `no ELF file`.
        what: String,
    },
    /// `--version` could not be run to its end.
    #[error("cannot ask {} for its version", path.display())]
    Ask {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: ExecError,
    },
    /// It was run but named no version.
    #[error("{} --version ended with {how} and named no version{}", path.display(), quoted(output))]
    NoVersion {
        /// The file.
        path: PathBuf,
        /// `exit 1`, `signal 9`.
        how: String,
        /// The end of its output.
        output: String,
    },
}

/// Refuses what is not a program in ELF form with execute permission (elf(5)).
pub fn check(path: &Path) -> Result<(), ExecutableError> {
    let metadata = fs::metadata(path).at("look at", path)?;
    if !metadata.is_file() || metadata.permissions().mode() & 0o111 == 0 {
        return Err(ExecutableError::NotExecutable { path: path.into() });
    }
    let head = head(path)?;
    if head.starts_with(ELF) { Ok(()) } else { Err(ExecutableError::Wrapper { path: path.into(), what: kind(&head) }) }
}

/// How a program in ELF form begins.
pub(crate) const ELF: &[u8] = b"\x7fELF";

/// The first bytes of a file, enough to know its kind.
pub(crate) fn head(path: &Path) -> Result<Vec<u8>, FileError> {
    let mut head = Vec::new();
    File::open(path).at("open", path)?.take(128).read_to_end(&mut head).at("read", path)?;
    Ok(head)
}

/// What a file that is no program is, by its first bytes.
pub(crate) fn kind(head: &[u8]) -> String {
    match head.split(|byte| *byte == b'\n').next() {
        Some(line) if line.starts_with(b"#!") => format!("a script ({})", String::from_utf8_lossy(line).trim()),
        _ => "no ELF file".into(),
    }
}

/// Runs it with `--version` and takes the first version in what it says (`etcd Version: 3.5.30`).
pub async fn release(path: &Path) -> Result<Release, ExecutableError> {
    check(path)?;
    let argv = [path.to_string_lossy().into_owned(), "--version".into()];
    let ended = exec::run(&argv, LIMIT, &Output::Kept).await;
    let ended = ended.map_err(|source| ExecutableError::Ask { path: path.into(), source })?;
    let named = first_release(&ended.stdout).or_else(|| first_release(&ended.stderr));
    named.filter(|_| ended.is_success()).ok_or_else(|| ExecutableError::NoVersion {
        path: path.into(),
        output: ended.output().to_owned(),
        how: ended.how.clone(),
    })
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

    #[tokio::test]
    async fn a_wrapper_is_refused_by_name_and_kind() {
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
            let error = release(&path).await.unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        assert!(matches!(release(folder.path()).await, Err(ExecutableError::NotExecutable { .. })));
    }

    #[tokio::test]
    async fn a_real_program_is_asked() {
        let cargo = Path::new(env!("CARGO"));
        assert!(release(cargo).await.unwrap() >= Release::new(1, 88, 0));
        let error = release(Path::new("/bin/false")).await.unwrap_err();
        assert!(matches!(error, ExecutableError::NoVersion { .. }), "{error}");
    }
}
