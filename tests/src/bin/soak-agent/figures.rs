//! What the rollouts came to, together.

use std::{collections::BTreeMap, fmt};

use crate::{
    journey::{Kill, Leg},
    rollout::Rollout,
};

/// Of all rollouts so far.
#[derive(Default)]
pub struct Figures {
    rollouts: usize,
    down: usize,
    replaced: usize,
    scaled: usize,
    guarded: usize,
    hops: usize,
    backed_up: usize,
    restored: usize,
    kills_in_restores: usize,
    kills_in_changes: usize,
    kills_in_guards: usize,
    kills: usize,
    at_syncs: usize,
    by_record: BTreeMap<String, usize>,
    run_again: usize,
    writes: usize,
    operations: usize,
    longest_gap_ms: u128,
    most_down: usize,
}

impl Figures {
    pub fn kills(&self) -> usize {
        self.kills
    }

    pub fn add(&mut self, rollout: &Rollout, leg: &Leg) {
        match leg {
            Leg::Roll(direction) => {
                self.rollouts += 1;
                self.down += usize::from(direction.to < direction.from);
                self.hops += usize::from(direction.over.is_some());
                self.backed_up += usize::from(direction.is_backed_up);
            }
            Leg::Replace(_) => {
                self.replaced += 1;
                self.kills_in_changes += rollout.killed.len();
            }
            Leg::Scale(_) => {
                self.scaled += 1;
                self.kills_in_changes += rollout.killed.len();
            }
            Leg::Guard(_) => {
                self.guarded += 1;
                self.kills_in_guards += rollout.killed.len();
            }
            Leg::Restore(_) => {
                self.restored += 1;
                self.kills_in_restores += rollout.killed.len();
            }
        }
        self.kills += rollout.killed.len();
        for killed in &rollout.killed {
            self.at_syncs += usize::from(matches!(killed.at, Kill::AtSync(..)));
            *self.by_record.entry(killed.last.clone()).or_default() += 1;
        }
        self.run_again += usize::from(rollout.is_run_again);
        let Some(seen) = &rollout.testimony else { return };
        self.writes += seen.writes_acked;
        self.operations += seen.history.as_ref().map_or(0, |judged| judged.operations);
        self.longest_gap_ms = self.longest_gap_ms.max(seen.longest_write_gap.as_millis());
        self.most_down = self.most_down.max(seen.observed.max_members_down);
    }
}

/// Nothing was lost, or the soak would have ended before it came to this.
impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (syncs, times) = (self.at_syncs, self.kills - self.at_syncs);
        let (rollouts, down, hops, saved) = (self.rollouts, self.down, self.hops, self.backed_up);
        writeln!(
            f,
            "rollouts               {rollouts}, of which downgrades {down}, over two minors {hops}, backed up {saved}"
        )?;
        writeln!(f, "members replaced       {}", self.replaced)?;
        writeln!(f, "scalings, up or down   {}; {} kills in these two", self.scaled, self.kills_in_changes)?;
        writeln!(f, "rounds of guards       {}, with {} kills", self.guarded, self.kills_in_guards)?;
        writeln!(f, "restores               {}, with {} kills", self.restored, self.kills_in_restores)?;
        writeln!(f, "finished by one more   {}, as agents had ended while others were dead", self.run_again)?;
        writeln!(
            f,
            "kills                  {}, of which {syncs} at a sync of the journal, {times} by the clock",
            self.kills
        )?;
        for (record, kills) in &self.by_record {
            writeln!(f, "  after {record:<16} {kills}")?;
        }
        writeln!(f, "writes acknowledged    {}, of which lost 0", self.writes)?;
        writeln!(f, "history                linearizable ({} operations)", self.operations)?;
        writeln!(f, "longest write gap      {} ms", self.longest_gap_ms)?;
        writeln!(f, "most members down      {}", self.most_down)?;
        write!(f, "left behind            no key, no process")
    }
}
