//! Whether the process that is to be stopped is the member that the playbook says it is.
//!
//! Asked of the process itself, at the sockets where it listens: what is listed under the member's address may be another
//! host's. One that does not answer is taken by the name that it was started with, for a sick member must not be left
//! sick. Source: agent/TRUST.md, "Programs".

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use futures_util::future::join_all;
use proto::{ClusterId, MemberId};
use tokio::time::{sleep, timeout};

use super::{error::ActError, node::OwnNode, own_data::begun_here};
use crate::{
    host::{
        blocking::blocking,
        process::{
            listener::sockets_of,
            member_setting::member_name,
            process_id::{ProcessId, command_line, family},
        },
        runtime::{Found, Judged},
    },
    observe::{Observer, directory::Listed, local::Identity},
    visible::line,
};

/// How often one that is silent is asked again.
const RETRY_INTERVAL: Duration = Duration::from_millis(500);
/// How long a process is asked that looks like a member that was stopped: it may be starting.
const STARTING: Duration = Duration::from_secs(5);
/// Between two looks at a process that is ending.
const ENDING_YET: Duration = Duration::from_millis(50);
/// How many sockets of one process are asked.
const MAX_SOCKETS: usize = 32;

/// What is known of the process.
#[derive(Debug, Default)]
struct Evidence {
    /// What it, or what it has started, said, and where.
    answers: Vec<(ProcessId, SocketAddr, Identity)>,
    /// The names that it, or what it has started, was started with.
    names: Vec<(ProcessId, String)>,
}

/// What came of asking a process that may be stopped.
#[derive(Debug)]
pub(super) struct Judgement {
    /// Which process is the member.
    pub(super) found: Found,
    /// What is believed of the playbook, as nothing shows it.
    pub(super) warning: Option<String>,
}

