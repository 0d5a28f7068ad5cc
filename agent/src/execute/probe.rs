//! The user's own health check of a member that was restarted (`strategy.probe`): it passes throughout the soak, or the member is not ready.
//!
//! What is put back, or only brought up, is not asked for it: it runs what it ran.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use proto::MemberId;

use super::{Execution, error::ActError};
use crate::{event::RunEvent, host::program::hook, journal::restart::Binary};

/// How far apart it is run.
const EVERY: Duration = Duration::from_secs(5);

/// What the probe of one wait has said last, and when.
#[derive(Debug, Default)]
pub(super) struct Probed {
    at: Option<Instant>,
    fails: Option<Arc<str>>,
}

impl Execution<'_> {
    /// Why the member does not pass, if it does not.
    pub(super) async fn probe(
        &mut self,
        member: MemberId,
        on: Option<Binary>,
        probed: &mut Probed,
    ) -> Option<Arc<str>> {
        let argv = self.playbook.strategy.probe.clone()?;
        if on != Some(Binary::New) || probed.at.is_some_and(|at| at.elapsed() < EVERY) {
            return probed.fails.clone();
        }
        let passes = self.run_probe(member, argv).await;
        let fails: Option<Arc<str>> = passes.err().map(|why| format!("`strategy.probe` fails: {why}").into());
        if let Some(why) = fails.as_deref().filter(|why| probed.fails.as_deref() != Some(why)) {
            self.tell(RunEvent::ProbeFailed { member, why });
        }
        *probed = Probed { at: Some(Instant::now()), fails: fails.clone() };
        fails
    }

    async fn run_probe(&mut self, member: MemberId, argv: Vec<String>) -> Result<(), ActError> {
        // It is part of what `health.timeout` ends.
        let limit = hook::LIMIT.min(self.playbook.strategy.health);
        let node = self.node_mut(member)?;
        let release = match &node.sides {
            Some(sides) => sides.new.release.clone(),
            None => node.current().await?.release,
        };
        for argv in node.expanded(&[argv], &release)? {
            hook::run_within(&argv, limit).await?;
        }
        Ok(())
    }
}
