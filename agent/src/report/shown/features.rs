//! The cluster's features, each with why it is on or off: a table for people, lines of what has changed, and an object.

use std::collections::BTreeMap;

use proto::{ClusterVersion, MemberId};
use serde::Serialize;

use super::{
    cluster::{cluster_version, name},
    status::table,
};
use crate::{
    observe::view::{Answer, ClusterView, Role},
    plan::feature_state::{FeatureState, Why, feature_states},
    report::names::{Names, printable},
};

/// One feature, as `agent gates` shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FeatureRow {
    pub name: String,
    /// Whether it is on; none where the members differ.
    pub enabled: Option<bool>,
    /// `wanted`, `locked`, `version_too_low`, `undecided`, `kept_off`, `changing`, `differing`
    pub reason: &'static str,
    /// The same in words.
    pub why: String,
    /// The voters whose proposal does not want it.
    pub false_on: Vec<String>,
    /// The voters whose proposal does not name it.
    pub missing_from: Vec<String>,
    /// The voters that have proposed nothing yet.
    pub waiting_for: Vec<String>,
    /// The cluster version that it needs, where that is above the one there is.
    pub needs: Option<ClusterVersion>,
    /// What each member wants, learners too; whoever is left out has not said.
    pub proposals: BTreeMap<String, bool>,
    #[serde(skip)]
    proposed: String,
}

/// Every feature that a member names; `None` where no member has gates.
pub fn features(view: &ClusterView, names: &Names) -> Option<Vec<FeatureRow>> {
    Some(feature_states(view)?.iter().map(|state| row(state, view, names)).collect())
}

fn row(state: &FeatureState, view: &ClusterView, names: &Names) -> FeatureRow {
    let short = |members: &[MemberId]| sorted(members.iter().map(|member| names.short(*member)));
    let why = words(&state.why, view, names);
    let mut row = FeatureRow {
        name: printable(&state.name).to_string(),
        enabled: state.is_on,
        reason: "wanted",
        why,
        false_on: Vec::new(),
        missing_from: Vec::new(),
        waiting_for: Vec::new(),
        needs: None,
        proposals: state.proposed.iter().map(|(member, wants)| (names.short(*member), *wants)).collect(),
        proposed: proposed(state, view, names),
    };
    row.reason = match &state.why {
        Why::Wanted => "wanted",
        Why::Locked => "locked",
        Why::VersionTooLow { needed, .. } => {
            row.needs = Some(*needed);
            "version_too_low"
        }
        Why::Undecided { waiting_for } => {
            row.waiting_for = short(waiting_for);
            "undecided"
        }
        Why::KeptOff { false_on, missing_from } => {
            (row.false_on, row.missing_from) = (short(false_on), short(missing_from));
            "kept_off"
        }
        Why::Changing => "changing",
        Why::Differing => "differing",
    };
    row
}

fn words(why: &Why, view: &ClusterView, names: &Names) -> String {
    let list = |members: &[MemberId]| sorted(members.iter().map(|id| described(*id, view, names))).join(", ");
    let version = || cluster_version(view).map_or_else(|| "undecided".to_owned(), |version| format!("at {version}"));
    match why {
        Why::Wanted => "every voter wants it".to_owned(),
        Why::Locked => "the cluster version locks it: no flag counts".to_owned(),
        Why::VersionTooLow { needed, below, silent } => {
            let runs = |member: &MemberId| {
                let release = view.member(*member).and_then(|member| member.release());
                format!("{} runs {}", names.short(*member), release.map_or_else(String::new, ToString::to_string))
            };
            let silent = silent.iter().map(|member| described(*member, view, names));
            let reasons = sorted(below.iter().map(runs).chain(silent));
            let reasons = if reasons.is_empty() { "it is about to rise".to_owned() } else { reasons.join(", ") };
            format!("needs cluster version {needed}, which is {}: {reasons}", version())
        }
        Why::Undecided { waiting_for } if waiting_for.is_empty() => {
            "undecided: every voter has proposed, and the leader is to decide".to_owned()
        }
        Why::Undecided { waiting_for } => format!("undecided: waits for {}", list(waiting_for)),
        Why::KeptOff { false_on, missing_from } => {
            let part =
                |what: &str, members: &[MemberId]| (!members.is_empty()).then(|| format!("{what} {}", list(members)));
            let parts = part("false on", false_on).into_iter().chain(part("missing from", missing_from));
            parts.collect::<Vec<_>>().join("; ")
        }
        Why::Changing => "the voters want it otherwise: another decision is on its way".to_owned(),
        Why::Differing => "members have not come equally far; ask again".to_owned(),
    }
}

fn sorted(names: impl Iterator<Item = String>) -> Vec<String> {
    let mut names: Vec<_> = names.collect();
    names.sort();
    names
}

/// A member's name, and what keeps it from speaking.
fn described(id: MemberId, view: &ClusterView, names: &Names) -> String {
    let name = names.short(id);
    match view.member(id) {
        Some(member) if member.has_never_started() => format!("{name} (never started)"),
        Some(member) if member.report().is_none() => format!("{name} (does not answer)"),
        _ => name,
    }
}

