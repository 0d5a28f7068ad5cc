//! The first half of a look: everybody who can be found is asked, side by side.
//!
//! Starts from every address known and goes on to each address that an answer of this cluster brings up, so that a dead
//! one costs one time-out in all. Answers bring up as many addresses as they like: only so many are asked, and only so
//! many at once. Who answered is read off the answers; [`Round::settle`] then says which address speaks for which
//! member.

use std::{
    collections::{BTreeMap, BTreeSet},
    pin::pin,
    sync::Arc,
    time::Duration,
};

use proto::{ClusterId, MemberId};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep, sleep_until, timeout_at},
};
use tonic::Code;

use super::{
    awake::awake_for,
    cluster::{Connections, Reported, side_by_side},
    directory::{Findings, Listed, sole_owner},
    error::{CallError, ObserveError},
    health::Read,
    member::{Seen, another},
    membership::{List, Membership, membership},
    queue::{MAX_ADDRESSES, Queue},
    view::Role,
    voice::{Voice, Voices, is_reached_as_advertised},
};

/// How many of them are asked at the same time.
const AT_ONCE: usize = 64;
/// How long all of them may take together: one that answers late with ever more addresses would be followed for minutes.
const IN_ALL: Duration = Duration::from_secs(15);
/// How long any other address is waited for once every voter has been heard: a newcomer's port is open before anybody answers there.
const OTHERS: Duration = Duration::from_secs(1);
/// How long lists may differ before that is said: each member applies a change of the membership in its own time.
const CATCHING_UP: Duration = Duration::from_secs(2);
/// How often they are asked for meanwhile.
const CATCH_UP_PROBE_GAP: Duration = Duration::from_millis(50);

/// What the addresses answered.
#[derive(Debug, Default)]
pub(super) struct Round {
    found: Vec<Found>,
    failed: BTreeMap<String, CallError>,
    /// How many addresses were not asked.
    left_out: usize,
}

/// Somebody answered at an address.
#[derive(Debug)]
struct Found {
    address: String,
    seen: Seen,
    members: Result<Vec<Listed>, CallError>,
    details: Option<Details>,
}

impl Found {
    fn list(&self) -> Option<List<'_>> {
        let is_cut_off = self.details.as_ref().is_some_and(|details| matches!(details.read, Read::Failed(_)));
        let (by, applied, members) = (self.seen.id, self.seen.applied(), self.members.as_ref().ok()?);
        Some(List { by, address: &self.address, applied, is_cut_off, members })
    }
}

/// What a member is asked beyond its status, once it is clear which member it is.
#[derive(Clone, Debug)]
pub(super) struct Details {
    pub read: Read,
    pub told: Reported,
}

/// A member of the membership, and where it was reached, or why it was not.
#[derive(Clone, Debug)]
pub(super) struct Look {
    pub listed: Listed,
    pub reached: Result<Reached, String>,
    /// Who says what of it, where members do not list it alike.
    pub disputed: Option<String>,
}

impl Look {
    /// What a person calls the member.
    pub(super) fn called(&self) -> String {
        called(&self.listed)
    }
}

fn called(member: &Listed) -> String {
    if member.name.is_empty() { member.id.to_string() } else { member.name.clone() }
}

#[derive(Debug)]
pub(super) struct Settled {
    pub cluster: ClusterId,
    pub looks: Vec<Look>,
    pub warnings: Vec<String>,
}

#[derive(Clone, Debug)]
pub(super) struct Reached {
    pub address: String,
    pub seen: Seen,
    /// Missing where the address is not the member's alone, or the member is a learner.
    pub details: Option<Details>,
}

impl Round {
    /// Asks everybody but those who were asked in vain a moment ago.
    pub(super) async fn run(connections: &Arc<Connections>, failed: BTreeMap<String, CallError>) -> Self {
        let known = failed.keys().cloned().collect();
        let (mut round, mut queue) = (Self { failed, ..Self::default() }, Queue { known, ..Queue::default() });
        queue.add(connections.access.directory().addresses());
        let mut is_over = pin!(awake_for(IN_ALL));
        let mut asked = JoinSet::new();
        // Since when every voter has been heard.
        let mut heard: Option<Instant> = None;
        let waited = loop {
            while asked.len() < AT_ONCE
                && let Some(address) = queue.waiting.pop_front()
            {
                let connections = Arc::clone(connections);
                asked.spawn(async move { (address.clone(), find(&connections, address).await) });
            }
            let others_are_late = async {
                match heard {
                    Some(since) => sleep_until(since + OTHERS).await,
                    None => std::future::pending().await,
                }
            };
            let answer = tokio::select! {
                biased;
                answer = asked.join_next() => answer,
                () = &mut is_over => break IN_ALL,
                () = others_are_late => break OTHERS,
            };
            match answer {
                None => break IN_ALL,
                Some(Ok((_, Ok(found)))) => {
                    queue.add(found.members.iter().flatten().flat_map(|member| member.client_urls.clone()));
                    round.found.push(found);
                }
                Some(Ok((address, Err(error)))) => drop(round.failed.insert(address, error)),
                Some(Err(error)) => tracing::error!(%error, "an address could not be asked"),
            }
            heard = round.has_heard_every_voter().then(|| heard.unwrap_or_else(Instant::now));
        };
        round.left_out = queue.left_out;
        round.count_late(queue, waited, connections);
        if round.found.is_empty() {
            connections.access.diagnose(&mut round.failed).await;
        }
        round
    }

