//! Ports that stay a member's own while it is down.
//!
//! A member is stopped and started again on one port. A port that the kernel gave out (bind to 0) could go
//! to any outgoing connection in between, so these lie below the range that the kernel gives out
//! (`ip_local_port_range`), and a lock file keeps them from every other user of this crate on the machine.

use std::{
    fs::{self, File, Permissions},
    io,
    net::{Ipv4Addr, TcpListener},
    os::unix::fs::PermissionsExt,
    path::Path,
    process,
    time::{SystemTime, UNIX_EPOCH},
};

use rustix::fs::{FlockOperation, flock};

const FIRST: u16 = 20_000;
const COUNT: u16 = 11_000;

/// Ports of 127.0.0.1 that nobody else takes while this value lives.
#[derive(Debug)]
pub struct Ports {
    pub numbers: Vec<u16>,
    _locks: Vec<File>,
}

impl Ports {
    /// Leases this many free ports.
    ///
    /// # Errors
    /// The lock folder cannot be written, or there are not that many.
    pub fn lease(count: usize) -> io::Result<Self> {
        Self::lease_from(arbitrary(), count)
    }

    /// Leases this many free ports that follow one another.
    ///
    /// # Errors
    /// The lock folder cannot be written, or there is no such row.
    pub fn lease_in_a_row(count: usize) -> io::Result<Self> {
        let start = arbitrary();
        for offset in 0..COUNT {
            let leased = Self::lease_from(start + offset, count)?;
            if leased.numbers.windows(2).all(|pair| pair[0] + 1 == pair[1]) {
                return Ok(leased);
            }
        }
        Err(io::Error::new(io::ErrorKind::AddrInUse, format!("no {count} free ports in a row from {FIRST} on")))
    }

    /// Leases just these; `None` where one of them is somebody's.
    ///
    /// # Errors
    /// The lock folder cannot be written.
    pub fn lease_these(numbers: &[u16]) -> io::Result<Option<Self>> {
        let locks = numbers.iter().map(|port| lock(*port)).collect::<io::Result<Option<Vec<_>>>>()?;
        Ok(locks.map(|locks| Self { numbers: numbers.to_vec(), _locks: locks }))
    }

    fn lease_from(start: u16, count: usize) -> io::Result<Self> {
        let mut leased = Self { numbers: Vec::new(), _locks: Vec::new() };
        for offset in 0..COUNT {
            if leased.numbers.len() == count {
                return Ok(leased);
            }
            let port = FIRST + (start + offset) % COUNT;
            if let Some(lock) = lock(port)? {
                leased.numbers.push(port);
                leased._locks.push(lock);
            }
        }
        Err(io::Error::new(io::ErrorKind::AddrInUse, format!("no {count} free ports from {FIRST} on")))
    }
}

/// A place to begin, so that processes that start together do not all try the same ports.
fn arbitrary() -> u16 {
    let nanos = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.subsec_nanos());
    ((nanos / 1_000).wrapping_add(process::id().wrapping_mul(97)) % u32::from(COUNT)) as u16
}

fn lock(port: u16) -> io::Result<Option<File>> {
    // Not in $TMPDIR: the ports are the whole machine's.
    let folder = Path::new("/tmp/baton-ports");
    if fs::create_dir(folder).is_ok() {
        fs::set_permissions(folder, Permissions::from_mode(0o1777))?;
    }
    // Another user's lock file cannot be opened, so that port is theirs.
    let Ok(file) = File::options().create(true).append(true).open(folder.join(port.to_string())) else {
        return Ok(None);
    };
    let is_mine = flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok();
    // Bound for an instant only: the member binds it itself.
    Ok((is_mine && TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()).then_some(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_leases_share_no_port() {
        let one = Ports::lease(50).expect("50 ports");
        let two = Ports::lease(50).expect("50 more");
        assert!(one.numbers.iter().all(|port| !two.numbers.contains(port)));
        for port in one.numbers.iter().chain(&two.numbers) {
            TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).expect("free to bind");
        }
    }

    #[test]
    fn ports_that_one_names_are_leased_together_or_not_at_all() {
        let lease = Ports::lease(3).expect("ports");
        let numbers = lease.numbers.clone();
        assert!(Ports::lease_these(&numbers).expect("the folder is there").is_none(), "they are leased");
        drop(lease);
        let again = Ports::lease_these(&numbers).expect("the folder is there").expect("free again");
        assert_eq!(again.numbers, numbers);
        drop(again);
        let _busy = TcpListener::bind((Ipv4Addr::LOCALHOST, numbers[1])).expect("free again");
        assert!(Ports::lease_these(&numbers).expect("the folder is there").is_none(), "one is in use");
        let lock = lock(numbers[0]).expect("the folder is there");
        assert!(lock.is_some(), "nothing is kept of ports that were not had");
    }

    #[test]
    fn a_port_in_use_is_not_leased() {
        let lease = Ports::lease(1).expect("a port");
        let port = lease.numbers[0];
        drop(lease);
        let _busy = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).expect("free again");
        assert!(lock(port).expect("the folder is there").is_none());
    }
}
