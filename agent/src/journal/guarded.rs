//! A guarded command, as the journal has it: its entries, its stages, and what may follow what. Pure.
//!
//! *Runs* is durable before the command begins, so a journal without it is of a command that never did.

use proto::MemberId;
use serde::{Deserialize, Serialize};

use crate::keys::{AttemptId, ProcessId};

/// What is written before each part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Entry {
    /// The step lock is about to be put.
    Planned(Step),
    /// The command is about to begin, as this process.
    Runs(Command),
    /// The step is over and left nothing behind.
    Forgotten,
}

/// One attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Step {
    /// The host's first member, whose name the lock goes by.
    pub member: MemberId,
    /// The same id as in the step lock.
    pub attempt: AttemptId,
}

/// A command that was begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Command {
    pub process: ProcessId,
    /// The first process of the host: another one means that the host has restarted, though it may share its kernel, and with
    /// that the boot id, with others.
    pub init: ProcessId,
    /// Whether it was said that the host restarts: then the command's end says nothing.
    pub reboots: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stage {
    /// See [`Entry::Planned`].
    Planned,
    /// See [`Entry::Runs`].
    Runs(Command),
}

/// A guarded command that the journal has not forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct InHand {
    pub step: Step,
    pub stage: Stage,
}

/// The entry cannot follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Illegal;

/// What follows from one more entry.
///
/// # Errors
/// It cannot follow.
pub fn advance(at: Option<InHand>, entry: Entry) -> Result<Option<InHand>, Illegal> {
    match (at, entry) {
        (None, Entry::Planned(step)) => Ok(Some(InHand { step, stage: Stage::Planned })),
        (Some(InHand { step, stage: Stage::Planned }), Entry::Runs(command)) => {
            Ok(Some(InHand { step, stage: Stage::Runs(command) }))
        }
        (Some(_), Entry::Forgotten) => Ok(None),
        _ => Err(Illegal),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_noted_once_and_only_after_its_plan() {
        let process = ProcessId::default();
        let command = Entry::Runs(Command { process, init: process, reboots: false });
        let planned = Entry::Planned(Step { member: MemberId(1), attempt: AttemptId(1) });
        for (entries, legal) in [
            (vec![planned, command, Entry::Forgotten], true),
            (vec![planned, Entry::Forgotten], true), // it was not begun
            (vec![planned, planned], false),
            (vec![command], false),
            (vec![planned, command, command], false),
            (vec![Entry::Forgotten], false),
        ] {
            let found = entries.iter().copied().try_fold(None, advance);
            assert_eq!(found.is_ok(), legal, "{entries:?}");
        }
    }
}
