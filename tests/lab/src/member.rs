//! One member: its folder, its release beside others, its process.

use std::{
    fs,
    io::Read,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use proto::Release;
use rustix::process::Signal;
use serde::{Deserialize, Serialize};

use crate::{
    Error,
    playbook::quoted,
    process::Process,
    system::{self, Build, System},
    wait,
};

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Member {
    /// Its `--name`.
    pub name: String,
    pub system: System,
    pub dir: PathBuf,
    pub client_url: String,
    pub client_port: u16,
    pub peer_port: u16,
    /// Its flags, the executable not among them.
    pub flags: Vec<String>,
}

pub(crate) fn name(index: usize) -> String {
    format!("m{}", index + 1)
}

impl Member {
    pub(crate) fn new(system: System, dir: &Path, index: usize, ports: (u16, u16), scheme: &str) -> Self {
        let (client_port, peer_port) = ports;
        let (name, dir) = (name(index), dir.join(name(index)));
        let client_url = format!("{scheme}://127.0.0.1:{client_port}");
        let peer_url = format!("{scheme}://127.0.0.1:{peer_port}");
        let flags = vec![
            format!("--name={name}"),
            format!("--data-dir={}", dir.join("data").display()),
            format!("--listen-client-urls={client_url}"),
            format!("--advertise-client-urls={client_url}"),
            format!("--listen-peer-urls={peer_url}"),
            "--initial-cluster-state=new".into(),
        ];
        Self { name, system, dir, client_url, client_port, peer_port, flags }
    }

    /// The folder of its executables.
    pub fn bin(&self) -> PathBuf {
        self.dir.join("bin")
    }

    /// The symlink to the one it runs.
    pub fn binary(&self) -> PathBuf {
        self.bin().join(self.system.name())
    }

    /// Its agent's, where it is on a host of its own.
    pub fn state_dir(&self) -> PathBuf {
        self.dir.join("baton")
    }

    /// The file that its output goes to.
    pub fn log(&self) -> PathBuf {
        self.dir.join(format!("{}.log", self.system))
    }

    /// Puts a release beside the others and points the symlink at it.
    ///
    /// # Errors
    /// It cannot be copied or the symlink not be made.
    pub fn install(&self, build: &Build) -> Result<(), Error> {
        let digest = sha256(&build.executable())?;
        let place = Path::new("releases").join(format!("{}-{}", build.release, &digest[..12]));
        fs::create_dir_all(self.bin().join(&place))?;
        let executable = place.join(self.system.name());
        crate::process::copy_program(&build.executable(), &self.bin().join(&executable))?;
        let fresh = self.bin().join(".new");
        symlink(executable, &fresh)?;
        Ok(fs::rename(fresh, self.binary())?)
    }

    /// Starts it.
    ///
    /// # Errors
    /// The executable does not start.
    pub fn start(&self) -> Result<Process, Error> {
        let argv: Vec<_> = [self.binary().display().to_string()].into_iter().chain(self.flags.clone()).collect();
        Process::start(&argv, &self.log())
    }

    /// Starts it again, with these flags from now on.
    ///
    /// # Errors
    /// It does not end, or does not start.
    pub fn start_anew(&mut self, flags: Vec<String>) -> Result<Process, Error> {
        self.flags = flags;
        self.end(Signal::TERM)?;
        self.start()
    }

    /// Where its configuration is, once it has one.
    pub fn config(&self) -> PathBuf {
        self.dir.join(format!("{}.yaml", self.system))
    }

    /// Starts it again with its flags, and one more line, in a configuration file; gives the flags' lines.
    ///
    /// # Errors
    /// The file cannot be written, or the member does not end or start.
    pub fn configure(&mut self, more: &str) -> Result<String, Error> {
        let flags = self.flags.iter().filter_map(|flag| flag.strip_prefix("--")?.split_once('='));
        let lines: String = flags.map(|(name, value)| format!("{name}: {}\n", quoted(value))).collect();
        fs::write(self.config(), format!("{lines}{more}\n"))?;
        self.start_anew(vec![format!("--config-file={}", self.config().display())])?;
        Ok(lines)
    }

    /// Its process, whoever started it.
    pub fn process(&self) -> Option<Process> {
        Process::under(&self.bin()).pop()
    }

    pub fn is_running(&self) -> bool {
        self.process().is_some()
    }

    /// Sends its process SIGTERM and does not wait.
    ///
    /// # Errors
    /// The signal may not be sent.
    pub fn ask_to_end(&self) -> Result<(), Error> {
        Ok(Process::under(&self.bin()).iter().try_for_each(|process| process.signal(Signal::TERM))?)
    }

    /// Sends its process a signal and waits until it is gone.
    ///
    /// # Errors
    /// It is still there after [`wait::GENEROUS`].
    pub fn end(&self, signal: Signal) -> Result<(), Error> {
        for process in Process::under(&self.bin()) {
            process.signal(signal)?;
            process.ended(wait::GENEROUS)?;
        }
        Ok(())
    }

    /// The release that its symlink points at.
    ///
    /// # Errors
    /// It does not say.
    pub fn release(&self) -> Result<Release, Error> {
        system::said_by(&self.binary())
    }

    /// The end of its log, for messages.
    pub fn last_words(&self) -> String {
        let log = fs::read(self.log()).unwrap_or_default();
        let text = String::from_utf8_lossy(&log);
        let lines: Vec<_> = text.lines().rev().take(3).collect();
        lines.into_iter().rev().collect::<Vec<_>>().join(" / ")
    }
}

/// The checksum of a file, in hexadecimal.
///
/// # Errors
/// It cannot be read.
pub fn sha256(file: &Path) -> Result<String, Error> {
    let mut hash = <sha2::Sha256 as sha2::Digest>::new();
    let mut file = fs::File::open(file)?;
    let mut block = vec![0; 1 << 20];
    loop {
        match file.read(&mut block)? {
            0 => break,
            length => sha2::Digest::update(&mut hash, &block[..length]),
        }
    }
    Ok(sha2::Digest::finalize(hash).iter().map(|byte| format!("{byte:02x}")).collect())
}
