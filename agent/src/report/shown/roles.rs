//! Who may make which of etcd's calls, release by release, and so which role each verb needs. One table: what
//! `agent init --print-role` and SECURITY.md say is made of it, and a test asks real etcd whether it is true.
//!
//! Pure. Sources: etcd's `api/v3rpc` and `v3_server.go` at each tag. Most of the edges are one change, "Guard
//! unauthenticated endpoints with auth checks" (3.4.42, 3.5.28 and 3.6.9, CVE-2026-33413); the patch after it gives
//! `MemberList` back to every user (etcd pull request 21532), and 3.5.32 and 3.6.12 do so with `Status`.

use proto::Release;
use serde::Serialize;

/// Whom etcd answers, from everybody to the fewest. Each may do what those before it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Who {
    /// Whoever reaches the port, without a user.
    Anyone,
    /// Any user, without a role.
    User,
    /// A user with `read` on Baton's keys.
    Reader,
    /// A user with `readwrite` on Baton's keys.
    Writer,
    /// A user with the role `root`.
    Root,
}

use Who::{Anyone, Reader, Root, User, Writer};

impl Who {
    pub fn grant(self) -> &'static str {
        match self {
            Anyone => "no user",
            User => "a user, no role",
            Reader => "`read` on `/baton/`",
            Writer => "`readwrite` on `/baton/`",
            Root => "`root`",
        }
    }
}

/// A release of etcd: major, minor, patch.
pub type Edge = (u64, u64, u64);

/// A call of etcd's API that the agent makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// Its name in etcd's API.
    pub name: &'static str,
    /// From which release on who may make it. It lasts to the next entry.
    pub who: &'static [(Edge, Who)],
}

impl Call {
    /// Who may make it in this release; `None` where there is no such call.
    pub fn who(&self, release: Edge) -> Option<Who> {
        self.who.iter().rev().find(|(since, _)| *since <= release).map(|(_, who)| *who)
    }
}

/// Of those that speak of a lease, the lease has Baton's keys.
pub const CALLS: &[Call] = &[
    Call { name: "Authenticate", who: &[((3, 4, 0), Anyone)] },
    Call {
        name: "MemberList",
        who: &[
            ((3, 4, 0), Anyone),
            ((3, 4, 42), Root),
            ((3, 4, 43), User),
            ((3, 5, 0), Anyone),
            ((3, 5, 28), Root),
            ((3, 5, 29), User),
            ((3, 6, 0), Anyone),
            ((3, 6, 9), Root),
            ((3, 6, 10), User),
        ],
    },
    Call {
        name: "Status",
        who: &[
            ((3, 4, 0), Anyone),
            ((3, 4, 42), Root),
            ((3, 5, 0), Anyone),
            ((3, 5, 28), Root),
            ((3, 5, 32), User),
            ((3, 6, 0), Root),
            ((3, 6, 12), User),
        ],
    },
    // Without a role the quorum is asked before the refusal, which is all that readiness wants to know.
    Call { name: "Range", who: &[((3, 4, 0), Reader)] },
    Call { name: "Watch", who: &[((3, 4, 0), Reader)] },
    Call { name: "Txn", who: &[((3, 4, 0), Writer)] },
    Call { name: "LeaseGrant", who: GUARDED },
    Call {
        name: "LeaseKeepAlive",
        who: &[
            ((3, 4, 0), Anyone),
            ((3, 4, 42), Writer),
            ((3, 5, 0), Anyone),
            ((3, 5, 28), Writer),
            ((3, 6, 0), Anyone),
            ((3, 6, 9), Writer),
        ],
    },
    Call { name: "LeaseTimeToLive", who: GUARDED },
    Call { name: "LeaseRevoke", who: &[((3, 4, 0), Writer)] },
    // About the user itself; about others root alone.
    Call { name: "UserGet", who: &[((3, 4, 0), User)] },
    Call { name: "HashKV", who: &[((3, 4, 0), Root)] },
    Call { name: "Snapshot", who: &[((3, 4, 0), Root)] },
    Call {
        name: "MoveLeader",
        who: &[((3, 4, 0), Anyone), ((3, 4, 42), Root), ((3, 5, 0), Anyone), ((3, 5, 28), Root)],
    },
    Call { name: "Downgrade", who: &[((3, 5, 0), Anyone), ((3, 5, 28), Root)] },
    Call { name: "MemberAdd", who: &[((3, 4, 0), Root)] },
    Call { name: "MemberPromote", who: &[((3, 4, 0), Root)] },
    Call { name: "MemberRemove", who: &[((3, 4, 0), Root)] },
];

