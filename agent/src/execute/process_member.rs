//! Whether the process that is to be stopped is the member that the playbook says it is.
//!
//! Asked of the process itself, at the sockets where it listens: what is listed under the member's address may be another
//! host's. One that does not answer is taken by the name that it was started with, for a sick member must not be left
//! sick. Source: ARCHITECTURE.md, "Programs".

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use futures_util::future::join_all;
use proto::ClusterId;
use tokio::time::sleep;

use super::node::{OwnNode, Why};
use crate::{
    host::{blocking::blocking, listener::sockets_of, member_name::member_name, process_id::family},
    observe::{Observer, directory::Listed, local::Identity},
    visible::line,
};

/// How often one that is silent is asked again.
const RETRY_INTERVAL: Duration = Duration::from_millis(500);
/// How many sockets of one process are asked.
const MAX_SOCKETS: usize = 32;

/// What is known of the process.
#[derive(Debug, Default)]
struct Evidence {
    /// What it said, and where.
    answers: Vec<(SocketAddr, Identity)>,
    /// The names that it, or what it has started, was started with.
    names: Vec<String>,
}

#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    /// It is the member.
    Same,
    /// It says that it is another one.
    Answers(SocketAddr, Identity),
    /// It does not answer, and was started as another one.
    Named(String),
    /// Nothing is known of it.
    Unknown,
}

/// Of several processes, as below a supervisor, one that is the member is enough.
fn judge(wanted: Identity, name: &str, evidence: &Evidence) -> Verdict {
    let Evidence { answers, names } = evidence;
    match (answers.iter().find(|(_, said)| *said == wanted).or(answers.first()), names.first()) {
        (Some((_, said)), _) if *said == wanted => Verdict::Same,
        (Some((socket, said)), _) => Verdict::Answers(*socket, *said),
        (None, Some(_)) if names.iter().any(|found| found == name) => Verdict::Same,
        (None, Some(other)) => Verdict::Named(other.clone()),
        (None, None) => Verdict::Unknown,
    }
}

/// Refuses a process that is another member, or one of another cluster; and one of which nothing is known while the
/// member itself answers nowhere, after it was waited for. A warning where nothing is known and the member answers.
///
/// # Errors
/// Who it is instead, and what to correct.
pub(super) async fn must_be_the_member(
    own: &OwnNode,
    observer: &Observer,
    patience: Duration,
) -> Result<Option<String>, Why> {
    let access = observer.access();
    let Some(cluster) = access.directory().cluster() else { return Ok(None) };
    let (name, wanted) = (&own.node.name, Identity { member: own.member, cluster });
    let deadline = Instant::now() + patience;
    loop {
        let status = own.peek().await?;
        if !status.is_running() {
            return Ok(None);
        }
        let pid = status.process().map(|process| process.identity.pid);
        let evidence = match pid {
            Some(pid) => evidence(pid, observer).await,
            None => Evidence::default(),
        };
        let process = pid.map_or("its process".to_owned(), |pid| format!("pid {pid}"));
        let members = access.directory().members();
        match judge(wanted, name, &evidence) {
            Verdict::Same => return Ok(None),
            Verdict::Answers(socket, said) => {
                return Err(is_another(own, &process, cluster, socket, said, &members));
            }
            Verdict::Named(other) => {
                let other = line(&other);
                return Err(format!(
                    "{name}: by the playbook it is {process}, but that was started with the name {other} and does not \
                     answer; write `name: {other}` if that one is meant, else correct its runtime"
                )
                .into());
            }
            Verdict::Unknown => {}
        }
        let listed = members.iter().find(|member| member.id == own.member);
        let answers = match listed {
            Some(listed) => access.answers(listed).await,
            None => false,
        };
        let why =
            "does not say who it is: it answers at no socket that is seen from here, and was started with no name";
        if answers {
            return Ok(Some(format!(
                "{name}: {process} {why}; that it is {name}, which answers at its address, is believed of the playbook"
            )));
        }
        if Instant::now() >= deadline {
            return Err(format!(
                "{name} does not answer, and {process} {why}; see that it is {name} and no other member, and restart it \
                 with `--name`{}",
                if pid.is_none() { ", or let `status` print its pid" } else { "" }
            )
            .into());
        }
        sleep(RETRY_INTERVAL).await;
    }
}

