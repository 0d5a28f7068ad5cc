//! When a run that waits for another may begin (Q-18, L-16). Pure: `command/turn.rs` reads the keys and the clock.

use std::time::{Duration, Instant};

use proto::Revision;

use crate::keys::{Keys, RunId, host_id::HostId};

/// What a look says to a run that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// It looks again.
    Waits,
    /// It plans anew.
    Comes,
    /// Nobody ends the run that stands.
    Never,
}

/// What was seen of the run that stands in the way.
#[derive(Debug)]
pub struct Waiting {
    first: Option<RunId>,
    last_write: Option<Revision>,
    /// When something new of it was seen.
    since: Instant,
    is_over: bool,
}

impl Waiting {
    pub fn since(now: Instant) -> Self {
        Self { first: None, last_write: None, since: now, is_over: false }
    }

    /// After a look of the agent on `host`; no keys where they cannot be read now. A run counts as given up when no agent of another
    /// host is registered, or nothing has been written of it for as long as `stall`.
    pub fn look(&mut self, keys: Option<&Keys>, host: HostId, now: Instant, stall: Duration) -> Turn {
        if let Some(keys) = keys {
            let stands = keys.run.as_ref().filter(|run| !run.value.is_over());
            self.is_over = stands.is_none();
            if let Some(run) = stands {
                if *self.first.get_or_insert(run.value.id) != run.value.id {
                    return Turn::Comes;
                }
                if self.last_write.replace(run.modified) != Some(run.modified) {
                    self.since = now;
                }
            }
            // An agent of that run may not have read yet that it is over, and would take the next one for another's.
            if !keys.agents.keys().any(|other| *other != host) {
                return self.end();
            }
        }
        if now.duration_since(self.since) >= stall { self.end() } else { Turn::Waits }
    }

    fn end(&self) -> Turn {
        if self.is_over { Turn::Comes } else { Turn::Never }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        keys::{At, Run, RunResult, RunState},
        plan::samples,
    };

    const STALL: Duration = Duration::from_secs(10);
    const ME: u64 = 9;

    /// A look: the run's id and the revision that wrote it last, whether it is over, and the hosts with an agent.
    type Look = (u128, i64, bool, &'static [u64]);

    /// So many seconds after the first; nothing where the cluster does not answer.
    type Looked = (u64, Option<Look>);

    fn keys((id, modified, is_over, agents): Look) -> Keys {
        let state = if is_over { RunState::Done { result: RunResult::Reached } } else { RunState::Rolling };
        let run = At { modified: Revision(modified), ..samples::at(Run { id: RunId(id), ..samples::run(state) }) };
        let agents =
            agents.iter().map(|host| (samples::host(*host), samples::at(samples::participant(*host)))).collect();
        Keys { run: Some(run), agents, ..Keys::default() }
    }

    /// What the looks say, one after the other.
    fn turns(looks: &[Looked]) -> Vec<Turn> {
        let began = Instant::now();
        let mut waiting = Waiting::since(began);
        looks
            .iter()
            .map(|(at, look)| {
                waiting.look(look.map(keys).as_ref(), samples::host(ME), began + Duration::from_secs(*at), STALL)
            })
            .collect()
    }

    #[test]
    fn a_turn_comes_once_the_other_run_is_over_and_its_agents_are_gone() {
        use Turn::{Comes, Never, Waits};
        let cases: [(&str, &[Looked], &[Turn]); 10] = [
            ("it goes on, and ends", &[(0, Some((1, 5, false, &[1]))), (1, Some((1, 6, true, &[])))], &[Waits, Comes]),
            (
                "one of its agents has not read that it is over",
                &[(0, Some((1, 5, false, &[1, 2]))), (1, Some((1, 6, true, &[2]))), (2, Some((1, 6, true, &[])))],
                &[Waits, Waits, Comes],
            ),
            (
                "its agents are gone before its end",
                &[(0, Some((1, 5, false, &[1]))), (1, Some((1, 5, false, &[])))],
                &[Waits, Never],
            ),
            ("the agent of this host alone is there", &[(0, Some((1, 5, false, &[9])))], &[Never]),
            (
                "nothing is written of it",
                &[(0, Some((1, 5, false, &[1]))), (9, Some((1, 5, false, &[1]))), (10, Some((1, 5, false, &[1])))],
                &[Waits, Waits, Never],
            ),
            (
                "a write begins the time anew",
                &[(0, Some((1, 5, false, &[1]))), (9, Some((1, 6, false, &[1]))), (18, Some((1, 6, false, &[1])))],
                &[Waits, Waits, Waits],
            ),
            (
                "another run follows it",
                &[(0, Some((1, 5, false, &[1]))), (1, Some((2, 7, false, &[1])))],
                &[Waits, Comes],
            ),
            (
                "it is over, and an agent stays for ever",
                &[(0, Some((1, 5, false, &[1]))), (5, Some((1, 6, true, &[1]))), (10, Some((1, 6, true, &[1])))],
                &[Waits, Waits, Comes],
            ),
            (
                "the cluster does not answer for a while",
                &[(0, Some((1, 5, false, &[1]))), (1, None), (2, Some((1, 6, true, &[])))],
                &[Waits, Waits, Comes],
            ),
            ("the cluster does not answer any more", &[(0, Some((1, 5, false, &[1]))), (10, None)], &[Waits, Never]),
        ];
        for (what, looks, expected) in cases {
            assert_eq!(turns(looks), expected, "{what}");
        }
    }
}
