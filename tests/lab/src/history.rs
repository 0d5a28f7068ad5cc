//! Linearizability of what the clients saw, key by key.
//!
//! Every key is a register of its own, and a history is linearizable when that of each key is (Herlihy
//! and Wing 1990, locality). The search is Wing and Gong's with Lowe's memory of the configurations it
//! has been in. Pure: no clock, no cluster.
//!
//! A write whose outcome the client never learnt is a *maybe*: it takes effect at any one time after its
//! invocation, or never. A write that was repeated is two operations, for both may take effect.

use std::{
    collections::{BTreeMap, HashSet},
    fmt,
};

/// Configurations to look at in one key before giving up, which counts as a failure.
pub const BOUND: usize = 1_000_000;

/// One attempt of one client at one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// What was asked, and for a read what came back.
    pub action: Action,
    /// When it was sent, in nanoseconds of one monotonic clock that all clients share.
    pub invoked: u64,
    /// When it was answered, on the same clock; `None` for a maybe.
    pub returned: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Wrote this value. Values are unique, but for the repetition of an attempt that failed.
    Put(u64),
    /// Read this value; `None` is a key that does not exist. A read without an answer is left out.
    Get(Option<u64>),
    /// Deleted the key, whether or not it was there.
    Delete,
    /// Wrote a value where it had found another, in one transaction. One that found something else is a read of that; one
    /// without an answer counts as a write, since whether it found what it wanted is not known.
    Swap { from: Option<u64>, to: u64 },
}

/// What every client did, by key, in any order.
pub type History = BTreeMap<String, Vec<Operation>>;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Judged {
    pub keys: usize,
    pub operations: usize,
    /// Configurations that the search went through.
    pub configurations: usize,
}

/// Why a history is not known to be linearizable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HistoryError {
    /// No order of the operations explains what was read.
    #[error("key {key}: no order explains {}, after {explained} operations and with {value:?} written", list(.stuck))]
    NotLinearizable {
        key: String,
        /// Operations explained by the best attempt.
        explained: usize,
        /// The value that the key had at that point.
        value: Option<u64>,
        /// What would have to come next.
        stuck: Vec<Operation>,
    },
    #[error("key {key}: undecided after {bound} configurations")]
    Undecided { key: String, bound: usize },
}

/// Judges every key; `bound` is the number of configurations to look at in one key.
///
/// # Errors
/// The first key that is not linearizable, or that could not be decided within the bound.
pub fn check(history: &History, bound: usize) -> Result<Judged, HistoryError> {
    history.iter().try_fold(Judged::default(), |sum, (key, operations)| {
        Ok(Judged {
            keys: sum.keys + 1,
            operations: sum.operations + operations.len(),
            configurations: sum.configurations + check_key(key, operations, bound)?,
        })
    })
}

fn check_key(key: &str, operations: &[Operation], bound: usize) -> Result<usize, HistoryError> {
    let register = Register::new(operations);
    let mut best = Configuration::default();
    let mut seen = HashSet::from([best.clone()]);
    let mut open = vec![best.clone()];
    while let Some(at) = open.pop() {
        if at.next == register.sure.len() {
            return Ok(seen.len());
        }
        if seen.len() > bound {
            return Err(HistoryError::Undecided { key: key.into(), bound });
        }
        // The candidate invoked first is looked at first: it is pushed last.
        for next in register.successors(&at).into_iter().rev() {
            if seen.insert(next.clone()) {
                open.push(next);
            }
        }
        if at.explained() > best.explained() {
            best = at;
        }
    }
    let stuck = register.candidates(&best).map(|index| register.sure[index]).collect();
    Err(HistoryError::NotLinearizable { key: key.into(), explained: best.explained(), value: best.value, stuck })
}

/// One key's operations, made ready for the search.
struct Register {
    /// Operations with an answer, by time of invocation.
    sure: Vec<Operation>,
    maybe: Vec<Operation>,
}

/// A point of the search: what has been put in order so far, and the value that this order leaves.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Configuration {
    /// All of `sure` below this index are in the order.
    next: usize,
    /// So are these, which lie above it; sorted.
    ahead: Vec<usize>,
    /// The maybes that took effect; sorted.
    used: Vec<usize>,
    value: Option<u64>,
}

