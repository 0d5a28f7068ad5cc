//! The first half of a look: everybody who can be found is asked at once.
//!
//! Starts from every address known and goes on to each address that an answer brings up, all side by side, so that a
//! dead one costs one time-out in all. Who answered is read off the answers; [`Wave::settle`] then says which address
//! speaks for which member.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use proto::{ClusterId, MemberId};
use tokio::task::JoinSet;
use tonic::Code;

use super::{
    cluster::{Means, Told},
    directory::{Findings, Listed, sole_owner},
    error::{CallError, ObserveError},
    health::Read,
    member::{Seen, another},
    view::Role,
};

/// What the addresses answered.
#[derive(Debug, Default)]
pub(super) struct Wave {
    found: Vec<Found>,
    failed: BTreeMap<String, CallError>,
}

/// Somebody answered at an address.
#[derive(Debug)]
struct Found {
    address: String,
    seen: Seen,
    members: Result<Vec<Listed>, CallError>,
    details: Option<Details>,
}

/// What a member is asked beyond its status, once it is clear which member it is.
#[derive(Clone, Debug)]
pub(super) struct Details {
    pub read: Read,
    pub told: Told,
}

/// A member of the membership, and where it was reached, or why it was not.
#[derive(Clone, Debug)]
pub(super) struct Look {
    pub listed: Listed,
    pub reached: Result<Reached, String>,
}

/// A member that answered.
#[derive(Clone, Debug)]
pub(super) struct Reached {
    pub address: String,
    pub seen: Seen,
    /// Missing where the address is not the member's alone, or the member is a learner.
    pub details: Option<Details>,
}

impl Wave {
    /// Asks everybody.
    pub(super) async fn run(means: &Arc<Means>) -> Self {
        let mut wave = Self::default();
        let (mut known, mut asked) = (BTreeSet::new(), JoinSet::new());
        let mut ask = |addresses: Vec<String>, asked: &mut JoinSet<_>| {
            for address in addresses {
                if known.insert(address.clone()) {
                    let means = Arc::clone(means);
                    asked.spawn(async move { (address.clone(), find(&means, address).await) });
                }
            }
        };
        ask(means.access.directory().addresses(), &mut asked);
        while let Some(joined) = asked.join_next().await {
            match joined {
                Ok((_, Ok(found))) => {
                    let members = found.members.iter().flatten();
                    ask(members.flat_map(|member| member.client_urls.clone()).collect(), &mut asked);
                    wave.found.push(found);
                }
                Ok((address, Err(error))) => drop(wave.failed.insert(address, error)),
                Err(error) => tracing::error!(%error, "an address could not be asked"),
            }
        }
        wave
    }

    /// Whether somebody is there who refuses to answer this user.
    pub(super) fn is_denied(&self) -> bool {
        self.failed.values().any(|error| error.code() == Some(Code::PermissionDenied))
    }

    /// The members, each with the address that speaks for it.
    pub(super) fn settle(self, means: &Means) -> Result<(ClusterId, Vec<Look>), ObserveError> {
        let cluster = self.cluster(means)?;
        let members = self.newest_list(cluster)?;
        let answered = self.found.iter().map(|found| (found.address.clone(), found.seen.id)).collect();
        let looks: Vec<_> = members.iter().map(|member| self.look_at(member, &members, cluster)).collect();
        let address = |look: &Look| Some((look.listed.id, look.reached.as_ref().ok()?.address.clone()));
        let chosen = looks.iter().filter_map(address).collect();
        means.access.directory().learn(Findings { cluster, members, answered, chosen });
        Ok((cluster, looks))
    }

    /// Which cluster this is about: the one known from earlier looks, else that of the playbook's endpoints, which must
    /// all belong to it.
    fn cluster(&self, means: &Means) -> Result<ClusterId, ObserveError> {
        let directory = means.access.directory();
        let at = |address: &String| self.found.iter().find(|found| found.address == *address);
        let configured: Vec<_> = directory.endpoints().iter().filter_map(at).collect();
        let expected = directory
            .cluster()
            .or_else(|| configured.first().or(self.found.first().as_ref()).map(|found| found.seen.cluster))
            .ok_or_else(|| ObserveError::NobodyAnswered { reasons: self.reasons() })?;
        match configured.iter().find(|found| found.seen.cluster != expected) {
            Some(other) => Err(ObserveError::AnotherCluster {
                address: other.address.clone(),
                found: other.seen.cluster,
                expected,
            }),
            None => Ok(expected),
        }
    }

    /// The membership as the member has it that has applied most: changes of the membership are log entries.
    fn newest_list(&self, cluster: ClusterId) -> Result<Vec<Listed>, ObserveError> {
        let lists = self.found.iter().filter(|found| found.seen.cluster == cluster);
        lists
            .filter_map(|found| Some((found.seen.applied(), found.members.as_ref().ok()?)))
            .filter(|(_, members)| !members.is_empty())
            .max_by_key(|(applied, _)| *applied)
            .map(|(_, members)| members.clone())
            .ok_or_else(|| ObserveError::NoMembership { reasons: self.reasons() })
    }

    /// Takes the best address of this member: one that is its own, else one that nobody advertises, else any that it
    /// answered at.
    fn look_at(&self, member: &Listed, members: &[Listed], cluster: ClusterId) -> Look {
        let own = |found: &Found| sole_owner(members, &found.address) == Some(member.id);
        let unclaimed = |found: &Found| !members.iter().any(|member| member.client_urls.contains(&found.address));
        let best = self
            .found
            .iter()
            .filter(|found| found.seen.id == member.id && found.seen.cluster == cluster)
            .max_by_key(|found| (found.details.is_some(), own(found), unclaimed(found)));
        let reached = best.map(|found| {
            let Found { address, seen, details, .. } = found;
            Reached { address: address.clone(), seen: seen.clone(), details: details.clone() }
        });
        Look { listed: member.clone(), reached: reached.ok_or_else(|| self.silence(member, cluster)) }
    }

    /// Why a member was not reached, address by address.
    fn silence(&self, member: &Listed, cluster: ClusterId) -> String {
        if member.client_urls.is_empty() {
            return "it has never started".to_owned();
        }
        let reasons = member.client_urls.iter().map(|url| {
            match (self.failed.get(url), self.found.iter().find(|found| found.address == *url)) {
                (Some(error), _) => format!("{url}: {error}"),
                (None, Some(found)) if found.seen.cluster != cluster => {
                    format!("{url} belongs to cluster {}", found.seen.cluster)
                }
                (None, Some(found)) => another(url, found.seen.id).to_string(),
                (None, None) => format!("{url} was not asked"),
            }
        });
        reasons.collect::<Vec<_>>().join("; ")
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
async fn find(means: &Means, address: String) -> Result<Found, CallError> {
    let (seen, members) = tokio::join!(means.access.status(&address), means.access.members(&address));
    let seen = seen?;
    let voter = members.iter().flatten().find(|member| member.id == seen.id && member.role == Role::Voter);
    let details = match voter {
        Some(voter) if is_owned(&members, &address, seen.id) => Some(means.details(voter, &address, &seen).await),
        _ => None,
    };
    Ok(Found { address, seen, members, details })
}

fn is_owned(members: &Result<Vec<Listed>, CallError>, address: &str, id: MemberId) -> bool {
    members.as_ref().is_ok_and(|members| sole_owner(members, address) == Some(id))
}
