//! The backup that a run makes before it changes anything. Each hop of a way over several releases is a run of its own, and makes one.
//!
//! Source: agent/PROTOCOL.md, R-14.

use super::{Case, Next, action::Action, membership::Move};

/// What is next, or the backup where that comes first.
pub(super) fn comes_first(case: &Case, next: Next) -> Next {
    let is_owed =
        case.current_run().is_some_and(|run| run.intent.backup && run.backup.is_none() && !run.is_going_back());
    match is_owed && case.rules.backup_comes_first && changes(&next) {
        true => Next::BackUp,
        false => next,
    }
}

/// Whether something of the cluster would be other than before.
fn changes(next: &Next) -> bool {
    match next {
        Next::Step(Action::Restart(_)) | Next::Downgrade(Some(_)) => true,
        Next::Members(next) => matches!(next, Move::Add(_) | Move::HandOver { .. } | Move::Lock(_)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proto::MemberId;

    use super::*;
    use crate::{
        keys::{Backup, Intent, Keys, Run, RunState, rules::Rules},
        plan::{Me, Verb, next, samples},
    };

    fn backup() -> Arc<Backup> {
        Arc::new(Backup {
            host_name: "h2".into(),
            path: "/b".into(),
            member: MemberId(2),
            revision: None,
            sha256: None,
            bytes: 1,
        })
    }

    #[test]
    fn nothing_is_changed_before_it_is_made() {
        let view = samples::view("1+ 2+ 3*");
        for (asks, state, made, verb, comes_first) in [
            (true, RunState::Rolling, false, Verb::Run, true),
            (true, RunState::Rolling, true, Verb::Run, false),
            (false, RunState::Rolling, false, Verb::Run, false),
            (true, RunState::Approved, false, Verb::Run, true),
            (true, RunState::RollingBack, false, Verb::Rollback, false),
        ] {
            let intent = Arc::new(Intent { backup: asks, ..samples::intent(">=3.4, <3.5", "3.5.30") });
            let me = Me { intent: intent.clone(), verb, ..samples::me(&[1]) };
            let backup = made.then(backup);
            let run = Run { intent, backup, ..samples::run(state) };
            let (keys, rules) = (Keys { run: Some(samples::at(run)), ..Keys::default() }, Rules::default());
            let found = next(&samples::case(&me, &rules, &keys, &view));
            assert_eq!(found == Next::BackUp, comes_first, "{verb:?} {found:?}");
        }
    }

    #[test]
    fn a_run_is_begun_before_it() {
        let intent = Arc::new(Intent { backup: true, ..samples::intent(">=3.4, <3.5", "3.5.30") });
        let me = Me { intent, ..samples::me(&[1]) };
        let (keys, rules, view) = (Keys::default(), Rules::default(), samples::view("1+ 2+ 3*"));
        assert_eq!(next(&samples::case(&me, &rules, &keys, &view)), Next::Begin);
    }

    #[test]
    fn what_only_writes_keys_does_not_wait_for_it() {
        for (next, is_change) in [
            (Next::Begin, false),
            (Next::Downgrade(Some("3.5".parse().unwrap())), true),
            (Next::Downgrade(None), false),
            (Next::Members(Move::Add(0)), true),
            (Next::Members(Move::Archive(0)), false),
            (Next::Settle, false),
        ] {
            assert_eq!(changes(&next), is_change, "{next:?}");
        }
    }
}
