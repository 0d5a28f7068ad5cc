//! The whole look: every member asked side by side, the leader agreed, readiness judged.
//!
//! ```text
//! round: every address: who are you, who are the members?   and of a voter at its own address: read, version
//!   -> settle: which address speaks for which member
//!   -> leader: by a majority, asked again for up to three election time-outs
//!   -> examine: what is missing (learners after the leader, addresses not a member's own over a new connection),
//!               and a second time 2 s later where a member is not ready
//! ```

use std::{future::Future, sync::Arc, time::Duration};

use proto::{ClusterVersion, LogIndex, MemberId};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep, timeout, timeout_at},
};

use super::{
    access::Access,
    awake::within,
    directory::Listed,
    error::ObserveError,
    health::{Answers, Progress, Read, Verdict, judge, judge_twice},
    http::Http,
    leader::agreed,
    member::Seen,
    reported::{in_doubt, report},
    round::{Details, Look, Reached, Round, Settled},
    view::{Answer, ClusterView, Gates, Health, JoinTerms, Leader, Member, Role},
};
use crate::playbook::cluster::Cluster;

/// A key of Baton's own, which every user of it may read.
const OWN_KEY: &str = "/baton/run";
/// How far apart the two looks at a member are that is not ready, at most: it may be ready before.
const UNREADY_PROBE_GAP: Duration = Duration::from_secs(2);
/// How often it is asked meanwhile.
const UNREADY_PROBED_EVERY: Duration = Duration::from_millis(100);
/// How long the others may take to say meanwhile whether it is a member still.
const LISTED_WITHIN: Duration = Duration::from_millis(300);
/// How long one member may take to answer what is missing of it, beside a second look.
const MISSING: Duration = Duration::from_secs(10);
/// How long a member is waited for that should be gone.
const AT_ONCE: Duration = Duration::from_secs(1);
/// How often voters are asked for their leader while they disagree.
const LEADER_PROBE_GAP: Duration = Duration::from_millis(50);

/// Whether a member that is not ready is looked at a second time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Patience {
    LookTwice,
    Glance,
}

/// What a member says of the cluster beyond its status.
#[derive(Clone, Debug)]
pub(super) struct Reported {
    pub cluster_version: Option<ClusterVersion>,
    pub gates: Option<Gates>,
    pub join: Option<JoinTerms>,
    /// What of it was not read, as it did not end.
    pub warning: Option<String>,
}

/// Looks at one cluster. Keeps its connections open between looks; cheap to clone.
#[derive(Clone, Debug)]
pub struct Observer {
    pub(super) connections: Arc<Connections>,
}

/// What a look is made with.
#[derive(Debug)]
pub(super) struct Connections {
    pub access: Arc<Access>,
    pub http: Http,
    /// What linearizable reads ask for: a key of our own, which the user may be allowed to read.
    pub key: String,
    pub election_timeout: Duration,
}

impl Observer {
    /// Reads the files that the playbook names. Connects when it is first used, inside a tokio runtime.
    ///
    /// # Errors
    /// What is wrong with the playbook's files and addresses: [`ObserveError::File`], [`ObserveError::Pem`],
    /// [`ObserveError::Tls`], [`ObserveError::Address`].
    pub fn connect(cluster: &Cluster) -> Result<Self, ObserveError> {
        let access = Arc::new(Access::new(cluster)?);
        let http = Http::new(Arc::clone(&access), cluster.http.clone())?;
        let key = OWN_KEY.to_owned();
        Ok(Self {
            connections: Arc::new(Connections { access, http, key, election_timeout: cluster.election_timeout }),
        })
    }

    /// The connections, for the store of shared keys.
    pub fn access(&self) -> &Arc<Access> {
        &self.connections.access
    }

    /// Whether the playbook's user has the role `root`, as far as the cluster wants one: several releases answer even
    /// `Status` to nobody else, and all of them `HashKV` (etcd documentation, "Role-based access control").
    ///
    /// # Errors
    /// [`ObserveError`] when the user is refused, or nobody answers.
    pub async fn is_administrator(&self) -> Result<bool, ObserveError> {
        let access = &self.connections.access;
        drop(access.log_in().await?);
        access
            .is_administrator()
            .await
            .map_err(|error| ObserveError::NobodyAnswered { reasons: vec![error.to_string()] })
    }

