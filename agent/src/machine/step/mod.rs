//! The planner's actions, carried out: a file an action, and one for its end where that is long.

mod restart;
mod restart_end;

pub(super) use restart::{Closing, Restarting};
