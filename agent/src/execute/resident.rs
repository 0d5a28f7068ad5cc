//! Which process of this host is a member of the cluster, before any playbook says so: the one that listens where the
//! member answers, and is the release that it reports.

use std::{
    net::{SocketAddr, ToSocketAddrs},
    sync::Arc,
};

use super::node::{Why, why};
use crate::{
    host::{
        executable,
        listener::{Listener, listener},
        portrait::Portrait,
    },
    observe::{Observer, view::Member},
};

/// The process that answers for a member; none where that is another host's, or nobody answers.
///
/// # Errors
/// The member answers from here, and its process cannot be looked at or is none that the agent could start again.
pub async fn resident(member: &Member, observer: &Observer) -> Result<Option<Portrait>, Why> {
    let Some(release) = member.release() else { return Ok(None) };
    let Some(url) = observer.access().directory().address_of(member.id) else { return Ok(None) };
    let unfit = |why: String| Why::from(format!("{} at {url} {why}", member.name));
    for address in addresses(&url) {
        let pid = match listener(address).map_err(|error| why(&error))? {
            Listener::Elsewhere | Listener::Nobody => continue,
            Listener::Unseen => {
                return Err(unfit(
                    "answers from this host, but its process is not to be seen; run this as root".into(),
                ));
            }
            Listener::Process(pid) => pid,
        };
        let unseen = |error| unfit(format!("is pid {pid}, which cannot be looked at: {error}; run this as root"));
        let seen = Portrait::of(pid).await.map_err(unseen)?;
        if seen.is_contained {
            let instead = "write a playbook with `kind: command` for it, which asks the container's supervisor";
            return Err(unfit(format!("runs in a container; {instead}")));
        }
        // A proxy or forwarder would answer in its place.
        let asked = executable::release(&seen.executable()).await;
        if asked.as_ref().ok() != Some(release) {
            let said = asked.map_or_else(|error| why(&error), |found| Arc::from(format!("its program is {found}")));
            return Err(unfit(format!("runs {release}, but pid {pid}, which listens there, is not that: {said}")));
        }
        return Ok(Some(seen));
    }
    Ok(None)
}

fn addresses(url: &str) -> Vec<SocketAddr> {
    let authority = url.split_once("://").map_or(url, |(_, rest)| rest);
    authority.to_socket_addrs().map(Iterator::collect).unwrap_or_default()
}