    /// Finds out which cluster this is about, by asking the playbook's endpoints alone; the first look does so too.
    ///
    /// # Errors
    /// [`ObserveError`] when none of them answers, or they belong to two clusters.
    pub async fn meet(&self) -> Result<(), ObserveError> {
        self.connections.access.meet().await.map(drop)
    }

    /// Looks at every member.
    ///
    /// # Errors
    /// [`ObserveError`] when nothing can be said about the cluster as a whole. What is wrong with one member stands in
    /// the view.
    pub async fn look(&self) -> Result<ClusterView, ObserveError> {
        self.look_with(Patience::LookTwice).await
    }

    /// A look that does not wait to see whether a member that is not ready is on its way: for those who look
    /// again at once anyway.
    ///
    /// # Errors
    /// As for a look.
    pub async fn probe(&self) -> Result<ClusterView, ObserveError> {
        self.look_with(Patience::Glance).await
    }

    async fn look_with(&self, patience: Patience) -> Result<ClusterView, ObserveError> {
        let connections = &self.connections;
        let Settled { cluster, mut looks, mut warnings } = self.settled().await?;
        warnings
            .extend(looks.iter().filter_map(|look| Some(format!("{}: {}", look.called(), look.disputed.as_ref()?))));
        let leader = connections.agree(&mut looks).await;
        let commit = leader_commit(&leader, &looks);
        let members = side_by_side(looks.into_iter().map(|look| {
            let connections = Arc::clone(connections);
            async move { connections.examine(look, commit, patience).await }
        }));
        let (mut members, endless): (Vec<_>, Vec<_>) = members.await.into_iter().unzip();
        members.sort_by_key(|member| member.id);
        warnings.extend(endless.into_iter().flatten());
        let mut view = ClusterView { cluster, leader, members, warnings };
        view.name_alarms();
        Ok(view)
    }

    /// The membership alone, by the lists of all that answer; needs no quorum.
    ///
    /// # Errors
    /// [`ObserveError`], as for a look.
    pub async fn members(&self) -> Result<Vec<Listed>, ObserveError> {
        let looks = self.settled().await?.looks;
        Ok(looks.into_iter().map(|look| look.listed).collect())
    }

    /// Where this member answers, if it does at once.
    pub async fn still_answers(&self, member: MemberId) -> Option<String> {
        let address = self.connections.address_of(member)?;
        self.connections.access.forget(&address);
        let answer = timeout(AT_ONCE, self.connections.access.status_of(member, &address)).await;
        matches!(answer, Ok(Ok(_))).then_some(address)
    }

    /// Asks everybody. Several releases answer `Status` to the role `root` only, and then nobody seems to be there.
    async fn settled(&self) -> Result<Settled, ObserveError> {
        let failed = self.connections.access.log_in().await?;
        let mut round = Round::run(&self.connections, failed).await;
        round.catch_up(&self.connections).await;
        let is_denied = round.is_denied();
        let error = match round.settle(&self.connections) {
            Err(error @ ObserveError::NobodyAnswered { .. }) if is_denied => error,
            settled => return settled,
        };
        match self.connections.access.user().await {
            Some(user) if !self.is_administrator().await? => Err(ObserveError::NotRoot { user }),
            _ => Err(error),
        }
    }
}

impl Connections {
    /// What a member is asked beyond its status.
    pub(super) async fn details(&self, member: &Listed, address: &str, seen: &Seen) -> Details {
        // In this order: what a lost quorum had left undecided is decided before the read is answered (R-9).
        let read = self.read(member, address).await;
        let told = self.told(member, address, seen, &read).await;
        Details { read, told }
    }

    async fn told(&self, member: &Listed, address: &str, seen: &Seen, read: &Read) -> Reported {
        let version = self.http.cluster_version(&member.name, address, &seen.status.version);
        let join = self.access.join_terms(member.id, address);
        let (cluster_version, gates, join) = tokio::join!(version, self.gates(member, address, read), join);
        let warning = cluster_version.as_ref().err().map(|endless| format!("{}: {endless}", member.name));
        Reported { cluster_version: cluster_version.unwrap_or_default(), gates, join, warning }
    }