/// What the process says, and what the processes say that it has started, where it does not listen itself; where none of
/// them does, their names.
async fn evidence(pid: u32, observer: &Observer) -> Evidence {
    let mut answers = answers(&[pid], observer).await;
    let mut names = Vec::new();
    if answers.is_empty() {
        let family = family(pid).unwrap_or_default();
        answers = self::answers(family.get(1..).unwrap_or_default(), observer).await;
        if answers.is_empty() {
            let named = move || [pid].into_iter().chain(family.into_iter().skip(1)).find_map(member_name);
            names = blocking(named).await.into_iter().collect();
        }
    }
    Evidence { answers, names }
}

async fn answers(pids: &[u32], observer: &Observer) -> Vec<(SocketAddr, Identity)> {
    // Another user's descriptors are not seen; then the name is what is left.
    let sockets = pids.iter().flat_map(|pid| sockets_of(*pid).unwrap_or_default()).take(MAX_SOCKETS);
    let asked = sockets.map(|socket| async move { Some((socket, observer.access().identity_at(socket).await?)) });
    join_all(asked).await.into_iter().flatten().collect()
}

/// Refuses a process that says that it is another member of this cluster, before it is stopped to be put back: its own
/// member would not come back by that. One that says another cluster may be what a new binary made of the member.
///
/// # Errors
/// Who it is instead.
pub(super) async fn must_not_be_a_neighbour(own: &OwnNode, observer: &Observer) -> Result<(), Why> {
    let Some(cluster) = observer.access().directory().cluster() else { return Ok(()) };
    let status = own.peek().await?;
    let Some(pid) = status.process().map(|process| process.identity.pid) else { return Ok(()) };
    let evidence = evidence(pid, observer).await;
    match judge(Identity { member: own.member, cluster }, &own.node.name, &evidence) {
        Verdict::Answers(socket, said) if said.cluster == cluster => {
            let members = observer.access().directory().members();
            Err(is_another(own, &format!("pid {pid}"), cluster, socket, said, &members))
        }
        _ => Ok(()),
    }
}

fn is_another(
    own: &OwnNode,
    process: &str,
    cluster: ClusterId,
    socket: SocketAddr,
    said: Identity,
    members: &[Listed],
) -> Why {
    let (name, id) = (&own.node.name, own.member);
    let other = members.iter().find(|listed| said.cluster == cluster && listed.id == said.member);
    let other = other.map(|listed| line(&listed.name)).filter(|other| !other.is_empty());
    let (instead, correction) = match other {
        Some(other) => (
            format!("{other} (member {}) of this cluster", said.member),
            format!("write `name: {other}` if that one is meant, else correct its runtime"),
        ),
        None if said.cluster == cluster => {
            (format!("member {} of this cluster", said.member), "correct its runtime".to_owned())
        }
        None => (
            format!("member {} of cluster {}", said.member, said.cluster),
            format!(
                "the playbook's endpoints lead to cluster {cluster}: correct its runtime, or `endpoints` if they are another cluster's"
            ),
        ),
    };
    format!("{name} is member {id}, and by the playbook {process}, but that says at {socket} that it is {instead}; {correction}").into()
}

#[cfg(test)]
mod tests {
    use proto::MemberId;

    use super::*;

    #[test]
    fn a_process_is_taken_for_what_it_says_and_else_for_its_name() {
        let socket = |port| SocketAddr::from(([127, 0, 0, 1], port));
        let identity = |member, cluster| Identity { member: MemberId(member), cluster: ClusterId(cluster) };
        let wanted = identity(1, 1);
        for (answers, names, expected) in [
            (vec![(1, 1)], vec![], Verdict::Same),
            (vec![(1, 1)], vec!["m2"], Verdict::Same),
            // A supervisor of several members.
            (vec![(2, 1), (1, 1)], vec![], Verdict::Same),
            (vec![(2, 1)], vec!["m1"], Verdict::Answers(socket(0), identity(2, 1))),
            // The same id in another cluster is another member.
            (vec![(1, 2)], vec!["m1"], Verdict::Answers(socket(0), identity(1, 2))),
            (vec![], vec!["m1"], Verdict::Same),
            (vec![], vec!["m2", "m1"], Verdict::Same),
            (vec![], vec!["m2"], Verdict::Named("m2".to_owned())),
            (vec![], vec![], Verdict::Unknown),
        ] {
            let answers =
                answers.into_iter().zip(0..).map(|((member, cluster), port)| (socket(port), identity(member, cluster)));
            let evidence =
                Evidence { answers: answers.collect(), names: names.into_iter().map(str::to_owned).collect() };
            assert_eq!(judge(wanted, "m1", &evidence), expected, "{evidence:?}");
        }
    }
}
