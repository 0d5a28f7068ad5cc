//! The real agent, run on one member's playbook as that member's host would run it.

use std::{
    env,
    ffi::OsString,
    fs::{self, File},
    os::unix::process::ExitStatusExt,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    time::Duration,
};

use crate::{
    Error,
    ended::Ended,
    events::{self, Event},
    process::Process,
    wait,
};

/// The agent to run: what `BATON_AGENT` names, else the one beside this program.
///
/// # Errors
/// There is none.
pub fn executable() -> Result<PathBuf, Error> {
    let agent = match env::var_os("BATON_AGENT") {
        Some(agent) => agent.into(),
        None => env::current_exe()?.with_file_name("agent"),
    };
    Ok(agent.canonicalize().map_err(|error| format!("no agent at {}: {error}", agent.display()))?)
}

/// An agent at work. It is killed with this value: a test that fails leaves none behind.
#[derive(Debug)]
pub struct Agent {
    child: Child,
    command: String,
    /// A folder of this run's own beside the playbook.
    files: PathBuf,
}

impl Agent {
    /// Starts `agent VERB playbook --output json` with more arguments.
    ///
    /// # Errors
    /// There is no agent, or its files cannot be made.
    pub fn start(verb: &str, playbook: &Path, more: &[&str]) -> Result<Self, Error> {
        Self::start_under(verb, playbook, more, |argv| argv)
    }

    /// The same with a command line that is wrapped, as the faults do.
    ///
    /// # Errors
    /// There is no agent, or its files cannot be made.
    pub fn start_under(
        verb: &str,
        playbook: &Path,
        more: &[&str],
        wrap: impl FnOnce(Vec<OsString>) -> Vec<OsString>,
    ) -> Result<Self, Error> {
        Self::start_of(&executable()?, verb, playbook, more, wrap)
    }

    /// The same of another program than [`executable`].
    ///
    /// # Errors
    /// It cannot be started, or its files cannot be made.
    pub fn start_of(
        program: &Path,
        verb: &str,
        playbook: &Path,
        more: &[&str],
        wrap: impl FnOnce(Vec<OsString>) -> Vec<OsString>,
    ) -> Result<Self, Error> {
        let files = fresh_folder(playbook)?;
        let argv = wrap(command_line(program, verb, playbook, &files.join("events"), more));
        let stdout = File::create(files.join("stdout"))?;
        Self::spawn(verb, playbook, &argv, stdout.into(), files)
    }

    /// Starts `agent run` with nobody at the other end of its stdout, and an events file that is always full.
    ///
    /// # Errors
    /// There is no agent, or its files cannot be made.
    pub fn start_deaf(playbook: &Path, wrap: impl FnOnce(Vec<OsString>) -> Vec<OsString>) -> Result<Self, Error> {
        let files = fresh_folder(playbook)?;
        let argv = wrap(command_line(&executable()?, "run", playbook, Path::new("/dev/full"), &[]));
        let (reader, writer) = std::io::pipe()?;
        drop(reader);
        Self::spawn("run", playbook, &argv, writer.into(), files)
    }

    fn spawn(verb: &str, playbook: &Path, argv: &[OsString], stdout: Stdio, files: PathBuf) -> Result<Self, Error> {
        let child = Command::new(&argv[0])
            .args(&argv[1..])
            .stdin(Stdio::null())
            .stdout(stdout)
            .stderr(File::create(files.join("stderr"))?)
            .spawn()
            .map_err(|error| format!("{}: {error}", argv[0].display()))?;
        Ok(Self { child, command: format!("agent {verb} {}", playbook.display()), files })
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether it still runs; a frozen one does.
    pub fn is_at_work(&self) -> bool {
        self.process().is_ok_and(|process| process.is_alive())
    }

    /// Its process, for signals.
    ///
    /// # Errors
    /// It is gone.
    pub fn process(&self) -> Result<Process, Error> {
        Ok(Process::open(self.child.id() as i32)?)
    }

    /// What it has written with `--events` so far.
    ///
    /// # Errors
    /// A line is no event.
    pub fn events(&self) -> Result<Vec<Event>, Error> {
        events::read(&self.files.join("events"))
    }

    /// What it has written to stderr so far.
    pub fn log(&self) -> String {
        fs::read_to_string(self.files.join("stderr")).unwrap_or_default()
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// It still runs after the deadline; then it is killed.
    pub async fn ended(mut self, deadline: Duration) -> Result<Ended, Error> {
        let what = format!("agent {} to end", self.files.display());
        let status = wait::until(&what, deadline, || {
            let status = self.child.try_wait().map_err(|error| error.to_string());
            std::future::ready(status.and_then(|status| status.ok_or_else(|| self.log())))
        })
        .await?;
        self.result(status)
    }

    fn result(&self, status: ExitStatus) -> Result<Ended, Error> {
        let stdout = fs::read_to_string(self.files.join("stdout")).unwrap_or_default();
        Ok(Ended {
            command: self.command.clone(),
            exit: status.code(),
            signal: status.signal(),
            result: serde_json::from_str(&stdout).ok(),
            stderr: self.log(),
            events: self.events()?,
        })
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        // Nothing when it has ended and was waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn command_line(program: &Path, verb: &str, playbook: &Path, events: &Path, more: &[&str]) -> Vec<OsString> {
    let mut argv = vec![program.into(), verb.into(), playbook.into()];
    argv.extend(["--output", "json"].map(OsString::from));
    if ["run", "rollback", "finalize", "resume", "guard"].contains(&verb) {
        argv.extend(["--events".into(), events.into()]);
    }
    argv.extend(more.iter().map(OsString::from));
    argv
}

fn fresh_folder(playbook: &Path) -> Result<PathBuf, Error> {
    let beside = playbook.parent().ok_or("a playbook lies in a folder")?;
    for number in 1.. {
        let folder = beside.join(format!("agent-{number}"));
        match fs::create_dir(&folder) {
            Ok(()) => return Ok(folder),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(format!("{}: {error}", folder.display()).into()),
        }
    }
    Err("no number is left".into())
}