impl From<Found> for Judgement {
    fn from(found: Found) -> Self {
        Self { found, warning: None }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Same(ProcessId),
    /// It says that it is another one.
    Answers(SocketAddr, Identity),
    /// It does not answer, and was started as another one.
    Named(String),
    Unknown,
}

/// Of several processes, as below a supervisor, one that is the member is enough.
fn judge(wanted: Identity, name: &str, evidence: &Evidence) -> Verdict {
    let Evidence { answers, names } = evidence;
    if let Some((process, ..)) = answers.iter().find(|(_, _, said)| *said == wanted) {
        return Verdict::Same(*process);
    }
    if let Some((_, socket, said)) = answers.first() {
        return Verdict::Answers(*socket, *said);
    }
    if let Some((process, _)) = names.iter().find(|(_, found)| found == name) {
        return Verdict::Same(*process);
    }
    names.first().map_or(Verdict::Unknown, |(_, other)| Verdict::Named(other.clone()))
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
) -> Result<Judgement, ActError> {
    let access = observer.access();
    let Some(cluster) = access.directory().cluster() else { return Ok(Found::Unknown.into()) };
    let name = &own.node.name;
    let (deadline, passing) = (Instant::now() + patience, Instant::now() + STARTING.max(patience));
    loop {
        let status = own.peek().await?;
        if !status.is_running() {
            return Ok(Found::Stopped.into());
        }
        let named = status.process().map(|process| process.identity);
        // One that is on its way out has let go of its memory, and with it of its command line; it is gone in a moment.
        let is_ending = named.is_some_and(|named| command_line(named.pid).is_ok_and(|words| words.is_empty()));
        if is_ending && Instant::now() < passing {
            sleep(ENDING_YET).await;
            continue;
        }
        let evidence = match named {
            Some(named) => evidence(named, observer).await,
            None => Evidence::default(),
        };
        let process = named.map_or("its process".to_owned(), |named| named.to_string());
        let members = access.directory().members();
        // A newcomer may have begun since this host was set up.
        let begun = begun_here(&own.node, cluster, &members).await.filter(|_| own.member == MemberId::default());
        let wanted = Identity { member: begun.unwrap_or(own.member), cluster };
        match judge(wanted, name, &evidence) {
            Verdict::Same(node) => {
                let shown = named.map_or(Found::Unknown, |named| Found::Shown(Judged { named, node }));
                return Ok(shown.into());
            }
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
            let warning = format!(
                "{name}: {process} {why}; that it is {name}, which answers at its address, is believed of the playbook"
            );
            return Ok(Judgement { found: Found::Unknown, warning: Some(warning) });
        }
        if Instant::now() >= deadline {
            return Err(format!(
                "{name} does not answer, and {process} {why}; see that it is {name} and no other member, and restart it \
                 with `--name`{}",
                if named.is_none() { ", or let `status` print its pid" } else { "" }
            )
            .into());
        }
        sleep(RETRY_INTERVAL).await;
    }
}

/// The process that somebody else has started as this member since it was stopped: it looks like it, and says at a socket of its own
/// that it is. To start one beside it would be of no use, as that has the ports. The one that was told to stop is no other: it may
/// serve peers for as long as its stop hangs.
pub(super) async fn started_by_another(own: &OwnNode, observer: &Observer) -> Option<ProcessId> {
    let cluster = observer.access().directory().cluster()?;
    let wanted = Identity { member: own.member, cluster };
    let look = async {
        loop {
            let process = own.runtime.as_ref()?.lookalike().await.filter(|process| !own.was_told_to_stop(*process))?;
            if answers(&[process], observer).await.iter().any(|(.., said)| *said == wanted) {
                return Some(process);
            }
            sleep(RETRY_INTERVAL).await;
        }
    };
    timeout(STARTING, look).await.ok().flatten()
}

/// Which members a process says it is, at its own sockets.
pub(super) async fn says(process: ProcessId, observer: &Observer) -> Vec<MemberId> {
    answers(&[process], observer).await.into_iter().map(|(.., said)| said.member).collect()
}

/// What the process says; where it does not answer, what the processes say that it has started; where none of them answers,
/// the names that they were started with.
async fn evidence(named: ProcessId, observer: &Observer) -> Evidence {
    let mut answers = answers(&[named], observer).await;
    let mut names = Vec::new();
    if answers.is_empty() {
        let family = family(named.pid).unwrap_or_default();
        // Known before they are asked: whoever has such a pid later has shown nothing.
        let started: Vec<_> = family.iter().skip(1).filter_map(|pid| ProcessId::of(*pid).ok()?).collect();
        answers = self::answers(&started, observer).await;
        if answers.is_empty() {
            names = blocking(move || self::names(&[named]).or_else(|| self::names(&started))).await.unwrap_or_default();
        }
    }
    Evidence { answers, names }
}

async fn answers(processes: &[ProcessId], observer: &Observer) -> Vec<(ProcessId, SocketAddr, Identity)> {
    let sockets_of = |process: &ProcessId| {
        let process = *process;
        // Another user's descriptors are not seen; then the name is what is left.
        sockets_of(process.pid).unwrap_or_default().into_iter().map(move |socket| (process, socket))
    };
    let asked =
        processes.iter().flat_map(sockets_of).take(MAX_SOCKETS).map(|(process, socket)| async move {
            Some((process, socket, observer.access().identity_at(socket).await?))
        });
    join_all(asked).await.into_iter().flatten().collect()
}

/// Those that have one, if any has.
fn names(processes: &[ProcessId]) -> Option<Vec<(ProcessId, String)>> {
    let named = |process: &ProcessId| Some((*process, member_name(process.pid)?));
    let names: Vec<_> = processes.iter().filter_map(named).collect();
    (!names.is_empty()).then_some(names)
}

/// Refuses a process that says that it is another member of this cluster, before it is stopped to be put back: its own
/// member would not come back by that. One that says another cluster may be what a new binary made of the member.
///
/// # Errors
/// Who it is instead.
pub(super) async fn judged_to_go_back(own: &OwnNode, observer: &Observer) -> Result<Found, ActError> {
    let Some(cluster) = observer.access().directory().cluster() else { return Ok(Found::Unknown) };
    let status = own.peek().await?;
    if !status.is_running() {
        return Ok(Found::Stopped);
    }
    let Some(named) = status.process().map(|process| process.identity) else { return Ok(Found::Unknown) };
    let evidence = evidence(named, observer).await;
    match judge(Identity { member: own.member, cluster }, &own.node.name, &evidence) {
        Verdict::Answers(socket, said) if said.cluster == cluster => {
            let members = observer.access().directory().members();
            Err(is_another(own, &named.to_string(), cluster, socket, said, &members))
        }
        Verdict::Same(node) => Ok(Found::Shown(Judged { named, node })),
        _ => Ok(Found::Unknown),
    }
}

fn is_another(
    own: &OwnNode,
    process: &str,
    cluster: ClusterId,
    socket: SocketAddr,
    said: Identity,
    members: &[Listed],
) -> ActError {
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
        let process = |pid: u16| ProcessId { pid: pid.into(), ..ProcessId::default() };
        let wanted = identity(1, 1);
        // Each answer is of a process of its own, and so is each name.
        for (answers, names, expected) in [
            (vec![(1, 1)], vec![], Verdict::Same(process(0))),
            (vec![(1, 1)], vec!["m2"], Verdict::Same(process(0))),
            // A supervisor of several members.
            (vec![(2, 1), (1, 1)], vec![], Verdict::Same(process(1))),
            (vec![(2, 1)], vec!["m1"], Verdict::Answers(socket(0), identity(2, 1))),
            // The same id in another cluster is another member.
            (vec![(1, 2)], vec!["m1"], Verdict::Answers(socket(0), identity(1, 2))),
            (vec![], vec!["m1"], Verdict::Same(process(0))),
            (vec![], vec!["m2", "m1"], Verdict::Same(process(1))),
            (vec![], vec!["m2"], Verdict::Named("m2".to_owned())),
            (vec![], vec![], Verdict::Unknown),
        ] {
            let answers = answers.into_iter().zip(0..);
            let answers =
                answers.map(|((member, cluster), at)| (process(at), socket(at), identity(member, cluster))).collect();
            let names = names.into_iter().zip(0..).map(|(name, at)| (process(at), name.to_owned())).collect();
            let evidence = Evidence { answers, names };
            assert_eq!(judge(wanted, "m1", &evidence), expected, "{evidence:?}");
        }
    }
}