impl Register {
    fn new(operations: &[Operation]) -> Self {
        let (mut sure, maybe): (Vec<Operation>, Vec<Operation>) =
            operations.iter().partition(|operation| operation.returned.is_some());
        sure.sort_by_key(|operation| operation.invoked);
        Self { sure, maybe }
    }

    /// Every configuration that one more answered operation leads to.
    fn successors(&self, at: &Configuration) -> Vec<Configuration> {
        let mut successors = Vec::new();
        for index in self.candidates(at) {
            match self.sure[index].action {
                Action::Put(value) => successors.push(at.with(index, None, Some(value))),
                Action::Delete => successors.push(at.with(index, None, None)),
                Action::Get(value) => successors.extend(self.reading(at, index, value, value)),
                Action::Swap { from, to } => successors.extend(self.reading(at, index, from, Some(to))),
            }
        }
        successors
    }

    /// After an operation that read a value and left one. A maybe that nobody reads before the next write might as well never
    /// have happened. So one is put in the order only where the very next operation reads it.
    fn reading(&self, at: &Configuration, index: usize, read: Option<u64>, left: Option<u64>) -> Option<Configuration> {
        match read == at.value {
            true => Some(at.with(index, None, left)),
            false => self.maybe_of(at, read).map(|used| at.with(index, Some(used), left)),
        }
    }

    /// The operations that may come next: those invoked before any other that is left had returned.
    fn candidates<'a>(&'a self, at: &'a Configuration) -> impl Iterator<Item = usize> + 'a {
        let horizon = self.horizon(at);
        self.left(at).take_while(move |&index| self.sure[index].invoked <= horizon)
    }

    fn left<'a>(&'a self, at: &'a Configuration) -> impl Iterator<Item = usize> + 'a {
        (at.next..self.sure.len()).filter(|index| at.ahead.binary_search(index).is_err())
    }

    /// The earliest return among the operations that are left.
    fn horizon(&self, at: &Configuration) -> u64 {
        let mut horizon = u64::MAX;
        for index in self.left(at) {
            // All that follow were invoked later still, and return after that.
            if self.sure[index].invoked > horizon {
                break;
            }
            horizon = horizon.min(self.sure[index].returned.unwrap_or(u64::MAX));
        }
        horizon
    }

    /// An unused maybe that left this value and was invoked by now. Any of them does: whichever is left
    /// can still be used wherever this one could.
    fn maybe_of(&self, at: &Configuration, value: Option<u64>) -> Option<usize> {
        let horizon = self.horizon(at);
        let wanted = value.map_or(Action::Delete, Action::Put);
        (0..self.maybe.len()).find(|index| {
            let maybe = self.maybe[*index];
            maybe.action == wanted && maybe.invoked <= horizon && at.used.binary_search(index).is_err()
        })
    }
}

impl Configuration {
    fn explained(&self) -> usize {
        self.next + self.ahead.len()
    }

    /// This configuration with one more operation, and maybe a maybe before it.
    fn with(&self, index: usize, used: Option<usize>, value: Option<u64>) -> Self {
        let mut then = Self { value, ..self.clone() };
        insert_sorted(&mut then.ahead, index);
        if let Some(used) = used {
            insert_sorted(&mut then.used, used);
        }
        while then.ahead.first() == Some(&then.next) {
            then.ahead.remove(0);
            then.next += 1;
        }
        then
    }
}

fn insert_sorted(list: &mut Vec<usize>, item: usize) {
    let place = list.partition_point(|&other| other < item);
    list.insert(place, item);
}

fn list(operations: &[Operation]) -> String {
    operations.iter().map(Operation::to_string).collect::<Vec<_>>().join(", ")
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.action {
            Action::Put(value) => write!(f, "put {value}")?,
            Action::Get(Some(value)) => write!(f, "get {value}")?,
            Action::Get(None) => write!(f, "get nothing")?,
            Action::Delete => write!(f, "delete")?,
            Action::Swap { from: Some(from), to } => write!(f, "swap {from} for {to}")?,
            Action::Swap { from: None, to } => write!(f, "swap nothing for {to}")?,
        }
        match self.returned {
            Some(returned) => write!(f, " ({} to {returned} ns)", self.invoked),
            None => write!(f, " (from {} ns, no answer)", self.invoked),
        }
    }
}

#[cfg(test)]
#[path = "history_test.rs"]
mod tests;
