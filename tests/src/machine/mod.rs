//! Real hosts on this machine: each has a disk, an address and a systemd of its own, and can crash.
//!
//! ```text
//! bridge bh7, 10.213.7.254 ── h1  10.213.7.1   a network namespace, and in it a systemd-nspawn that boots
//!                          ── h2  10.213.7.2   its disk: a layer over the one that scripts/fetch-hosts built
//!                          ── h3  10.213.7.3
//! ```
//!
//! Only root can make them, so a test that wants some begins with [`hosts_or_skip`]. They end with their values; those
//! of a test that was killed are cleared away by the next one that wants any, or by [`clear_left_over`].
//!
//! What they are not: no host of these has a kernel or a clock of its own. A crash keeps what was written but not synced.

mod control_group;
mod disk;
mod host;
mod inside;
mod lease;
mod network;

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

use self::lease::Lease;
pub use self::{host::Host, inside::Said, network::Network};
use crate::{Error, case::sure, fetched, skip::skip};

/// This many hosts that are up, in one network; `None` is a skip.
///
/// # Panics
/// They do not boot, though [the disk](disk_or_skip) is there.
pub fn hosts_or_skip(count: u8) -> Option<(Network, Vec<Host>)> {
    Some(sure(hosts(&disk_or_skip()?, count)))
}

/// This many hosts that are up, in one network, each on a layer of its own over this disk.
///
/// # Errors
/// One can't be made, or does not boot.
pub fn hosts(disk: &Path, count: u8) -> Result<(Network, Vec<Host>), Error> {
    let network = Network::new()?;
    let hosts = (1..=count).map(|number| Host::new(&network, disk, number)).collect::<Result<Vec<_>, _>>()?;
    // Side by side: a boot mostly waits.
    std::thread::scope(|scope| {
        let boots: Vec<_> = hosts.iter().map(|host| scope.spawn(|| host.boot())).collect();
        let ends = boots.into_iter().map(|boot| boot.join().unwrap_or_else(|_| Err("the boot panicked".into())));
        ends.collect::<Vec<_>>().into_iter().collect::<Result<(), _>>()
    })?;
    Ok((network, hosts))
}

/// Ends hosts whose process was killed, and clears away what is theirs.
///
/// # Errors
/// Something of them stays.
pub fn clear_left_over() -> Result<(), Error> {
    Lease::take().map(drop)
}

/// The [disk](disk) that hosts boot from. `None` is a skip: hosts cannot be had here.
///
/// # Panics
/// They cannot be had, and nobody said so before: then the test fails rather than pass without having run.
pub fn disk_or_skip() -> Option<PathBuf> {
    if let Ok(reason) = env::var("BATON_NO_HOSTS") {
        skip(&reason);
        return None;
    }
    // Looked for once: the script boots a host each time.
    static DISK: OnceLock<PathBuf> = OnceLock::new();
    Some(DISK.get_or_init(|| sure(disk())).clone())
}

/// The disk that hosts boot from, by the folder that `BATON_HOSTS` names, else by scripts/fetch-hosts.
///
/// # Errors
/// It can't be had; the text says why.
pub fn disk() -> Result<PathBuf, Error> {
    let Some(named) = env::var_os("BATON_HOSTS").map(PathBuf::from) else {
        return fetched::by_script("fetch-hosts", &[]);
    };
    match named.is_dir() {
        true => Ok(named),
        false => Err(format!("BATON_HOSTS names no folder: {}", named.display()).into()),
    }
}

/// A command's stdout; one that fails is an error with what it complained of.
fn run(program: &str, arguments: &[&str]) -> Result<String, Error> {
    let path = format!("{}:/usr/sbin:/sbin", env::var("PATH").unwrap_or_default());
    let done = Command::new(program).args(arguments).env("PATH", path).output();
    let done = done.map_err(|error| format!("{program}: {error}"))?;
    match done.status.success() {
        true => Ok(String::from_utf8_lossy(&done.stdout).into_owned()),
        false => {
            Err(format!("{program} {}: {}", arguments.join(" "), String::from_utf8_lossy(&done.stderr).trim()).into())
        }
    }
}
