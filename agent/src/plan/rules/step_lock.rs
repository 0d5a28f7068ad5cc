//! A record that stands: it is the lock.
//!
//! A record is not waited for where its step failed and its agent has ended. The others end with the reason of the mark. Nor
//! is it where its agent has ended and an alarm keeps it: then they end with the alarm (`alarm.rs`).

use crate::{
    keys::{RunState, StepLock, txn::Txn},
    plan::{
        Case, Next,
        owner::{self, Whose},
        refusal::{Refusal, Wait},
        rules::alarm,
    },
};
use proto::MemberId;

pub(super) fn step_lock(case: &Case) -> Option<Next> {
    let record = case.keys.step.as_ref()?;
    let StepLock { member, host, attempt, .. } = record.value;
    if case.in_hand == Some(attempt) {
        return None;
    }
    // It is ended by those who change members, with what became of it.
    if record.value.role.is_some() {
        return Some(Next::Wait(Wait::Record { member, host }));
    }
    if record.value.members().all(|member| owner::is_removed(case, member)) {
        return Some(Next::CleanUp(Txn::delete_down(record.created)));
    }
    match owner::whose(case, &record.value) {
        Whose::Mine => Some(Next::Adopt(member)),
        Whose::MinePerhaps => Some(owner::refuse(record, case)),
        Whose::Anothers if case.rules.record_is_the_lock => {
            let is_over = alarm::keeps_lock(case, member).or_else(|| failed_and_left(case, member));
            Some(is_over.unwrap_or(Next::Wait(Wait::Record { member, host })))
        }
        Whose::Anothers => None,
    }
}

/// A step that failed and kept its record, and whose agent has ended: nobody will bring that member back by
/// itself, so waiting is over with the mark's reason.
fn failed_and_left(case: &Case, member: MemberId) -> Option<Next> {
    let RunState::Failed { member: marked, why, .. } = &case.current_run()?.state else { return None };
    let is_left = *marked == member && !case.keys.has_participant(member) && case.is_window_over();
    is_left.then(|| Next::Refuse(Refusal::Failed { member, why: why.clone() }))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{
        keys::rules::Rules,
        plan::{next, samples},
    };

    #[test]
    fn anothers_record_is_waited_for_unless_its_agent_failed_and_ended() {
        for (failed, is_owner_there, is_window_over, ends) in [
            (None, true, true, false),
            (None, false, true, false), // it was killed, and the same command brings it back
            (Some(2), true, true, false),
            (Some(2), false, false, false),
            (Some(2), false, true, true),
            (Some(3), false, true, false), // the mark is another member's
        ] {
            let (me, rules, keys) = (samples::me(&[1]), Rules::default(), samples::keys(failed, is_owner_there));
            let view = samples::view("1+ 2- 3+");
            let found = next(&Case { is_window_over, ..samples::case(&me, &rules, &keys, &view) });
            let expected = match ends {
                true => Next::Refuse(Refusal::Failed { member: MemberId(2), why: Arc::from("it") }),
                false => Next::Wait(Wait::Record { member: MemberId(2), host: samples::host(2) }),
            };
            assert_eq!(found, expected, "{failed:?} {is_owner_there} {is_window_over}");
        }
    }
}