    /// Whether each voter of each list that came was found, or every address of its own was asked to the end.
    fn has_heard_every_voter(&self) -> bool {
        let is_asked =
            |url: &String| self.failed.contains_key(url) || self.found.iter().any(|found| found.address == *url);
        let mut listed = self.found.iter().filter_map(|found| found.members.as_ref().ok()).flatten().peekable();
        let is_heard = |voter: &Listed| {
            let is_found = self.found.iter().any(|found| found.seen.id == voter.id);
            voter.client_urls.iter().all(is_asked) && (is_found || !voter.client_urls.is_empty())
        };
        listed.peek().is_some() && listed.filter(|member| member.role == Role::Voter).all(is_heard)
    }

    /// Who has not answered when the round is over counts as silent, after so long.
    fn count_late(&mut self, queue: Queue, waited: Duration, connections: &Connections) {
        let answered: BTreeSet<_> = self.found.iter().map(|found| found.address.clone()).collect();
        for address in queue.known.difference(&answered) {
            self.failed.entry(address.clone()).or_insert_with(|| {
                // On a connection that was silent the next call would wait, too.
                connections.access.forget(address);
                CallError::TimedOut(waited)
            });
        }
    }

    /// Whether somebody is there who refuses to answer this user.
    pub(super) fn is_denied(&self) -> bool {
        self.failed.values().any(|error| error.code() == Some(Code::PermissionDenied))
    }

    /// The members, each with the address that speaks for it.
    pub(super) fn settle(self, connections: &Connections) -> Result<Settled, ObserveError> {
        let directory = connections.access.directory();
        let cluster = directory.cluster().ok_or_else(|| self.nobody())?;
        let Membership { members, mut disputed, counted } = self.membership()?;
        let answered = self.found.iter().map(|found| (found.address.clone(), found.seen.id)).collect();
        let as_advertised = directory.as_advertised(self.is_reached_as_advertised(&members));
        let voices = self.voices(&members, directory.endpoints(), as_advertised);
        let look_at = |member: &Listed| {
            let look = self.look_at(member, &voices);
            let disputed = disputed.remove(&member.id).or_else(|| self.unheard(&look, &counted));
            Look { disputed, ..look }
        };
        let looks: Vec<_> = members.iter().map(look_at).collect();
        let address = |look: &Look| Some((look.listed.id, look.reached.as_ref().ok()?.address.clone()));
        let chosen = looks.iter().filter_map(address).collect();
        let warnings = self.warnings(directory.endpoints(), &members);
        directory.learn(Findings { cluster, members, answered, chosen });
        connections.access.forget_others();
        Ok(Settled { cluster, looks, warnings })
    }

    /// What a person should know of addresses that are not asked, or answer for another cluster. Where a member has no
    /// other address that is said of the member.
    fn warnings(&self, endpoints: &[String], members: &[Listed]) -> Vec<String> {
        let has_others = |member: &&Listed| !member.client_urls.is_empty();
        let unused = members
            .iter()
            .filter(has_others)
            .flat_map(|member| member.unused.iter().map(move |why| format!("{}: {why}", called(member))));
        let foreign = endpoints.iter().filter_map(|endpoint| match self.failed.get(endpoint)? {
            CallError::Foreign(cluster) => {
                Some(format!("{endpoint} of cluster.endpoints belongs to cluster {cluster}: it counts as silent"))
            }
            _ => None,
        });
        let left_out = (self.left_out > 0)
            .then(|| format!("{} addresses were not asked: a look asks {MAX_ADDRESSES}", self.left_out));
        unused.chain(foreign).chain(left_out).collect()
    }

