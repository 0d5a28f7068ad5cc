//! What a seed decides: a cluster, where it is taken one after the other, and when agents are killed on the way.

use std::{fmt, time::Duration};

use tests::{chance::Chance, fault::Moment, system::System};

/// Hosts, each with one member.
pub const HOSTS: usize = 3;
/// Who joins at once where the cluster grows.
pub const NEWCOMERS: usize = 2;
/// How often something else comes before a rollout, of a hundred.
const REPLACED: u64 = 35;
const SCALED: u64 = 15;
const GUARDED: u64 = 15;
const RESTORED: u64 = 15;
/// How often a rollout goes over two minors at once, where there are two; and how often it saves a backup first.
const HOPS: u64 = 35;
const BACKED_UP: u64 = 40;
/// Longer than a restore that nothing disturbs.
const RESTORING_MS: u64 = 3_000;
/// Longer than a replacement, or one way of a scaling, that nothing disturbs.
const CHANGING_MS: u64 = 4_000;
/// Longer than three guarded commands that nothing disturbs.
const GUARDING_MS: u64 = 2_000;
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
    Scale(Scaling),
    /// The member of each host is ended by a command (`agent guard`).
    Guard(Kills),
    /// A backup is saved, and the cluster made anew from it (`agent restore`).
    Restore(Kills),
}

/// One member goes and a newcomer takes its place (`kind: Replace`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replacement {
    /// Its place among the members.
    pub member: usize,
    /// As of a rollout: by host, the newcomer's last.
    pub kills: Kills,
}

/// Newcomers join, and as many members go, each at once (`kind: Scale`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scaling {
    /// As of a rollout: by host, the newcomers' last.
    pub up: Kills,
    /// Their places among the members, then.
    pub leave: [usize; NEWCOMERS],
    pub down: Kills,
}

/// When the agents of each host are killed, one after the other.
pub type Kills = Vec<Vec<Kill>>;

/// One rollout: a minor up or down, or two up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Direction {
    pub from: &'static str,
    /// The minor in between, where there is one.
    pub over: Option<&'static str>,
    /// Whether a backup is saved before the first stop.
    pub is_backed_up: bool,
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
        let kills: Vec<_> = match self {
            Self::Roll(Direction { kills, .. })
            | Self::Replace(Replacement { kills, .. })
            | Self::Guard(kills)
            | Self::Restore(kills) => kills.iter().collect(),
            Self::Scale(Scaling { up, down, .. }) => up.iter().chain(down).collect(),
        };
        let of_host = |kills: &&Vec<Kill>| kills.iter().map(Kill::to_string).collect::<Vec<_>>().join(", ");
        f.write_str(&kills.iter().map(of_host).collect::<Vec<_>>().join("; "))
    }
}

/// The minors of a system in which it is taken up and down.
fn minors(system: System) -> &'static [&'static str] {
    match system {
        System::Node => &["3.5", "3.6", "3.7"],
        System::Etcd => &["3.4", "3.5", "3.6", "3.7"],
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
    let mut at = chance.below(minors.len() as u64 - 1) as usize;
    let (from, mut legs) = (minors[at], Vec::new());
    for _ in 0..=chance.below(2) {
        legs.extend(besides(minors[at], &mut chance));
        let Some(to) = next(system, at, &mut chance) else { break };
        let span = span_ms(system, to < at) * to.abs_diff(at) as u64;
        let kills = (0..HOSTS).map(|_| (0..=chance.below(5)).map(|_| kill(&mut chance, span)).collect()).collect();
        let over = (to > at + 1).then(|| minors[at + 1]);
        let is_backed_up = chance.below(100) < BACKED_UP;
        legs.push(Leg::Roll(Direction { from: minors[at], over, is_backed_up, to: minors[to], kills }));
        at = to;
    }
    legs.extend(besides(minors[at], &mut chance));
    Journey { system, from, legs }
}

/// What comes between two rollouts of a cluster of this minor, if anything does.
fn besides(minor: &str, chance: &mut Chance) -> Option<Leg> {
    let drawn = chance.below(100);
    match () {
        () if drawn < REPLACED => {
            let member = chance.below(HOSTS as u64) as usize;
            Some(Leg::Replace(Replacement { member, kills: kills_of_a_change(HOSTS + 1, chance) }))
        }
        () if drawn < REPLACED + SCALED => {
            let all = HOSTS + NEWCOMERS;
            let first = chance.below(all as u64) as usize;
            let second = (first + 1 + chance.below(all as u64 - 1) as usize) % all;
            let (up, down) = (kills_of_a_change(all, chance), kills_of_a_change(all, chance));
            Some(Leg::Scale(Scaling { up, leave: [first, second], down }))
        }
        () if drawn < REPLACED + SCALED + GUARDED => {
            let of_host = |chance: &mut Chance| (0..chance.below(4)).map(|_| kill(chance, GUARDING_MS)).collect();
            Some(Leg::Guard((0..HOSTS).map(|_| of_host(chance)).collect()))
        }
        // What 3.4 has saved wants a later release's tool.
        () if drawn < REPLACED + SCALED + GUARDED + RESTORED && minor != "3.4" => {
            let after = |chance: &mut Chance| Kill::After(Duration::from_millis(chance.below(RESTORING_MS)));
            Some(Leg::Restore((0..HOSTS).map(|_| (0..chance.below(4)).map(|_| after(chance)).collect()).collect()))
        }
        () => None,
    }
}

/// By the clock alone: who comes and goes is in no journal.
fn kills_of_a_change(hosts: usize, chance: &mut Chance) -> Kills {
    let after = |chance: &mut Chance| Kill::After(Duration::from_millis(chance.below(CHANGING_MS)));
    (0..hosts).map(|_| (0..chance.below(4)).map(|_| after(chance)).collect()).collect()
}

/// Where a cluster goes from here: a minor more or less, or two more. There is no way from 3.5 to 3.4, and none is taken down from
/// etcd's newest.
fn next(system: System, at: usize, chance: &mut Chance) -> Option<usize> {
    let minors = minors(system);
    let is_newest = system == System::Etcd && at + 1 == minors.len();
    let is_down_wanted = chance.below(2) == 0;
    let may_go_down = at > 0 && minors[at - 1] != "3.4" && !is_newest;
    let may_go_up = at + 1 < minors.len();
    let hops = at + 2 < minors.len() && chance.below(100) < HOPS;
    match () {
        () if may_go_down && (is_down_wanted || !may_go_up) => Some(at - 1),
        () if hops => Some(at + 2),
        () if may_go_up => Some(at + 1),
        () => None,
    }
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
    fn every_path_is_taken() {
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
            ("etcd", "3.4", "3.6"),
            ("etcd", "3.5", "3.6"),
            ("etcd", "3.5", "3.7"),
            ("etcd", "3.6", "3.5"),
            ("etcd", "3.6", "3.7"),
            ("node", "3.5", "3.6"),
            ("node", "3.5", "3.7"),
            ("node", "3.6", "3.5"),
            ("node", "3.6", "3.7"),
            ("node", "3.7", "3.6"),
        ];
        assert_eq!(paths, BTreeSet::from(wanted));
    }
}
