//! One host: it boots, crashes, boots again with its disk, and goes down in order.

use std::{
    fs::{self, File},
    net::Ipv4Addr,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use rustix::process::Signal;

use super::{
    control_group::ControlGroup,
    disk,
    network::{Link, Network},
    run,
};
use crate::{
    Error,
    process::Process,
    wait::{self, GENEROUS},
};

/// A host. It is gone with this value.
#[derive(Debug)]
pub struct Host {
    /// Its name, `h1`.
    pub name: String,
    /// Its disk as this machine sees it, whether it is up or down; without what is mounted on it there, such as /tmp.
    pub root: PathBuf,
    home: PathBuf,
    group: ControlGroup,
    link: Link,
}

impl Host {
    /// A host that is down, with a disk as it was delivered and a cable that is plugged in.
    ///
    /// # Errors
    /// It can't be made.
    pub fn new(network: &Network, shared_disk: &Path, number: u8) -> Result<Self, Error> {
        let name = format!("h{number}");
        let link = Link::new(network, number)?;
        let home = link.lease().home.join(&name);
        fs::create_dir(&home)?;
        let group = link.lease().control_group().within(&name);
        let root = disk::mount(shared_disk, &home)?;
        let host = Self { name, root, home, group, link };
        host.personalise(number)?;
        Ok(host)
    }

    /// What every host has of its own.
    fn personalise(&self, number: u8) -> Result<(), Error> {
        fs::write(self.root.join("etc/hostname"), format!("{}\n", self.name))?;
        fs::write(self.root.join("etc/hosts"), format!("127.0.0.1 localhost\n{} {}\n", self.address(), self.name))?;
        // By systemd's first boot it would be a random one; this one can be read in a failure.
        fs::write(
            self.root.join("etc/machine-id"),
            format!("{:028x}{:02x}{number:02x}\n", 0xba70, self.link.lease().number),
        )?;
        Ok(())
    }

    pub fn address(&self) -> Ipv4Addr {
        self.link.address
    }

    /// Boots it, and waits until its systemd has started all that it starts.
    ///
    /// # Errors
    /// It is up already, or does not come up.
    pub fn boot(&self) -> Result<(), Error> {
        if self.is_up() {
            return Err(format!("{} is up", self.name).into());
        }
        self.group.create()?;
        let console = File::options().create(true).append(true).open(self.console())?;
        let enter: String = self.group.doors().map(|door| format!("echo $$ >{} && ", door.display())).collect();
        let mut nspawn = Command::new("sh");
        nspawn.arg("-c").arg(format!("{enter} exec setsid systemd-nspawn \"$@\"")).arg("sh");
        nspawn.args(["--quiet", "--register=no", "--keep-unit", "--link-journal=no", "--console=pipe", "--boot"]);
        // systemd-nspawn has a folder for each machine of this name, and other tests have hosts of the same name.
        let machine = self.link.namespace().rsplit('/').next().map_or_else(|| self.name.clone(), str::to_owned);
        nspawn.arg(format!("--directory={}", self.root.display())).arg(format!("--machine={machine}"));
        nspawn.arg(format!("--hostname={}", self.name));
        nspawn.arg(format!("--network-namespace-path={}", self.link.namespace()));
        let mut child = nspawn.stdin(Stdio::null()).stdout(console.try_clone()?).stderr(console).spawn()?;
        // A child that ended stays in the process table until its parent has looked.
        std::thread::spawn(move || child.wait());
        wait::until_blocking(&format!("{} to be up", self.name), GENEROUS, || {
            // It hangs where systemd in the host has hung, and then nothing else would end the wait.
            let said = self.run(&["timeout", "30", "systemctl", "is-system-running", "--wait"]);
            let said = said.map_err(|error| format!("{error}: {}", self.last_words()))?;
            match said.stdout.trim() {
                // Which of its services failed is for the test to judge.
                "running" | "degraded" => Ok(()),
                state => Err(format!("it is {state}: {}", self.last_words())),
            }
        })?;
        Ok(())
    }

    /// The number of its PID 1 on this machine.
    pub(super) fn leader(&self) -> Option<i32> {
        self.group.pids().into_iter().find(|pid| {
            let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
            let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:")).unwrap_or_default();
            // It has a number here, and a number there.
            numbers.split_whitespace().skip(1).eq(["1"])
        })
    }

    /// Whether its systemd runs.
    pub fn is_up(&self) -> bool {
        self.leader().is_some()
    }

    /// Everything in it is gone at once. What was written is still there after the next boot, synced or not.
    ///
    /// # Errors
    /// It is not gone in time.
    pub fn crash(&self) -> Result<(), Error> {
        self.group.end()
    }

    /// Shuts it down in order, and waits for that.
    ///
    /// # Errors
    /// It is not down in time.
    pub fn power_off(&self) -> Result<(), Error> {
        let leader = Process::open(self.leader().ok_or_else(|| format!("{} is down", self.name))?)?;
        // RTMIN+4 is what PID 1 shuts down for (systemd(1)); no library sends such a signal by a pidfd.
        run("kill", &["-s", "RTMIN+4", &leader.pid.to_string()])?;
        self.went_down_as(&leader, GENEROUS)
    }

    /// Waits until it has gone down in order, whoever had it do so. [`boot`](Self::boot) has it up again: a reboot is
    /// both.
    ///
    /// # Errors
    /// It is not down in time.
    pub fn went_down(&self, limit: Duration) -> Result<(), Error> {
        match self.leader() {
            Some(leader) => self.went_down_as(&Process::open(leader)?, limit),
            None => self.group.end(),
        }
    }

    fn went_down_as(&self, leader: &Process, limit: Duration) -> Result<(), Error> {
        wait::until_blocking(&format!("{} to be down", self.name), limit, || {
            // An nsenter stops when systemd-shutdown stops what it has brought in, and is beyond the reach of the SIGCONT
            // that follows; what it brought in would stay a zombie, which systemd-shutdown waits for.
            for process in self.group.pids().into_iter().filter_map(|pid| Process::open(pid).ok()) {
                process.signal(Signal::CONT).map_err(|error| error.to_string())?;
            }
            if leader.is_alive() { Err("its PID 1 runs") } else { Ok(()) }.map_err(str::to_owned)
        })?;
        // The nspawn around it.
        self.group.end()
    }

    /// Cuts it off: it is heard by nobody, and hears nobody.
    ///
    /// # Errors
    /// The system refuses.
    pub fn cut_off(&self) -> Result<(), Error> {
        self.link.plugged(false)
    }

    /// Mends the cut.
    ///
    /// # Errors
    /// The system refuses.
    pub fn repair(&self) -> Result<(), Error> {
        self.link.plugged(true)
    }

    /// What it sends goes at this speed, and waits where there is more of it.
    ///
    /// # Errors
    /// The system refuses.
    pub fn slow_down(&self, kbit_per_second: u32) -> Result<(), Error> {
        self.link.slow(kbit_per_second)
    }

    /// What it sends goes at once again.
    ///
    /// # Errors
    /// The system refuses, or it was not slow.
    pub fn speed_up(&self) -> Result<(), Error> {
        self.link.fast()
    }

    /// It no longer hears the other, and is still heard by it.
    ///
    /// # Errors
    /// The system refuses.
    pub fn turn_deaf_to(&self, other: &Self) -> Result<(), Error> {
        self.link.deaf_to(other.address(), true)
    }

    /// It hears the other again.
    ///
    /// # Errors
    /// The system refuses, or it heard it before.
    pub fn listen_to(&self, other: &Self) -> Result<(), Error> {
        self.link.deaf_to(other.address(), false)
    }

    fn console(&self) -> PathBuf {
        self.home.join("console")
    }

    fn last_words(&self) -> String {
        let console = fs::read(self.console()).unwrap_or_default();
        let text = String::from_utf8_lossy(&console);
        text.lines().rev().take(5).collect::<Vec<_>>().join(" / ")
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.group.end();
        disk::unmount_below(&self.home);
    }
}
