//! Who is connected to a process that no longer listens.
//!
//! Told to stop, etcd from 3.5.8 on closes its client port and then waits, for ever, for each connection there over which nothing was
//! sent yet: it cannot tell by then what is spoken there (`embed.Etcd.Close`; soheilhy/cmux, issue 76). Seen with 3.5.30, 3.6.14 and
//! 3.7.1, where the port is served without TLS.

use std::{collections::BTreeSet, fs, io, net::SocketAddr};

use super::{
    listener::{Socket, has, inodes, plain, shown, socket, sockets_of},
    process_id::all_pids,
};

/// A connection's state in proc_net_tcp(5).
const ESTABLISHED: &str = "01";
/// So many are told.
const MOST: usize = 5;

/// The other ends of connections to this port of a process that does not listen there any more, as a person looks for them. Those of
/// this agent are not among them.
///
/// # Errors
/// It has ended, or this user may not see its descriptors.
pub fn left_at(pid: u32, port: u16) -> io::Result<Vec<String>> {
    if sockets_of(pid)?.iter().any(|at| at.port() == port) {
        return Ok(Vec::new());
    }
    let (own, connections) = (inodes(pid)?, connections(pid));
    let to_it = connections.iter().filter(|(socket, _)| own.contains(&socket.inode) && socket.at.port() == port);
    let told = to_it.filter_map(|(socket, other)| {
        let here =
            connections.iter().find(|(end, to)| plain(end.at) == plain(*other) && plain(*to) == plain(socket.at));
        match here.and_then(|(end, _)| holder(end)) {
            Some(holder) if holder == std::process::id() => None,
            Some(holder) => Some(format!("{other}, of {}", shown(holder))),
            None => Some(other.to_string()),
        }
    });
    let told: BTreeSet<_> = told.collect();
    Ok(told.into_iter().take(MOST).collect())
}

/// In the network of this process, each with its other end.
fn connections(pid: u32) -> Vec<(Socket, SocketAddr)> {
    let tables = ["tcp", "tcp6"].map(|name| fs::read_to_string(format!("/proc/{pid}/net/{name}")).unwrap_or_default());
    tables.iter().flat_map(|table| table.lines().filter_map(|line| socket(line, ESTABLISHED))).collect()
}

fn holder(socket: &Socket) -> Option<u32> {
    let wanted = format!("socket:[{}]", socket.inode);
    all_pids().ok()?.into_iter().find(|pid| socket.may_be_of(*pid) && has(*pid, &wanted))
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn whoever_is_connected_is_told_once_nobody_listens() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (own, port) = (std::process::id(), listener.local_addr().unwrap().port());
        let client = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let (accepted, _) = listener.accept().unwrap();
        assert_eq!(left_at(own, port).unwrap(), Vec::<String>::new(), "it listens");
        drop(listener);
        let ends = connections(own);
        let end = ends.iter().find(|(_, other)| *other == client.local_addr().unwrap());
        assert_eq!(
            end.map(|(socket, _)| (socket.at, holder(socket))),
            Some((accepted.local_addr().unwrap(), Some(own)))
        );
        assert_eq!(left_at(own, port).unwrap(), Vec::<String>::new(), "it is this process itself");
    }
}
