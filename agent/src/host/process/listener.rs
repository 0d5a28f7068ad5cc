//! Which process of this host listens at an address, and where a process listens.
//!
//! The kernel lists listening sockets by inode (proc_net_tcp(5)), and each process's descriptors say which inodes are
//! its own. Another user's descriptors are seen by root alone. The list also says whose the socket is: processes of other
//! users are passed over, since anybody may have many with many descriptors.

use std::{
    collections::BTreeSet,
    fs, io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
};

use super::{credentials::Credentials, process_id::all_pids};
use crate::{
    host::{program::path_owner::user_name, runtime::discovery::undeleted},
    keys::ProcessId,
};

/// What is known of who listens at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listener {
    /// The address is another host's.
    Elsewhere,
    /// Nobody listens at it in this host's network.
    Nobody,
    /// Somebody does, whose process this user may not see.
    Unseen,
    /// This process does; of several that share the socket the one that was there first.
    Process(u32),
}

/// Who listens at this address.
pub fn listener(address: SocketAddr) -> io::Result<Listener> {
    if !is_local(address.ip())? {
        return Ok(Listener::Elsewhere);
    }
    let sockets = listening_sockets();
    let exact = sockets.iter().find(|socket| plain(socket.at) == plain(address));
    let is_any = |socket: &&Socket| socket.at.port() == address.port() && plain(socket.at).ip().is_unspecified();
    let Some(socket) = exact.or_else(|| sockets.iter().find(is_any)) else { return Ok(Listener::Nobody) };
    let wanted = format!("socket:[{}]", socket.inode);
    let (likely, others): (Vec<_>, Vec<_>) = all_pids()?.into_iter().partition(|pid| socket.may_be_of(*pid));
    let found = oldest(likely.into_iter().filter(|pid| has(*pid, &wanted)));
    // What root has opened may have been handed to another user's process, as a socket of systemd's is.
    let handed = || oldest(others.into_iter().filter(|pid| is_trusted(socket.uid) && has(*pid, &wanted)));
    Ok(found.or_else(handed).map_or(Listener::Unseen, Listener::Process))
}

/// The process that was there first. Its number does not say so: pids start again from the lowest.
fn oldest(pids: impl Iterator<Item = u32>) -> Option<u32> {
    let started = |pid: u32| Some((ProcessId::of(pid).ok()??.start_time, pid));
    pids.filter_map(started).min().map(|(_, pid)| pid)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Socket {
    pub at: SocketAddr,
    /// Who has opened it.
    pub uid: u32,
    pub inode: u64,
}

impl Socket {
    /// Whether this process runs as who has opened it, as root, or as the agent's user.
    pub fn may_be_of(&self, pid: u32) -> bool {
        Credentials::of_process(pid).is_ok_and(|user| user.uid == self.uid || is_trusted(user.uid))
    }
}

fn is_trusted(uid: u32) -> bool {
    uid == 0 || uid == Credentials::own().uid
}

/// Where this process listens, as an address to connect to from here: a wildcard is reached at loopback. None where it has
/// a network of its own: the same address is somebody else's here.
///
/// # Errors
/// It has ended, or this user may not see its descriptors.
pub fn sockets_of(pid: u32) -> io::Result<Vec<SocketAddr>> {
    if fs::read_link(format!("/proc/{pid}/ns/net"))? != fs::read_link("/proc/self/ns/net")? {
        return Ok(Vec::new());
    }
    let inodes = inodes(pid)?;
    let own = listening_sockets().into_iter().filter(|socket| inodes.contains(&socket.inode));
    let found: BTreeSet<_> = own.map(|socket| reachable(socket.at)).collect();
    Ok(found.into_iter().collect())
}

/// The inodes of a process's sockets.
pub(super) fn inodes(pid: u32) -> io::Result<BTreeSet<u64>> {
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd"))?;
    let links = descriptors.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
    Ok(links.filter_map(|link| inode(link.to_str()?)).collect())
}

fn listening_sockets() -> Vec<Socket> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(|path| fs::read_to_string(path).unwrap_or_default());
    tables.iter().flat_map(|table| table.lines().filter_map(listening)).collect()
}

