//! Other voters than there are. Who goes when is decided in `plan/membership/`: no member is restarted.

use proto::ClusterVersion;

use super::{Kind, common_version, same_seats};
use crate::{
    journal::restart::Direction,
    keys::change::Scale,
    observe::view::{ClusterView, Member},
    plan::{Case, Verb, refusal::Refusal, target::Target},
};

impl Kind for Scale {
    fn target(&self) -> Target<'_> {
        same_seats(None)
    }

    fn is_at(&self, _: &Case, _: &Member, _: Direction) -> bool {
        true
    }

    fn settled_version(&self, view: &ClusterView, _: bool) -> Option<ClusterVersion> {
        common_version(view)
    }

    fn refuses(&self, verb: Verb) -> Option<Refusal> {
        (verb == Verb::Rollback).then_some(Refusal::NothingToRollBack)
    }

    fn phrase(&self) -> String {
        format!("a scaling to {} voters", self.members.len())
    }

    fn parts(&self) -> Vec<(&'static str, String)> {
        vec![("members", self.members.join(", "))]
    }
}