/// `on: m1, m3; off: m2; none: m4`; learners apart, as they are not counted.
fn proposed(state: &FeatureState, view: &ClusterView, names: &Names) -> String {
    let of = |role: Role, wants: Option<bool>| {
        let members = view.members.iter().filter(|member| member.role == role);
        let said = members.filter(|member| state.proposed.get(&member.id).copied() == wants);
        sorted(said.map(|member| names.short(member.id))).join(", ")
    };
    let parts = [
        ("on", of(Role::Voter, Some(true))),
        ("off", of(Role::Voter, Some(false))),
        ("none", of(Role::Voter, None)),
        ("learner, on", of(Role::Learner, Some(true))),
        ("learner, off", of(Role::Learner, Some(false))),
    ];
    let parts = parts.iter().filter(|(_, members)| !members.is_empty());
    parts.map(|(what, members)| format!("{what}: {members}")).collect::<Vec<_>>().join("; ")
}

impl FeatureRow {
    pub fn state(&self) -> &'static str {
        match self.enabled {
            Some(true) => "on",
            Some(false) => "off",
            None => "differs",
        }
    }

    /// What a change is told by.
    pub fn line(&self) -> String {
        format!("{} {}: {}", self.name, self.state(), self.why)
    }
}

/// The table; where there are no gates, that.
pub fn text(view: &ClusterView, rows: Option<&[FeatureRow]>) -> String {
    let version = cluster_version(view).map_or_else(|| "undecided".to_owned(), |version| version.to_string());
    let head = format!("cluster {}, version {version}", view.cluster);
    let shown = match rows {
        None => format!("{head}\n{}\n", no_gates(view)),
        Some([]) => format!("{head}\nno feature is known at this cluster version\n"),
        Some(rows) => {
            let cells =
                |row: &FeatureRow| [row.name.clone(), row.state().to_owned(), row.proposed.clone(), row.why.clone()];
            let titles = ["FEATURE", "STATE", "PROPOSED", "WHY"].map(str::to_owned);
            format!("{head}\n\n{}", table(&[titles].into_iter().chain(rows.iter().map(cells)).collect::<Vec<_>>()))
        }
    };
    let apart = apart(view);
    if apart.is_empty() { shown } else { format!("{shown}\n{}\n", apart.join("\n")) }
}

/// Who is not heard, and who is at another cluster version than the lowest: what is shown is without the one, and perhaps not true of
/// the other.
fn apart(view: &ClusterView) -> Vec<String> {
    let lowest = cluster_version(view);
    let mut lines: Vec<_> = view
        .members
        .iter()
        .filter_map(|member| match &member.answer {
            Answer::Silent { reason } => Some(format!("{} does not answer: {}", name(member), printable(reason))),
            Answer::NeverStarted => None,
            Answer::Reported(report) => match (report.cluster_version, lowest) {
                (Some(own), Some(lowest)) if own != lowest => {
                    Some(format!("{} is at cluster version {own}, and not at {lowest}", name(member)))
                }
                _ => None,
            },
        })
        .collect();
    lines.sort();
    lines
}

/// That this cluster has none.
pub fn no_gates(view: &ClusterView) -> String {
    let releases: std::collections::BTreeSet<_> = view.reports().map(|report| report.release.to_string()).collect();
    let releases: Vec<_> = releases.into_iter().collect();
    format!(
        "no cluster feature gates: no member (of release {}) has them, as no release of etcd does; the bundled node has them \
         from 3.6 on",
        releases.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::samples::{self, with_cluster_version, with_gates, with_known, with_release, with_stored};

    fn view(members: &str, said: [&str; 3], stored: &[(u64, &str)]) -> ClusterView {
        let mut view = samples::view(members);
        for (at, said) in said.iter().enumerate() {
            with_release(&mut view, at, "3.6.0");
            with_cluster_version(&mut view, at, "3.6");
            with_gates(&mut view, at, said);
        }
        with_known(&mut view, 0, "A:3.6 New:3.7");
        with_stored(&mut view, 0, stored);
        view
    }

    fn shown(view: &ClusterView) -> String {
        text(view, features(view, &Names::of(view)).as_deref())
    }

    #[test]
    fn the_table_says_who_wants_what_and_why_each_is_off() {
        let off = "decided -A | +A";
        let told = shown(&view("1+ 2+ 3.", [off, "decided -A | -A", "?"], &[(1, "+A"), (2, "-A"), (3, "+B")]));
        let expected = "\
cluster c, version 3.6

FEATURE  STATE  PROPOSED                  WHY
A        off    on: 1; off: 2; none: 3    false on 2; missing from 3 (does not answer)
New      off    none: 1, 2, 3             needs cluster version 3.7, which is at 3.6: 1 runs 3.6.0, 2 runs 3.6.0, 3 (does not answer)

3 does not answer: connection refused
";
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(words(&told), words(expected), "{told}");
        let waits = shown(&view("1+ 2+ 3.", ["open -A | +A"; 3], &[(1, "+A"), (2, "+A")]));
        assert!(waits.contains("undecided: waits for 3 (does not answer)"), "{waits}");
        let mut differ = view("1+ 2+ 3+", ["decided +A | +A"; 3], &[(1, "+A"), (2, "+A"), (3, "+A")]);
        with_cluster_version(&mut differ, 1, "3.7");
        let differ = shown(&differ);
        assert!(differ.ends_with("\n2 is at cluster version 3.7, and not at 3.6\n"), "{differ}");
        let none = shown(&view("1+ 2+ 3+", ["none"; 3], &[]));
        assert!(none.contains("no cluster feature gates: no member (of release 3.6.0) has them"), "{none}");
    }
}
