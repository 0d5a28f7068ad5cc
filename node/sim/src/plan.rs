//! A run as data: how large the cluster is, and what goes wrong when. A seed gives one; a shrink makes it shorter.

mod fault;

use serde::{Deserialize, Serialize};
use simulated_disk::Chance;

pub use fault::{Fault, Part, Whom, Wishes};

use crate::network::HostId;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Plan {
    pub seed: u64,
    pub members: HostId,
    /// Minor of the release that all begin with.
    pub minor: u64,
    pub snapshot_count: u64,
    pub catchup_entries: u64,
    /// Whether leaders let their lease answer reads.
    #[serde(default)]
    pub reads_by_lease: bool,
    /// Simulated seconds until all faults end.
    pub seconds: u64,
    /// The one machine whose disk may lose what it has.
    pub unlucky: HostId,
    pub faults: Vec<Timed>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Timed {
    pub at_ms: u64,
    pub fault: Fault,
}

/// As many machines are new in a run, at most.
pub const ADDED: HostId = 4;

impl Plan {
    /// The plan of a seed; one in three loses a disk, or all of them do.
    pub fn of(seed: u64, seconds: u64, loses_disk: bool) -> Self {
        let mut chance = Chance::new(seed);
        let members = if chance.below(5) == 0 { 5 } else { 3 };
        let snapshot_count = [20, 50, 200, 1000][chance.below(4)];
        let unlucky = 1 + chance.below(members as usize) as HostId;
        let upgrades = chance.below(4) == 0;
        let mut plan = Self {
            seed,
            members,
            minor: if upgrades { 5 + chance.below(3) as u64 } else { [6, 7, 7, 8][chance.below(4)] },
            snapshot_count,
            catchup_entries: snapshot_count / [1, 2, 10][chance.below(3)],
            reads_by_lease: seed.is_multiple_of(2),
            seconds,
            unlucky,
            faults: Vec::new(),
        };
        // Calm and wild runs find different things.
        let mean_ms = [500, 1500, 4000][chance.below(3)];
        let mut at_ms = 2000;
        while at_ms < seconds * 1000 {
            let fault = plan.any(&mut chance);
            plan.faults.push(Timed { at_ms, fault });
            at_ms += 50 + chance.below(2 * mean_ms) as u64;
        }
        if loses_disk || chance.below(3) == 0 {
            plan.lose_a_disk(&mut chance);
        }
        // A copy that comes back while others are away is told from nothing (N-7).
        let brings_back = plan.faults.iter().any(|timed| matches!(timed.fault, Fault::BringBack { .. }));
        if upgrades && !brings_back {
            let from_ms = 1000 * chance.below(seconds as usize / 2) as u64 + 3000;
            let minor = plan.minor + 1;
            for host in 1..=members + ADDED {
                let at_ms = from_ms + host as u64 * 3000 + chance.below(2000) as u64;
                plan.faults.push(Timed { at_ms, fault: Fault::Upgrade { host, minor } });
            }
        }
        if !brings_back && chance.below(3) == 0 {
            plan.go_down(&mut chance);
        }
        // Nor is one that comes back where others came and went.
        let changes = plan.change_gates_and_members(&mut chance, !brings_back);
        // While one has lost its disk for good nobody can say what the gate must come to.
        if changes && !loses_disk && chance.below(3) > 0 {
            plan.faults.retain(|timed| !timed.fault.harms_the_unlucky());
        }
        plan.faults.sort_by_key(|timed| timed.at_ms);
        plan
    }

    /// All go down, at once or one after the other; or in the middle of that it is called off.
    fn go_down(&mut self, chance: &mut Chance) {
        let from_ms = 1000 * chance.below(2 * self.seconds as usize / 3) as u64 + 3000;
        let mut push = |at_ms, fault| self.faults.push(Timed { at_ms, fault });
        // Whoever leads may be away just then, or the members be changing.
        for again in 0..3 {
            push(from_ms + again * 2000, Fault::Downgrade);
        }
        let apart_ms = [0, 1500, 4000][chance.below(3)];
        for host in 1..=self.members + ADDED {
            push(from_ms + host as u64 * apart_ms, Fault::GoDown { host });
        }
        if chance.below(3) == 0 {
            push(from_ms + 1000 + chance.below(20_000) as u64, Fault::CallOff);
        }
    }

    /// In one run of two each: wishes and patches change; members come and go.
    fn change_gates_and_members(&mut self, chance: &mut Chance, may_change_members: bool) -> bool {
        let (gates, members) = (chance.below(2) == 0, may_change_members && chance.below(2) == 0);
        let mut at_ms = 3000;
        while at_ms < self.seconds * 1000 {
            let whom = match chance.below(4) {
                0 => Whom::Leader,
                _ => Whom::Host(1 + chance.below((self.members + ADDED) as usize) as HostId),
            };
            let fault = match chance.below(11) {
                0..=1 if gates => {
                    self.wish_otherwise(at_ms, whom, chance);
                    None
                }
                2 if gates && members => Some(Fault::Flags { whom: Whom::Learner, wishes: Wishes::any(chance) }),
                3 if gates => Some(Fault::Patch { whom }),
                4 if members => Some(Fault::Add { is_learner: false }),
                5..=6 if members => Some(Fault::Add { is_learner: true }),
                7 if members => Some(Fault::Promote),
                8..=9 if members => Some(Fault::Remove { whom }),
                10 if members => Some(Fault::Move { whom }),
                _ => None,
            };
            self.faults.extend(fault.map(|fault| Timed { at_ms, fault }));
            at_ms += 500 + chance.below(3000) as u64;
        }
        gates || members
    }

    /// One member is restarted with other wishes, or all with the same: one after the other, or at once. Then whoever leads may be
    /// cut off with the decision under way, and another one has to come to it.
    fn wish_otherwise(&mut self, at_ms: u64, whom: Whom, chance: &mut Chance) {
        let wishes = Wishes::any(chance);
        let mut push = |at_ms, fault| self.faults.push(Timed { at_ms, fault });
        match chance.below(3) {
            0 => {
                let apart_ms = [0, 10, 2000][chance.below(3)];
                for host in 1..=self.members + ADDED {
                    push(at_ms + host as u64 * apart_ms, Fault::Flags { whom: Whom::Host(host), wishes });
                }
            }
            _ => push(at_ms, Fault::Flags { whom, wishes }),
        }
        if chance.below(2) == 0 {
            push(at_ms, Fault::Depose { for_ms: 1500 + chance.below(4000) as u64 });
        }
    }

    fn whom(&self, chance: &mut Chance) -> Whom {
        match chance.below(3) {
            0 => Whom::Leader,
            _ => Whom::Host(1 + chance.below(self.members as usize) as HostId),
        }
    }

    fn any(&self, chance: &mut Chance) -> Fault {
        let whom = self.whom(chance);
        let short = 100 + chance.below(3000) as u64;
        let long = 500 + chance.below(9000) as u64;
        let for_ms = if chance.below(3) == 0 { long } else { short };
        match chance.below(32) {
            // Away for less than any election takes: what it has promised to its leader may count still.
            0 => Fault::Kill { whom, for_ms: 1 + chance.below(50) as u64 },
            1..=4 => Fault::Kill { whom, for_ms },
            5 => Fault::Restart { whom, for_ms },
            6..=7 => Fault::PowerLoss { whom, for_ms },
            8 => Fault::Blackout { for_ms: short },
            9..=12 => Fault::Freeze { whom, for_ms },
            13..=15 => Fault::Isolate { whom, for_ms },
            16 => Fault::Mute { whom, for_ms },
            17..=18 => Fault::Lossy { whom, for_ms },
            19..=20 => Fault::Late { whom, for_ms },
            21..=22 => Fault::Break { whom },
            23..=24 => Fault::SlowDisk { whom, for_ms },
            25 => Fault::Full { whom, for_ms: short },
            26 => Fault::ClockJump { whom, by_ms: long },
            27..=28 => Fault::Narrow { whom, for_ms },
            29..=30 => Fault::Shut { whom, for_ms: 3 * for_ms },
            _ => Fault::FlipSnapshot,
        }
    }

    /// Once in the run the unlucky machine's disk loses something, mostly while others are down or come and go.
    fn lose_a_disk(&mut self, chance: &mut Chance) {
        let at_ms = 4000 + chance.below((self.seconds as usize).saturating_sub(6) * 1000 + 1) as u64;
        let for_ms = 200 + chance.below(4000) as u64;
        let part = [Part::All, Part::All, Part::Log, Part::Log, Part::Snapshots, Part::Identity][chance.below(6)];
        if chance.below(4) == 0 {
            return self.bring_back_an_earlier_start(chance);
        }
        if chance.below(3) == 0 {
            // With the others: what nobody who is there knows of, nobody can miss.
            self.faults.retain(|timed| !timed.fault.takes_away_others(Whom::Host(self.unlucky)));
            let mut push = |at_ms, fault| self.faults.push(Timed { at_ms, fault });
            push(at_ms / 2, Fault::PutAway);
            push(at_ms, Fault::BringBack { for_ms, is_known: false });
            return self.start_again(at_ms + for_ms, chance);
        }
        let mut push = |at_ms, fault| self.faults.push(Timed { at_ms, fault });
        push(at_ms, Fault::Lose { part, for_ms });
        // Others are away before, meanwhile, or after: what the disk had may be with few of them.
        for other in (1..=self.members).filter(|other| *other != self.unlucky) {
            if chance.below(3) > 0 {
                let from_ms = at_ms.saturating_sub(chance.below(4000) as u64) + chance.below(2000) as u64;
                let whom = Whom::Host(other);
                push(from_ms, Fault::Kill { whom, for_ms: 300 + chance.below(9000) as u64 });
            }
        }
        self.start_again(at_ms + for_ms, chance);
    }

    /// A copy from before a start of which all others have heard. Then one of them is away while the rest go on; it is back when
    /// the copy is, and another one is away: what was written meanwhile neither the copy has, nor who is there with it.
    fn bring_back_an_earlier_start(&mut self, chance: &mut Chance) {
        let unlucky = Whom::Host(self.unlucky);
        let others: Vec<_> = (1..=self.members).filter(|host| *host != self.unlucky).collect();
        let away_ms = 1000 + chance.below(4000) as u64;
        let put_away_ms = 3000 + chance.below((self.seconds as usize * 1000).saturating_sub(20_000) + 1) as u64;
        let lags_ms = put_away_ms + 5000 + chance.below(3000) as u64;
        let back_ms = lags_ms + away_ms;
        self.faults.retain(|timed| !(put_away_ms..back_ms + 4000).contains(&timed.at_ms));
        let mut push = |at_ms, fault| self.faults.push(Timed { at_ms, fault });
        push(put_away_ms, Fault::PutAway);
        for start in 0..=chance.below(2) as u64 {
            push(put_away_ms + 100 + start * 1000, Fault::Kill { whom: unlucky, for_ms: 200 });
        }
        // A majority with the unlucky one goes on: so the other ones that are away are as many.
        let (mut lag, mut there) = others.split_at(others.len() / 2);
        if chance.below(2) == 0 {
            std::mem::swap(&mut lag, &mut there);
        }
        for host in lag {
            push(lags_ms, Fault::Kill { whom: Whom::Host(*host), for_ms: away_ms });
        }
        for host in there {
            push(back_ms - 50, Fault::Kill { whom: Whom::Host(*host), for_ms: 6000 + away_ms });
        }
        push(back_ms, Fault::BringBack { for_ms: 200, is_known: true });
        self.start_again(back_ms + 200, chance);
    }

    /// Again and again, as a supervisor does: what was refused once must be refused every time.
    fn start_again(&mut self, from_ms: u64, chance: &mut Chance) {
        let whom = Whom::Host(self.unlucky);
        for again in 1..=chance.below(5) as u64 {
            self.faults.push(Timed { at_ms: from_ms + again * 2500, fault: Fault::Kill { whom, for_ms: 100 } });
        }
    }
}
