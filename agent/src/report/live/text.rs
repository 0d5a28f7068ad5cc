//! Plain lines: what happens, one line each, and how a command ended.

use super::board::Board;
use crate::{
    event::{Decision, Happening},
    report::{names::printable, settling, stop::Stop, wait},
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
pub fn line(happening: &Happening, board: &Board) -> Option<String> {
    let names = board.names();
    let about = |member, what: &str| Some(format!("{}  {what}", names.short(member)));
    match happening {
        Happening::Begun { .. } | Happening::Looked(_) | Happening::Read(_) | Happening::Ended { .. } => None,
        Happening::Preparing { what } => Some(printable(what).to_string()),
        Happening::Joined { run } => Some(format!("takes part in run {:08x}", run.0 >> 96)),
        Happening::Decided(decision) => Some(words(*decision).into()),
        Happening::Waiting(waited) => Some(format!("waits for {}", wait::words(waited, names))),
        Happening::BatonTaken => Some("holds the baton".into()),
        Happening::BatonGivenBack => Some("gave the baton back".into()),
        Happening::HandedOver { from, to } => about(*from, &format!("passed leadership to {}", names.short(*to))),
        Happening::Lowering { to: Some(to) } => Some(format!("a downgrade to {to} is enabled")),
        Happening::Lowering { to: None } => Some("no downgrade is enabled any more".into()),
        Happening::RecordPut { member, back: false } => about(*member, "is next"),
        Happening::RecordPut { member, back: true } => about(*member, "is next to go back"),
        Happening::Stopping { member } => about(*member, "stopping"),
        Happening::Stopped { member } => about(*member, "stopped"),
        Happening::Switched { member } => about(*member, "switched"),
        Happening::Started { member } => about(*member, "started"),
        Happening::Ready { member } => about(*member, "ready"),
        Happening::RecordDeleted { member } => about(*member, "its turn is over"),
        Happening::Failed { member, why } => about(*member, &format!("failed: {}", printable(why))),
        Happening::PuttingBack { member } => about(*member, "is put back on its old binary"),
        Happening::LettingPollsEnd { member, seconds } => about(
            *member,
            &format!(
                "stays down for {seconds} s, until every version poll that its new binary may have answered is over"
            ),
        ),
        Happening::KeptNew { member } => about(*member, "is kept on its new binary: the way back is closed"),
        Happening::Mended { member } => about(*member, "was down, and was started"),
        Happening::NodeStarted { node } => Some(format!("{}  was down, and was started", printable(node))),
        Happening::HookRan { member, hook } => about(*member, &format!("hook {} ran", printable(hook))),
        Happening::HookFailed { member, hook, why } => {
            about(*member, &format!("hook {} failed: {}", printable(hook), printable(why)))
        }
        Happening::Settling => {
            Some("every member is at its target; waits for versions, gates and hashes to agree".into())
        }
        Happening::Unsettled(missing) => Some(format!("not settled yet: {}", settling::words(missing, names))),
        Happening::GatesSettled => {
            let gates = board.gates().map_or_else(String::new, |gates| format!(": {}", gates.words()));
            Some(format!("gates agree on every member{gates}"))
        }
        Happening::Settled { hashes: true } => Some("versions, gates and hashes agree".into()),
        Happening::Settled { hashes: false } => Some("versions and gates agree; hashes were not compared".into()),
        Happening::Warning(text) => Some(format!("warning: {}", printable(text))),
    }
}

fn words(decision: Decision) -> &'static str {
    match decision {
        Decision::Replaced => "the run that stood is replaced",
        Decision::Approved => "the last member may go",
        Decision::TurnedBack => "the run goes back",
        Decision::Resumed => "the mark of the failed step is lifted",
    }
}
