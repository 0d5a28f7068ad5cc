//! The network: connections that carry bytes in order, late, slowly, or not at all.
//!
//! Hosts are numbered from 1; number `n` has the address `10.0.0.n`. What is lost on the way is sent again, as TCP does it, so
//! that it is late; what a broken connection had on the way is lost, and whoever sent it does not know how much of it.

mod link;
mod socket;

use std::{
    collections::{BTreeMap, VecDeque},
    io,
    sync::{Arc, Mutex, MutexGuard},
    task::Waker,
};

use futures_util::{Stream, StreamExt};
use node::host::{Listener, Socket};
use simulated_disk::Chance;

pub use link::Link;
use socket::{Connection, SimSocket};

/// A host's number.
pub type HostId = u8;
/// Microseconds since the simulation began.
pub type Micros = u64;

/// The network; every clone is the same one.
#[derive(Clone)]
pub struct Network {
    wires: Arc<Mutex<Wires>>,
}

struct Wires {
    now: Micros,
    chance: Chance,
    links: BTreeMap<(HostId, HostId), Link>,
    /// Both ends of every connection.
    connections: Vec<Connection>,
    calls: VecDeque<Call>,
    ports: BTreeMap<(HostId, u16), Port>,
    /// Bytes that came through, from whom and to whom.
    delivered: BTreeMap<(HostId, HostId), u64>,
}

/// Somebody who connects, on the way.
struct Call {
    due: Micros,
    from: HostId,
    to: (HostId, u16),
    answer: Arc<Mutex<Answer>>,
}

#[derive(Default)]
struct Answer {
    outcome: Option<io::Result<SimSocket>>,
    waker: Option<Waker>,
    is_gone: bool,
}

#[derive(Default)]
struct Port {
    waiting: VecDeque<SimSocket>,
    waker: Option<Waker>,
}

impl Network {
    /// Whose delays are decided by this chance.
    pub fn new(chance: Chance) -> Self {
        let wires = Wires {
            now: 0,
            chance,
            links: BTreeMap::new(),
            connections: Vec::new(),
            calls: VecDeque::new(),
            ports: BTreeMap::new(),
            delivered: BTreeMap::new(),
        };
        Self { wires: Arc::new(Mutex::new(wires)) }
    }

