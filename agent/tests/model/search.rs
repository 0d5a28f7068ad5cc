//! Breadth-first search over every world that can be reached, and backwards from the ends: a state from
//! which no end can be reached without further faults is a violation too.

use std::{
    collections::{HashMap, VecDeque},
    hash::{BuildHasherDefault, Hash, Hasher},
};

use super::{moves::Move, scenario::Scenario, world::World};

/// What a search found.
pub enum Found {
    /// Nothing wrong.
    Sound { states: usize, ends: usize },
    /// This, by these moves.
    Broken { what: String, states: usize, trace: Vec<String> },
    /// The bound was hit: no verdict.
    CutOff { states: usize },
}

#[derive(Default)]
struct Visited {
    index: HashMap<u128, u32, BuildHasherDefault<Identity>>,
    /// Where each state was first reached from.
    from: Vec<(u32, Move)>,
    /// Edges that are no faults, for the way back.
    edges: Vec<(u32, u32)>,
    ends: Vec<u32>,
}

/// Explores a scenario, up to `bound` states.
pub fn explore(scenario: &Scenario, bound: usize) -> Found {
    let mut visited = Visited::default();
    let mut frontier = VecDeque::new();
    let first = World::new(scenario).canonical();
    visited.index.insert(digest(&first), 0);
    visited.from.push((0, Move::Rise));
    frontier.push_back((0u32, first));
    while let Some((at, world)) = frontier.pop_front() {
        if world.is_over(scenario) {
            visited.ends.push(at);
        }
        for what in world.moves(scenario) {
            let next = match world.make(scenario, what) {
                Ok(next) => next,
                Err(violation) => return broken(scenario, &visited, at, Some(what), violation),
            };
            let count = visited.from.len() as u32;
            let to = *visited.index.entry(digest(&next)).or_insert(count);
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
    match stuck(&mut visited) {
        Some(at) => broken(scenario, &visited, at, None, "from here nobody can reach the end"),
        None => Found::Sound { states: visited.from.len(), ends: visited.ends.len() },
    }
}

/// The first state from which no end can be reached by moves that are no faults.
fn stuck(visited: &mut Visited) -> Option<u32> {
    visited.edges.sort_unstable();
    let mut reaches = vec![false; visited.from.len()];
    let mut todo = visited.ends.clone();
    todo.iter().for_each(|end| reaches[*end as usize] = true);
    while let Some(at) = todo.pop() {
        let first = visited.edges.partition_point(|(to, _)| *to < at);
        for (_, from) in visited.edges[first..].iter().take_while(|(to, _)| *to == at) {
            if !std::mem::replace(&mut reaches[*from as usize], true) {
                todo.push(*from);
            }
        }
    }
    reaches.iter().position(|reaches| !reaches).map(|at| at as u32)
}

fn broken(scenario: &Scenario, visited: &Visited, at: u32, last: Option<Move>, what: &str) -> Found {
    let mut moves: Vec<Move> = last.into_iter().collect();
    let mut state = at;
    while state != 0 {
        let (from, what) = visited.from[state as usize];
        moves.push(what);
        state = from;
    }
    moves.reverse();
    Found::Broken { what: what.into(), states: visited.from.len(), trace: replay(scenario, &moves) }
}

/// The moves again, with what each agent was asked to do.
fn replay(scenario: &Scenario, moves: &[Move]) -> Vec<String> {
    let mut world = World::new(scenario).canonical();
    let mut lines = Vec::new();
    for what in moves {
        let doing = match what {
            Move::Act(host, _) => format!(" {:?}", world.hosts[*host].process.as_ref().map(|process| &process.act)),
            _ => String::new(),
        };
        lines.push(format!("{what:?}{doing}"));
        match world.make(scenario, *what) {
            Ok(next) => world = next,
            Err(_) => break,
        }
    }
    for (host, at) in world.hosts.iter().enumerate() {
        lines.push(format!(
            "host {host}: journal {:?}, asked {:?}, node {:?} {:?} sick {}",
            at.journal,
            at.process.as_ref().map(|p| &p.act),
            world.nodes[host].binary,
            world.nodes[host].process,
            world.nodes[host].is_sick
        ));
    }
    lines.push(format!("risen {} pending {} keys {:?}", world.risen, world.rise_pending, world.keys));
    lines
}

fn digest(world: &World) -> u128 {
    let mut hasher = Mixer { a: 0x243f_6a88_85a3_08d3, b: 0x1319_8a2e_0370_7344 };
    world.hash(&mut hasher);
    (u128::from(hasher.finish()) << 64) | u128::from(hasher.b ^ (hasher.b >> 29))
}

/// Two multiplicative lanes: 128 bits, so that two states are never taken for one in practice.
struct Mixer {
    a: u64,
    b: u64,
}

impl Hasher for Mixer {
    fn finish(&self) -> u64 {
        self.a ^ (self.a >> 31)
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u64(&mut self, word: u64) {
        self.a = (self.a.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.b = (self.b.rotate_left(23) ^ word).wrapping_mul(0xc2b2_ae3d_27d4_eb4f);
        self.a ^= self.a >> 32;
        self.b ^= self.b >> 29;
    }

    fn write_u8(&mut self, word: u8) {
        self.write_u64(u64::from(word));
    }
    fn write_u32(&mut self, word: u32) {
        self.write_u64(u64::from(word));
    }
    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }
    fn write_isize(&mut self, word: isize) {
        self.write_u64(word as u64);
    }
}

#[derive(Default)]
struct Identity(u64);

impl Hasher for Identity {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, _: &[u8]) {}
    fn write_u128(&mut self, word: u128) {
        self.0 = word as u64 ^ (word >> 64) as u64;
    }
}
