//! Every process anew, at the release it has. Nothing that a member says shows whether it was restarted, so what its own
//! agent wrote into the run counts.

use super::Kind;
use crate::{journal::restart::Direction, keys::change::Restart, observe::view::Member, plan::Case};

impl Kind for Restart {
    /// A run that is over counts, too: the same command again restarts nobody.
    fn is_at(&self, case: &Case, member: &Member, _: Direction) -> bool {
        let run = case.keys.run.as_ref().map(|run| &run.value);
        run.is_some_and(|run| *run.intent == *case.me.intent && run.done.contains(&member.id))
    }

    fn phrase(&self) -> String {
        format!("a restart for `{}`", self.id)
    }

    fn parts(&self) -> Vec<(&'static str, String)> {
        vec![("restart.id", format!("`{}`", self.id))]
    }
}
