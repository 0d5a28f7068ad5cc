//! Breadth-first search over every world that can be reached, and backwards from the ends: a state from
//! which no end can be reached without further faults is a violation too.

use std::{
    collections::{HashMap, VecDeque},
    hash::{BuildHasherDefault, Hasher},
};

use super::{
    judge::{STUCK, Violation},
    moves::Move,
    scenario::Scenario,
    world::World,
};

/// What a search found.
pub enum Found {
    /// Nothing wrong.
    Sound { states: usize, ends: usize },
    /// This, by these moves.
    Broken { what: Violation, states: usize, moves: Vec<Move> },
    /// The bound was hit: no verdict.
    CutOff { states: usize },
}

#[derive(Default)]
struct Visited {
    /// The number of each state, by its digest.
    numbers: HashMap<u64, u32, BuildHasherDefault<Identity>>,
    /// Where each state was first reached from.
    from: Vec<(u32, Move)>,
    /// Moves that are no faults, to and from, for the way back.
    edges: Vec<(u32, u32)>,
    ends: Vec<u32>,
}

/// Explores a scenario, up to `bound` states.
pub fn explore(scenario: &Scenario, bound: usize) -> Found {
    let mut visited = Visited::default();
    let mut frontier = VecDeque::new();
    let first = World::new(scenario);
    visited.numbers.insert(first.digest(), 0);
    visited.from.push((0, Move::Lapse(0)));
    frontier.push_back((0u32, first));
    while let Some((at, world)) = frontier.pop_front() {
        if world.is_over() {
            visited.ends.push(at);
        }
        for what in world.moves() {
            let next = match world.make(what) {
                Ok(next) => next,
                Err(violation) => return visited.broken(at, Some(what), violation),
            };
            let count = visited.from.len() as u32;
            let to = *visited.numbers.entry(next.digest()).or_insert(count);
            if to == count {
                visited.from.push((at, what));
                frontier.push_back((to, next));
            }
            if !what.is_fault() && to != at {
                visited.edges.push((to, at));
            }
        }
        if visited.from.len() > bound {
            return Found::CutOff { states: visited.from.len() };
        }
    }
    match visited.stuck() {
        Some(at) => visited.broken(at, None, STUCK),
        None => Found::Sound { states: visited.from.len(), ends: visited.ends.len() },
    }
}

impl Visited {
    /// The first state from which no end can be reached by moves that are no faults.
    fn stuck(&mut self) -> Option<u32> {
        let (numbers, mut edges) = (std::mem::take(&mut self.numbers), std::mem::take(&mut self.edges));
        drop(numbers);
        edges.sort_unstable();
        let mut reaches = vec![false; self.from.len()];
        let mut todo = self.ends.clone();
        todo.iter().for_each(|end| reaches[*end as usize] = true);
        while let Some(at) = todo.pop() {
            let first = edges.partition_point(|(to, _)| *to < at);
            for (_, from) in edges[first..].iter().take_while(|(to, _)| *to == at) {
                if !std::mem::replace(&mut reaches[*from as usize], true) {
                    todo.push(*from);
                }
            }
        }
        reaches.iter().position(|reaches| !reaches).map(|at| at as u32)
    }

    fn broken(&self, at: u32, last: Option<Move>, what: Violation) -> Found {
        let mut moves: Vec<Move> = last.into_iter().collect();
        let mut state = at;
        while state != 0 {
            let (from, what) = self.from[state as usize];
            moves.push(what);
            state = from;
        }
        moves.reverse();
        Found::Broken { what, states: self.from.len(), moves }
    }
}

/// Digests are mixed already.
#[derive(Default)]
struct Identity(u64);

impl Hasher for Identity {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, _: &[u8]) {}
    fn write_u64(&mut self, word: u64) {
        self.0 = word;
    }
}