fn inode(link: &str) -> Option<u64> {
    link.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip().to_canonical() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

/// A process as a person looks for it: pid, user and program.
pub fn shown(pid: u32) -> String {
    let user = Credentials::of_process(pid).map_or_else(|_| "an unknown user".to_owned(), |user| user_name(user.uid));
    match fs::read_link(format!("/proc/{pid}/exe")) {
        Ok(program) => format!("pid {pid} (user {user}, {})", undeleted(program).display()),
        Err(_) => format!("pid {pid} (user {user})"),
    }
}

fn is_local(address: IpAddr) -> io::Result<bool> {
    if address.is_loopback() || address.is_unspecified() {
        return Ok(true);
    }
    let own = nix::ifaddrs::getifaddrs()?.filter_map(|interface| {
        let address = interface.address?;
        let v4 = address.as_sockaddr_in().map(|v4| IpAddr::V4(v4.ip()));
        v4.or_else(|| address.as_sockaddr_in6().map(|v6| IpAddr::V6(v6.ip())))
    });
    Ok(own.into_iter().any(|own| own == address))
}

/// An address of version 4 that is written as one of version 6 is the same.
pub(super) fn plain(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// A line's socket, where it listens.
fn listening(line: &str) -> Option<Socket> {
    const LISTEN: &str = "0A";
    socket(line, LISTEN).map(|(socket, _)| socket)
}

/// A line's socket and its other end, where it is in this state.
pub(super) fn socket(line: &str, state: &str) -> Option<(Socket, SocketAddr)> {
    // Of thousands of lines nearly all are of other sockets.
    if line.split_ascii_whitespace().nth(3)? != state {
        return None;
    }
    let fields: Vec<_> = line.split_ascii_whitespace().collect();
    let address = |field: &str| {
        let (ip, port) = field.split_once(':')?;
        Some(SocketAddr::new(ip_of(ip)?, u16::from_str_radix(port, 16).ok()?))
    };
    let at = address(fields.get(1)?)?;
    let socket = Socket { at, uid: fields.get(7)?.parse().ok()?, inode: fields.get(9)?.parse().ok()? };
    Some((socket, address(fields.get(2)?)?))
}

/// Words of 32 bits in the host's own order, each as hexadecimal digits.
fn ip_of(digits: &str) -> Option<IpAddr> {
    let word = |at: usize| Some(u32::from_str_radix(digits.get(at..at + 8)?, 16).ok()?.to_ne_bytes());
    match digits.len() {
        8 => Some(IpAddr::V4(Ipv4Addr::from(word(0)?))),
        32 => {
            let mut bytes = [0; 16];
            for (at, part) in bytes.chunks_mut(4).enumerate() {
                part.copy_from_slice(&word(at * 8)?);
            }
            Some(IpAddr::V6(Ipv6Addr::from(bytes)))
        }
        _ => None,
    }
}

/// Whether one of a process's descriptors is this socket. One that cannot be looked at is no answer.
pub(super) fn has(pid: u32, socket: &str) -> bool {
    let Ok(descriptors) = fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
    descriptors.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok()).any(|link| link.as_os_str() == socket)
}

#[cfg(test)]
mod tests {
    use std::{
        net::TcpListener,
        os::{fd::OwnedFd, unix::process::CommandExt},
        process::{Command, Stdio},
        time::{Duration, Instant},
    };

    use super::*;

    #[test]
    fn a_listening_socket_is_read_as_the_kernel_prints_it() {
        let line =
            "   0: 0100007F:0929 00000000:0000 0A 00000000:00000000 00:00000000 00000000     7        0 4242 1 x";
        let socket = |at: &str| Some(Socket { at: at.parse().unwrap(), uid: 7, inode: 4242 });
        assert_eq!(listening(line), socket("127.0.0.1:2345"));
        assert_eq!(listening(&line.replace(" 0A ", " 01 ")), None, "connected");
        let six = line.replace("0100007F", "00000000000000000000000001000000");
        assert_eq!(listening(&six), socket("[::1]:2345"));
        for bad in ["", "  sl  local_address rem_address   st", "0: xyz:1 0 0A 0 0 0 0 0 7", "0: 0100007F:0929 0 0A"] {
            assert_eq!(listening(bad), None, "{bad}");
        }
    }

    #[test]
    fn who_may_have_a_socket_goes_by_its_user() {
        let own = Credentials::own().uid;
        let socket = |uid| Socket { at: "127.0.0.1:1".parse().unwrap(), uid, inode: 1 };
        assert!(socket(own).may_be_of(std::process::id()) && socket(7).may_be_of(std::process::id()));
        if own != 0 {
            return eprintln!("skipped: another user takes root");
        }
        let mut stranger = Command::new("sleep").arg("600").uid(65534).stdin(Stdio::null()).spawn().unwrap();
        let pid = stranger.id();
        assert!(socket(65534).may_be_of(pid));
        assert!(!socket(7).may_be_of(pid) && !socket(0).may_be_of(pid));
        stranger.kill().unwrap();
        stranger.wait().unwrap();
    }

    /// As a service gets its socket from systemd.
    #[test]
    fn a_socket_that_root_has_opened_is_found_in_another_users_process() {
        if Credentials::own().uid != 0 {
            return eprintln!("skipped: another user takes root");
        }
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        let mut command = Command::new("sleep");
        let mut heir = command.arg("600").uid(65534).stdin(OwnedFd::from(socket)).spawn().unwrap();
        drop(command);
        assert_eq!(listener(address).unwrap(), Listener::Process(heir.id()));
        heir.kill().unwrap();
        heir.wait().unwrap();
    }

    #[test]
    fn a_listener_is_found_by_its_address() {
        let own = Listener::Process(std::process::id());
        for bound in ["127.0.0.1:0", "0.0.0.0:0", "[::]:0"] {
            let Ok(socket) = TcpListener::bind(bound) else { continue };
            let port = socket.local_addr().unwrap().port();
            assert_eq!(listener(SocketAddr::from(([127, 0, 0, 1], port))).unwrap(), own, "{bound}");
            let loopback = if bound.starts_with('[') { "[::1]" } else { "127.0.0.1" };
            let own = sockets_of(std::process::id()).unwrap();
            assert!(own.contains(&format!("{loopback}:{port}").parse().unwrap()), "{bound}: {own:?}");
            drop(socket);
            // A child that another test starts has a copy of the socket until it runs its own program.
            let freed = Instant::now() + Duration::from_secs(30);
            while listener(SocketAddr::from(([127, 0, 0, 1], port))).unwrap() != Listener::Nobody {
                assert!(Instant::now() < freed, "{bound}: somebody still listens");
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        // An address for documentation (RFC 5737) is nobody's own.
        assert_eq!(listener("192.0.2.1:2379".parse().unwrap()).unwrap(), Listener::Elsewhere);
    }
}
