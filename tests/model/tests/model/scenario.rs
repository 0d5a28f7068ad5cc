//! What one search explores: which cluster on which hosts, which playbook, which faults, which rules.

use std::sync::Arc;

use super::{faults::Faults, names::id_of, way::Place};
use agent::{
    keys::{Finalize, Intent, host_id::HostId, rules::Rules, seat::Seats},
    plan::{Me, OnFailure, Verb},
};

/// One search.
#[derive(Clone, Debug)]
pub struct Scenario {
    pub name: String,
    /// The host of each member.
    pub owners: Vec<usize>,
    pub kind: Kind,
    pub finalize: Finalize,
    pub on_failure: OnFailure,
    pub faults: Faults,
    pub rules: Rules,
    /// Whether orders that come to the same are taken for one (`reduction.rs`).
    pub is_reduced: bool,
    /// Whether registering and ending take time (`reduction.rs`).
    pub is_fine: bool,
    /// Whether worlds that differ only in which host is which are taken for one (`digest.rs`).
    pub has_alike_hosts: bool,
    /// Whether the state directory of the second host is a copy of the first one's.
    pub has_twins: bool,
    /// Whether nobody remembers that a member was told to stop.
    pub forgets_what_was_told: bool,
    /// Whether anybody changes the cluster's release; else there are guarded commands alone.
    pub has_run: bool,
    /// Whether the playbook asks for a backup.
    pub backs_up: bool,
    /// Whether it is said of each guarded command that it restarts its host.
    pub says_reboots: bool,
}

/// What the playbook changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// 3.4 to 3.5: there is a point of no return.
    Minor,
    /// 3.5 to 3.4: the cluster and each member's data are made fit for it first.
    Down,
    /// Within 3.4: there is none.
    Patch,
    /// The same release anew.
    Restart,
    /// Two hops: within 3.4, and from there to 3.5. Only the second has a point of no return.
    PatchThenMinor,
    /// Two hops: 3.4 to 3.5 to 3.6.
    TwoMinors,
}

impl Scenario {
    pub fn new(name: impl Into<String>, change: impl FnOnce(&mut Faults)) -> Self {
        let mut faults = Faults::default();
        change(&mut faults);
        Self {
            name: name.into(),
            owners: vec![0, 1, 2],
            kind: Kind::Minor,
            finalize: Finalize::Auto,
            on_failure: OnFailure::PutBack,
            faults,
            rules: Rules::default(),
            is_reduced: true,
            is_fine: false,
            has_alike_hosts: true,
            has_twins: false,
            forgets_what_was_told: false,
            has_run: true,
            backs_up: false,
            says_reboots: false,
        }
    }

    pub fn held(mut self) -> Self {
        self.finalize = Finalize::Manual;
        self
    }

    pub fn on(mut self, owners: &[usize]) -> Self {
        self.owners = owners.to_vec();
        self.has_alike_hosts = self.hosts() == owners.len();
        self
    }

    pub fn of(mut self, kind: Kind) -> Self {
        self.kind = kind;
        self
    }

    /// `strategy.on_failure: stop`
    pub fn stopping_on_failure(mut self) -> Self {
        self.on_failure = OnFailure::Leave;
        self
    }

    /// `strategy.on_failure: rollback` in a restart that changes no file.
    pub fn starting_again(mut self) -> Self {
        self.on_failure = OnFailure::StartAgain;
        self
    }

    pub fn with(mut self, change: impl FnOnce(&mut Rules)) -> Self {
        change(&mut self.rules);
        self
    }

    /// Others look while an agent has started and not registered, or has ended and its leases still stand.
    pub fn fine(mut self) -> Self {
        self.is_fine = true;
        self
    }

    /// No two hosts are taken for one another (`digest.rs`).
    pub fn each_for_itself(mut self) -> Self {
        self.has_alike_hosts = false;
        self
    }

    /// The first two hosts go by one id, until whoever is refused for it is given another.
    pub fn twins(mut self) -> Self {
        (self.has_twins, self.has_alike_hosts) = (true, false);
        self
    }

    /// Agents take a member that was told to stop for any other.
    pub fn forgetful(mut self) -> Self {
        self.forgets_what_was_told = true;
        self
    }

    /// Guarded commands alone.
    pub fn without_run(mut self) -> Self {
        self.has_run = false;
        self
    }

    /// `backup: { dir: … }`
    pub fn backing_up(mut self) -> Self {
        self.backs_up = true;
        self
    }

    /// `agent guard --reboot`
    pub fn rebooting(mut self) -> Self {
        self.says_reboots = true;
        self
    }

    /// Every order, one by one.
    pub fn unreduced(mut self) -> Self {
        self.is_reduced = false;
        self
    }

    pub fn hosts(&self) -> usize {
        self.owners.iter().max().map_or(0, |last| last + 1)
    }

    pub fn owned_by(&self, host: usize) -> impl Iterator<Item = usize> {
        self.owners.iter().enumerate().filter(move |(_, owner)| **owner == host).map(|(node, _)| node)
    }

    /// Whether the old binary is the higher one.
    pub fn leads_down(&self) -> bool {
        self.kind == Kind::Down
    }

    pub fn holds(&self, hop: Place) -> bool {
        self.finalize == Finalize::Manual && self.changes_minor(hop)
    }

    /// A host's.
    pub fn seats(&self, host: usize, id: HostId) -> Seats {
        Seats::on(id, self.owned_by(host).map(|node| (Arc::from(""), id_of(node))))
    }

    pub fn me(&self, host: usize, id: HostId, verb: Verb, intent: Arc<Intent>) -> Arc<Me> {
        Arc::new(Me {
            host: id,
            host_name: Arc::from(""),
            seats: self.seats(host, id),
            intent,
            verb,
            allow_degraded: false,
            allow_downtime: self.owners.len() < 3,
            max_learners: 1,
            on_failure: self.on_failure,
            command: "".into(),
            expect_agents: None,
        })
    }
}