    /// Asks for the lists again while they differ, for a while.
    pub(super) async fn catch_up(&mut self, connections: &Arc<Connections>) {
        let deadline = Instant::now() + CATCHING_UP;
        while membership(&self.lists()).is_some_and(|found| !found.disputed.is_empty()) && Instant::now() < deadline {
            sleep(CATCH_UP_PROBE_GAP).await;
            let asked = self.found.iter().enumerate().filter(|(_, found)| found.members.is_ok()).map(|(at, found)| {
                let (connections, address) = (Arc::clone(connections), found.address.clone());
                async move { (at, timeout_at(deadline, connections.access.members(&address)).await) }
            });
            for (at, answer) in side_by_side(asked).await {
                // Without an answer what it said before stands.
                if let Ok(Ok(members)) = answer {
                    self.found[at].members = Ok(members);
                }
            }
        }
    }

    fn lists(&self) -> Vec<List<'_>> {
        self.found.iter().filter_map(Found::list).collect()
    }

    fn membership(&self) -> Result<Membership, ObserveError> {
        if self.found.is_empty() {
            return Err(self.nobody());
        }
        membership(&self.lists()).ok_or_else(|| ObserveError::NoMembership { reasons: self.reasons() })
    }

    /// Why a voter that answers is in doubt all the same: a list that is not known may have a member that no other has. A
    /// learner lists nobody.
    fn unheard(&self, look: &Look, counted: &BTreeSet<String>) -> Option<String> {
        let address = &look.reached.as_ref().ok()?.address;
        if look.listed.role == Role::Learner || counted.contains(address) {
            return None;
        }
        let found = self.found.iter().find(|found| found.address == *address)?;
        Some(match &found.members {
            Err(error) => format!("its list of the members is not known: {error}"),
            Ok(_) => "its list of the members does not count, as it does not list itself".to_owned(),
        })
    }

    /// Takes the best address that speaks for this member.
    fn look_at(&self, member: &Listed, voices: &Voices) -> Look {
        let its = self.found.iter().filter(|found| found.seen.id == member.id);
        let speaks = its.filter_map(|found| Some((voices.of(member, &found.address)?, found)));
        let best = speaks.max_by_key(|(voice, found)| (*voice, found.details.is_some()));
        let reached = best.map(|(voice, found)| {
            let Found { address, seen, details, .. } = found;
            // Whose address it is, its own list alone has said so far.
            let details = details.clone().filter(|_| voice == Voice::Own);
            Reached { address: address.clone(), seen: seen.clone(), details }
        });
        Look { listed: member.clone(), reached: reached.ok_or_else(|| self.silence(member, voices)), disputed: None }
    }

    fn voices<'a>(&'a self, members: &'a [Listed], endpoints: &'a [String], as_advertised: bool) -> Voices<'a> {
        Voices { members, endpoints, answers: self.answers(), as_advertised }
    }

    fn is_reached_as_advertised(&self, members: &[Listed]) -> bool {
        let lists = self.found.iter().filter_map(|found| found.members.as_deref().ok());
        is_reached_as_advertised(members, lists, &self.answers())
    }

    fn answers(&self) -> Vec<(&str, MemberId)> {
        self.found.iter().map(|found| (&*found.address, found.seen.id)).collect()
    }

    /// Why a member was not reached, address by address.
    fn silence(&self, member: &Listed, voices: &Voices) -> String {
        if member.client_urls.is_empty() && member.unused.is_empty() {
            return "it advertises no address".to_owned();
        }
        let reasons = member.client_urls.iter().map(|url| {
            match (self.failed.get(url), self.found.iter().find(|found| found.address == *url)) {
                (Some(error), _) => format!("{url}: {error}"),
                (None, Some(found)) if found.seen.id == member.id => {
                    format!("{url} answers as this member, but others advertise it, too, and it is silent elsewhere")
                }
                (None, Some(found)) => another(url, found.seen.id).to_string(),
                (None, None) => format!("{url} was not asked"),
            }
        });
        let elsewhere = self.found.iter().filter(|found| found.seen.id == member.id);
        let elsewhere = elsewhere.filter(|found| voices.is_unclaimed(&found.address)).map(|found| {
            format!(
                "{} answers as this member, which does not advertise it, so it does not count; restart it with that address \
                 in --advertise-client-urls if it is its own",
                found.address
            )
        });
        reasons.chain(member.unused.iter().cloned()).chain(elsewhere).collect::<Vec<_>>().join("; ")
    }

    fn nobody(&self) -> ObserveError {
        ObserveError::nobody(&self.failed, None)
    }

    fn reasons(&self) -> Vec<String> {
        let failed = self.failed.iter().map(|(address, error)| format!("{address}: {error}"));
        let listless = self.found.iter().filter_map(|found| {
            let error = found.members.as_ref().err()?;
            Some(format!("{}: {error}", found.address))
        });
        failed.chain(listless).collect()
    }
}

