//! Putting back: whether a member whose new binary failed may be stopped although its process runs.
//!
//! It may serve, whatever its step lacked: so what lets a healthy member go is asked here, too (I-2), and what would
//! close the way back is looked for before the stop. A process that has ended costs nobody anything.
//! Pure: reads the view.

use proto::{ClusterVersion, MemberId};

use super::{Me, no_return, rules::quorum};
use crate::observe::view::ClusterView;

/// Why a member that runs is not stopped to be put back.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Objection {
    #[error("the other members were not seen; see to them")]
    NotSeen,
    #[error("alarm {kind} of {of} stands{}; see to its cause, then `etcdctl alarm disarm`", alone_says(alone.as_deref()))]
    Alarm {
        /// In etcd's own word.
        kind: String,
        of: String,
        /// The member whose word alone it is.
        alone: Option<String>,
    },
    /// Another voter is not ready.
    #[error("{0} is not ready; see to it first")]
    NotReady(String),
    #[error("fewer than a majority of the voters would stand")]
    BelowQuorum,
    /// The version rose, or a member did not say that it has not.
    #[error("the cluster version rose, or a member did not answer")]
    WayBackIsClosed,
}

fn alone_says(member: Option<&str>) -> String {
    member.map_or_else(String::new, |member| format!(", as {member} alone says"))
}

/// Why `member` is not to be stopped, if so. `below`: the old binary may be started only below this cluster version.
pub fn objection(
    me: &Me,
    view: Option<&ClusterView>,
    member: MemberId,
    below: Option<ClusterVersion>,
) -> Option<Objection> {
    let Some(view) = view else { return Some(Objection::NotSeen) };
    let name = |id| view.member(id).map_or_else(|| id.to_string(), |member| format!("{} ({id})", member.name));
    if let Some(alarm) = view.alarm() {
        let alone = view.alone_with(alarm).map(name);
        return Some(Objection::Alarm { kind: alarm.kind.clone(), of: name(alarm.of), alone });
    }
    if let Some(other) = quorum::sick_beside(me, view, member) {
        return Some(Objection::NotReady(name(other)));
    }
    if quorum::objection(me, view, member).is_some() {
        return Some(Objection::BelowQuorum);
    }
    let is_closed = below.is_some_and(|below| !no_return::others_are_below(view, member, below));
    is_closed.then_some(Objection::WayBackIsClosed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::samples::{me, view, with_cluster_version};

    #[test]
    fn a_member_that_runs_is_stopped_only_where_every_other_voter_is_ready() {
        let (three, sole) = (me(&[1]), Me { allow_downtime: true, ..me(&[1]) });
        let degraded = Me { allow_degraded: true, ..me(&[1]) };
        for (me, members, stays) in [
            (&three, "1- 2+ 3+", None), // it hangs, the others stand
            (&three, "1. 2+ 3+", None),
            (&three, "1+ 2+ 3+", None), // it serves another release than it should
            (&three, "1- 2. 3+", Some("2 (2) is not ready")),
            (&three, "1- 2~ 3+", Some("2 (2) is not ready")),
            (&three, "1! 2! 3!", Some("alarm NOSPACE of 1 (1) stands; ")),
            (&three, "1! 2+ 3+", Some("alarm NOSPACE of 1 (1) stands, as 1 (1) alone says; ")),
            (&three, "1- 2+ 3+ 4+ 5.", Some("5 (5) is not ready")),
            (&degraded, "1- 2+ 3+ 4+ 5.", None),
            (&degraded, "1- 2+ 3+ 4. 5.", Some("fewer than a majority")),
            (&degraded, "1- 2. 3+", Some("2 (2) is not ready")),
            (&sole, "1-", None),
            (&sole, "1- 2+", None),
            (&sole, "1- 2.", Some("2 (2) is not ready")),
            (&sole, "1!", Some("alarm NOSPACE of 1 (1)")),
            (&three, "1-", Some("fewer than a majority")),
        ] {
            let found = objection(me, Some(&view(members)), MemberId(1), None).map(|found| found.to_string());
            match (stays, &found) {
                (None, None) => {}
                (Some(words), Some(found)) => assert!(found.starts_with(words), "{members}: {found}"),
                _ => panic!("{members}: {found:?}, not {stays:?}"),
            }
        }
        assert_eq!(objection(&three, None, MemberId(1), None), Some(Objection::NotSeen));
    }

    #[test]
    fn over_a_minor_every_other_member_must_say_that_the_version_has_not_risen() {
        let below = Some(ClusterVersion { major: 3, minor: 5 });
        for (members, versions, closed) in [
            ("1- 2+ 3+", ["3.4", "3.4", "3.4"], false),
            ("1* 2+ 3+", ["3.5", "3.4", "3.4"], false), // what it says itself does not count, nor that it leads
            ("1- 2+ 3+", ["3.4", "3.5", "3.4"], true),
            ("1- 2+ 3+", ["3.4", "", "3.4"], true),
        ] {
            let mut view = view(members);
            (0..3).for_each(|at| with_cluster_version(&mut view, at, versions[at]));
            let found = objection(&me(&[1]), Some(&view), MemberId(1), below);
            assert_eq!(found, closed.then_some(Objection::WayBackIsClosed), "{members} {versions:?}");
        }
    }
}