    /// Asked for by a linearizable call, which would only time out where a read did. Whether they are decided and what
    /// the member wants is on its page of metrics: where that has other gates, they have changed at this very moment.
    async fn gates(&self, member: &Listed, address: &str, read: &Read) -> Option<Gates> {
        let unknown = |reason: &str| Some(Gates::Unknown { reason: reason.to_owned() });
        match read {
            Read::Failed(reason) => return unknown(reason),
            Read::NotAsked if member.role == Role::Voter => return unknown("no linearizable read was made"),
            Read::NotAsked | Read::Answered => {}
        }
        let on = match self.access.features_on(member.id, address).await {
            Ok(on) => on?,
            Err(error) => return unknown(&error.to_string()),
        };
        let mut gates = match self.http.gates(&member.name, address, member.id).await {
            Ok(Some(gates)) => gates,
            Ok(None) => return unknown("its /metrics do not say whether they are decided"),
            Err(endless) => return unknown(&endless.to_string()),
        };
        gates.is_decided &= gates.enabled == on;
        Some(Gates::Said(gates))
    }

    /// Where a look found this member.
    pub(super) fn address_of(&self, member: MemberId) -> Option<String> {
        self.access.directory().address_of(member)
    }

    async fn read(&self, member: &Listed, address: &str) -> Read {
        match member.role {
            Role::Voter => self.access.read_through(member.id, address, &self.key).await,
            Role::Learner => Read::NotAsked,
        }
    }

    /// The leader, asking again while a majority answers but does not agree, for three election time-outs.
    async fn agree(self: &Arc<Self>, looks: &mut [Look]) -> Leader {
        let deadline = Instant::now() + 3 * self.election_timeout;
        let voters = looks.iter().filter(|look| look.listed.role == Role::Voter).count();
        loop {
            let said: Vec<_> = voters_reached(looks).map(|reached| reached.seen.statement()).collect();
            let leader = agreed(voters, &said);
            if leader != Leader::Unknown || said.len() <= voters / 2 || Instant::now() + LEADER_PROBE_GAP >= deadline {
                return leader;
            }
            sleep(LEADER_PROBE_GAP).await;
            self.ask_again(looks, deadline).await;
        }
    }

    /// Renews the status of every member that answered before.
    async fn ask_again(self: &Arc<Self>, looks: &mut [Look], deadline: Instant) {
        let asked = looks.iter().enumerate().filter_map(|(at, look)| {
            let address = look.reached.as_ref().ok()?.address.clone();
            let (connections, id) = (Arc::clone(self), look.listed.id);
            Some(async move { (at, timeout_at(deadline, connections.access.status_of(id, &address)).await) })
        });
        for (at, answer) in side_by_side(asked).await {
            match (answer, &mut looks[at].reached) {
                (Ok(Ok(seen)), Ok(reached)) => reached.seen = seen,
                (Ok(Err(error)), reached) => *reached = Err(error.to_string()),
                _ => {} // no answer yet: what it said before stands
            }
        }
    }

    /// Asks a member what is still missing, and makes of it what the view says.
    async fn examine(
        &self,
        look: Look,
        leader_commit: Option<LogIndex>,
        patience: Patience,
    ) -> (Member, Option<String>) {
        let Look { listed, reached, disputed } = look;
        let at = reached.as_ref().ok().map(|reached| reached.address.clone());
        let answer = match reached {
            Ok(reached) => within(MISSING, self.complete(&listed, reached)).await.unwrap_or_else(|| Err(late())),
            Err(reason) => Err(reason),
        };
        let mut warning = None;
        let answer = match answer {
            Ok((reached, details)) => {
                warning.clone_from(&details.told.warning);
                let report = self.report(&listed, reached, details, leader_commit, patience);
                let late = || Answer::Silent { reason: late() };
                within(MISSING + UNREADY_PROBE_GAP, report).await.unwrap_or_else(late)
            }
            Err(reason) => Answer::Silent { reason },
        };
        let is_disputed = disputed.is_some();
        let answer = match answer {
            Answer::Silent { .. } if !is_disputed && listed.has_never_started() => Answer::NeverStarted,
            answer => disputed.into_iter().fold(answer, in_doubt),
        };
        let Listed { id, name, role, client_urls, .. } = listed;
        (
            Member {
                id,
                name: name.into(),
                role,
                client_urls,
                reached: at,
                is_disputed,
                activities: Default::default(),
                answer,
            },
            warning,
        )
    }

    /// A learner is asked after the leader was. An address that is not the member's own has to answer as this member
    /// over a new connection too: a balancer would send that one elsewhere.
    async fn complete(&self, member: &Listed, reached: Reached) -> Result<(Reached, Details), String> {
        if let Some(details) = reached.details.clone() {
            return Ok((reached, details));
        }
        let Reached { address, .. } = reached;
        if !self.access.directory().is_own(member.id, &address) {
            self.access.forget(&address);
        }
        let seen = self.access.status_of(member.id, &address).await.map_err(|error| error.to_string())?;
        let details = self.details(member, &address, &seen).await;
        Ok((Reached { address, seen, details: None }, details))
    }

