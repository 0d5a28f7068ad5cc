//! Nobody goes while an alarm stands, and whoever waits says which.

use proto::MemberId;

use crate::{
    observe::view::Alarm,
    plan::{
        Case, Next,
        refusal::{Refusal, Wait},
    },
};

/// While an alarm stands no member is ready, nobody can be waited for, and a member that is restarted may find
/// no room: a person must see to it.
pub(super) fn alarm(case: &Case) -> Option<Next> {
    case.view.alarm().map(|alarm| refuse(case, alarm))
}

/// A step lock whose agent is gone. The alarm keeps it: the cluster takes no write that deletes it, so nobody who comes back
/// ends the wait before a person does.
pub(super) fn keeps_lock(case: &Case, member: MemberId) -> Option<Next> {
    case.view.alarm().filter(|_| !case.keys.has_participant(member)).map(|alarm| refuse(case, alarm))
}

fn refuse(case: &Case, alarm: &Alarm) -> Next {
    let alone = case.view.alone_with(alarm);
    Next::Refuse(Refusal::Alarm { kind: alarm.kind.as_str().into(), of: alarm.of, alone })
}

/// A wait names the alarm, whatever it is for: that comes only once the alarm is disarmed.
pub(super) fn named(case: &Case, next: Next) -> Next {
    match (next, case.view.alarm()) {
        (Next::Wait(wait), Some(alarm)) => {
            let (kind, of, alone) = (alarm.kind.as_str().into(), alarm.of, case.view.alone_with(alarm));
            Next::Wait(Wait::UnderAlarm { kind, of, alone, wait: Box::new(wait) })
        }
        (next, _) => next,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        keys::{Keys, rules::Rules},
        plan::{next, samples},
    };

    #[test]
    fn whoever_waits_says_the_alarm_and_nobody_waits_where_the_locks_agent_is_gone() {
        let alarm = || Refusal::Alarm { kind: "NOSPACE".into(), of: MemberId(1), alone: None };
        let waits = |wait| {
            let (kind, of, wait) = ("NOSPACE".into(), MemberId(1), Box::new(wait));
            Next::Wait(Wait::UnderAlarm { kind, of, alone: None, wait })
        };
        let record = || Wait::Record { member: MemberId(2), host: samples::host(2) };
        // Member 2 is in its step.
        for (members, has_lock, failed, is_owner_there, is_window_over, expected) in [
            ("1+ 2- 3+", true, None, true, true, Next::Wait(record())),
            ("1! 2! 3!", true, None, true, true, waits(record())),
            ("1! 2! 3!", true, None, true, false, waits(record())),
            ("1! 2. 3!", true, None, true, true, waits(record())), // it is starting just now
            ("1! 2! 3!", true, None, false, true, Next::Refuse(alarm())),
            ("1! 2! 3!", true, None, false, false, Next::Refuse(alarm())), // who comes later can write nothing either
            ("1! 2. 3!", true, None, false, true, Next::Refuse(alarm())),
            ("1! 2! 3!", true, Some(2), false, true, Next::Refuse(alarm())),
            ("1! 2! 3!", false, Some(2), true, true, waits(Wait::FailedOwner { member: MemberId(2) })),
            ("1! 2! 3!", false, None, true, true, Next::Refuse(alarm())),
        ] {
            let (me, rules, found) = (samples::me(&[1]), Rules::default(), samples::keys(failed, is_owner_there));
            let keys = Keys { step: found.step.clone().filter(|_| has_lock), ..found };
            // Who leads is agreed on though nobody is ready.
            let view = samples::led_by(3, samples::view(members));
            let found = next(&Case { is_window_over, ..samples::case(&me, &rules, &keys, &view) });
            assert_eq!(found, expected, "{members} {has_lock} {failed:?} {is_owner_there} {is_window_over}");
        }
    }

    /// It forbids as much, and it is said whose word it is.
    #[test]
    fn an_alarm_of_one_against_all_others_is_its_word_alone() {
        for (members, alone) in [
            ("1! 2+ 3+", Some(1)),
            ("1+ 2+ 3!", Some(3)),
            ("1! 2. 3+", Some(1)),
            ("1! 2! 3+", None),
            ("1! 2! 3!", None),
            ("1! 2. 3.", None), // nobody else answered
            ("1!", None),
        ] {
            let (me, rules, keys) = (samples::me(&[2]), Rules::default(), Keys::default());
            let view = samples::led_by(1, samples::view(members));
            let found = super::alarm(&samples::case(&me, &rules, &keys, &view));
            let (kind, of, alone) = ("NOSPACE".into(), MemberId(1), alone.map(MemberId));
            assert_eq!(found, Some(Next::Refuse(Refusal::Alarm { kind, of, alone })), "{members}");
        }
    }
}
