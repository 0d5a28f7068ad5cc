//! What a seed decides: a cluster, where it is taken one after the other, and when agents are killed on the way.

use std::{fmt, time::Duration};

use tests::{chance::Chance, fault::Moment, system::System};

/// Hosts, each with one member.
pub const HOSTS: usize = 3;
/// How often a member is replaced before a rollout, of a hundred.
const REPLACED: u64 = 50;
/// Longer than a replacement that nothing disturbs.
const REPLACING_MS: u64 = 4_000;
/// Later than the last sync of a step that nothing disturbs.
const SYNCS: u64 = 8;

/// All that is done to one cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Journey {
    pub system: System,
    /// The release that it begins with.
    pub from: &'static str,
    pub legs: Vec<Leg>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Leg {
    Roll(Direction),
    Replace(Replacement),
}

/// One member goes and a newcomer takes its place (`kind: Replace`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replacement {
    /// Its place among the members.
    pub member: usize,
    /// As of a rollout: by host, the newcomer's last.
    pub kills: Kills,
}

/// When the agents of each host are killed, one after the other.
pub type Kills = Vec<Vec<Kill>>;

/// One rollout, up or down a minor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Direction {
    pub from: &'static str,
    pub to: &'static str,
    pub kills: Kills,
}

/// When an agent is killed, if it lives that long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kill {
    /// This long after its start.
    After(Duration),
    /// At the nth sync of its journal.
    AtSync(usize, Moment),
}

impl fmt::Display for Kill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::After(time) => write!(f, "after {} ms", time.as_millis()),
            Self::AtSync(nth, moment) => write!(f, "{moment:?} sync {nth}"),
        }
    }
}

/// The kills that are wanted, by host.
impl fmt::Display for Leg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Roll(Direction { kills, .. }) | Self::Replace(Replacement { kills, .. })) = self;
        let of_host = |kills: &Vec<Kill>| kills.iter().map(Kill::to_string).collect::<Vec<_>>().join(", ");
        f.write_str(&kills.iter().map(of_host).collect::<Vec<_>>().join("; "))
    }
}

/// The minors of a system in which it is taken up and down.
fn minors(system: System) -> &'static [&'static str] {
    match system {
        System::Node => &["3.5", "3.6", "3.7"],
        System::Etcd => &["3.4", "3.5", "3.6"],
    }
}

/// Longer than a rollout that nothing disturbs, most of which is waiting where etcd lowers its version.
fn span_ms(system: System, is_down: bool) -> u64 {
    match (system, is_down) {
        (System::Node, _) => 1_500,
        (System::Etcd, false) => 4_000,
        (System::Etcd, true) => 12_000,
    }
}

/// The journey of this seed; with a system that was asked for, of that one.
pub fn journey(seed: u64, wanted: Option<System>) -> Journey {
    let mut chance = Chance::of(seed);
    let drawn = System::ALL[chance.below(2) as usize];
    let system = wanted.unwrap_or(drawn);
    let minors = minors(system);
    let mut at = chance.below(minors.len() as u64) as usize;
    let (from, mut legs) = (minors[at], Vec::new());
    for _ in 0..=chance.below(2) {
        if chance.percent(REPLACED) {
            legs.push(Leg::Replace(replacement(&mut chance)));
        }
        let to = neighbour(minors, at, &mut chance);
        let span = span_ms(system, to < at);
        let kills = (0..HOSTS).map(|_| (0..=chance.below(5)).map(|_| kill(&mut chance, span)).collect()).collect();
        legs.push(Leg::Roll(Direction { from: minors[at], to: minors[to], kills }));
        at = to;
    }
    if chance.percent(REPLACED) {
        legs.push(Leg::Replace(replacement(&mut chance)));
    }
    Journey { system, from, legs }
}

/// By the clock alone: who comes and goes is in no journal.
fn replacement(chance: &mut Chance) -> Replacement {
    let after = |chance: &mut Chance| Kill::After(Duration::from_millis(chance.below(REPLACING_MS)));
    let kills = (0..=HOSTS).map(|_| (0..chance.below(4)).map(|_| after(chance)).collect()).collect();
    Replacement { member: chance.below(HOSTS as u64) as usize, kills }
}

/// A minor more or less; there is no way from 3.5 to 3.4.
fn neighbour(minors: &[&str], at: usize, chance: &mut Chance) -> usize {
    let is_down_wanted = chance.below(2) == 0;
    let may_go_down = at > 0 && minors[at - 1] != "3.4";
    let may_go_up = at + 1 < minors.len();
    if may_go_down && (is_down_wanted || !may_go_up) { at - 1 } else { at + 1 }
}

fn kill(chance: &mut Chance, span_ms: u64) -> Kill {
    match chance.below(3) {
        0 => Kill::After(Duration::from_millis(chance.below(span_ms))),
        side => {
            let moment = if side == 1 { Moment::Before } else { Moment::After };
            Kill::AtSync(1 + chance.below(SYNCS) as usize, moment)
        }
    }
}

#[cfg(test)]
mod checks {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_seed_decides_all() {
        for seed in 0..100 {
            assert_eq!(journey(seed, None), journey(seed, None));
            let drawn = journey(seed, None);
            assert_eq!(journey(seed, Some(drawn.system)), drawn, "{seed}");
        }
    }

    #[test]
    fn every_path_is_taken_one_minor_at_a_time() {
        let mut paths = BTreeSet::new();
        for journey in (0..300).map(|seed| journey(seed, None)) {
            let mut at = journey.from;
            for leg in &journey.legs {
                let Leg::Roll(direction) = leg else { continue };
                assert_eq!(direction.from, at);
                at = direction.to;
                paths.insert((journey.system.name(), direction.from, direction.to));
            }
        }
        let wanted = [
            ("etcd", "3.4", "3.5"),
            ("etcd", "3.5", "3.6"),
            ("etcd", "3.6", "3.5"),
            ("node", "3.5", "3.6"),
            ("node", "3.6", "3.5"),
            ("node", "3.6", "3.7"),
            ("node", "3.7", "3.6"),
        ];
        assert_eq!(paths, BTreeSet::from(wanted));
    }
}