    async fn report(
        &self,
        member: &Listed,
        reached: Reached,
        details: Details,
        leader_commit: Option<LogIndex>,
        patience: Patience,
    ) -> Answer {
        let Reached { address, seen, .. } = reached;
        let Details { read, told } = details;
        match judge(&answers(member.role, read, &seen, leader_commit)) {
            Verdict::Ready => report(&seen, told, Health::Ready),
            Verdict::Sick(reason) => report(&seen, told, Health::Sick { reason }),
            Verdict::Alarmed(alarms, besides) => report(&seen, told, Health::Alarmed { alarms, besides }),
            Verdict::Behind(reason) if patience == Patience::Glance => report(&seen, told, Health::Sick { reason }),
            Verdict::Behind(reason) => match self.second_look(member, &address, &seen, leader_commit, reason).await {
                Ok((seen, told, health)) => report(&seen, told, health),
                Err(reason) => Answer::Silent { reason },
            },
        }
    }

    /// Looks again for some time whether a member that was not ready is, or is on its way.
    async fn second_look(
        &self,
        member: &Listed,
        address: &str,
        seen: &Seen,
        leader_commit: Option<LogIndex>,
        reason: String,
    ) -> Result<(Seen, Reported, Health), String> {
        let received = self.http.received_bytes(&member.name, address).await;
        let before = Progress { applied: seen.applied(), received };
        let until = Instant::now() + UNREADY_PROBE_GAP;
        loop {
            sleep(UNREADY_PROBED_EVERY).await;
            let is_last = Instant::now() >= until;
            let seen = match self.access.status_of(member.id, address).await {
                // One that was removed meanwhile has ended for good.
                Err(error) if self.is_removed(member.id).await => return Err(error.to_string()),
                Err(_) if !is_last => continue,
                seen => seen.map_err(|error| error.to_string())?,
            };
            let read = match seen.status.errors.is_empty() {
                true => self.read(member, address).await,
                // Without a leader it would only time out once more.
                false => Read::NotAsked,
            };
            // After the read, as the first time: what was undecided then may be decided now.
            let told = self.told(member, address, &seen, &read).await;
            let health = match judge(&answers(member.role, read, &seen, leader_commit)) {
                Verdict::Behind(_) if !is_last => continue,
                Verdict::Behind(_) => {
                    let received = self.http.received_bytes(&member.name, address).await;
                    judge_twice(reason, before, Progress { applied: seen.applied(), received }, leader_commit)
                }
                Verdict::Ready => Health::Ready,
                Verdict::Sick(reason) => Health::Sick { reason },
                Verdict::Alarmed(alarms, besides) => Health::Alarmed { alarms, besides },
            };
            return Ok((seen, told, health));
        }
    }

    /// Whether the others list it no more, by the word of one that has asked a quorum, as far as that is to be had at once.
    async fn is_removed(&self, member: MemberId) -> bool {
        let listed = timeout(LISTED_WITHIN, self.peer_urls()).await;
        listed.is_ok_and(|listed| listed.is_ok_and(|listed| !listed.contains_key(&member)))
    }
}

fn late() -> String {
    format!("it answers too slowly: not all was said within {} s", MISSING.as_secs())
}

/// Runs all of them at once; the results come in no order.
pub(super) async fn side_by_side<F>(futures: impl IntoIterator<Item = F>) -> Vec<F::Output>
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    futures.into_iter().collect::<JoinSet<_>>().join_all().await
}

fn voters_reached(looks: &[Look]) -> impl Iterator<Item = &Reached> {
    looks.iter().filter(|look| look.listed.role == Role::Voter).filter_map(|look| look.reached.as_ref().ok())
}

/// How far the agreed leader said that the log is committed.
fn leader_commit(leader: &Leader, looks: &[Look]) -> Option<LogIndex> {
    let Leader::Agreed { member, .. } = leader else { return None };
    let leader = looks.iter().find(|look| look.listed.id == *member)?;
    Some(leader.reached.as_ref().ok()?.seen.commit())
}

fn answers(role: Role, read: Read, seen: &Seen, leader_commit: Option<LogIndex>) -> Answers {
    Answers { role, read, errors: seen.status.errors.clone(), applied: seen.applied(), leader_commit }
}
