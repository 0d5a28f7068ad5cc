//! Every process anew, at the release it has. Nothing that a member says shows whether it was restarted, so what its own
//! agent wrote into the run counts.

use proto::ClusterVersion;

use super::{Kind, common_version, same_seats};
use crate::{
    journal::restart::Direction,
    keys::change::Restart,
    observe::view::{ClusterView, Member},
    plan::{Case, Verb, refusal::Refusal, target::Target},
};

impl Kind for Restart {
    fn target(&self) -> Target<'_> {
        same_seats(None)
    }

    /// A run that is over counts, too: the same command again restarts nobody.
    fn is_at(&self, case: &Case, member: &Member, _: Direction) -> bool {
        let run = case.keys.run.as_ref().map(|run| &run.value);
        run.is_some_and(|run| *run.intent == *case.me.intent && run.done.contains(&member.id))
    }

    fn settled_version(&self, view: &ClusterView, _: bool) -> Option<ClusterVersion> {
        common_version(view)
    }

    /// There is no other release to go back to.
    fn refuses(&self, verb: Verb) -> Option<Refusal> {
        (verb == Verb::Rollback).then_some(Refusal::NothingToRollBack)
    }

    fn phrase(&self) -> String {
        format!("a restart for `{}`", self.id)
    }

    fn parts(&self) -> Vec<(&'static str, String)> {
        vec![("restart.id", format!("`{}`", self.id))]
    }
}
