//! Which process of this host is a member of the cluster: the one that listens where the member answers. Before any playbook
//! says so it must be the release that the member reports; where a playbook does, it must be no other of the same program.

use crate::words::with_causes;
use std::{
    fs,
    net::{SocketAddr, ToSocketAddrs},
    path::Path,
};

use super::{error::ActError, node::OwnNode};
use crate::{
    host::{
        process::{
            connections::left_at,
            credentials::Credentials,
            listener::{Listener, listener, shown},
            process_id::{ProcessId, read_bounded},
            snapshot::Snapshot,
        },
        program::{executable, path_owner},
        runtime::Listens,
    },
    observe::{Observer, view::Member},
};

/// The process that answers for a member; none where that is another host's, or nobody answers.
///
/// # Errors
/// The member answers from here, and its process cannot be looked at or is none that the agent could start again.
pub async fn port_owner(member: &Member, observer: &Observer) -> Result<Option<Snapshot>, ActError> {
    let Some(release) = member.release() else { return Ok(None) };
    let Some(url) = observer.access().directory().address_of(member.id) else { return Ok(None) };
    let unfit = |why: String| ActError::from(format!("{} at {url} {why}", member.name));
    for address in addresses(&url) {
        let pid = match listener(address)? {
            Listener::Elsewhere | Listener::Nobody => continue,
            Listener::Unseen => {
                return Err(unfit(
                    "answers from this host, but its process is not to be seen; run this as root".into(),
                ));
            }
            Listener::Process(pid) => pid,
        };
        let unseen = |error: std::io::Error| {
            unfit(format!("is pid {pid}, which cannot be looked at: {error}; run this as root"))
        };
        let process = ProcessId::of(pid).map_err(unseen)?.ok_or_else(|| unfit(format!("is pid {pid}, which ended")))?;
        let seen = Snapshot::of(pid).await.map_err(unseen)?;
        if seen.is_contained {
            let instead = "write a playbook with `kind: command` for it, which asks the container's supervisor";
            return Err(unfit(format!("runs in a container; {instead}")));
        }
        let run_by = |error| unfit(format!("is pid {pid}, whose program is not safe to run: {}", with_causes(&error)));
        if !seen.is_replaced {
            path_owner::check(&seen.program, &seen.credentials.writers()).map_err(run_by)?;
        }
        // A proxy or forwarder would answer in its place.
        let asked = executable::release_of_process(process, &seen.credentials).await;
        if asked.as_ref().ok() != Some(release) {
            let said = asked.map_or_else(|error| with_causes(&error), |found| format!("its program is {found}"));
            return Err(unfit(format!("runs {release}, but pid {pid}, which listens there, is not that: {said}")));
        }
        return Ok(Some(seen));
    }
    Ok(None)
}

/// Refuses a process that another one of the same program answers for: the playbook names a member of this cluster and the
/// process of another cluster's, and what would be stopped is not what would be waited for. Another program may stand in
/// for it, as a proxy does. Whoever listens as any other user than the member's, root or the agent's is passed over: a name
/// may have a second address of this host, where anybody can listen, and any user could stop every run.
///
/// # Errors
/// Who answers, and where.
pub async fn must_answer_itself(own: &OwnNode, urls: &[String]) -> Result<(), ActError> {
    for url in urls {
        for address in addresses(url) {
            let Ok(Listener::Process(pid)) = listener(address) else { continue };
            // Read after it: what was restarted meanwhile is no other.
            let status = own.peek().await?;
            let Some(process) = status.process().filter(|process| process.identity.pid != pid) else { continue };
            let is_another = |exe| may_be_the_members(pid, process.identity.pid) && is_another_of(exe, pid);
            if process.exe.as_deref().is_some_and(is_another) {
                let (name, known, who) = (&own.node.name, process.identity.pid, shown(pid));
                let why = format!(
                    "{name}: by the playbook it is pid {known}, but {who}, of the same program, answers for it at {url} \
                     ({address}); correct its runtime, or `endpoints` if they are another cluster's, or stop that process"
                );
                return Err(why.into());
            }
        }
    }
    Ok(())
}

/// Whether it runs as a user that a member of this host may run as. One that runs as two users is nobody's member.
fn may_be_the_members(pid: u32, known: u32) -> bool {
    let uid = |pid| Credentials::of_process(pid).ok().map(|user| user.uid);
    uid(pid).is_some_and(|listens| [Some(0), Some(Credentials::own().uid), uid(known)].contains(&Some(listens)))
}

/// Whether this process executes a file of the same name, and is no proxy that etcd can be (`etcd grpc-proxy`, `gateway`).
fn is_another_of(exe: &Path, pid: u32) -> bool {
    let its = fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
    if its.file_name() != exe.file_name() {
        return false;
    }
    let told = read_bounded(&format!("/proc/{pid}/cmdline")).unwrap_or_default();
    !told.split(|byte| *byte == 0).nth(1).is_some_and(|word| matches!(word, b"grpc-proxy" | b"gateway"))
}

/// Who listens on this host where a member that has ended is to answer, in words.
pub(super) fn who_listens(url: &str) -> Option<String> {
    addresses(url).into_iter().find_map(|address| match listener(address) {
        Ok(Listener::Process(pid)) => Some(format!("its address {address} is in use by {}", shown(pid))),
        Ok(Listener::Unseen) => Some(format!("its address {address} is in use; to see by whom, run this as root")),
        _ => None,
    })
}

/// Whether anybody listens on this host where a member is to answer.
pub(super) fn listens(url: &str) -> Listens {
    let found = addresses(url);
    let is_free = |address: &SocketAddr| matches!(listener(*address), Ok(Listener::Nobody));
    if !found.is_empty() && found.iter().all(is_free) { Listens::Nowhere } else { Listens::Perhaps }
}

/// Who keeps a process from ending that has closed its port at this address, for a person; `None` where nobody does.
pub(super) fn kept_up_by(pid: u32, url: &str) -> Option<String> {
    let clients = left_at(pid, addresses(url).first()?.port()).unwrap_or_default();
    (!clients.is_empty()).then(|| {
        format!(
            "etcd waits for connections to its client port that have sent nothing yet, and ends by itself once they are closed: {}",
            clients.join("; ")
        )
    })
}

fn addresses(url: &str) -> Vec<SocketAddr> {
    let authority = url.split_once("://").map_or(url, |(_, rest)| rest);
    authority.to_socket_addrs().map(Iterator::collect).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpSocket;

    use super::*;

    #[tokio::test]
    async fn who_has_the_address_of_a_member_that_ended_is_named() {
        // Bound all the time, so that nobody else takes the port; somebody is there only while it listens.
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let url = format!("https://{}", socket.local_addr().unwrap());
        assert_eq!((who_listens(&url), listens(&url)), (None, Listens::Nowhere));
        let _listener = socket.listen(1).unwrap();
        assert_eq!(listens(&url), Listens::Perhaps);
        assert_eq!(listens("http://192.0.2.1:2379"), Listens::Perhaps, "another host's address");
        let said = who_listens(&url).unwrap();
        let own = format!("is in use by pid {} (user ", std::process::id());
        assert!(
            said.contains(&own) && said.contains(&std::env::current_exe().unwrap().display().to_string()),
            "{said}"
        );
    }
}
