//! What is waited for, and what ends that, in words.

use proto::MemberId;

use super::names::{Names, printable};
use crate::{keys::Pause, observe::activity::Activity, plan::refusal::Wait};

/// What an agent waits for: the rest of a sentence that begins with "waiting for".
pub fn words(wait: &Wait, names: &Names) -> String {
    match wait {
        Wait::Answer => "the cluster to answer".to_owned(),
        Wait::Record { member, host } => format!("{} to come back ({})", names.short(*member), names.host(*host)),
        Wait::Baton { host } => format!("the baton, which {} holds", names.host(*host)),
        Wait::OthersToJoin => "other hosts to take part".to_owned(),
        Wait::Others { members } => format!("{} to go first", names.list(members)),
        Wait::Lowering { member, target } => {
            format!("the cluster version to be lowered to {target}, of which {} says nothing yet", names.short(*member))
        }
        Wait::Storage { member, target } => format!("the data of {} to be fit for {target}", names.short(*member)),
        Wait::Activity { member, activity } => {
            let what = match activity {
                Activity::Defragmentation => "its defragmentation",
                Activity::Compaction => "its compaction",
                Activity::Snapshot => "sending or taking in a snapshot",
            };
            format!("{} to end {what}", names.short(*member))
        }
        Wait::Ready { member } => format!("{} to be ready", names.short(*member)),
        Wait::CatchUp { member, silence, behind } => {
            let silent =
                silence.as_ref().map_or_else(String::new, |why| format!("; it does not answer: {}", printable(why)));
            let lacks = if *behind == 0 { String::new() } else { format!(", of which it lacks some {behind} entries") };
            format!("{} to take in what the others have{lacks}{silent}", names.short(*member))
        }
        Wait::Seats { seats } => {
            let seats: Vec<_> = seats.iter().map(|seat| printable(seat).to_string()).collect();
            format!("{}, which {} to come or to go", seats.join(", "), if seats.len() == 1 { "is" } else { "are" })
        }
        Wait::Allowed { member, why } if *member == MemberId::default() => {
            format!("the cluster to take a newcomer; it says: {}", printable(why))
        }
        Wait::Allowed { member, why } => {
            format!("the cluster to allow the change of {}; it says: {}", names.short(*member), printable(why))
        }
        Wait::HeldHost { member, host_name, hold, owner } => format!(
            "the hold {} of {} on {}, which keeps {} from being removed",
            printable(hold),
            printable(owner),
            printable(host_name),
            names.short(*member)
        ),
        Wait::OtherRun { begun_by } => {
            let begun = begun_by.as_ref().map_or_else(String::new, |host| format!(", begun on {}", printable(host)));
            format!("another run to end{begun}: the two take turns")
        }
        Wait::Rewritten { host_name } => format!(
            "somebody to leave the record of {} alone: what is written there is taken back again and again",
            printable(host_name)
        ),
        Wait::Paused { pause } => format!("the run to be resumed: {}", paused(pause)),
        Wait::Window { opens } => format!("its window, which opens {opens}"),
        Wait::FailedOwner { member } => {
            format!("{} to try its failed step again", names.place(*member))
        }
        Wait::AbandonedStep { member } => {
            format!("{}, whose step was abandoned", names.place(*member))
        }
        Wait::UnderAlarm { kind, of, alone, wait } => {
            let (kind, of) = (printable(kind), names.short(*of));
            let alone =
                alone.map_or_else(String::new, |alone| format!(", which {} alone reports,", names.short(alone)));
            format!("the alarm {kind} of {of}{alone} to be disarmed, and then for {}", words(wait, names))
        }
    }
}

/// What ends it: the rest of a sentence that goes on with "that ends once". `None` where its own words say it.
pub fn until(wait: &Wait) -> Option<String> {
    let until = match wait {
        Wait::Paused { .. } | Wait::Window { .. } => return None,
        Wait::Answer => "a majority of its members runs and answers",
        Wait::Record { .. } => "the agent there ends its step, or `agent run` there goes on with it",
        Wait::Baton { .. } => "its agent gives it back, or is gone for 30 s",
        Wait::OthersToJoin => "`agent run` is typed there, or `strategy.join_window` is over",
        Wait::Others { .. } => "their agents have taken them",
        Wait::Lowering { .. } => "the members have done so by themselves",
        Wait::Storage { .. } => "that member has done so by itself",
        Wait::Activity { .. } => "its `/metrics` show so",
        Wait::Ready { .. } => "it answers and is healthy; `agent status` shows what it lacks",
        Wait::CatchUp { .. } => "it has copied that",
        Wait::Seats { .. } => "their agents have done it",
        Wait::Allowed { .. } => "it agrees; it is asked again and again",
        Wait::HeldHost { .. } => "its owner types `agent hold remove`",
        Wait::OtherRun { .. } => "the agents of that run have ended it",
        Wait::Rewritten { .. } => "whoever writes there stops",
        Wait::FailedOwner { .. } => "its agent does, or `agent run` is typed there",
        Wait::AbandonedStep { .. } => "its host is back, it is replaced, or `agent abandon --host-is-fenced` is typed",
        Wait::UnderAlarm { .. } => "`etcdctl alarm disarm` is typed, after its cause is gone",
    };
    Some(until.to_owned())
}

/// Both: the rest of a sentence that begins with "waits for".
pub fn sentence(wait: &Wait, names: &Names) -> String {
    with_until(&words(wait, names), until(wait).as_deref())
}

pub fn with_until(words: &str, until: Option<&str>) -> String {
    until.map_or_else(|| words.to_owned(), |until| format!("{words}; that ends once {until}"))
}

/// Since when a run is paused, by whom, why, and what ends it.
pub fn paused(pause: &Pause) -> String {
    let why = pause.why.as_ref().map_or_else(String::new, |why| format!(" ({})", printable(why)));
    format!("paused on {} at {}{why}; `agent resume` goes on", printable(&pause.by), printable(&pause.at))
}
