//! What an end is at a hop of a longer way.

use std::path::Path;

use super::{Progress, Reason, Stop};
use crate::{keys::Intent, report::change, words};

impl Stop {
    /// Says at which hop it ended, where that is not the end of the way. A hop that is done is not the whole, but one that was taken back is:
    /// what comes next is for a person to say.
    pub(crate) fn on_the_way(self, intent: &Intent, playbook: &Path, require_complete: bool) -> Self {
        let Some(hops) = &intent.hops else { return self };
        let is_gone = matches!(self.reason, Reason::Done | Reason::NothingToDo);
        if is_gone && hops.is_last(&intent.change) {
            return self;
        }
        let stop = self.leaving(&format!("this was the run {}", change::run(intent)));
        if !is_gone {
            return stop;
        }
        let next = format!("agent run {}", words::typed(&playbook.to_string_lossy()));
        let message = format!("one hop of the way is done, and not the last: {}", stop.message);
        let stop = Self { cluster: Some(Progress::Partial), message, ..stop.next(next) };
        match require_complete {
            true => Self { exit: Reason::Incomplete.exit().code(true), reason: Reason::Incomplete, ..stop },
            false => stop,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::samples;

    #[test]
    fn a_hop_that_is_done_is_not_the_whole_and_one_taken_back_is_an_end() {
        let [first, last] = samples::way();
        for (reason, intent, is_required, told, next) in [
            (Reason::Done, &first, false, Reason::Done, Some("agent run p.yaml")),
            (Reason::Done, &first, true, Reason::Incomplete, Some("agent run p.yaml")),
            (Reason::Done, &last, true, Reason::Done, None),
            (Reason::RolledBack, &first, true, Reason::RolledBack, None),
            (Reason::RolledBack, &last, true, Reason::RolledBack, None),
        ] {
            let cluster = Some(Progress::Done);
            let stop = Stop { exit: 0, reason, message: String::new(), left: String::new(), next: None, cluster };
            let stop = stop.on_the_way(intent, Path::new("p.yaml"), is_required);
            assert_eq!((stop.reason, stop.next.as_deref()), (told, next), "{reason:?} {is_required}");
            assert_eq!(stop.exit == 0, told == reason, "{reason:?} {is_required}");
            let is_end = reason == Reason::Done && intent == &last;
            assert_eq!(stop.left.is_empty(), is_end, "{}", stop.left);
        }
    }
}
