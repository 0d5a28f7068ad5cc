//! A downgrade that the cluster has under way, for the status: where it leads to, and who is not there yet.

use proto::ClusterVersion;
use serde::Serialize;

use crate::{
    observe::view::{ClusterView, Member, Report},
    report::names::Names,
};

/// A downgrade that is enabled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DowngradeLine {
    /// The minor that it leads to.
    pub target: String,
    /// The members that are not there yet, in order of id.
    pub blocked_by: Vec<BlockLine>,
}

/// A member that keeps a downgrade from being over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BlockLine {
    pub member: String,
    /// What it still has to do first.
    pub why: String,
}

/// The downgrade under way. Releases before etcd 3.6 do not say of themselves that there is one: `asked` is where it
/// leads to where the leader was asked for it.
pub fn downgrade(view: &ClusterView, asked: Option<ClusterVersion>, names: &Names) -> Option<DowngradeLine> {
    let said = view.members.iter().find_map(|member| member.report()?.downgrade);
    let target = said.or(asked)?;
    let line = |member: &Member| Some(BlockLine { member: names.short(member.id), why: why(member, target)? });
    Some(DowngradeLine { target: target.to_string(), blocked_by: view.members.iter().filter_map(line).collect() })
}

/// In the order in which a member gets there: the version, its data, its release.
fn why(member: &Member, target: ClusterVersion) -> Option<String> {
    let Some(Report { release, cluster_version, storage_version, .. }) = member.report() else {
        return Some("it does not answer".into());
    };
    match (cluster_version, storage_version) {
        (Some(version), _) if *version != target => Some(format!("it holds cluster version {version}")),
        (_, Some(version)) if *version != target => Some(format!("its data is of {version}")),
        _ if release.cluster_version() > target => Some(format!("it runs {release}")),
        _ => None,
    }
}

impl DowngradeLine {
    pub fn words(&self) -> String {
        let blocks: Vec<_> = self.blocked_by.iter().map(|block| format!("{}: {}", block.member, block.why)).collect();
        let left =
            if blocks.is_empty() { "every member is there, the leader ends it".into() } else { blocks.join("; ") };
        format!("to {} is enabled; {left}", self.target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{observe::view::Answer, plan::samples};

    /// What the members say: release, cluster version, storage version and downgrade, `-` for none.
    fn words(said: [&str; 3], asked: Option<&str>) -> Option<String> {
        let mut view = samples::view("1+ 2+ 3.");
        for (member, said) in view.members.iter_mut().zip(said) {
            let words: Vec<_> = said.split(' ').collect();
            if let (Answer::Reported(report), [release, version, storage, downgrade]) = (&mut member.answer, &words[..])
            {
                report.release = release.parse().unwrap();
                report.cluster_version = version.parse().ok();
                report.storage_version = storage.parse().ok();
                report.downgrade = downgrade.parse().ok();
            }
        }
        let asked = asked.map(|version| version.parse().unwrap());
        downgrade(&view, asked, &Names::of(&view)).map(|line| line.words())
    }

    #[test]
    fn who_is_not_there_yet_is_named_with_what_is_left_for_it() {
        let silent = "3: it does not answer";
        for (said, asked, expected) in [
            (["3.6.14 3.6 3.6 -", "3.6.14 3.6 3.6 -", ""], None, None),
            (
                ["3.6.14 3.6 3.6 3.5", "3.6.14 3.5 3.6 3.5", ""],
                None,
                Some("1: it holds cluster version 3.6; 2: its data is of 3.6"),
            ),
            (["3.6.14 3.5 3.5 3.5", "3.5.30 3.5 - -", ""], None, Some("1: it runs 3.6.14")),
            (["3.5.30 3.5 - -", "3.5.30 3.5 - -", ""], Some("3.5"), Some("")),
        ] {
            let expected = expected.map(|left| match left {
                "" => format!("to 3.5 is enabled; {silent}"),
                left => format!("to 3.5 is enabled; {left}; {silent}"),
            });
            assert_eq!(words(said, asked), expected, "{said:?}");
        }
    }

    #[test]
    fn one_that_nothing_keeps_is_the_leaders_to_end() {
        let line = DowngradeLine { target: "3.5".into(), blocked_by: Vec::new() };
        assert_eq!(line.words(), "to 3.5 is enabled; every member is there, the leader ends it");
    }
}
