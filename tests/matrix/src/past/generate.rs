//! The plan of a ground and a seed. The same weights for every ground; of releases it knows which comes after which, and
//! which have the v2 API.

use std::time::Duration;

use lab::chance::Chance;
use proto::Release;

use super::{Absence, Action, Ground, Habits, Kill, Mix, Moment, Plan, Step};
use crate::plan::Host;

/// How many things happen before the first hop, at least, and how many more at most.
const CHILDHOOD: (u64, u64) = (3, 4);
/// How many happen after a hop, at most.
const LATER: u64 = 3;
/// So many steps of a hundred that something may be killed in have it killed.
const KILLED: u64 = 55;
/// So many kills of a hundred hit every member at once, as a power cut of a rack does.
const ALL_KILLED: u64 = 30;
/// In milliseconds after the step's beginning.
const LATEST_KILL: u64 = 700;
/// So many members a cluster grows to, and so many join at once: one of an even size survives no more deaths.
const LARGEST: usize = 5;
const GROWS_BY: usize = 2;
/// How often a member is killed in a step.
const TIMES: [u64; 4] = [1, 1, 3, 8];
/// More than any release keeps for a member that is behind (etcd 3.4 to 3.6: 5,000 entries).
const BEYOND_CATCH_UP: u64 = 7_000;

/// The plan of this seed, always the same.
pub fn plan(ground: &Ground, seed: u64) -> Plan {
    let mut chance = Chance::of(seed);
    // The first numbers of neighbouring seeds are of no use to each other, and ways must not share them.
    for byte in format!("{ground}").bytes() {
        chance = Chance::of(chance.below(u64::MAX) ^ u64::from(byte));
    }
    let habits = habits(&mut chance);
    let mut life = Life { now: (0..ground.size).collect(), next: ground.size, auth: false, chance };
    let mut steps = vec![(Action::Start, None)];
    for (at, release) in ground.way.iter().enumerate() {
        if at > 0 {
            steps.push((life.hop(release), None));
        }
        let (least, more) = if at == 0 { CHILDHOOD } else { (0, LATER) };
        for _ in 0..least + life.chance.below(more + 1) {
            for action in life.event(release) {
                let kill = life.kill(&action);
                steps.push((action, kill));
            }
        }
    }
    let number = |((action, kill), id)| Step { id, action, kill };
    Plan { ground: ground.clone(), seed, habits, steps: steps.into_iter().zip(1..).map(number).collect() }
}

fn habits(chance: &mut Chance) -> Habits {
    let every = |chance: &mut Chance, ms| chance.percent(25).then(|| Duration::from_millis(ms + chance.below(ms)));
    Habits {
        tls: false,
        snapshot_count: chance.one_of(&[None, Some(100), Some(1_000)]).flatten(),
        kept_entries: chance.one_of(&[None, Some(50)]).flatten(),
        compaction_batch: chance.one_of(&[None, Some(10), Some(1)]).flatten(),
        keys: chance.one_of(&[8, 100, 2_000]).unwrap_or(8),
        defragments_every: every(chance, 200),
        compacts_every: every(chance, 400),
        reads_in_transactions: chance.percent(15),
    }
}

/// What the generator knows of the cluster as the plan goes on.
struct Life {
    now: Vec<Host>,
    next: Host,
    auth: bool,
    chance: Chance,
}

impl Life {
    /// One thing that happens to a cluster, with what people do just before it.
    fn event(&mut self, release: &Release) -> Vec<Action> {
        let several = self.now.len() >= 3;
        let event = match self.chance.below(100) {
            0..24 => self.write(),
            24..40 => {
                let compaction = self.compact();
                // History is compacted to get rid of something.
                let count = 3 + self.chance.below(40);
                let deletions = self.chance.percent(50).then_some(Action::Write { mix: Mix::Churn, count });
                return deletions.into_iter().chain([compaction]).collect();
            }
            40..46 => Action::Defragment { member: self.anyone() },
            46..56 => self.users(),
            56..64 if release.cluster_version().to_string() == "3.4" => {
                Action::OldApi { kept: self.chance.percent(30) }
            }
            64..69 => Action::Restart { member: self.anyone() },
            69..75 => Action::Restore,
            75..87 if several => self.change(),
            87.. if several => self.away(),
            _ => self.write(),
        };
        vec![event]
    }

