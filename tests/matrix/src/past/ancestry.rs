//! A past that a matrix file writes down: the release that a cluster is born at, and what is done to it until agents come. Pure.
//!
//! ```yaml
//! pasts:
//!   lived-in: { born: 3.4.23, then: [v2, 3.5.30, replace m2, promote m3, compact, auth on, restore] }
//! ```

use proto::Release;

use super::{Action, Ground, Habits, Mix, Plan, Step};
use crate::plan::{Host, tree};

/// How many keys clients use.
const KEYS: u64 = 100;
/// How much is written where no number stands.
const WRITES: u64 = 300;
const LEASES: u64 = 60;
const LARGE: u64 = 30;
/// More than anybody waits for.
const MOST_WRITES: u64 = 100_000;
/// Between two members that are restarted at the next release.
const WRITES_IN_A_HOP: u64 = 40;

/// What was done to a cluster before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ancestry {
    /// What it is called in the names of plans.
    pub name: String,
    pub born: Release,
    /// After how many entries members take a snapshot, then and later; `None` is etcd's own figure.
    pub snapshot_count: Option<u64>,
    /// In this order. Who goes first in a hop is left open: [`Ancestry::plan`] says it.
    pub then: Vec<Action>,
}

/// Why a past cannot be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Impossible {
    #[error("nobody can go from {0} to {1} there: one minor at a time, and up")]
    Hop(Release, Release),
    #[error("only 3.4 has the v2 API, and members run {0} by then")]
    OldApi(Release),
    #[error("authentication is on by then already")]
    AuthIsOn,
    #[error("authentication is not on by then")]
    AuthIsOff,
    #[error("a cluster of {size} has no {member}", member = tree::member(*.member))]
    NoMember { size: usize, member: Host },
    #[error("a cluster of {0} cannot do without a member; with 3 it can")]
    TooFew(usize),
}

impl Ancestry {
    /// The release that members run in the end.
    pub fn end(&self) -> &Release {
        self.hops().last().unwrap_or(&self.born)
    }

    /// What is done to a cluster of this size, step by step.
    pub fn plan(&self, size: usize, tls: bool) -> Plan {
        let in_order = |action: &Action| match action {
            Action::Hop { to, writes, .. } => {
                Action::Hop { to: to.clone(), order: (0..size).rev().collect(), writes: *writes }
            }
            action => action.clone(),
        };
        let way = [&self.born].into_iter().chain(self.hops()).cloned().collect();
        let actions = [Action::Start].into_iter().chain(self.then.iter().map(in_order));
        let steps = actions.zip(1..).map(|(action, id)| Step { id, action, kill: None }).collect();
        let habits = Habits {
            tls,
            snapshot_count: self.snapshot_count,
            kept_entries: None,
            compaction_batch: None,
            keys: KEYS,
            defragments_every: None,
            compacts_every: None,
            reads_in_transactions: false,
        };
        Plan { ground: Ground { way, size }, seed: 1, habits, steps }
    }

    /// What is typed on the way, and of which release.
    pub fn tools(&self) -> Vec<(&Release, &'static str)> {
        let mut tools = vec![(&self.born, "etcdctl")];
        let mut now = &self.born;
        for action in &self.then {
            match action {
                Action::Hop { to, .. } => {
                    now = to;
                    tools.push((now, "etcdctl"));
                }
                Action::Restore => tools.push((now, restorer(now))),
                _ => {}
            }
        }
        tools
    }

    fn hops(&self) -> impl Iterator<Item = &Release> {
        self.then.iter().filter_map(|action| if let Action::Hop { to, .. } = action { Some(to) } else { None })
    }

    /// Judges what is written down, of a cluster of this size.
    ///
    /// # Errors
    /// The first thing that cannot be done, and which of `then` it is, from 0.
    pub fn judge(&self, size: usize) -> Result<(), (usize, Impossible)> {
        let (mut release, mut auth) = (&self.born, false);
        for (at, action) in self.then.iter().enumerate() {
            let minor = release.cluster_version();
            let member = match action {
                Action::Defragment { member } | Action::Restart { member } | Action::Rejoin { member, .. } => *member,
                _ => 0,
            };
            let impossible = match action {
                _ if member >= size => Some(Impossible::NoMember { size, member }),
                Action::Rejoin { .. } if size < 3 => Some(Impossible::TooFew(size)),
                Action::Hop { to, .. } => {
                    let next = to.cluster_version();
                    let is_up = to > release && next.major == minor.major && next.minor <= minor.minor + 1;
                    (!is_up).then(|| Impossible::Hop(release.clone(), to.clone()))
                }
                Action::OldApi { .. } if minor.to_string() != "3.4" => Some(Impossible::OldApi(release.clone())),
                Action::Auth { on: true } if auth => Some(Impossible::AuthIsOn),
                Action::Auth { on: false } if !auth => Some(Impossible::AuthIsOff),
                _ => None,
            };
            if let Some(why) = impossible {
                return Err((at, why));
            }
            match action {
                Action::Hop { to, .. } => release = to,
                Action::Auth { on } => auth = *on,
                _ => {}
            }
        }
        Ok(())
    }
}