    fn wires(&self) -> MutexGuard<'_, Wires> {
        self.wires.lock().unwrap()
    }

    /// Delivers what is due.
    pub fn advance(&self, now: Micros) {
        let mut wires = self.wires();
        wires.now = now;
        let mut wakers = Vec::new();
        wires.deliver(&mut wakers);
        wires.connect(self, &mut wakers);
        wires.connections.retain(|connection| !connection.is_over());
        drop(wires);
        // Each wakes a task of some host's runtime, which runs when its turn comes.
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Changes how one host reaches another, one way.
    pub fn set(&self, from: HostId, to: HostId, change: impl FnOnce(&mut Link)) {
        change(self.wires().links.entry((from, to)).or_default());
    }

    /// Breaks every connection between two hosts; both ends hear of it.
    pub fn reset(&self, one: HostId, other: HostId) -> usize {
        let wires = self.wires();
        let (mut broken, mut wakers) = (0, Vec::new());
        for connection in wires.connections.iter().filter(|connection| connection.is_between(one, other)) {
            broken += 1;
            connection.reset(&mut wakers);
        }
        drop(wires);
        wakers.into_iter().for_each(Waker::wake);
        broken
    }

    /// The power of a host is gone: nobody hears anything, and it does not listen any more.
    pub fn go_dark(&self, host: HostId) {
        let mut wires = self.wires();
        wires.ports.retain(|(of, _), _| *of != host);
        wires.connections.iter().filter(|connection| connection.has(host)).for_each(Connection::silence);
    }

    /// The process on a host has ended: the system closes what it had open.
    pub fn close_ports(&self, host: HostId) {
        self.wires().ports.retain(|(of, _), _| *of != host);
    }

    /// A host that was dark is there again: whoever goes on sending to it hears that it knows of no connection.
    pub fn is_back(&self, host: HostId) {
        let wires = self.wires();
        let mut wakers = Vec::new();
        for connection in wires.connections.iter().filter(|connection| connection.has(host) && connection.is_silent()) {
            connection.reset(&mut wakers);
        }
        drop(wires);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Bytes that came through until now.
    pub fn delivered(&self) -> u64 {
        self.wires().delivered.values().sum()
    }

    /// The same, from one host to another.
    #[cfg(test)]
    pub(crate) fn delivered_to(&self, from: HostId, to: HostId) -> u64 {
        self.wires().delivered.get(&(from, to)).copied().unwrap_or_default()
    }

    /// Listens at a port of a host.
    pub fn listen(&self, host: HostId, port: u16) -> Listener {
        self.wires().ports.insert((host, port), Port::default());
        self.incoming(host, port).boxed()
    }

    fn call(&self, from: HostId, to: (HostId, u16), answer: Arc<Mutex<Answer>>) {
        let mut wires = self.wires();
        let due = wires.now + wires.delay(from, to.0);
        wires.calls.push_back(Call { due, from, to, answer });
    }

    fn incoming(&self, host: HostId, port: u16) -> impl Stream<Item = io::Result<Box<dyn Socket>>> + use<> {
        let network = self.clone();
        futures_util::stream::poll_fn(move |context| {
            let mut wires = network.wires();
            let Some(port) = wires.ports.get_mut(&(host, port)) else { return std::task::Poll::Pending };
            match port.waiting.pop_front() {
                Some(socket) => std::task::Poll::Ready(Some(Ok(Box::new(socket) as Box<dyn Socket>))),
                None => {
                    port.waker = Some(context.waker().clone());
                    std::task::Poll::Pending
                }
            }
        })
    }

    /// Connects a host to `10.0.0.N:PORT`.
    pub fn connect(
        &self,
        from: HostId,
        authority: &str,
    ) -> impl Future<Output = io::Result<Box<dyn Socket>>> + Send + use<> {
        let to = address(authority);
        let (network, answer) = (self.clone(), Arc::new(Mutex::new(Answer::default())));
        let waits = Waits(answer.clone());
        async move {
            let to = to.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
            network.call(from, to, answer);
            std::future::poll_fn(|context| {
                let mut answer = waits.0.lock().unwrap();
                match answer.outcome.take() {
                    Some(outcome) => std::task::Poll::Ready(outcome.map(|socket| Box::new(socket) as Box<dyn Socket>)),
                    None => {
                        answer.waker = Some(context.waker().clone());
                        std::task::Poll::Pending
                    }
                }
            })
            .await
        }
    }
}

/// Who waits for an answer; gone with the future that waits.
struct Waits(Arc<Mutex<Answer>>);

impl Drop for Waits {
    fn drop(&mut self) {
        self.0.lock().unwrap().is_gone = true;
    }
}

fn address(authority: &str) -> Option<(HostId, u16)> {
    let (host, port) = authority.strip_prefix("10.0.0.")?.split_once(':')?;
    Some((host.parse().ok()?, port.parse().ok()?))
}

impl Wires {
    fn link(&self, from: HostId, to: HostId) -> Link {
        self.links.get(&(from, to)).copied().unwrap_or_default()
    }

    fn delay(&mut self, from: HostId, to: HostId) -> Micros {
        let link = self.link(from, to);
        link.delay + self.chance.below(link.delay as usize + 1) as Micros
    }

    fn deliver(&mut self, wakers: &mut Vec<Waker>) {
        let Self { now, chance, links, connections, delivered, .. } = self;
        for connection in connections.iter() {
            let link = |from, to| links.get(&(from, to)).copied().unwrap_or_default();
            connection.deliver(*now, link, chance, wakers, |way, bytes| *delivered.entry(way).or_default() += bytes);
        }
    }

    fn connect(&mut self, network: &Network, wakers: &mut Vec<Waker>) {
        for _ in 0..self.calls.len() {
            let Some(call) = self.calls.pop_front() else { return };
            if call.answer.lock().unwrap().is_gone {
                continue;
            }
            let there = self.link(call.from, call.to.0);
            if call.due > self.now || there.is_cut || self.link(call.to.0, call.from).is_cut {
                self.calls.push_back(call);
                continue;
            }
            let outcome = match self.ports.get_mut(&call.to) {
                Some(port) if !there.is_shut => {
                    let (connection, here, far) = Connection::open(network, call.from, call.to.0);
                    port.waiting.push_back(far);
                    wakers.extend(port.waker.take());
                    self.connections.push(connection);
                    Ok(here)
                }
                _ => Err(io::ErrorKind::ConnectionRefused.into()),
            };
            let mut answer = call.answer.lock().unwrap();
            answer.outcome = Some(outcome);
            wakers.extend(answer.waker.take());
        }
    }
}
