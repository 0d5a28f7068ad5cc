//! The releases that a playbook leads over, and what a way of several hops adds to a world: with which hop an agent begins, and
//! what must hold from one hop to the next.
//!
//! The machine knows two binaries, the old one and the new one of its hop. The world counts releases, and says for each agent
//! which two of them it means. Source: `execute/hop.rs` of the agent.

use std::sync::Arc;

use super::{
    judge::{BEFORE_ITS_HOP, BEHIND, BELOW_DONE, NOT_ASKED, Violation, check},
    scenario::{Kind, Scenario},
    world::{By, World},
};
use agent::{
    journal::restart::Binary,
    keys::{
        Intent, Keys, Run, RunResult, RunState,
        change::{Change, Downgrade, Restart, Upgrade},
        hops::Hops,
    },
    machine::act::Event,
    plan::{Verb, hops},
};
use proto::{ClusterId, ClusterVersion, Release};

/// A release, by its place on the way: the cluster begins on the first.
pub type Place = u8;

/// The releases of each kind, by minor and patch.
fn releases(kind: Kind) -> &'static [(u64, u64)] {
    match kind {
        Kind::Minor => &[(4, 0), (5, 0)],
        Kind::Down => &[(5, 0), (4, 0)],
        Kind::Patch => &[(4, 0), (4, 1)],
        Kind::Restart => &[(4, 0), (4, 0)],
        Kind::PatchThenMinor => &[(4, 0), (4, 1), (5, 0)],
        Kind::TwoMinors => &[(4, 0), (5, 0), (6, 0)],
    }
}

impl Scenario {
    pub fn last(&self) -> Place {
        (releases(self.kind).len() - 1) as Place
    }

    pub fn release(&self, place: Place) -> Release {
        let (minor, patch) = releases(self.kind)[usize::from(place)];
        Release::new(3, minor, patch)
    }

    pub fn version(&self, place: Place) -> ClusterVersion {
        self.release(place).cluster_version()
    }

    /// Whether this hop takes members to another minor.
    pub fn changes_minor(&self, hop: Place) -> bool {
        self.version(hop) != self.version(hop + 1)
    }

    fn change(&self, hop: Place) -> Change {
        let minor = releases(self.kind)[0].0;
        let from = match hop {
            0 => format!(">=3.{minor}, <3.{}", minor + 1),
            // As a playbook is read.
            _ => format!("={}", self.release(hop)),
        };
        let (from, to) = (from.parse().unwrap(), self.release(hop + 1));
        match self.kind {
            Kind::Down => Change::Downgrade(Downgrade { from, to }),
            Kind::Restart => Change::Restart(Restart { id: "1".into() }),
            _ => Change::Upgrade(Upgrade { from, to }),
        }
    }

    /// The intent at each hop.
    pub fn intents(&self) -> Vec<Arc<Intent>> {
        let changes: Vec<Change> = (0..self.last()).map(|hop| self.change(hop)).collect();
        let several = (changes.len() > 1).then(|| Hops { changes: changes.clone(), gates: Default::default() });
        let whole = Intent {
            cluster: ClusterId(1),
            change: changes[0].clone(),
            gates: Default::default(),
            finalize: self.finalize,
            accepted_hazards: Default::default(),
            backup: self.backs_up,
            hops: several.map(Arc::new),
        };
        changes.iter().map(|change| Arc::new(whole.at(change))).collect()
    }
}

/// The release that a binary of this hop is of.
pub fn place(hop: Place, binary: Binary) -> Place {
    match binary {
        Binary::Old => hop,
        Binary::New => hop + 1,
    }
}

impl World {
    fn hop_to(&self, change: &Change) -> Place {
        self.intents.iter().position(|intent| intent.change == *change).expect("a hop of the way") as Place
    }

    pub fn hop_of(&self, run: &Run) -> Place {
        self.hop_to(&run.intent.change)
    }

    /// The hop that this host's agent is about.
    pub fn hop_on(&self, host: usize) -> Place {
        self.process(host).hop
    }

    /// What this host's agent means by a binary.
    pub fn place_on(&self, host: usize, binary: Binary) -> Place {
        place(self.hop_on(host), binary)
    }

    // ---- with which hop an agent begins ----

    fn due(&self, keys: &Keys) -> Option<Place> {
        let run = keys.run.as_ref().map(|run| &run.value);
        Some(self.hop_to(hops::due(&self.intents[0], run, &self.view())?))
    }

