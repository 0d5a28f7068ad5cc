//! Each event in words, for evidence and journal. An event that is not known here is told by its fields.

use super::record::Said;
use crate::report::{available, wait::with_until};

/// What happened, without the member that it happened to.
pub(super) fn words(said: &Said) -> String {
    let why = said.why.as_deref().unwrap_or("no reason is given");
    let to = said.to.as_deref();
    let waiting_for = said.waiting_for.as_deref().unwrap_or("something");
    let hook = said.hook.as_deref().unwrap_or("of no name");
    let command = said.command.as_deref().unwrap_or("the command");
    match said.event.as_str() {
        "begun" => format!("the agent begins{}", change(said)),
        "hop" => format!("a hop of a longer way begins{}", change(said)),
        "preparing" => waiting_for.to_owned(),
        "joined" => "takes part in the run".to_owned(),
        "run_replaced" => "the run that stood is replaced".to_owned(),
        "run_approved" => "the last member may go".to_owned(),
        "run_turned_back" => "the run goes back".to_owned(),
        "run_resumed" => "the mark of the failed step is lifted".to_owned(),
        "members_accepted" => "the members are taken as others have changed them".to_owned(),
        "waiting" => format!("waits for {}", with_until(waiting_for, said.until.as_deref())),
        "backing_up" => format!("has saved {} % of a member's database", said.percent.unwrap_or_default()),
        "backed_up" => format!("its database is saved as {}", to.unwrap_or("a file")),
        "run_unpaused" => "the pause of the run is lifted".to_owned(),
        "baton_taken" => "holds the baton".to_owned(),
        "baton_given_back" => "gave the baton back".to_owned(),
        "handed_over" => format!("passed leadership to {}", to.unwrap_or("another member")),
        "downgrade_enabled" => format!("a downgrade to {} is enabled", to.unwrap_or("another version")),
        "downgrade_cancelled" => "no downgrade is enabled any more".to_owned(),
        "step_locked" if said.back => "the step lock stands: it is next to go back".to_owned(),
        "step_locked" => "the step lock stands".to_owned(),
        "step_taken_over" => "a step that an earlier agent left goes on".to_owned(),
        "member_stopping" => "is being stopped".to_owned(),
        "member_stopped" => "stopped".to_owned(),
        "member_switched" => "its binary or files are switched".to_owned(),
        "member_started" => "started".to_owned(),
        "member_ready" => "ready, and was for the soak time".to_owned(),
        "step_unlocked" => "the step lock is gone".to_owned(),
        "member_failed" => format!("failed: {why}"),
        "member_putting_back" => "is put back on its old binary".to_owned(),
        "polls_awaited" => {
            format!("stays down for {} s, until every version poll is over", said.seconds.unwrap_or_default())
        }
        "member_kept_new" => "is kept on its new binary: nothing shows that the way back is open".to_owned(),
        "member_mended" | "node_started" => "was down, and was started".to_owned(),
        "probe_failed" => format!("is not ready yet: {why}"),
        "hook_ran" => format!("hook {hook} ran"),
        "hook_failed" => format!("hook {hook} failed: {why}"),
        "data_put_aside" => format!("its data was put aside, to {}", to.unwrap_or("another folder")),
        "newcomer_added" => "is added as a learner".to_owned(),
        "member_promoted" => "votes".to_owned(),
        "member_removed" => "is removed".to_owned(),
        "command_begun" => format!("runs {command}"),
        "command_ended" if said.why.is_some() => format!("{command} has failed: {why}"),
        "command_ended" => format!("{command} has ended"),
        "command_awaited" => "waits for the end of the command that an earlier guard began".to_owned(),
        "host_awaited" => "the host is about to go down".to_owned(),
        "settling" => "every member is at its target; versions, gates and hashes are awaited".to_owned(),
        "unsettled" => format!("not settled yet: {waiting_for}"),
        "gates_settled" => {
            let gates = said.gates.as_ref().map_or_else(String::new, |gates| format!(": {}", gates.words()));
            format!("gates agree on every member{gates}")
        }
        "settled" => match said.hashes {
            Some(true) => "versions, gates and hashes agree".to_owned(),
            Some(false) => "versions and gates agree; hashes were not compared".to_owned(),
            None => "versions and gates agree".to_owned(),
        },
        "canary" => said.canary.as_ref().map_or_else(|| fields(said), available::words),
        "seen" => seen(said),
        "warning" => format!("warning: {why}"),
        "ended" => end(said),
        _ => fields(said),
    }
}

/// `: upgrade from 3.5 to 3.6.0`
pub(super) fn change(said: &Said) -> String {
    let kind = said.kind.as_ref().map_or_else(String::new, |kind| format!(": {kind}"));
    let word = |word: &str, release: &Option<String>| {
        release.as_ref().map_or_else(String::new, |release| format!(" {word} {release}"))
    };
    format!("{kind}{}{}", word("from", &said.from), word("to", &said.to))
}

/// How a process has ended, with what it left and what to type next.
pub(super) fn end(said: &Said) -> String {
    let reason = said.reason.as_deref().unwrap_or("no reason");
    let exit = said.exit.map_or_else(|| "an exit code that is not told".to_owned(), |exit| format!("exit {exit}"));
    match &said.message {
        Some(message) => format!("{message} ({exit}, reason {reason})"),
        None => format!("ended with {exit}, reason {reason}"),
    }
}

fn seen(said: &Said) -> String {
    let members = said.members.iter().map(|member| {
        let release = member.release.as_deref().unwrap_or("no release");
        format!("{} {} {} {release}", member.name, member.role, member.state)
    });
    let members: Vec<_> = members.collect();
    match members.is_empty() {
        true => "a look shows no member".to_owned(),
        false => format!("a look shows {}", members.join("; ")),
    }
}

fn fields(said: &Said) -> String {
    let texts = [("from", &said.from), ("to", &said.to), ("why", &said.why), ("waiting_for", &said.waiting_for)];
    let known = texts.into_iter().filter_map(|(name, value)| Some(format!("{name}={}", value.as_ref()?)));
    let unknown = said.more.iter().map(|(name, value)| super::record::shown(&format!("{name}={value}")));
    let fields: Vec<_> = known.chain(unknown).collect();
    format!("{} {}", said.event, fields.join(" ")).trim_end().to_owned()
}
