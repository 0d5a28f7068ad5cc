//! What the journal means: the action that is in hand, and what may follow what.
//!
//! Pure: `file.rs` makes entries durable, and the rollout machine reads what they add up to. Each action of the planner
//! (`plan/action.rs`) has its own entries and stages, in a file of its own.

use proto::MemberId;
use serde::{Deserialize, Serialize};

use super::{guarded, restart};
use crate::keys::AttemptId;

/// One line of the journal, written and synced before what it announces is done (I-6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Entry {
    Restart(restart::Entry),
    Guarded(guarded::Entry),
}

/// An action that the journal has not forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InHand {
    Restart(restart::InHand),
    Guarded(guarded::InHand),
}

/// Two entries that cannot follow one another: the file is damaged, or was written by something else.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{entry:?} cannot follow {at:?}")]
pub struct Illegal {
    pub at: Box<Option<InHand>>,
    pub entry: Box<Entry>,
}

impl InHand {
    pub fn member(&self) -> MemberId {
        match self {
            Self::Restart(restart) => restart.step.member,
            Self::Guarded(guarded) => guarded.step.member,
        }
    }

    /// The same id as in the lock's key.
    pub fn attempt(&self) -> AttemptId {
        match self {
            Self::Restart(restart) => restart.step.attempt,
            Self::Guarded(guarded) => guarded.step.attempt,
        }
    }

    /// Whether it may have taken its member down, and not seen it ready since.
    pub fn may_have_stopped(&self) -> bool {
        match self {
            Self::Restart(restart) => restart.may_have_stopped(),
            Self::Guarded(guarded) => matches!(guarded.stage, guarded::Stage::Runs(_)),
        }
    }

    pub fn forgotten(&self) -> Entry {
        match self {
            Self::Restart(_) => Entry::Restart(restart::Entry::Forgotten),
            Self::Guarded(_) => Entry::Guarded(guarded::Entry::Forgotten),
        }
    }

    /// The restart that is in hand.
    pub fn restart(self) -> Option<restart::InHand> {
        match self {
            Self::Restart(restart) => Some(restart),
            Self::Guarded(_) => None,
        }
    }

    /// The guarded command that is in hand.
    pub fn guarded(self) -> Option<guarded::InHand> {
        match self {
            Self::Guarded(guarded) => Some(guarded),
            Self::Restart(_) => None,
        }
    }
}

/// What follows from one more entry.
///
/// # Errors
/// The entry cannot follow: another action's, or not the next stage of this one.
pub fn advance(at: Option<InHand>, entry: Entry) -> Result<Option<InHand>, Illegal> {
    let illegal = || Illegal { at: Box::new(at), entry: Box::new(entry) };
    match entry {
        Entry::Restart(entry) => {
            let before = match at {
                None => None,
                Some(InHand::Restart(before)) => Some(before),
                Some(InHand::Guarded(_)) => return Err(illegal()),
            };
            restart::advance(before, entry).map(|next| next.map(InHand::Restart)).map_err(|restart::Illegal| illegal())
        }
        Entry::Guarded(entry) => {
            let before = match at {
                // A restart that is done is followed by anything.
                None => None,
                Some(InHand::Restart(before)) if matches!(before.stage, restart::Stage::Done(_)) => None,
                Some(InHand::Guarded(before)) => Some(before),
                Some(InHand::Restart(_)) => return Err(illegal()),
            };
            guarded::advance(before, entry).map(|next| next.map(InHand::Guarded)).map_err(|guarded::Illegal| illegal())
        }
    }
}

/// What a whole journal adds up to.
///
/// # Errors
/// Entries that cannot follow one another.
pub fn replay(entries: impl IntoIterator<Item = Entry>) -> Result<Option<InHand>, Illegal> {
    entries.into_iter().try_fold(None, advance)
}
