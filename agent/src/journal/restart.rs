//! A restart on another release, as the journal has it: its entries, its stages, and what may follow what. Pure.

use proto::MemberId;
use serde::{Deserialize, Serialize};

use crate::keys::AttemptId;

/// What is written before each part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Entry {
    /// The take-down record is about to be put.
    Planned(Step),
    /// The member is about to be stopped.
    Stopping(Leg),
    /// Its binary and files have been switched.
    Switched(Leg),
    /// Its process is about to be started on the binary this leg leads to.
    Starting(Leg),
    /// It is ready on that binary.
    Done(Leg),
    /// The step is over and left nothing behind.
    Forgotten,
}

/// One attempt at one member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Step {
    pub member: MemberId,
    /// The same id as in the take-down record.
    pub attempt: AttemptId,
    /// Where the step was meant to go when it was planned.
    pub leg: Leg,
}

/// A direction between the two binaries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Leg {
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
    Stopping(Leg),
    /// See [`Entry::Switched`].
    Switched(Leg),
    /// See [`Entry::Starting`].
    Starting(Leg),
    /// See [`Entry::Done`].
    Done(Leg),
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

impl Leg {
    /// The binary this leg leads to.
    pub fn to(self) -> Binary {
        match self {
            Self::Forward => Binary::New,
            Self::Back => Binary::Old,
        }
    }

    /// The binary this leg comes from.
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
            Stage::Planned => self.step.leg.from(),
            Stage::Stopping(leg) | Stage::Switched(leg) => leg.from(),
            Stage::Starting(leg) | Stage::Done(leg) => leg.to(),
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
        (Some(Planned), Entry::Stopping(leg)) => Stopping(leg),
        // A step that failed on its new binary turns round; one that may not go back any more turns again.
        (Some(Starting(Leg::Forward)), Entry::Stopping(Leg::Back)) => Stopping(Leg::Back),
        // Mended onto the new binary on its way back, it turns round once more.
        (Some(Stopping(Leg::Back) | Switched(Leg::Back)), Entry::Stopping(Leg::Back)) => Stopping(Leg::Back),
        (Some(Stopping(Leg::Back)), Entry::Starting(Leg::Forward)) => Starting(Leg::Forward),
        (Some(Stopping(from)), Entry::Switched(leg)) if from == leg => Switched(leg),
        (Some(Switched(from)), Entry::Starting(leg)) if from == leg => Starting(leg),
        (Some(Starting(from)), Entry::Done(leg)) if from == leg => Done(leg),
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

    fn step(leg: Leg) -> Step {
        Step { member: MemberId(1), attempt: AttemptId(1), leg }
    }

    #[test]
    fn mending_starts_the_old_binary_until_starting_was_written() {
        use Leg::{Back, Forward};
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
        use Leg::{Back, Forward};
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
            vec![Entry::Stopping(Leg::Forward)],
            vec![Entry::Forgotten],
            vec![Entry::Planned(step(Leg::Forward)), Entry::Starting(Leg::Forward)],
            vec![Entry::Planned(step(Leg::Forward)), Entry::Planned(step(Leg::Forward))],
            vec![Entry::Planned(step(Leg::Forward)), Entry::Stopping(Leg::Forward), Entry::Switched(Leg::Back)],
        ] {
            assert!(replay(entries.clone()).is_err(), "{entries:?}");
        }
    }
}
