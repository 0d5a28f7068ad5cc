//! What a test does inside a host: commands, files, units, and space that runs out.

use std::{
    ffi::OsStr,
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use super::{control_group::ControlGroup, host::Host};
use crate::{Error, process::copy_program};

/// How a command inside a host ended.
#[derive(Clone, Debug)]
pub struct Said {
    /// Its exit code; `None` when a signal ended it, or the host's end.
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Host {
    /// A command inside it, to be run by the caller: as root, below PID 1 and no service of systemd's.
    ///
    /// # Errors
    /// The host is down.
    pub fn command<A: AsRef<OsStr>>(&self, argv: &[A]) -> Result<Command, Error> {
        let leader = self.leader().ok_or_else(|| format!("{} is down", self.name))?;
        let doors = ControlGroup::of(leader)?
            .doors()
            .map(|door| format!("echo $$ >{} && ", door.display()))
            .collect::<String>();
        let mut command = Command::new("sh");
        command.arg("-c").arg(format!("{doors} exec nsenter \"$@\"")).arg("sh");
        command.args(["--target", &leader.to_string()]);
        command.args(["--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup", "--root", "--wd", "--"]).args(argv);
        // Of the test's own variables it wants none.
        command
            .env_clear()
            .env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
            .env("LC_ALL", "C.UTF-8");
        command.stdin(Stdio::null());
        Ok(command)
    }

    /// Runs a command inside it to its end.
    ///
    /// # Errors
    /// The host is down.
    pub fn run<A: AsRef<OsStr>>(&self, argv: &[A]) -> Result<Said, Error> {
        let done = self.command(argv)?.output()?;
        Ok(Said {
            code: done.status.code(),
            stdout: String::from_utf8_lossy(&done.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&done.stderr).into_owned(),
        })
    }

    /// Runs a command inside it that must succeed, and returns what it printed.
    ///
    /// # Errors
    /// The host is down, or the command failed.
    pub fn must<A: AsRef<OsStr>>(&self, argv: &[A]) -> Result<String, Error> {
        let said = self.run(argv)?;
        if said.code == Some(0) {
            return Ok(said.stdout);
        }
        let words: Vec<_> = argv.iter().map(|word| word.as_ref().to_string_lossy()).collect();
        Err(format!("{}: {}: {said:?}", self.name, words.join(" ")).into())
    }

    /// Where a path of its own is on this machine.
    pub fn path(&self, own: impl AsRef<Path>) -> PathBuf {
        self.root.join(own.as_ref().strip_prefix("/").unwrap_or(own.as_ref()))
    }

    /// Writes a file of it, with the folders that it lies in.
    ///
    /// # Errors
    /// It can't be written.
    pub fn write(&self, own: impl AsRef<Path>, text: impl AsRef<[u8]>) -> Result<(), Error> {
        let path = self.path(own);
        fs::create_dir_all(path.parent().ok_or("a path without a folder")?)?;
        Ok(fs::write(path, text)?)
    }

    /// Copies a program into it, with the folders that it lies in.
    ///
    /// # Errors
    /// It can't be copied.
    pub fn install(&self, program: &Path, own: impl AsRef<Path>) -> Result<(), Error> {
        let path = self.path(own);
        fs::create_dir_all(path.parent().ok_or("a path without a folder")?)?;
        copy_program(program, &path)?;
        Ok(fs::set_permissions(path, fs::Permissions::from_mode(0o755))?)
    }

    /// Writes a unit, or a drop-in such as `etcd.service.d/limits.conf`; systemd reads it where the host is up.
    ///
    /// # Errors
    /// It can't be written, or systemd does not read it.
    pub fn write_unit(&self, name: &str, text: &str) -> Result<(), Error> {
        self.write(Path::new("/etc/systemd/system").join(name), text)?;
        match self.is_up() {
            true => self.must(&["systemctl", "daemon-reload"]).map(drop),
            false => Ok(()),
        }
    }

    /// Gives a folder of it a file system of its own with this many bytes, until the next boot. What was in the folder
    /// is not in sight meanwhile.
    ///
    /// # Errors
    /// The host is down, or the system refuses.
    pub fn confine(&self, folder: &str, bytes: u64) -> Result<(), Error> {
        self.must(&["mkdir", "-p", folder])?;
        self.must(&["mount", "-t", "tmpfs", "-o", &format!("size={bytes}"), "confined", folder]).map(drop)
    }
}
