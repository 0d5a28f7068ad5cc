//! Other voters than there are. Who goes when is decided in `plan/membership/`: no member is restarted.

use super::Kind;
use crate::{journal::restart::Direction, keys::change::Scale, observe::view::Member, plan::Case};

impl Kind for Scale {
    fn is_at(&self, _: &Case, _: &Member, _: Direction) -> bool {
        true
    }

    fn phrase(&self) -> String {
        format!("a scaling to {} voters", self.members.len())
    }

    fn parts(&self) -> Vec<(&'static str, String)> {
        vec![("members", self.members.join(", "))]
    }
}
