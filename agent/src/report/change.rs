//! The words for each kind of change. What it asks of a run is in `plan/change/`.

use super::names::printable;
use crate::keys::{
    Intent,
    change::{Change, Downgrade, Replace, Restart, Scale, Upgrade},
};

/// What people and scripts are told of one.
pub(crate) struct Words {
    /// Of members that have got there: `at 3.5.30`.
    pub at_target: String,
    /// Of a run: `to 3.5.30`.
    pub run: String,
    /// A step's `action` in JSON.
    pub action: &'static str,
    /// The releases that are allowed, in a sentence.
    pub expected: String,
    /// After a member's release, why it is not one step from the target.
    pub skips_minor: String,
    /// Why there is no way back any more.
    pub no_way_back: &'static str,
    /// Why it cannot go on while another downgrade is enabled.
    pub against_downgrade: String,
}

/// A run in a phrase, with the hop that it is of a longer way: `to 3.6.14 (hop 2 of 3)`.
pub(crate) fn run(intent: &Intent) -> String {
    let what = words(Some(&intent.change)).run;
    match &intent.hops {
        Some(hops) => {
            let number = hops.number(&intent.change).unwrap_or_default();
            format!("{what} (hop {number} of {})", hops.changes.len())
        }
        None => what,
    }
}

/// The words; general ones where it is not known what is changed.
pub(crate) fn words(change: Option<&Change>) -> Words {
    match change {
        Some(Change::Upgrade(Upgrade { from, to })) => Words {
            at_target: format!("at {to}"),
            run: format!("to {to}"),
            expected: format!("`{from}` or {to}"),
            skips_minor: format!(
                ": the way to {to} leaves out a minor; name a release of each in between in `hops`, or in `artifacts`"
            ),
            against_downgrade: format!("the way to {to} needs a version that rises"),
            ..general()
        },
        Some(Change::Downgrade(Downgrade { from, to })) => Words {
            at_target: format!("at {to}"),
            run: format!("down to {to}"),
            action: "downgrade",
            expected: format!("`{from}` or {to}"),
            skips_minor: format!(", and {to} is neither of its minor nor one below"),
            no_way_back: "no voter runs the higher release any more: from here the way up is an upgrade",
            against_downgrade: format!("this one leads to {to}"),
        },
        Some(Change::Restart(Restart { id })) => Words {
            at_target: format!("restarted for `{}`", printable(id)),
            run: format!("restart `{}`", printable(id)),
            action: "restart",
            ..general()
        },
        Some(Change::Scale(Scale { members })) => Words {
            at_target: "there, as `members` says".to_owned(),
            run: format!("scaling to {} voters", members.len()),
            action: "scale",
            ..general()
        },
        Some(Change::Replace(Replace { member, by })) => Words {
            at_target: format!("there, {} in the place of {}", printable(by), printable(member)),
            run: format!("replacement of {} by {}", printable(member), printable(by)),
            action: "replace",
            ..general()
        },
        None => general(),
    }
}

fn general() -> Words {
    Words {
        at_target: "at the target".to_owned(),
        run: "another change".to_owned(),
        action: "upgrade",
        expected: "another".to_owned(),
        skips_minor: ": the way leaves out a minor".to_owned(),
        no_way_back: "no voter runs the old release any more, and an old binary would refuse to start",
        against_downgrade: "the way needs a version that rises".to_owned(),
    }
}