/// What makes data directories of a snapshot: from 3.6 on etcdctl leaves it to etcdutl.
pub fn restorer(release: &Release) -> &'static str {
    match release.cluster_version().to_string().as_str() {
        "3.4" | "3.5" => "etcdctl",
        _ => "etcdutl",
    }
}

/// What may stand in `then`, for a person.
pub const DEEDS: &str = "a release, or one of `write [N]`, `large`, `leases`, `transactions`, `compact`, `defragment mN`, `restart mN`, `replace mN`, `promote mN`, \
     `restore`, `auth on`, `auth off`, `user`, `grant`, `v2`, `v2 kept`";

/// What a person calls so; `None` where it is none of [`DEEDS`].
pub fn deed(text: &str) -> Option<Action> {
    let words: Vec<_> = text.split_ascii_whitespace().collect();
    let write = |mix, count| Some(Action::Write { mix, count });
    match words[..] {
        ["write"] => write(Mix::Churn, WRITES),
        ["write", count] => write(Mix::Churn, count.parse().ok().filter(|count| (1..=MOST_WRITES).contains(count))?),
        ["large"] => write(Mix::Large, LARGE),
        ["leases"] => write(Mix::Leases, LEASES),
        ["transactions"] => write(Mix::Transactions, WRITES),
        ["compact"] => Some(Action::Compact { behind: 0 }),
        ["defragment", member] => Some(Action::Defragment { member: tree::host(member)? }),
        ["restart", member] => Some(Action::Restart { member: tree::host(member)? }),
        ["replace", member] => Some(Action::Rejoin { member: tree::host(member)?, as_learner: false }),
        ["promote", member] => Some(Action::Rejoin { member: tree::host(member)?, as_learner: true }),
        ["restore"] => Some(Action::Restore),
        ["auth", "on"] => Some(Action::Auth { on: true }),
        ["auth", "off"] => Some(Action::Auth { on: false }),
        ["user"] => Some(Action::AddUser),
        ["grant"] => Some(Action::Grant),
        ["v2"] => Some(Action::OldApi { kept: false }),
        ["v2", "kept"] => Some(Action::OldApi { kept: true }),
        [release] => Some(Action::Hop { to: release.parse().ok()?, order: Vec::new(), writes: WRITES_IN_A_HOP }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn past(born: &str, then: &[&str]) -> Ancestry {
        let then = then.iter().map(|text| deed(text).unwrap_or_else(|| panic!("{text}"))).collect();
        Ancestry { name: "old".into(), born: born.parse().unwrap(), snapshot_count: None, then }
    }

    #[test]
    fn a_past_is_a_plan_that_ends_at_its_last_release() {
        let old = past("3.4.23", &["v2", "write 20", "3.5.30", "replace m2", "promote m3", "auth on", "restore"]);
        assert_eq!(old.end().to_string(), "3.5.30");
        assert_eq!(past("3.6.14", &["auth on"]).end().to_string(), "3.6.14");
        assert_eq!(old.judge(3), Ok(()));
        insta::assert_snapshot!(old.plan(3, true).to_string());
    }

    #[test]
    fn what_cannot_be_done_is_named() {
        for (then, size, at, words) in [
            (&["3.6.14"][..], 3, 0, "nobody can go from 3.4.23 to 3.6.14"),
            (&["3.5.30", "3.4.23"], 3, 1, "nobody can go from 3.5.30 to 3.4.23"),
            (&["3.5.30", "v2"], 3, 1, "only 3.4 has the v2 API"),
            (&["auth on", "auth on"], 3, 1, "on by then already"),
            (&["auth off"], 3, 0, "not on by then"),
            (&["write", "defragment m4"], 3, 1, "a cluster of 3 has no m4"),
            (&["replace m1"], 1, 0, "a cluster of 1 cannot do without a member"),
        ] {
            let (place, why) = past("3.4.23", then).judge(size).unwrap_err();
            assert_eq!(place, at, "{then:?}");
            assert!(why.to_string().contains(words), "{why}");
        }
    }

    #[test]
    fn words_that_are_no_deed_are_none() {
        for text in
            ["", "dance", "write -1", "write 0", "replace", "replace m0", "replace m2 m3", "auth", "3.5", "auth On"]
        {
            assert_eq!(deed(text), None, "{text}");
        }
    }
}
