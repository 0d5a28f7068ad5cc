//! What leads back once an old binary would not start any more: a downgrade, which loses nothing, or the backup of the run.

use super::{Reason, Stop};
use crate::{
    keys::{
        Backup,
        change::{Change, Upgrade},
    },
    report::names::printable,
    words::typed,
};

/// The first minor of 3 that goes down again (etcd documentation, "Downgrading etcd clusters").
const GOES_DOWN: u64 = 6;

impl Stop {
    /// The same end with what is possible, and what would be lost by it; `playbook` as it was typed.
    pub fn with_other_ways(self, change: Option<&Change>, backup: Option<&Backup>, playbook: &str) -> Self {
        let is_past = matches!(self.reason, Reason::NoWayBack | Reason::NewBinaryKept | Reason::NothingToRollBack);
        let Some(Change::Upgrade(Upgrade { to, .. })) = change.filter(|_| is_past) else { return self };
        let down = (to.0.major, to.0.minor.checked_sub(1));
        let down = match down {
            (3, Some(minor)) if to.0.minor >= GOES_DOWN => Some(format!("3.{minor}")),
            _ => None,
        };
        let downgrade = down.map(|below| {
            format!(
                "a downgrade to {below} loses nothing: `agent init --kind downgrade --to {below}.N` writes its playbook"
            )
        });
        let restore = backup.map(|backup| {
            let (host, path) = (printable(&backup.host_name), printable(&backup.path));
            let since = backup.revision.map_or_else(|| "it".to_owned(), |revision| format!("its revision {}", revision.0));
            format!(
                "the backup on {host} takes all hosts back, and what was written since {since} is lost: agent restore {} --from {} \
                 --release OLD --discard-cluster",
                typed(playbook),
                typed(&path)
            )
        });
        let ways: Vec<_> = downgrade.into_iter().chain(restore).collect();
        match ways.is_empty() {
            true => self,
            false => {
                let left =
                    if self.left.is_empty() { ways.join("; ") } else { format!("{}; {}", self.left, ways.join("; ")) };
                Self { left, ..self }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use proto::{MemberId, Release, Revision};

    use super::*;

    #[test]
    fn what_leads_back_all_the_same_is_said_with_what_it_loses() {
        let backup = Backup {
            host_name: "h1".into(),
            path: "/b/x.db".into(),
            member: MemberId(1),
            revision: Some(Revision(7)),
            sha256: None,
            bytes: 1,
        };
        let upgrade =
            |minor| Change::Upgrade(Upgrade { from: semver::VersionReq::STAR, to: Release::new(3, minor, 1) });
        for (reason, minor, has_backup, expected) in [
            (Reason::NoWayBack, 6, false, &["a downgrade to 3.5 loses nothing"][..]),
            (Reason::NoWayBack, 5, true, &["since its revision 7 is lost: agent restore p.yaml --from /b/x.db"]),
            (Reason::NewBinaryKept, 7, true, &["a downgrade to 3.6", "agent restore"]),
            (Reason::NoWayBack, 5, false, &[]),
            (Reason::Done, 6, true, &[]),
        ] {
            let stop = Stop::well(reason, "x".into(), "run", Path::new("p.yaml"));
            let stop = stop.with_other_ways(Some(&upgrade(minor)), Some(&backup).filter(|_| has_backup), "p.yaml");
            assert!(expected.iter().all(|words| stop.left.contains(words)), "{reason:?} {minor}: {}", stop.left);
            assert_eq!(stop.left.is_empty(), expected.is_empty(), "{reason:?} {minor}: {}", stop.left);
        }
    }
}
