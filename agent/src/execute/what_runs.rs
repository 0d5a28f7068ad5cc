//! What this host shows of the step in hand, where that is further than the journal.
//!
//! Somebody else may have started the member while its agent was dead: a supervisor at boot, or a person. A
//! process that runs the binary a direction leads to has been started on it, whether or not *starting* was written;
//! so it is written now, before anything is decided by the journal. Source: agent/PROTOCOL.md, I-5, I-6.

use std::path::Path;

use proto::MemberId;

use super::{Abort, Execution};
use crate::journal::{
    progress,
    restart::{Direction, Entry, Stage},
};

impl Execution<'_> {
    pub(super) async fn catch_up_with_what_runs(&mut self) -> Result<(), Abort> {
        let Some(in_hand) = self.host.past.restart() else { return Ok(()) };
        let (Stage::Stopping(direction) | Stage::Switched(direction)) = in_hand.stage else { return Ok(()) };
        if !self.is_started(in_hand.step.member, direction).await {
            return Ok(());
        }
        if in_hand.stage == Stage::Stopping(direction) {
            self.write(progress::Entry::Restart(Entry::Switched(direction)))?;
        }
        self.write(progress::Entry::Restart(Entry::Starting(direction))).map(drop)
    }

    /// Whether a member is seen to run the binary that this direction leads to, and not the one it comes from.
    async fn is_started(&self, member: MemberId, direction: Direction) -> bool {
        let Some(node) = self.node(member) else { return false };
        let Some(sides) = &node.sides else { return false };
        let (Some(from), Some(to)) = (&sides.side(direction.from()).executable, &sides.side(direction.to()).executable)
        else {
            return false;
        };
        let status = node.status().await.ok();
        let exe = status.and_then(|status| status.process()?.exe.clone());
        exe.is_some_and(|exe: std::path::PathBuf| !is_same(&exe, from) && is_same(&exe, to))
    }
}

fn is_same(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    real(one) == real(other)
}