    fn write(&mut self) -> Action {
        let mix = self.mix();
        let count = match (mix, self.chance.below(10)) {
            (Mix::Large, _) => 20 + self.chance.below(80),
            (_, 0..5) => 5 + self.chance.below(60),
            (_, 5..9) => 300 + self.chance.below(1_500),
            _ => BEYOND_CATCH_UP,
        };
        Action::Write { mix, count }
    }

    fn mix(&mut self) -> Mix {
        let mixes = [Mix::Puts, Mix::Churn, Mix::Churn, Mix::Large, Mix::Transactions, Mix::Leases];
        self.chance.one_of(&mixes).unwrap_or(Mix::Puts)
    }

    fn compact(&mut self) -> Action {
        Action::Compact { behind: if self.chance.percent(60) { 0 } else { self.chance.below(100) } }
    }

    fn users(&mut self) -> Action {
        // Where it is on it mostly stays on, and people come and change their desks.
        if self.chance.percent(if self.auth { 80 } else { 40 }) {
            return if self.chance.percent(50) { Action::AddUser } else { Action::Grant };
        }
        self.auth = !self.auth;
        Action::Auth { on: self.auth }
    }

    /// One is replaced, or a cluster that is small yet grows.
    fn change(&mut self) -> Action {
        let as_learner = self.chance.percent(60);
        let is_replaced = self.now.len() + GROWS_BY > LARGEST || self.chance.percent(60);
        let leaves = is_replaced.then(|| self.anyone());
        self.now.retain(|host| Some(*host) != leaves);
        let first = self.next;
        self.next += if is_replaced { 1 } else { GROWS_BY };
        let joins: Vec<_> = (first..self.next).collect();
        self.now.extend(&joins);
        Action::Change { leaves, joins, as_learner }
    }

    /// Most who are away miss more than the leader keeps for them.
    fn away(&mut self) -> Action {
        let member = self.anyone();
        let how = self.chance.one_of(&[Absence::Stopped, Absence::Killed, Absence::Paused]).unwrap_or(Absence::Stopped);
        let mut meanwhile = Vec::new();
        for _ in 0..1 + self.chance.below(3) {
            meanwhile.push(match self.chance.below(10) {
                0..3 => self.users(),
                3..5 => self.compact(),
                _ => self.write(),
            });
        }
        if self.chance.percent(65) {
            let mix = if self.chance.percent(50) { Mix::Puts } else { Mix::Churn };
            meanwhile.push(Action::Write { mix, count: BEYOND_CATCH_UP });
        }
        Action::Away { member, how, meanwhile }
    }

    fn hop(&mut self, to: &Release) -> Action {
        let mut order = self.now.clone();
        self.chance.shuffle(&mut order);
        // Half of them are done in a quiet hour.
        let writes = if self.chance.percent(50) { self.chance.below(40) } else { 300 + self.chance.below(900) };
        Action::Hop { to: to.clone(), order, writes }
    }

    /// Who is killed in a step, where somebody may be.
    fn kill(&mut self, action: &Action) -> Option<Kill> {
        let is_possible = matches!(action, Action::Write { .. } | Action::Compact { .. } | Action::Defragment { .. });
        if !is_possible || !self.chance.percent(KILLED) {
            return None;
        }
        let members = if self.chance.percent(ALL_KILLED) { self.now.clone() } else { vec![self.anyone()] };
        // Half of them early, as much is over soon.
        let latest = if self.chance.percent(50) { LATEST_KILL } else { LATEST_KILL / 7 };
        let after = Duration::from_millis(self.chance.below(latest));
        let is_answered = !matches!(action, Action::Write { .. }) && self.chance.percent(50);
        let (since, times) = match is_answered {
            true => (Moment::Answer, 1),
            false => (Moment::Beginning, self.chance.one_of(&TIMES).unwrap_or(1)),
        };
        Some(Kill { members, since, after, times })
    }

    fn anyone(&mut self) -> Host {
        self.chance.one_of(&self.now).unwrap_or_default()
    }
}

#[cfg(test)]
#[path = "generate_test.rs"]
mod tests;
