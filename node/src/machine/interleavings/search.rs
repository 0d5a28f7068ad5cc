//! The search, breadth first, and the worlds that it goes through.

use std::{
    collections::{HashSet, VecDeque},
    hash::{DefaultHasher, Hash, Hasher},
    thread::{self, ScopedJoinHandle},
};

use proto::LeaseId;

use super::*;

impl World {
    /// Equal where two worlds differ in nothing but the numbers of their entries: of those only the order counts.
    fn key(&self) -> u64 {
        let mut cluster = self.state.cluster.clone();
        let mut pending = self.pending.clone();
        let now = cluster.inputs;
        for pending in &mut pending {
            if let Pending::Cluster(ClusterEntry::Decide { inputs, .. }) = pending {
                let is_stale = self.wrong == Some(Wrong::StaleAnd) && *inputs >= self.versioned;
                *inputs = LogIndex(if *inputs == now { 2 } else { u64::from(is_stale) });
            }
        }
        (cluster.inputs, cluster.behind) = (LogIndex(1), cluster.behind.map(|_| LogIndex(1)));
        let mut pending: Vec<String> = pending.iter().map(|pending| format!("{pending:?}")).collect();
        pending.sort();
        let mut hasher = DefaultHasher::new();
        let left = self.state.keys.leases().get(LeaseId(LEASE.id)).map(|lease| lease.checkpointed_s());
        let Self { processes, left: may_happen, silent, said, .. } = self;
        format!("{cluster:?} {pending:?} {processes:?} {may_happen:?} {silent:?} {said:?} {left:?}").hash(&mut hasher);
        hasher.finish()
    }
}

/// States and steps, or what must not be. Of a wrong rule that is what it is looked for by; whatever else it breaks is an end of its own.
fn search(small: &Small, wrong: Option<(Wrong, &str)>, most: usize) -> Found<(usize, usize)> {
    let first = World::new(small, wrong.map(|(wrong, _)| wrong))?;
    let (mut seen, mut queue, mut steps) = (HashSet::from([first.key()]), VecDeque::from([first]), 0);
    while let Some(world) = queue.pop_front() {
        let next = match world.looked_at(small) {
            Err(what) if wrong.is_some_and(|(_, why)| !what.contains(why)) => continue,
            next => next?,
        };
        for next in next {
            steps += 1;
            if seen.len() < most && seen.insert(next.key()) {
                queue.push_back(next);
            }
        }
    }
    Ok((seen.len(), steps))
}

impl World {
    /// What may follow.
    fn looked_at(&self, small: &Small) -> Found<Vec<Self>> {
        self.stored()?;
        for write in Write::ALL {
            self.clone().apply(Pending::Write(write))?;
        }
        // Of as many states one is left to itself.
        if self.key().is_multiple_of(SETTLED_ONE_IN) {
            self.settled()?;
        }
        self.next(small)
    }
}

const SETTLED_ONE_IN: u64 = 4;
const MOST: usize = 300_000;

static WORLDS: [Small; 7] = [
    // A new cluster; a patch with another default.
    Small {
        releases: &["3.6.0", "3.6.1"],
        others: &["3.6.1", "3.6.0"],
        left: Left { restarts: 1, doubles: 1, ..NOTHING },
        is_settled: false,
    },
    // Up from where no gates are, and a member that comes or goes meanwhile.
    Small {
        releases: &["3.5.0", "3.6.0"],
        others: &["3.6.0"],
        left: Left { restarts: 1, members: 1, ..NOTHING },
        is_settled: true,
    },
    // A learner that wishes otherwise, is promoted, or goes.
    Small {
        releases: &["3.6.1", "3.6.1"],
        others: &["3.6.1"],
        left: Left { restarts: 1, members: 2, ..NOTHING },
        is_settled: true,
    },
    // Up, down and up again, with silent members in between.
    Small {
        releases: &["3.7.0", "3.6.1"],
        others: &["3.7.0", "3.6.0"],
        left: Left { restarts: 2, downgrades: 1, ..NOTHING },
        is_settled: true,
    },
    // To where a feature is locked, from three releases.
    Small {
        releases: &["3.7.0", "3.8.0", "3.8.0"],
        others: &["3.8.0", "3.7.0"],
        left: Left { restarts: 1, downgrades: 1, doubles: 1, ..NOTHING },
        is_settled: true,
    },
    // Somebody takes back what is just being decided, and clients write all the while.
    Small {
        releases: &["3.7.0", "3.7.0"],
        others: &["3.7.0"],
        left: Left { restarts: 1, downgrades: 1, silences: 1, writes: 2, ..NOTHING },
        is_settled: false,
    },
    // A name that the one has locked, and the other dropped.
    Small {
        releases: &["3.8.0", "3.9.0"],
        others: &["3.8.0", "3.9.0"],
        left: Left { restarts: 1, downgrades: 1, writes: 1, ..NOTHING },
        is_settled: true,
    },
];

/// Each world in a thread of its own: its states and steps.
fn search_all(left: impl Fn(&Small) -> Left) -> Vec<(usize, usize)> {
    thread::scope(|scope| {
        let begin = |small: &'static Small| {
            let small = Small { left: left(small), ..*small };
            scope.spawn(move || search(&small, None, MOST))
        };
        let worlds: Vec<_> = WORLDS.iter().map(begin).collect();
        let end = |(number, world): (usize, ScopedJoinHandle<Found<_>>)| {
            world.join().unwrap().unwrap_or_else(|what| panic!("world {number}: {what}"))
        };
        worlds.into_iter().enumerate().map(end).collect()
    })
}

#[test]
fn in_every_order_of_events_nothing_is_on_that_not_all_voters_want() {
    let (states, steps): (Vec<_>, Vec<_>) = search_all(|small| small.left).into_iter().unzip();
    assert!(states.iter().all(|states| *states > 1_000), "a world is too small to show anything: {states:?}");
    assert!(states.iter().all(|states| *states < MOST), "a world is not seen to its end: {states:?}");
    let (all, steps): (usize, usize) = (states.iter().sum(), steps.iter().sum());
    println!("counted: {all} states of {} small worlds, {steps} steps", WORLDS.len());
}

/// Each world with one event more of each kind that it has: some are too large to be seen to their end. `scripts/test --full` runs it.
#[test]
#[ignore = "slow: minutes; more than a million states"]
fn in_most_orders_of_more_events_it_is_so_too() {
    for (small, (states, steps)) in WORLDS.iter().zip(search_all(|small| small.left.more())) {
        let seen = if states < MOST { "all" } else { "the first" };
        println!("counted: {:?} and more events: {seen} {states} states, {steps} steps", small.releases);
    }
}

#[test]
fn each_wrong_rule_is_found() {
    for (wrong, why) in Wrong::ALL {
        let is_found = WORLDS.iter().any(|small| search(small, Some((wrong, why)), 8_000).is_err());
        assert!(is_found, "{wrong:?} is not found: nowhere {why}");
    }
}
