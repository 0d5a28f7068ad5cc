//! The process that has the hosts, and outlives the command that started it. Its end is theirs.
//!
//! It holds a lock on a file in the folder for as long as it lives, and its number is in that file: so a number that was
//! given out again is never taken for it.

use std::{
    env,
    fs::{self, File},
    io::{Read, Write},
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
    time::Duration,
};

use clap::Args;
use rustix::{
    fs::{FlockOperation, flock},
    process::Signal,
};
use tests::{
    Error, machine,
    process::Process,
    system::{Build, System},
    wait::GENEROUS,
};

use crate::{fleet::Fleet, folder::Folder};

/// What it prints once, when the hosts are there.
const READY: &str = "ready\n";

/// How often it looks whether its folder is still there.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// What is kept. All of it can be had: `up` has seen to that.
#[derive(Args)]
pub struct Keep {
    #[arg(long)]
    pub dir: PathBuf,
    #[arg(long)]
    pub disk: PathBuf,
    #[arg(long)]
    pub size: u8,
    #[arg(long, value_enum)]
    pub system: System,
    /// The folder of the release that members start with.
    #[arg(long)]
    pub from: PathBuf,
    /// The folder of the release that they shall go to.
    #[arg(long)]
    pub to: PathBuf,
}

impl Keep {
    /// Starts a keeper that outlives us, and waits until its hosts are ready.
    pub fn leave_running(&self) -> Result<(), Error> {
        fs::create_dir_all(&self.dir)?;
        File::options().append(true).create(true).open(self.dir.join(LOCK))?;
        let log = self.dir.join(LOG);
        let flags = [("--dir", &self.dir), ("--disk", &self.disk), ("--from", &self.from), ("--to", &self.to)];
        let mut keeper = Command::new("setsid");
        keeper
            .arg(env::current_exe()?)
            .arg("keep")
            .args(flags.iter().flat_map(|(name, path)| [name.as_ref(), path.as_os_str()]));
        keeper.args(["--size", &self.size.to_string(), "--system", self.system.name()]);
        let mut child = keeper.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(File::create(&log)?).spawn()?;
        let mut said = vec![0; READY.len()];
        if child.stdout.take().ok_or("no pipe")?.read_exact(&mut said).is_ok() {
            return Ok(());
        }
        child.wait()?;
        let why = fs::read_to_string(log)?;
        Folder::of(&self.dir).clear()?;
        Err(why.trim().trim_start_matches("error: ").into())
    }

    /// Boots the hosts and has them until it is interrupted, or the folder is gone.
    pub async fn keep(self) -> Result<ExitCode, Error> {
        let _lock = lock(&self.dir)?.ok_or_else(|| format!("hosts of {} are up already", self.dir.display()))?;
        let (from, to) = (Build::of(self.system, &self.from)?, Build::of(self.system, &self.to)?);
        let (_network, hosts) = machine::hosts(&self.disk, self.size)?;
        let fleet = Fleet { hosts: &hosts, from, to };
        Folder::of(&self.dir).write(&fleet)?;
        fleet.start().await?;
        // Nobody reads it where `up` was interrupted: then nobody wants the hosts.
        std::io::stdout().write_all(READY.as_bytes()).and_then(|()| std::io::stdout().flush())?;
        while self.dir.join(LOCK).exists() {
            tokio::time::sleep(LOOK_INTERVAL).await;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Where the keeper's lock and number are.
pub const LOCK: &str = "keeper";

/// What the keeper complains of.
pub const LOG: &str = "keeper.log";

/// The keeper's lock, with our number; `None` where another process has it.
fn lock(dir: &Path) -> Result<Option<File>, Error> {
    let mut file = File::options().read(true).write(true).create(true).truncate(false).open(dir.join(LOCK))?;
    if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
        return Ok(None);
    }
    file.set_len(0)?;
    write!(file, "{}", std::process::id())?;
    Ok(Some(file))
}

/// The keeper of the hosts of this folder, if they are up.
pub fn running(dir: &Path) -> Result<Option<Process>, Error> {
    let Ok(mut file) = File::open(dir.join(LOCK)) else { return Ok(None) };
    if flock(&file, FlockOperation::NonBlockingLockShared).is_ok() {
        return Ok(None);
    }
    let mut number = String::new();
    file.read_to_string(&mut number)?;
    Ok(Some(Process::open(number.parse()?)?))
}

/// Ends the keeper and waits until its hosts are gone; whether there was one.
pub fn end(dir: &Path) -> Result<bool, Error> {
    let Some(keeper) = running(dir)? else { return Ok(false) };
    keeper.signal(Signal::TERM)?;
    keeper.ended(2 * GENEROUS)?;
    Ok(true)
}
