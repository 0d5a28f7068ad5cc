//! Hosts that are held, as people and scripts read them.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::{
    keys::{
        Keys,
        host_record::{Hold, HostRecord, Phase},
    },
    observe::view::ClusterView,
    plan::protection,
    report::names::{Names, printable},
};

/// A host, with the members that it carries.
pub fn name(record: &HostRecord, names: &Names) -> String {
    match record.members.is_empty() {
        true => printable(&record.host_name).to_string(),
        false => format!("{} ({})", printable(&record.host_name), names.list(&record.members)),
    }
}

pub fn hold(hold: &Hold) -> String {
    format!("the hold {} of {}", printable(&hold.name), printable(&hold.owner))
}

/// How many voters are held.
pub fn held(keys: &Keys, view: &ClusterView) -> String {
    let is_held = |id| protection::host_of(keys, id).is_some_and(|(_, at)| at.value.is_held());
    let (count, held) = (view.voters().count(), view.voters().filter(|voter| is_held(voter.id)).count());
    format!("{held} of {count} voters are on hosts that are held")
}

/// One host on a line.
pub fn line(record: &HostRecord, names: &Names) -> String {
    let mut parts = vec![match record.phase {
        Phase::Joining => "joins".to_owned(),
        Phase::Running if record.is_held() => "held".to_owned(),
        Phase::Running => "not held".to_owned(),
        Phase::Left => "has left".to_owned(),
    }];
    parts.extend(record.mark.as_ref().map(|mark| format!("marked to go by {}{}", printable(&mark.by), why(&mark.why))));
    let others = record.holds.iter().filter(|hold| !hold.is_own());
    parts.extend(others.map(|other| format!("{}{}", hold(other), why(&other.why))));
    format!("{}: {}", name(record, names), parts.join("; "))
}

fn why(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!(" ({})", printable(text)) }
}

/// All of them, and whether they are held at all.
pub fn text(keys: &Keys, names: &Names, view: &ClusterView) -> String {
    let mut text = match protection::is_on(keys) {
        false => "hosts: none is held: `agent adopt` on each holds them\n".to_owned(),
        true => {
            let ready = view.voters().filter(|voter| voter.is_ready()).count();
            let budget = protection::budget(keys, view.voters().count(), ready);
            format!("hosts: {}; {budget} may be down by intent now\n", held(keys, view))
        }
    };
    for at in keys.hosts.values() {
        let _ = writeln!(text, "host: {}", line(&at.value, names));
    }
    text
}

pub fn object(keys: &Keys, names: &Names, view: &ClusterView) -> Value {
    let ready = view.voters().filter(|voter| voter.is_ready()).count();
    let host = |(id, at): (&crate::keys::host_id::HostId, &crate::keys::At<HostRecord>)| {
        let HostRecord { host_name, phase, members, mark, holds, .. } = &at.value;
        let members: Vec<_> = members.iter().map(|id| json!({ "id": id, "name": names.short(*id) })).collect();
        json!({ "id": id, "host": host_name, "phase": phase, "members": members, "mark": mark, "holds": holds })
    };
    json!({ "on": protection::is_on(keys), "hosts": keys.hosts.iter().map(host).collect::<Vec<_>>(),
        "budget": protection::budget(keys, view.voters().count(), ready) })
}