/// Asks whoever is at this address who it is and, if the address is that voter's alone, whether it is ready.
async fn find(connections: &Connections, address: String) -> Result<Found, CallError> {
    let (seen, members) = tokio::join!(connections.access.status(&address), connections.access.members(&address));
    let seen = seen?;
    let voter = members.iter().flatten().find(|member| member.id == seen.id && member.role == Role::Voter);
    let details = match voter {
        Some(voter) if is_owned(&members, &address, seen.id) => Some(connections.details(voter, &address, &seen).await),
        _ => None,
    };
    Ok(Found { address, seen, members, details })
}

fn is_owned(members: &Result<Vec<Listed>, CallError>, address: &str, id: MemberId) -> bool {
    members.as_ref().is_ok_and(|members| sole_owner(members, address) == Some(id))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Its list may have a member that no other has, so it is not passed over.
    #[test]
    fn a_voter_that_answers_and_whose_list_does_not_count_is_in_doubt() {
        let address = "http://a".to_owned();
        let seen = Seen { id: MemberId(1), status: proto::etcdserverpb::StatusResponse::default() };
        let look = |role| Look {
            listed: Listed {
                id: MemberId(1),
                name: "m1".into(),
                role,
                client_urls: vec![],
                unused: vec![],
                serves_at_a_peer_url: false,
            },
            reached: Ok(Reached { address: address.clone(), seen: seen.clone(), details: None }),
            disputed: None,
        };
        let refused = || Err(CallError::Unusable("it lists 65 members".into()));
        for (role, members, counts, expected) in [
            (Role::Voter, refused(), false, Some("its list of the members is not known: it lists 65 members")),
            (
                Role::Voter,
                Ok(vec![]),
                false,
                Some("its list of the members does not count, as it does not list itself"),
            ),
            (Role::Voter, Ok(vec![]), true, None),
            (Role::Learner, refused(), false, None),
        ] {
            let found = Found { address: address.clone(), seen: seen.clone(), members, details: None };
            let round = Round { found: vec![found], ..Round::default() };
            let counted = counts.then(|| address.clone()).into_iter().collect();
            assert_eq!(round.unheard(&look(role), &counted).as_deref(), expected, "{role:?}");
        }
    }

    /// Who answers where; then where each member is reached. All of m1..m3 advertise an address of their own.
    #[test]
    fn a_member_is_reached_where_its_voice_is_best() {
        let url = |id: u64| format!("http://{id}");
        let listed = |id| Listed {
            id: MemberId(id),
            name: format!("m{id}"),
            role: Role::Voter,
            client_urls: vec![url(id)],
            unused: vec![],
            serves_at_a_peer_url: false,
        };
        let members: Vec<_> = (1..=3).map(listed).collect();
        let found = |(address, id): (&str, u64)| Found {
            address: address.to_owned(),
            seen: Seen { id: MemberId(id), status: proto::etcdserverpb::StatusResponse::default() },
            members: Ok(members.clone()),
            details: None,
        };
        let endpoints = ["http://lb".to_owned(), "http://nat".to_owned()];
        for (answers, expected) in [
            (vec![("http://1", 1), ("http://lb", 2)], [Some("http://1"), None, None]),
            // Not even for itself.
            (vec![("http://3", 3), ("http://lb", 1)], [None, None, Some("http://3")]),
            // What another one advertises makes nobody reached.
            (vec![("http://1", 2), ("http://lb", 3)], [None, None, Some("http://lb")]),
            (vec![("http://lb", 1), ("http://nat", 2)], [Some("http://lb"), Some("http://nat"), None]),
            (vec![("http://lb", 1), ("http://else", 2)], [Some("http://lb"), None, None]),
        ] {
            let round = Round { found: answers.iter().copied().map(found).collect(), ..Round::default() };
            let voices = round.voices(&members, &endpoints, round.is_reached_as_advertised(&members));
            let looks: Vec<_> = members.iter().map(|member| round.look_at(member, &voices)).collect();
            let reached = looks.iter().map(|look| look.reached.as_ref().ok().map(|reached| &*reached.address));
            assert_eq!(reached.collect::<Vec<_>>(), expected, "{answers:?}");
            for (address, id) in answers.into_iter().filter(|(address, _)| *address == "http://lb") {
                let silent = looks.iter().find(|look| look.listed.id == MemberId(id)).unwrap().reached.as_ref().err();
                let said = format!("{address} answers as this member, which does not advertise it");
                assert!(silent.is_none_or(|why| why.contains(&said)), "{silent:?}");
            }
        }
    }
}
