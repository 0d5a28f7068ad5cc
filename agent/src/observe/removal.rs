//! Whether a member was removed from the cluster. One liar could leave it out of its list, so a majority must have done so.
//!
//! Pure. A look's membership has whoever any list has (`membership.rs`), so a member that is not in it is listed by nobody
//! who answered. What is left to be known is that those who answered are enough.

use std::sync::Arc;

use proto::MemberId;

use super::view::{ClusterView, Member};

impl ClusterView {
    /// The names of those who list this member no more, where they are a majority of the voters before, each reached where
    /// it alone said then that it serves clients; else `None`. One liar answers at many addresses, but at no other's. Without
    /// a view from before, of the voters that are listed now and this member.
    pub fn removed_by(&self, member: MemberId, before: Option<&Self>) -> Option<Vec<Arc<str>>> {
        self.leader()?;
        if self.member(member).is_some() {
            return None;
        }
        let before = before.filter(|before| before.member(member).is_some());
        let then = before.unwrap_or(self);
        let is_its_own = |voter: &Member, address: &String| {
            let mut advertise = then.members.iter().filter(|member| member.client_urls.contains(address));
            advertise.next().is_some_and(|member| member.id == voter.id) && advertise.next().is_none()
        };
        // Ready: its list counts, and nobody disputes who it is.
        let is_heard = |voter: &&Member| {
            let now = self.member(voter.id).filter(|now| now.is_ready());
            now.and_then(|now| now.reached.as_ref()).is_some_and(|address| is_its_own(voter, address))
        };
        let voters = then.voters();
        let all = before.map_or_else(|| self.voters().count() + 1, |before| before.voters().count());
        let heard: Vec<_> = voters.filter(is_heard).map(|voter| voter.name.clone()).collect();
        (heard.len() > all / 2).then_some(heard)
    }

    /// Whether this view is one to judge a removal by: there is nothing in it that anybody disputes.
    pub fn is_whole(&self) -> bool {
        self.leader().is_some() && self.members.iter().all(Member::is_ready)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::samples::view;

    #[test]
    fn a_member_was_removed_where_a_majority_of_the_voters_before_says_so() {
        for (before, now, by) in [
            ("1+ 2+ 3+", "2+ 3+", Some(2)),
            ("1+ 2+ 3+", "2+ 3.", None),             // one alone
            ("1+ 2+ 3+", "2+ 3. 8+ 9+", None),       // and with others that it made up
            ("1+ 2+ 3+", "1. 2+ 3+", None),          // somebody lists it
            ("1+ 2+ 3+ 4+ 5+", "2+ 3+ 4. 5.", None), // half of those that are left
            ("1+ 2+ 3+ 4+ 5+", "2+ 3+ 4+ 5.", Some(3)),
            ("", "2+ 3+", Some(2)), // a new process
            ("", "2+ 3.", None),
            ("", "2+", None),
            ("2+ 3+", "2+ 3+", Some(2)), // a view from before that did not have it either
        ] {
            let before = (!before.is_empty()).then(|| view(before));
            let found = view(now).removed_by(MemberId(1), before.as_ref());
            assert_eq!(found.map(|by| by.len()), by, "{before:?} {now}");
        }
    }

    #[test]
    fn one_that_answers_elsewhere_than_before_is_not_counted() {
        let (before, mut now) = (view("1+ 2+ 3+"), view("2+ 3+"));
        now.members[1].reached = Some("http://elsewhere".to_owned());
        assert_eq!(now.removed_by(MemberId(1), Some(&before)), None);
        // Even if it advertises that now.
        now.members[1].client_urls = vec!["http://elsewhere".to_owned()];
        assert_eq!(now.removed_by(MemberId(1), Some(&before)), None);
        assert!(!view("1+ 2+ 3.").is_whole() && before.is_whole());
    }

    /// One liar may be behind both, and answer for one who is dead.
    #[test]
    fn one_whose_address_others_advertise_as_well_is_not_counted() {
        let (mut before, mut now) = (view("1+ 2+ 3+"), view("2+ 3+"));
        before.members[1].client_urls.push("http://3".to_owned());
        assert_eq!(now.removed_by(MemberId(1), Some(&before)), None);
        // A member that was removed together with it may have had it, too.
        before = view("1+ 2+ 3+");
        before.members[0].client_urls.push("http://3".to_owned());
        assert_eq!(now.removed_by(MemberId(1), Some(&before)), None);
        now.members[0].client_urls.push("http://3".to_owned());
        assert_eq!(now.removed_by(MemberId(1), None), None);
        assert!(now.removed_by(MemberId(1), Some(&view("1+ 2+ 3+"))).is_some(), "it was its own before");
    }
}
