//! Members that hold different things, in words.

use std::{collections::BTreeMap, fmt::Display};

use proto::MemberId;

use super::names::Names;
use crate::observe::difference::Difference;

/// Who holds what, the fewest first: what stands alone is likely the damaged one.
pub fn words(difference: &Difference, names: &Names) -> String {
    match difference {
        Difference::Revisions { applied, of } => {
            let groups = groups(of.iter().map(|(member, revision)| (*member, revision)), names);
            format!("the members' revisions differ at entry {applied} of the log: {groups}")
        }
        Difference::Users { of } => {
            let groups = groups(of.iter().map(|(member, revision)| (*member, revision)), names);
            format!("the revisions of the members' users and roles differ: {groups}")
        }
        Difference::Behind { before: (one, at), after: (other, below) } => format!(
            "the members' revisions differ: {} is at {below}, after {} was at {at}",
            names.list(&[*other]),
            names.list(&[*one])
        ),
        Difference::Hashes { revision, of } => {
            let groups = groups(of.iter().map(|(member, hash)| (*member, format!("{hash:08x}"))), names);
            format!("the members' hashes differ at revision {revision}: {groups}")
        }
    }
}

fn groups<T: Display + Ord>(of: impl Iterator<Item = (MemberId, T)>, names: &Names) -> String {
    let mut groups: BTreeMap<T, Vec<MemberId>> = BTreeMap::new();
    of.for_each(|(member, value)| groups.entry(value).or_default().push(member));
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by_key(|(_, members)| members.len());
    let group = |(value, members): &(T, Vec<MemberId>)| format!("{} {value}", names.list(members));
    groups.iter().map(group).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use proto::{LogIndex, Revision};

    use super::*;
    use crate::plan::samples::view;

    #[test]
    fn whoever_stands_alone_is_named_first() {
        let names = Names::of(&view("1+ 2+ 3+"));
        let of = |of: [u64; 3]| (1..).map(MemberId).zip(of);
        for (difference, said) in [
            (
                Difference::Hashes {
                    revision: Revision(36),
                    of: of([7, 0xbad, 7]).map(|(id, hash)| (id, hash as u32)).collect(),
                },
                "the members' hashes differ at revision 36: ",
            ),
            (
                Difference::Users { of: of([3, 2, 3]).collect() },
                "the revisions of the members' users and roles differ: ",
            ),
            (
                Difference::Revisions {
                    applied: LogIndex(9),
                    of: of([3, 2, 3]).map(|(id, at)| (id, Revision(at as i64))).collect(),
                },
                "the members' revisions differ at entry 9 of the log: ",
            ),
        ] {
            let words = words(&difference, &names);
            let groups = words.strip_prefix(said).unwrap_or_else(|| panic!("{words}"));
            let alone = names.list(&[MemberId(2)]);
            assert!(groups.starts_with(&alone), "{words}");
            assert!(groups.contains(&names.list(&[MemberId(1), MemberId(3)])), "{words}");
        }
    }
}
