//! What one search explores: which members on which hosts, which playbook, which faults, which rules.

use std::sync::Arc;

use super::faults::Faults;
use agent::{
    keys::{
        Finalize, Intent,
        change::{Change, Replace, Scale},
        host_id::HostId,
        rules::Rules,
        seat::{Seat, Seats},
    },
    plan::{Me, OnFailure, Verb},
};
use proto::{ClusterId, MemberId, Release};

/// One search. Each host has one seat, of its own number.
#[derive(Clone, Debug)]
pub struct Scenario {
    pub name: String,
    pub hosts: usize,
    /// The seats that vote at first.
    pub voters: usize,
    pub kind: Kind,
    /// The hosts on which an agent is run; on others a supervisor starts what has ended.
    pub agents: Vec<usize>,
    /// Gone for good from the beginning.
    pub dead: Option<usize>,
    /// Its data is gone from the beginning.
    pub emptied: Option<usize>,
    /// Those that may be emptied, or die.
    pub frail: Vec<usize>,
    /// Whether the hosts of the first voters are held.
    pub is_held: bool,
    /// Whether the members take a learner beside a voter that is not there, where enough are (etcd 3.5.30, 3.6.11).
    pub is_late: bool,
    /// How many newcomers may be learners at once, by playbooks and members.
    pub max_learners: usize,
    pub faults: Faults,
    pub rules: Rules,
}

#[derive(Clone, Debug)]
pub enum Kind {
    /// These seats vote at the end.
    Scale(Vec<usize>),
    Replace {
        member: usize,
        by: usize,
    },
}

pub fn name_of(seat: usize) -> Arc<str> {
    Arc::from(format!("s{seat}"))
}

pub fn url_of(seat: usize) -> String {
    format!("u{seat}")
}

impl Scenario {
    fn new(name: impl Into<String>, voters: usize, hosts: usize, kind: Kind) -> Self {
        Self {
            name: name.into(),
            hosts,
            voters,
            kind,
            agents: (0..hosts).collect(),
            dead: None,
            emptied: None,
            frail: Vec::new(),
            is_held: false,
            is_late: true,
            max_learners: 1,
            faults: Faults::default(),
            rules: Rules::default(),
        }
    }

    /// From the first so many voters to so many.
    pub fn scale(name: impl Into<String>, from: usize, to: usize) -> Self {
        Self::new(name, from, from.max(to), Kind::Scale((0..to).collect()))
    }

    /// The last of so many voters by one on another host.
    pub fn replace(name: impl Into<String>, voters: usize) -> Self {
        Self::new(name, voters, voters + 1, Kind::Replace { member: voters - 1, by: voters })
    }

    /// The last of so many voters by itself: its host has lost its disk.
    pub fn replace_itself(name: impl Into<String>, voters: usize) -> Self {
        let kind = Kind::Replace { member: voters - 1, by: voters - 1 };
        Self { emptied: Some(voters - 1), ..Self::new(name, voters, voters, kind) }
    }

    /// Who is to be replaced is gone for good.
    pub fn of_the_dead(mut self) -> Self {
        self.dead = Some(self.voters - 1);
        self.agents.retain(|host| Some(*host) != self.dead);
        self
    }

    /// Agents on these hosts alone.
    pub fn on(mut self, agents: &[usize]) -> Self {
        self.agents = agents.to_vec();
        self
    }

    pub fn frail(mut self, hosts: &[usize]) -> Self {
        self.frail = hosts.to_vec();
        self
    }

    /// On hosts that are adopted.
    pub fn held(mut self) -> Self {
        self.is_held = true;
        self
    }

    /// Members of a release before 3.5.30.
    pub fn early(mut self) -> Self {
        self.is_late = false;
        self
    }

    pub fn two_at_once(mut self) -> Self {
        self.max_learners = 2;
        self
    }

    pub fn under(mut self, change: impl FnOnce(&mut Faults)) -> Self {
        change(&mut self.faults);
        self
    }

    pub fn with(mut self, change: impl FnOnce(&mut Rules)) -> Self {
        change(&mut self.rules);
        self
    }

    pub fn release(&self) -> Release {
        Release::new(3, 5, if self.is_late { 30 } else { 16 })
    }

    /// Whether this seat's member is to vote at the end.
    pub fn wants(&self, seat: usize) -> bool {
        match &self.kind {
            Kind::Scale(seats) => seats.contains(&seat),
            Kind::Replace { member, by } => seat == *by || (seat < self.voters && seat != *member),
        }
    }

    /// How many voters there are at the end.
    pub fn target(&self) -> usize {
        (0..self.hosts).filter(|seat| self.wants(*seat)).count()
    }

    pub fn intent(&self) -> Intent {
        let change = match &self.kind {
            Kind::Scale(seats) => Change::Scale(Scale { members: seats.iter().map(|seat| name_of(*seat)).collect() }),
            Kind::Replace { member, by } => Change::Replace(Replace { member: name_of(*member), by: name_of(*by) }),
        };
        Intent {
            cluster: ClusterId(1),
            change,
            gates: Default::default(),
            finalize: Finalize::Auto,
            accepted_hazards: Default::default(),
            backup: false,
            hops: None,
        }
    }

    pub fn seats(&self, host: usize, id: HostId, member: Option<MemberId>) -> Seats {
        Seats(vec![Seat { name: name_of(host), host: Some(id), member }])
    }

    pub fn me(&self, seats: Seats, id: HostId, verb: Verb, intent: Arc<Intent>) -> Arc<Me> {
        Arc::new(Me {
            host: id,
            host_name: Arc::from(""),
            seats,
            intent,
            verb,
            allow_degraded: false,
            allow_downtime: true,
            max_learners: self.max_learners,
            on_failure: OnFailure::PutBack,
            command: "".into(),
            expect_agents: None,
        })
    }
}
