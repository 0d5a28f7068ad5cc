//! A restart on another release, as the journal has it: its entries, its stages, and what may follow what. Pure.
//!
//! A step that stopped nothing, or was undone, is closed by the entry *forgotten*. So no second attempt begins on top of an
//! open one.

use proto::MemberId;
use serde::{Deserialize, Serialize};

use crate::keys::AttemptId;

/// What is written before each part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Entry {
    /// The step lock is about to be put.
    Planned(Step),
    /// The member is about to be stopped.
    Stopping(Direction),
    /// Its binary and files have been switched.
    Switched(Direction),
    /// Its process is about to be started on the binary this direction leads to.
    Starting(Direction),
    /// It is ready on that binary.
    Done(Direction),
    /// The step is over and left nothing behind.
    Forgotten,
}

/// One attempt at one member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Step {
    pub member: MemberId,
    /// The same id as in the step lock.
    pub attempt: AttemptId,
    /// Where the step was meant to go when it was planned.
    pub direction: Direction,
}

/// A direction between the two binaries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// From the old binary to the new.
    Forward,
    /// From the new binary to the old.
    Back,
}

/// Which of a step's two binaries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Binary {
    /// The one the member ran before the run.
    Old,
    /// The one the run brings it to.
    New,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stage {
    /// See [`Entry::Planned`].
    Planned,
    /// See [`Entry::Stopping`].
    Stopping(Direction),
    /// See [`Entry::Switched`].
    Switched(Direction),
    /// See [`Entry::Starting`].
    Starting(Direction),
    /// See [`Entry::Done`].
    Done(Direction),
}

/// A restart that the journal has not forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct InHand {
    pub step: Step,
    pub stage: Stage,
}

/// The entry cannot follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Illegal;

impl Direction {
    /// The binary this direction leads to.
    pub fn to(self) -> Binary {
        match self {
            Self::Forward => Binary::New,
            Self::Back => Binary::Old,
        }
    }

    /// The binary this direction comes from.
    pub fn from(self) -> Binary {
        match self {
            Self::Forward => Binary::Old,
            Self::Back => Binary::New,
        }
    }
}

impl InHand {
    /// Whether this step may have taken its member down, and not seen it ready since.
    pub fn may_have_stopped(&self) -> bool {
        matches!(self.stage, Stage::Stopping(_) | Stage::Switched(_) | Stage::Starting(_))
    }

    /// The binary the member must be on if the agent died now: the one it came from until *starting* was
    /// written, the other from then on.
    pub fn binary(&self) -> Binary {
        match self.stage {
            Stage::Planned => self.step.direction.from(),
            Stage::Stopping(direction) | Stage::Switched(direction) => direction.from(),
            Stage::Starting(direction) | Stage::Done(direction) => direction.to(),
        }
    }
}

/// What follows from one more entry.
///
/// # Errors
/// It cannot follow.
pub fn advance(at: Option<InHand>, entry: Entry) -> Result<Option<InHand>, Illegal> {
    use Stage::{Done, Planned, Starting, Stopping, Switched};
    let stage_now = at.map(|in_hand| in_hand.stage);
    let stage = match (stage_now, entry) {
        (None | Some(Done(_)), Entry::Planned(step)) => return Ok(Some(InHand { step, stage: Planned })),
        (Some(_), Entry::Forgotten) => return Ok(None),
        (Some(Planned), Entry::Stopping(direction)) => Stopping(direction),
        // A step that failed on its new binary turns round; one that may not go back any more turns again.
        (Some(Starting(Direction::Forward)), Entry::Stopping(Direction::Back)) => Stopping(Direction::Back),
        // Mended onto the new binary on its way back, it turns round once more.
        (Some(Stopping(Direction::Back) | Switched(Direction::Back)), Entry::Stopping(Direction::Back)) => {
            Stopping(Direction::Back)
        }
        (Some(Stopping(Direction::Back)), Entry::Starting(Direction::Forward)) => Starting(Direction::Forward),
        (Some(Stopping(from)), Entry::Switched(direction)) if from == direction => Switched(direction),
        (Some(Switched(from)), Entry::Starting(direction)) if from == direction => Starting(direction),
        (Some(Starting(from)), Entry::Done(direction)) if from == direction => Done(direction),
        _ => return Err(Illegal),
    };
    Ok(at.map(|in_hand| InHand { stage, ..in_hand }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replay(entries: impl IntoIterator<Item = Entry>) -> Result<Option<InHand>, Illegal> {
        entries.into_iter().try_fold(None, advance)
    }

    fn step(direction: Direction) -> Step {
        Step { member: MemberId(1), attempt: AttemptId(1), direction }
    }

    #[test]
    fn repair_starts_the_old_binary_until_starting_was_written() {
        use Direction::{Back, Forward};
        let forward = [
            (Entry::Planned(step(Forward)), Binary::Old),
            (Entry::Stopping(Forward), Binary::Old),
            (Entry::Switched(Forward), Binary::Old),
            (Entry::Starting(Forward), Binary::New),
            (Entry::Stopping(Back), Binary::New),
            (Entry::Switched(Back), Binary::New),
            (Entry::Starting(Back), Binary::Old),
            (Entry::Done(Back), Binary::Old),
        ];
        for (count, (_, binary)) in forward.iter().enumerate() {
            let entries = forward.iter().take(count + 1).map(|(entry, _)| *entry);
            assert_eq!(replay(entries).unwrap().unwrap().binary(), *binary, "after {count}");
        }
    }

    #[test]
    fn a_step_that_is_mended_on_its_way_back_turns_round_again() {
        use Direction::{Back, Forward};
        let turned = [
            Entry::Planned(step(Forward)),
            Entry::Stopping(Forward),
            Entry::Switched(Forward),
            Entry::Starting(Forward),
            Entry::Stopping(Back),
        ];
        for (more, stage) in [
            (vec![Entry::Stopping(Back)], Stage::Stopping(Back)),
            (vec![Entry::Switched(Back), Entry::Stopping(Back)], Stage::Stopping(Back)),
            (vec![Entry::Switched(Back), Entry::Stopping(Back), Entry::Switched(Back)], Stage::Switched(Back)),
        ] {
            let entries = turned.iter().chain(&more).copied();
            assert_eq!(replay(entries).unwrap().unwrap().stage, stage, "{more:?}");
        }
    }

    #[test]
    fn an_entry_out_of_order_is_a_damaged_journal() {
        for entries in [
            vec![Entry::Stopping(Direction::Forward)],
            vec![Entry::Forgotten],
            vec![Entry::Planned(step(Direction::Forward)), Entry::Starting(Direction::Forward)],
            vec![Entry::Planned(step(Direction::Forward)), Entry::Planned(step(Direction::Forward))],
            vec![
                Entry::Planned(step(Direction::Forward)),
                Entry::Stopping(Direction::Forward),
                Entry::Switched(Direction::Back),
            ],
        ] {
            assert!(replay(entries.clone()).is_err(), "{entries:?}");
        }
    }
}