    /// By what this host's members are set to run.
    fn by_own(&self, host: usize) -> Place {
        let hops = self.intents[0].hops.as_ref().map_or(&[][..], |hops| &hops.changes);
        let own: Vec<Release> =
            self.scenario.owned_by(host).map(|node| self.scenario.release(self.nodes[node].binary)).collect();
        hops::by_releases(hops, own.iter()).unwrap_or_default() as Place
    }

    fn restarts(&self, host: usize) -> bool {
        self.hosts[host].journal.is_some_and(|in_hand| in_hand.restart().is_some())
    }

    /// The hop that an agent begins with.
    pub fn hop_found(&self, host: usize) -> Place {
        if self.intents.len() == 1 {
            return 0;
        }
        if self.restarts(host) {
            return self.hosts[host].step_hop;
        }
        let due = if self.has_quorum() { self.due(&self.keys) } else { self.due(&Keys::default()) };
        due.unwrap_or_else(|| self.by_own(host))
    }

    /// The others that it may begin with: where the keys are not read, or no member answers in time.
    pub fn hops_mistaken(&self, host: usize) -> Vec<Place> {
        if self.intents.len() == 1 || self.restarts(host) {
            return Vec::new();
        }
        let found = self.hop_found(host);
        let mut others: Vec<Place> = self.due(&Keys::default()).into_iter().chain([self.by_own(host)]).collect();
        others.retain(|other| *other != found);
        others.dedup();
        others
    }

    /// What a verb is typed for, where it means one hop alone: the run that stands. An agent that could not read the keys may not know
    /// which that was, and is not blamed for the one that it began with.
    pub fn hop_meant(&self, verb: Verb, begun: Place) -> Place {
        let stands = self.keys.run.as_ref().map(|run| &run.value).filter(|run| !run.is_over());
        match means_one_hop(verb) {
            true => stands.map_or(begun, |run| self.hop_of(run).max(begun)),
            false => 0,
        }
    }

    /// Its agent goes on with another hop.
    pub fn hop(&mut self, host: usize, change: &Change) -> Event {
        let (hop, id) = (self.hop_to(change), self.id_of_host(host));
        let process = self.process_mut(host);
        process.hop = hop;
        if process.verb == Verb::Resume {
            process.verb = Verb::Run;
        }
        let verb = process.verb;
        Event::Hop(self.scenario.me(host, id, verb, self.intents[usize::from(hop)].clone()))
    }

    // ---- what must hold ----

    /// A release that is made a member's own, or is started.
    pub fn judge_place(&self, at: Place) -> Result<(), Violation> {
        check(at >= self.reached, BELOW_DONE)?;
        let is_near = |node: &super::world::Node| node.binary + 1 >= at;
        check(at <= self.reached + 1 && self.nodes.iter().all(is_near), BEFORE_ITS_HOP)
    }

    /// A run that is written: of the hop that is due, by an agent that is about it.
    pub fn judge_run(&self, run: &Run, by: By) -> Result<(), Violation> {
        let (hop, was) = (self.hop_of(run), self.keys.run.as_ref().map(|run| &run.value));
        check(by.hop.is_none_or(|about| about == hop), BEHIND)?;
        if was.is_none_or(|was| was.id != run.id) {
            check(hop >= self.reached, BEHIND)?;
            check(hop == self.reached && self.nodes.iter().all(|node| node.binary >= hop), BEFORE_ITS_HOP)?;
        }
        let asks = match run.state {
            RunState::Approved => by.verb == Some(Verb::Finalize),
            RunState::RollingBack => by.verb == Some(Verb::Rollback),
            _ => false,
        };
        let is_new = was.is_none_or(|was| was.state != run.state);
        check(!asks || !is_new || hop <= by.meant, NOT_ASKED)
    }

    pub fn follow_hop(&mut self, run: &Run) {
        if run.state == (RunState::Done { result: RunResult::Reached }) {
            self.reached = self.reached.max(self.hop_of(run) + 1);
        }
    }

    /// Whether a run of a later hop stands, or is history: this hop is done.
    pub fn is_past(&self, hop: Place, keys: &Keys) -> bool {
        keys.run.as_ref().is_some_and(|run| self.hop_of(&run.value) > hop)
    }
}

/// Whoever types it means the run that stands, and none after it.
pub fn means_one_hop(verb: Verb) -> bool {
    matches!(verb, Verb::Rollback | Verb::Finalize)
}
