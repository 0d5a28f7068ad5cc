//! Which agents are at work, and what each waits for or does, as people and scripts read it.

use std::{
    fmt::Write as _,
    time::{Duration, SystemTime},
};

use serde_json::{Value, json};

use crate::{
    calendar,
    keys::{Keys, Participant},
    observe::view::ClusterView,
    report::{
        lasted::lasted,
        names::{Names, printable},
        wait::with_until,
    },
};

/// Why a key that goes with its agent may still stand without it.
pub(super) const NO_LEASE_ENDS: &str = "etcd ends no lease under the alarm CORRUPT";

/// A line for each.
pub(super) fn text(keys: &Keys, names: &Names, view: &ClusterView, now: SystemTime) -> String {
    let mut text = String::new();
    for agent in keys.agents.values().map(|at| &at.value) {
        let members: Vec<_> = agent.seats.members().collect();
        let seats = &agent.seats.0;
        let owns = match (members.is_empty(), seats.is_empty()) {
            (false, _) => names.list(&members),
            (true, true) => "a guard".to_owned(),
            // A newcomer has no id yet.
            (true, false) => seats.iter().map(|seat| printable(&seat.name).to_string()).collect::<Vec<_>>().join(", "),
        };
        let host = printable(&agent.host_name);
        let said = waits(agent, now).or_else(|| agent.does.as_deref().map(|does| printable(does).to_string()));
        let doing = match view.keeps_every_lease() {
            true => {
                let said = said.map_or_else(String::new, |said| format!("; it said last: {said}"));
                format!("not known whether it lives, as {NO_LEASE_ENDS}{said}")
            }
            false => said.unwrap_or_else(|| "at work".to_owned()),
        };
        // Writing to a String cannot fail.
        let _ = writeln!(text, "agent: {host} ({owns}): {doing}");
    }
    text
}

/// What it waits for, what ends that, and since when it does.
fn waits(agent: &Participant, now: SystemTime) -> Option<String> {
    let until = agent.waits_until.as_deref().map(printable);
    let waits = with_until(&printable(agent.waits_for.as_deref()?), until.as_deref());
    let since = agent.waits_since.as_deref().map_or_else(String::new, |since| {
        let ago = waited(since, now).map_or_else(String::new, |waited| format!("for {}, ", lasted(waited)));
        format!(" ({ago}since {})", printable(since))
    });
    Some(format!("waits for {waits}{since}"))
}

/// By two clocks, where it began on another host: `None` where that is ahead.
fn waited(since: &str, now: SystemTime) -> Option<Duration> {
    now.duration_since(SystemTime::UNIX_EPOCH + Duration::from_millis(calendar::millis(since)?)).ok()
}

pub fn object(agent: &Participant, names: &Names, may_be_gone: bool) -> Value {
    let members: Vec<_> = agent.seats.members().map(|member| names.short(member)).collect();
    json!({ "host": agent.host_name, "members": members, "waits_for": agent.waits_for, "waits_since": agent.waits_since,
        "waits_until": agent.waits_until, "does": agent.does, "may_be_gone": may_be_gone })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::samples;

    #[test]
    fn a_wait_says_since_when_and_what_ends_it() {
        let view = samples::view("1+ 2+ 3+");
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(130);
        for (since, until, expected) in [
            (
                Some("1970-01-01T00:00:00.000Z"),
                Some("its agent gives it back"),
                "waits for the baton; that ends once its agent gives it back (for 2 min 10 s, since 1970-01-01T00:00:00.000Z)",
            ),
            (
                Some("1970-01-01T00:02:40.000Z"), // that clock is ahead
                None,
                "waits for the baton (since 1970-01-01T00:02:40.000Z)",
            ),
            (Some("\u{1b}[2J"), Some("\u{7}"), "waits for the baton; that ends once \\u{7} (since \\u{1b}[2J)"),
            (None, None, "waits for the baton"), // an older agent
        ] {
            let mut keys = samples::keys(None, true);
            for agent in keys.agents.values_mut().map(|at| &mut at.value) {
                agent.waits_for = Some("the baton".into());
                (agent.waits_since, agent.waits_until) = (since.map(Into::into), until.map(Into::into));
            }
            let text = text(&keys, &Names::default(), &view, now);
            assert!(text.lines().all(|line| line.ends_with(&format!(": {expected}"))), "{text}");
            assert!(!text.is_empty());
        }
    }
}
