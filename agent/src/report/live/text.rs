//! Plain lines: what happens, one line each, and how a command ended.

use super::progress::Progress;
use crate::{
    event::{Decision, RunEvent},
    report::{available, change, names::printable, settling, stop::Stop, wait},
    visible,
};

/// The lines of an end: an error's begin with `error:`, and say exit code and reason.
pub fn end(stop: &Stop) -> String {
    let mut text = match stop.exit {
        0 => format!("{}\n", stop.message),
        _ => format!("error: {}\n", stop.message),
    };
    if !stop.left.is_empty() {
        text.push_str(&format!("left:  {}\n", stop.left));
    }
    if let Some(next) = &stop.next {
        text.push_str(&format!("next:  {next}\n"));
    }
    if stop.exit != 0 {
        text.push_str(&format!("       (exit {}, reason {})\n", stop.exit, stop.reason.name()));
    }
    visible::lines(&text).into_owned()
}

/// One line on what happened; `None` for what is only shown on a display.
pub fn line(event: &RunEvent, progress: &Progress) -> Option<String> {
    let names = progress.names();
    let about = |member, what: &str| Some(format!("{}  {what}", names.short(member)));
    match event {
        RunEvent::Begun { .. } | RunEvent::Looked(_) | RunEvent::Read(_) | RunEvent::Ended { .. } => None,
        RunEvent::Preparing { what } => Some(printable(what).to_string()),
        RunEvent::Joined { run } => Some(format!("takes part in run {:08x}", run.0 >> 96)),
        RunEvent::Decided(decision) => Some(words(*decision).into()),
        RunEvent::Waiting(waited) => Some(format!("waits for {}", wait::sentence(waited, names))),
        RunEvent::BatonTaken => Some("holds the baton".into()),
        RunEvent::BatonGivenBack => Some("gave the baton back".into()),
        RunEvent::BackingUp { percent: 0 } => Some("saves a member's database first".into()),
        RunEvent::BackingUp { percent } => Some(format!("has saved {percent} % of a member's database")),
        RunEvent::BackedUp { member, path } => about(*member, &format!("its database is saved as {}", printable(path))),
        RunEvent::HandedOver { from, to } => about(*from, &format!("passed leadership to {}", names.short(*to))),
        RunEvent::Lowering { to: Some(to) } => Some(format!("a downgrade to {to} is enabled")),
        RunEvent::Lowering { to: None } => Some("no downgrade is enabled any more".into()),
        RunEvent::StepLocked { member, back: false } => about(*member, "is next"),
        RunEvent::StepLocked { member, back: true } => about(*member, "is next to go back"),
        RunEvent::StepTakenOver { member, .. } => about(*member, "is in the middle of its step, which goes on"),
        RunEvent::Stopping { member } => about(*member, "stopping"),
        RunEvent::Stopped { member } => about(*member, "stopped"),
        RunEvent::Switched { member } => about(*member, "switched"),
        RunEvent::Started { member } => about(*member, "started"),
        RunEvent::Ready { member } => about(*member, "ready"),
        RunEvent::StepUnlocked { member } => about(*member, "its turn is over"),
        RunEvent::Failed { member, why } => about(*member, &format!("failed: {}", printable(why))),
        RunEvent::PuttingBack { member } => about(*member, "is put back on its old binary"),
        RunEvent::LettingPollsEnd { member, seconds } => about(
            *member,
            &format!(
                "stays down for {seconds} s, until every version poll that its new binary may have answered is over"
            ),
        ),
        RunEvent::KeptNew { member } => {
            about(*member, "is kept on its new binary: nothing shows that the way back is open")
        }
        RunEvent::Mended { member } => about(*member, "was down, and was started"),
        RunEvent::NodeStarted { node } => Some(format!("{}  was down, and was started", printable(node))),
        RunEvent::HookRan { member, hook } => about(*member, &format!("hook {} ran", printable(hook))),
        RunEvent::ProbeFailed { member, why } => about(*member, &format!("is not ready yet: {}", printable(why))),
        RunEvent::HookFailed { member, hook, why } => {
            about(*member, &format!("hook {} failed: {}", printable(hook), printable(why)))
        }
        RunEvent::DataPutAside { node, path } => {
            Some(format!("put the data of {} aside, to {}", printable(node), printable(path)))
        }
        RunEvent::NewcomerAdded { node } => Some(format!("{} is added as a learner", printable(node))),
        RunEvent::Promoted { member } => about(*member, "votes"),
        RunEvent::Removed { member } => about(*member, "is removed"),
        RunEvent::CommandBegun { command, .. } => Some(format!("runs {}", printable(command))),
        RunEvent::CommandEnded { command, failed: None, .. } => Some(format!("{} has ended", printable(command))),
        RunEvent::CommandEnded { command, failed: Some(how), .. } => {
            Some(format!("{} has failed: {}", printable(command), printable(how)))
        }
        RunEvent::CommandAwaited { pid, .. } => Some(format!(
            "waits for the end of the command that an earlier guard began (pid {pid}): `kill {pid}` ends it; of two signals the second ends this agent"
        )),
        RunEvent::HostAwaited { .. } => {
            Some("this host is about to go down; the lock stands until it is back and its members are ready".into())
        }
        RunEvent::Settling => {
            Some("every member is at its target; waits for versions, gates and hashes to agree".into())
        }
        RunEvent::Unsettled(missing) => Some(format!("not settled yet: {}", settling::words(missing, names))),
        RunEvent::GatesSettled => {
            let gates = progress.gates().map_or_else(String::new, |gates| format!(": {}", gates.words()));
            Some(format!("gates agree on every member{gates}"))
        }
        RunEvent::Hop { number, of, change } => {
            Some(format!("hop {number} of {of}, {}", change::words(Some(change)).run))
        }
        RunEvent::Canary(found) => Some(available::words(found)),
        RunEvent::Settled { hashes: true } => Some("versions, gates and hashes agree".into()),
        RunEvent::Settled { hashes: false } => Some("versions and gates agree; hashes were not compared".into()),
        RunEvent::Warning(text) | RunEvent::Warned { why: text, .. } => Some(format!("warning: {}", printable(text))),
    }
}

fn words(decision: Decision) -> &'static str {
    match decision {
        Decision::Replaced => "the run that stood is replaced",
        Decision::Approved => "the last member may go",
        Decision::TurnedBack => "the run goes back",
        Decision::Resumed => "the mark of the failed step is lifted",
        Decision::Unpaused => "the pause of the run is lifted",
        Decision::Accepted => "the members are taken as others have changed them",
    }
}
