//! Which members there are, by the lists of all that answer: one that leaves a member out hides nobody, and one that
//! makes a member up takes no step past it.
//!
//! Pure. A member is whoever any list has; its entry is beyond doubt where all lists have it alike. Every list counts,
//! but that of a member that was removed and does not know it: it cannot read through the quorum, nobody whose list
//! counts lists it, and those are a majority of the voters that it lists itself. While a change of the membership is on
//! its way lists differ for a moment.

use std::collections::{BTreeMap, BTreeSet};

use proto::{LogIndex, MemberId};

use super::{directory::Listed, view::Role};

/// How many addresses a sentence names.
const NAMED: usize = 5;

#[derive(Clone, Copy, Debug)]
pub(super) struct List<'a> {
    pub by: MemberId,
    pub address: &'a str,
    /// How far it has applied the log, in which changes of the membership stand.
    pub applied: LogIndex,
    /// Whether it is known that it cannot read through the quorum.
    pub is_cut_off: bool,
    pub members: &'a [Listed],
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Membership {
    /// Whoever is listed, by id.
    pub members: Vec<Listed>,
    /// Of whom lists differ, and who says what.
    pub disputed: BTreeMap<MemberId, String>,
    /// The addresses whose lists count.
    pub counted: BTreeSet<String>,
}

/// What these lists come to; `None` where there is none.
pub(super) fn membership(lists: &[List]) -> Option<Membership> {
    let listed: Vec<_> = lists.iter().filter(|list| !list.members.is_empty()).collect();
    // One that knows itself to be removed lists itself no more.
    let itself: Vec<_> = listed.iter().copied().filter(|list| list.of(list.by).is_some()).collect();
    let (cut_off, reading): (Vec<&List>, Vec<&List>) = itself.into_iter().partition(|list| list.is_cut_off);
    let counted: Vec<_> = cut_off.into_iter().filter(|list| !list.is_of_a_removed(&reading)).collect();
    let counted = [reading, counted].concat();
    // Of members that do not list themselves nothing else is known.
    let lists = if counted.is_empty() { listed } else { counted };
    let ids: BTreeSet<_> = lists.iter().flat_map(|list| list.members).map(|member| member.id).collect();
    let members: Vec<_> = ids.iter().filter_map(|id| entry(&lists, *id)).collect();
    let disputed = members.iter().filter_map(|member| Some((member.id, dispute(&lists, member)?))).collect();
    let counted = lists.iter().map(|list| list.address.to_owned()).collect();
    (!members.is_empty()).then_some(Membership { members, disputed, counted })
}

impl List<'_> {
    /// Whether these lists have its member no more, and come from a majority of the voters that it has itself, each at an
    /// address that it has for that voter: one liar is no majority, at however many addresses it answers.
    fn is_of_a_removed(&self, reading: &[&Self]) -> bool {
        let voters = || self.members.iter().filter(|member| member.role == Role::Voter);
        let is_heard = |voter: &&Listed| {
            reading.iter().any(|list| list.by == voter.id && voter.client_urls.iter().any(|url| url == list.address))
        };
        voters().filter(is_heard).count() > voters().count() / 2
            && reading.iter().all(|list| list.of(self.by).is_none())
    }

    fn of(&self, id: MemberId) -> Option<&Listed> {
        self.members.iter().find(|member| member.id == id)
    }
}

/// As most lists have it, else as it says itself (I-5), else as the list has it that is of the highest index. It votes if
/// any list says so.
fn entry(lists: &[&List], id: MemberId) -> Option<Listed> {
    let entries = || lists.iter().filter_map(|list| Some((*list, list.of(id)?)));
    let alike = |entry: &Listed| entries().filter(|(_, other)| *other == entry).count();
    let (_, best) = entries().max_by_key(|(list, entry)| (alike(entry), list.by == id, list.applied))?;
    let votes = entries().any(|(_, entry)| entry.role == Role::Voter);
    Some(Listed { role: if votes { Role::Voter } else { Role::Learner }, ..best.clone() })
}

