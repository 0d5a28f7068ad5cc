//! The planner's actions, carried out: a file an action, and one for its end where that is long.

mod guard;
mod restart;
mod restart_end;

pub(super) use guard::Guarding;
pub(super) use restart::{Closing, Restarting};