/// Anyone at first, any user since 3.4.42, 3.5.28 and 3.6.9.
const GUARDED: &[(Edge, Who)] = &[
    ((3, 4, 0), Anyone),
    ((3, 4, 42), User),
    ((3, 5, 0), Anyone),
    ((3, 5, 28), User),
    ((3, 6, 0), Anyone),
    ((3, 6, 9), User),
];

/// Verbs that need the same calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verbs {
    pub names: &'static [&'static str],
    /// What they cannot do without.
    pub calls: &'static [&'static str],
}

/// Every verb that asks a cluster. Not here: the reads that only tell whether there is a quorum (a refusal tells it,
/// too), and what is left out where it is refused (`status`: an old release's downgrade, how long the baton holds).
pub const VERBS: &[Verbs] = &[
    Verbs { names: &["init"], calls: &["Authenticate", "MemberList", "Status"] },
    Verbs { names: &["status", "plan"], calls: &["Authenticate", "MemberList", "Status", "Range", "UserGet"] },
    Verbs { names: &["abandon"], calls: &["Authenticate", "MemberList", "Status", "Range", "Txn"] },
    Verbs {
        names: &["run", "finalize", "rollback", "resume", "check", "backup"],
        calls: &[
            "Authenticate",
            "MemberList",
            "Status",
            "Range",
            "Watch",
            "Txn",
            "LeaseGrant",
            "LeaseKeepAlive",
            "LeaseTimeToLive",
            "LeaseRevoke",
            "UserGet",
            "HashKV",
            "Snapshot",
            "MoveLeader",
            "Downgrade",
            "MemberAdd",
            "MemberPromote",
            "MemberRemove",
        ],
    },
];

impl Verbs {
    /// Whom etcd of this release does all of it for.
    pub fn need(&self, release: Edge) -> Who {
        let of = |name: &&str| CALLS.iter().find(|call| call.name == *name)?.who(release);
        self.calls.iter().filter_map(of).max().unwrap_or(Root)
    }
}

/// Releases of one minor in a row that want the same of every verb.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    pub first: Edge,
    /// The last of them; `None` where none is known that wants something else.
    pub last: Option<Edge>,
    /// What each of [`VERBS`] needs.
    pub needs: Vec<Who>,
}

impl Span {
    /// Whether this release is one of them. Of a minor that nobody knows yet the newest one is told.
    pub fn has(&self, release: Edge) -> bool {
        self.first <= release && self.last.is_none_or(|last| release <= last)
    }

    /// Whether `status` and `plan` need the role root.
    pub fn looking_needs_root(&self) -> bool {
        let looking = VERBS.iter().position(|verbs| verbs.names.contains(&"status"));
        looking.and_then(|at| self.needs.get(at)).is_none_or(|who| *who == Root)
    }

    pub fn words(&self) -> String {
        let ((major, minor, patch), first) = (self.first, version(self.first));
        match self.last {
            Some(last) => format!("{first} to {}", version(last)),
            None if (major, minor) == NEWEST => format!("{first} and later"),
            None if patch == 0 => format!("{major}.{minor}"),
            None => format!("{first} and later {major}.{minor}"),
        }
    }
}

/// The newest minor whose source was read.
const NEWEST: (u64, u64) = (3, 7);