/// Who says what of a member, unless all say the same.
fn dispute(lists: &[&List], member: &Listed) -> Option<String> {
    let says = |wanted: fn(Option<bool>) -> bool| {
        let is_so = |list: &&&List| wanted(list.of(member.id).map(|entry| entry == member));
        let mut addresses: Vec<_> = lists.iter().filter(is_so).map(|list| list.address).collect();
        addresses.sort_unstable();
        addresses.dedup();
        addresses.truncate(NAMED);
        addresses.join(", ")
    };
    let [alike, otherwise, without] =
        [says(|is| is == Some(true)), says(|is| is == Some(false)), says(|is| is.is_none())];
    if otherwise.is_empty() && without.is_empty() {
        return None;
    }
    let parts = [(alike, "lists it"), (otherwise, "lists it otherwise"), (without, "does not list it")];
    let parts = parts.iter().filter(|(by, _)| !by.is_empty()).map(|(by, what)| format!("{by} {what}"));
    Some(format!("members do not agree on the membership: {}", parts.collect::<Vec<_>>().join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Members as a word each: `2` votes, `2l` is a learner, `2x` has another name.
    fn list(by: u64, members: &str) -> (u64, Vec<Listed>) {
        let member = |word: &str| {
            let id = MemberId(word.trim_end_matches(char::is_alphabetic).parse().unwrap());
            let role = if word.ends_with('l') { Role::Learner } else { Role::Voter };
            let name = if word.ends_with('x') { "x".to_owned() } else { format!("m{}", id.0) };
            Listed { id, name, role, client_urls: vec![url(id.0)], unused: vec![], serves_at_a_peer_url: false }
        };
        (by, members.split_whitespace().map(member).collect())
    }

    fn url(id: u64) -> String {
        format!("http://{id}")
    }

    #[test]
    fn whoever_is_listed_is_a_member_and_in_doubt_unless_all_lists_are_alike() {
        for (lists, members, disputed) in [
            (vec![list(1, "1 2 3"), list(2, "1 2 3")], "1 2 3", vec![]),
            (vec![list(1, "1 2"), list(2, "1 2 3")], "1 2 3", vec![3]), // one hides a member
            (vec![list(1, "1 2 3 9"), list(2, "1 2 3")], "1 2 3 9", vec![9]), // one makes a member up
            (vec![list(1, "1 2 9"), list(9, "1 2 9"), list(2, "1 2 3")], "1 2 3 9", vec![3, 9]), // and answers for it
            (vec![list(1, "1 2 3l"), list(2, "1 2 3")], "1 2 3", vec![3]),
            (vec![list(1, "1 2x 3"), list(2, "1 2 3")], "1 2 3", vec![2]), // a member names itself
            (vec![list(1, "1 2 3x"), list(2, "1 2 3"), list(3, "1 2 3")], "1 2 3", vec![3]),
            (vec![list(1, "1 3"), list(3, "1 2 3")], "1 2 3", vec![2]), // who is down is not removed by one's word
            (vec![list(1, "1 3"), list(3, "1 3")], "1 3", vec![]),
            (vec![list(1, "1 2"), list(2, "1 2"), list(4, "1 2")], "1 2", vec![]),
            (vec![list(4, "1 2"), list(5, "1 2")], "1 2", vec![]),
        ] {
            let said: Vec<_> = lists.iter().map(|(by, members)| of(*by, members, false)).collect();
            let found = membership(&said).unwrap();
            assert_eq!(found.members, list(0, members).1, "{lists:?}");
            let ids: Vec<_> = found.disputed.keys().map(|id| id.0).collect();
            assert_eq!(ids, disputed, "{lists:?}");
        }
        assert_eq!(membership(&[]), None);
    }

    fn of(by: u64, members: &[Listed], is_cut_off: bool) -> List<'_> {
        List { by: MemberId(by), address: "http://h", applied: LogIndex(7), is_cut_off, members }
    }

    /// Whoever is cut off, and its list; then who reads, its list, and whose address it answers at.
    #[test]
    fn a_list_is_left_out_only_where_a_majority_of_its_own_voters_has_removed_its_member() {
        for (cut_off, reading, members, counted) in [
            ((3, "1 2 3"), vec![(1, "1 2", 1), (2, "1 2", 2)], "1 2", vec![1, 2]),
            ((3, "1 2 3"), vec![(1, "1 2", 1)], "1 2 3", vec![1, 3]), // one alone is no majority
            ((3, "1 2 3"), vec![(1, "1 2 9", 1), (9, "1 2 9", 9)], "1 2 3 9", vec![1, 3, 9]), // nor with one made up
            ((3, "1 2 3"), vec![(1, "1 2 9", 1), (2, "1 2 9", 9)], "1 2 3 9", vec![1, 3, 9]), // nor in another's name
            ((3, "1 2 3"), vec![(1, "1 2", 1), (2, "1 2 3", 2)], "1 2 3", vec![1, 2, 3]), // one still lists it
            ((3, "1 2 3"), vec![(1, "1 3 9", 1), (9, "1 3 9", 9)], "1 2 3 9", vec![1, 3, 9]), // its reads are held up
            ((3, "1 2 3l"), vec![(1, "1 2", 1), (2, "1 2", 2)], "1 2", vec![1, 2]),
            ((2, "1 2"), vec![(1, "1", 1)], "1 2", vec![1, 2]),
            ((2, "1 2"), vec![], "1 2", vec![2]), // without a quorum nobody reads
        ] {
            let old = list(cut_off.0, cut_off.1).1;
            let new: Vec<_> = reading.iter().map(|(by, members, at)| (*by, list(*by, members).1, url(*at))).collect();
            let own = url(cut_off.0);
            let mut said = vec![List { address: &own, ..of(cut_off.0, &old, true) }];
            said.extend(new.iter().map(|(by, members, at)| List { address: at, ..of(*by, members, false) }));
            let found = membership(&said).unwrap();
            assert_eq!(found.members, list(0, members).1, "{cut_off:?} {reading:?}");
            assert_eq!(found.counted, counted.into_iter().map(url).collect::<BTreeSet<_>>(), "{cut_off:?} {reading:?}");
        }
    }

    #[test]
    fn who_says_what_is_told() {
        let (short, whole) = (list(1, "1 2").1, list(2, "1 2 3").1);
        let one = List { address: "http://a", ..of(1, &short, false) };
        let found = membership(&[one, List { address: "http://b", ..of(2, &whole, false) }]).unwrap();
        let expected = "members do not agree on the membership: http://b lists it; http://a does not list it";
        assert_eq!(found.disputed[&MemberId(3)], expected);
    }
}
