//! One member for another. Who goes when is decided in `plan/membership/`: no member is restarted.

use super::Kind;
use crate::{journal::restart::Direction, keys::change::Replace, observe::view::Member, plan::Case};

impl Kind for Replace {
    fn is_at(&self, _: &Case, _: &Member, _: Direction) -> bool {
        true
    }

    fn phrase(&self) -> String {
        format!("a replacement of {} by {}", self.member, self.by)
    }

    fn parts(&self) -> Vec<(&'static str, String)> {
        vec![("replace.member", self.member.to_string()), ("replace.by", self.by.to_string())]
    }
}
