//! What lies below `/baton/`, key by key: what it means, who wrote it, and whether it may go.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::status::{state, step_lock};
use crate::{
    keys::{Keys, PREFIX},
    report::names::{Names, printable},
    store::{
        inventory::{Is, Item},
        reading::MOST_BYTES,
    },
};

pub fn word(is: &Is) -> &'static str {
    match is {
        Is::Leased(_) => "alive",
        Is::Current(_) => "standing",
        Is::History(_) => "history",
        Is::Stale => "stale",
        Is::Damaged(_) => "damaged",
        Is::TooLarge => "too_large",
        Is::Newer => "newer",
        Is::Foreign => "foreign",
    }
}

pub fn meaning(item: &Item, names: &Names) -> String {
    match &item.is {
        Is::Leased(keys) | Is::Current(keys) => what_stands(keys, names),
        Is::History(run) => format!("the last run: {}", state(&run.state, names)),
        Is::Stale => {
            "an agent's or the baton, but without a lease: nobody keeps it alive, and nothing would ever take it \
                      away; `agent run` or `agent keys --clear` deletes it"
                .to_owned()
        }
        Is::Damaged(why) => format!(
            "no agent wrote it so ({}); what it stood for is not known: see that no member is down, then \
             `etcdctl del {PREFIX}{}`",
            printable(why),
            printable(&item.raw.key)
        ),
        Is::TooLarge => format!(
            "no agent writes more than {MOST_BYTES} bytes; see that no member is down, then `etcdctl del {PREFIX}{}`",
            printable(&item.raw.key)
        ),
        Is::Newer => "written by a newer agent, which reads it".to_owned(),
        Is::Foreign => "none of Baton's: its value is not read, and stands in nobody's way".to_owned(),
    }
}

fn what_stands(keys: &Keys, names: &Names) -> String {
    if let Some(run) = &keys.run {
        return format!("the run: {}", state(&run.value.state, names));
    }
    if keys.baton.is_some() {
        return "the baton: who has it may act".to_owned();
    }
    if let Some(down) = &keys.step {
        return format!("the lock of a step: {}", step_lock(&down.value, names));
    }
    if let Some(lost) = keys.abandoned.values().next() {
        return format!("a step that was given up: {}", step_lock(&lost.value, names));
    }
    if let Some(host) = keys.hosts.values().next() {
        return format!("a host: {}", super::hosts::line(&host.value, names));
    }
    let seats = keys.agents.values().next().map(|agent| agent.value.seats.members().collect::<Vec<_>>());
    match seats.as_deref() {
        Some([]) => "a guard at work, or one that waits for its turn".to_owned(),
        seats => format!("an agent at work, of {}", names.list(seats.unwrap_or_default())),
    }
}

pub fn text(item: &Item, names: &Names) -> String {
    let mut text = format!("{PREFIX}{}: {}\n    {}\n", printable(&item.raw.key), word(&item.is), meaning(item, names));
    let mut facts = Vec::new();
    if let Some(by) = &item.by {
        let process = by.process.map(|process| format!(", pid {} of boot {:032x}", process.pid, process.boot_id));
        facts.push(format!("by {}{}", printable(&by.host_name), process.unwrap_or_default()));
    }
    match &item.lease {
        Some((id, Some(left))) => {
            let (left, granted) = (left.left.as_secs(), left.granted.as_secs());
            facts.push(format!("lease {:x}, {left} of {granted} s left", id.0));
        }
        Some((id, None)) => facts.push(format!("lease {:x}, which is not known to have time left", id.0)),
        None => facts.push("no lease".to_owned()),
    }
    facts.extend(item.bytes.map(|bytes| format!("{bytes} bytes")));
    facts.push(format!("created at revision {}, written at {}", item.raw.created.0, item.raw.modified.0));
    // Writing to a String cannot fail.
    let _ = writeln!(text, "    {}", facts.join("; "));
    text
}

pub fn object(item: &Item, names: &Names) -> Value {
    let lease = item.lease.as_ref().map(|(id, left)| {
        json!({ "id": format!("{:x}", id.0), "left_in_s": left.map(|left| left.left.as_secs()),
            "granted_s": left.map(|left| left.granted.as_secs()) })
    });
    let by = item.by.as_ref().map(|by| json!({ "host": by.host_name, "process": by.process }));
    json!({ "key": format!("{PREFIX}{}", item.raw.key), "is": word(&item.is), "meaning": meaning(item, names), "by": by,
        "lease": lease, "bytes": item.bytes, "created": item.raw.created.0, "modified": item.raw.modified.0 })
}
