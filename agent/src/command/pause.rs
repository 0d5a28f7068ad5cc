//! `agent pause`: no step of the run that stands begins until `agent resume`, which lifts that first. A step in hand goes on to its end.

use std::{sync::Arc, time::SystemTime};

use super::{
    Outcome,
    abandon::{PATIENCE, send},
    look::Prober,
};
use crate::{
    calendar::rfc3339,
    cli,
    event::trouble::Trouble,
    execute::identity::host_name,
    journal::restart::Direction,
    keys::{At, Keys, Pause, Run, RunState, txn::Txn},
    playbook::Playbook,
    report::{
        file::json::Facts,
        names::{Names, printable},
        stop::{Reason, Stop},
        wait,
    },
};

/// Pauses the run, whichever playbook it is of; one that is paused stays as it is.
///
/// # Errors
/// Nobody answers, or the keys cannot be read or written.
pub(super) async fn pause(typed: &cli::Pause) -> Result<Outcome, Trouble> {
    let playbook = Playbook::load(&typed.playbook)?;
    let prober = Prober::open(&playbook.cluster)?;
    let mut snapshot = prober.look().await?;
    let mut keys = snapshot.keys()?;
    let pause = Arc::new(Pause {
        by: host_name(),
        at: rfc3339(SystemTime::now()).into(),
        why: typed.why.as_deref().map(Arc::from),
    });
    let deadline = tokio::time::Instant::now() + PATIENCE;
    loop {
        let Some(run) = standing(&keys) else { return Ok(nothing()) };
        if let Some(pause) = &run.value.pause {
            let message = format!("the run was paused before: {}", wait::paused(pause));
            return Ok(told(typed, (message, false), &keys, &snapshot.names));
        }
        match send(&prober.store, &Txn::pause(run, Some(pause.clone()))).await? {
            Ok(_) => {
                let message = "the run is paused: no step of it begins until `agent resume`".to_owned();
                return Ok(told(typed, (message, true), &keys, &snapshot.names));
            }
            // A step has ended meanwhile, or another has begun.
            Err(changed) => keys = changed,
        }
        if tokio::time::Instant::now() > deadline {
            return Err(all_the_time());
        }
    }
}

/// Lifts the pause of the run, if it has one; agents that wait go on, one on this host, too. Says which way that run goes.
///
/// # Errors
/// As of [`pause`].
pub(super) async fn lift(playbook: &Playbook) -> Result<Option<Direction>, Trouble> {
    let prober = Prober::open(&playbook.cluster)?;
    let mut keys = prober.look().await?.keys()?;
    let deadline = tokio::time::Instant::now() + PATIENCE;
    loop {
        let Some(run) = standing(&keys).filter(|run| run.value.pause.is_some()) else { return Ok(None) };
        match send(&prober.store, &Txn::pause(run, None)).await? {
            Ok(_) if run.value.is_going_back() => return Ok(Some(Direction::Back)),
            Ok(_) => return Ok(Some(Direction::Forward)),
            Err(changed) => keys = changed,
        }
        if tokio::time::Instant::now() > deadline {
            return Err(all_the_time());
        }
    }
}

/// Whether a run stands that neither a pause nor a failed step holds.
///
/// # Errors
/// As of [`pause`].
pub(super) async fn is_going_on(playbook: &Playbook) -> Result<bool, Trouble> {
    let keys = Prober::open(&playbook.cluster)?.look().await?.keys()?;
    let is_held = |run: &Run| run.pause.is_some() || matches!(run.state, RunState::Failed { .. });
    Ok(standing(&keys).is_some_and(|run| !is_held(&run.value)))
}

fn all_the_time() -> Trouble {
    Trouble::NoAnswer("somebody else writes the run all the time".into())
}

fn standing(keys: &Keys) -> Option<&At<Run>> {
    keys.run.as_ref().filter(|run| !run.value.is_over())
}

fn nothing() -> Outcome {
    let reason = Reason::NothingToPause;
    let message = "no run stands that could be paused".to_owned();
    let stop =
        Stop { exit: reason.exit().code(false), reason, message, left: String::new(), next: None, cluster: None };
    Outcome { stop, facts: Facts::default(), text: String::new() }
}

fn told(typed: &cli::Pause, (message, changed): (String, bool), keys: &Keys, names: &Names) -> Outcome {
    let in_hand = keys.step.as_ref().map(|step| &step.value);
    let in_hand = in_hand.map(|step| {
        format!(
            "{}, which is in its step by {}, comes to its end",
            names.member(step.member),
            printable(&step.host_name)
        )
    });
    let stop = Stop::well(Reason::RunPaused, message, "resume", &typed.playbook);
    let stop = Stop { left: in_hand.unwrap_or_default(), ..stop };
    let facts = Facts { changed, run: standing(keys).map(|run| run.value.id), ..Facts::default() };
    Outcome { text: crate::report::live::text::end(&stop), stop, facts }
}