/// All releases from 3.4 on.
pub fn spans() -> Vec<Span> {
    let mut edges: Vec<Edge> = CALLS.iter().flat_map(|call| call.who.iter().map(|(since, _)| *since)).collect();
    edges.extend((4..=NEWEST.1).map(|minor| (3, minor, 0)));
    edges.sort_unstable();
    edges.dedup();
    let mut spans: Vec<Span> = Vec::new();
    for first in edges {
        let needs: Vec<_> = VERBS.iter().map(|verbs| verbs.need(first)).collect();
        match spans.last_mut().filter(|last| (last.first.0, last.first.1) == (first.0, first.1)) {
            Some(last) if last.needs == needs => continue,
            Some(last) => last.last = Some((first.0, first.1, first.2 - 1)),
            None => {}
        }
        spans.push(Span { first, last: None, needs });
    }
    spans
}

/// The releases among which this one is.
pub fn span_of(release: &Release) -> Option<Span> {
    let edge = edge(release);
    let mut spans = spans();
    let at = spans.iter().rposition(|span| span.first <= edge)?;
    Some(spans.swap_remove(at))
}

/// A release as the table has it.
pub fn edge(release: &Release) -> Edge {
    (release.0.major, release.0.minor, release.0.patch)
}

fn version((major, minor, patch): Edge) -> String {
    format!("{major}.{minor}.{patch}")
}

pub fn markdown() -> String {
    let verbs = VERBS.iter().map(|verbs| format!("`{}`", verbs.names.join("`, `"))).collect::<Vec<_>>().join(" | ");
    let mut text = format!("| etcd | {verbs} |\n|---|{}\n", "---|".repeat(VERBS.len()));
    for span in spans() {
        let needs = span.needs.iter().map(|who| who.grant()).collect::<Vec<_>>().join(" | ");
        text.push_str(&format!("| {} | {needs} |\n", span.words()));
    }
    text
}

/// The table as it is for scripts, and for the test that holds it against real etcd.
pub fn object() -> serde_json::Value {
    let calls = CALLS.iter().map(|call| {
        let who = call.who.iter().map(|(since, who)| serde_json::json!({ "since": version(*since), "who": who }));
        serde_json::json!({ "call": call.name, "who": who.collect::<Vec<_>>() })
    });
    let releases = spans().into_iter().map(|span| {
        let needs =
            VERBS.iter().zip(&span.needs).flat_map(|(verbs, who)| verbs.names.iter().map(move |name| (*name, who)));
        let needs: serde_json::Map<_, _> = needs.map(|(name, who)| (name.to_owned(), serde_json::json!(who))).collect();
        serde_json::json!({ "first": version(span.first), "last": span.last.map(version), "needs": needs })
    });
    serde_json::json!({ "calls": calls.collect::<Vec<_>>(), "releases": releases.collect::<Vec<_>>() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_role_goes_by_the_release() {
        for (release, looking, abandon) in [
            ("3.4.23", Reader, Writer),
            ("3.4.41", Reader, Writer),
            ("3.4.42", Root, Root),
            ("3.4.45", Root, Root),
            ("3.5.0", Reader, Writer),
            ("3.5.27", Reader, Writer),
            ("3.5.28", Root, Root),
            ("3.5.31", Root, Root),
            ("3.5.32", Reader, Writer),
            ("3.6.0", Root, Root),
            ("3.6.11", Root, Root),
            ("3.6.14", Reader, Writer),
            ("3.7.1", Reader, Writer),
            ("3.8.0", Reader, Writer), // as the newest that is known
        ] {
            let span = span_of(&release.parse().unwrap()).unwrap();
            assert_eq!(span.needs[1..], [looking, abandon, Root], "{release} is one of {}", span.words());
            assert!(span.has(edge(&release.parse().unwrap())), "{release}");
            assert_eq!(span.looking_needs_root(), looking == Root, "{release}");
        }
        assert_eq!(span_of(&"3.3.9".parse().unwrap()), None);
    }

    #[test]
    fn every_call_of_a_verb_is_in_the_table_and_its_releases_rise() {
        for name in VERBS.iter().flat_map(|verbs| verbs.calls) {
            assert!(CALLS.iter().any(|call| call.name == *name), "{name}");
        }
        for call in CALLS {
            assert!(call.who.is_sorted_by(|one, other| one.0 < other.0), "{}", call.name);
        }
    }
}
