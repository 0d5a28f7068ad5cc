//! While a run is paused no step of it begins; one in hand ends. `agent resume` lifts it before it does anything else. Source: agent/PROTOCOL.md, "Pauses and windows".

use crate::plan::{Case, Next, refusal::Wait};

pub(super) fn paused(case: &Case) -> Option<Next> {
    let pause = case.current_run()?.pause.clone()?;
    Some(Next::Wait(Wait::Paused { pause }))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proto::MemberId;

    use crate::{
        keys::{Going, Keys, Pause, Run, RunState, rules::Rules},
        plan::{
            Me, Next, Verb, next,
            refusal::{Refusal, Wait},
            samples,
        },
    };

    #[test]
    fn nobody_goes_forward_or_back() {
        let pause = Arc::new(Pause { by: "h2".into(), at: "2026-11-29T08:15:00Z".into(), why: None });
        let waits = || Next::Wait(Wait::Paused { pause: pause.clone() });
        let failed = RunState::Failed { member: MemberId(2), why: "it".into(), was: Going::Rolling };
        let mine = RunState::Failed { member: MemberId(1), why: "it".into(), was: Going::Rolling };
        for (verb, state, expected) in [
            (Verb::Run, RunState::Rolling, waits()),
            (Verb::Run, RunState::Approved, waits()),
            (Verb::Run, mine, waits()), // its owner would try again
            (Verb::Run, failed.clone(), Next::Refuse(Refusal::Failed { member: MemberId(2), why: "it".into() })),
            (Verb::Rollback, RunState::Rolling, Next::Move { to: RunState::RollingBack, at_rest: true }),
            (Verb::Rollback, RunState::RollingBack, waits()),
            (Verb::Resume, RunState::Rolling, waits()), // it was paused after that was typed
        ] {
            let me = Me { verb, ..samples::me(&[1]) };
            let run = Run { pause: Some(pause.clone()), ..samples::run(state) };
            let keys = Keys { run: Some(samples::at(run)), ..Keys::default() };
            let (mut view, rules) = (samples::view("1+ 2+ 3*"), Rules::default());
            if verb == Verb::Rollback {
                samples::with_release(&mut view, 0, "3.5.30");
            }
            let found = next(&samples::case(&me, &rules, &keys, &view));
            assert_eq!(found, expected, "{verb:?} {:?}", keys.run.as_ref().unwrap().value.state);
        }
    }
}
