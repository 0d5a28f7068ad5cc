//! Whose answer counts at which address.
//!
//! Pure. What a member advertises it alone decides, and one that lies may advertise what it likes: others' addresses,
//! so that nobody has one of its own, or none. So it is never enough that nobody else is known to be at an address.

use proto::MemberId;

use super::{
    directory::{Listed, sole_owner},
    view::Role,
};

/// Why an address speaks for a member: the last is the best reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Voice {
    /// Nobody advertises it, the playbook has it, and there is nothing better.
    Unclaimed,
    /// It advertises it, as others do.
    Shared,
    Own,
}

/// What one look knows of addresses.
#[derive(Debug)]
pub(super) struct Voices<'a> {
    pub members: &'a [Listed],
    /// The playbook's endpoints.
    pub endpoints: &'a [String],
    pub answers: Vec<(&'a str, MemberId)>,
    /// Whether voters are reached as they advertise ([`is_reached_as_advertised`]). Then each has to be.
    pub as_advertised: bool,
}

impl Voices<'_> {
    /// Why this address speaks for this member; `None` where it does not (I-5). One that others advertise, and not this
    /// member, never does; one that only somebody's earlier list had is nobody's.
    pub(super) fn of(&self, member: &Listed, address: &str) -> Option<Voice> {
        if member.advertises(address) {
            return match sole_owner(self.members, address) {
                Some(_) => Some(Voice::Own),
                None => self.shares(member).then_some(Voice::Shared),
            };
        }
        let is_in_playbook = self.endpoints.iter().any(|endpoint| endpoint == address);
        (!self.as_advertised && is_in_playbook && self.is_unclaimed(address)).then_some(Voice::Unclaimed)
    }

    /// Whether nobody advertises it.
    pub(super) fn is_unclaimed(&self, address: &str) -> bool {
        !self.members.iter().any(|member| member.advertises(address))
    }

    /// Whether what this member advertises together with others speaks for it: where it is silent at another address of
    /// its own, whoever else is behind a balancer could say that it is this one.
    fn shares(&self, member: &Listed) -> bool {
        let answers = |url: &String| self.answers.iter().any(|(at, id)| at == url && *id == member.id);
        !self.as_advertised || member.client_urls.iter().all(answers)
    }
}

/// Whether a voter answers where it says itself that it serves clients. Then whoever is behind an address of the playbook
/// that nobody advertises could speak for one who is dead, and speaks for nobody. Where nobody is reached as advertised,
/// as across an address translation, there is nothing better than such addresses.
///
/// That others advertise that address, too, changes nothing, nor does it that some list has another one: one liar could do
/// either. Only where all voters advertise it, as a balancer or their own loopback, does it show nothing.
pub(super) fn is_reached_as_advertised<'a>(
    members: &'a [Listed],
    lists: impl Iterator<Item = &'a [Listed]>,
    answers: &[(&str, MemberId)],
) -> bool {
    let is_voter = |id| members.iter().any(|member| member.id == id && member.role == Role::Voter);
    let reached: Vec<_> = answers.iter().filter(|(_, id)| is_voter(*id)).collect();
    let advertises = |list: &[Listed], address: &str, id| {
        list.iter().any(|member| member.id == id && member.advertises(address)) && !is_everybodys(list, address)
    };
    lists.chain([members]).any(|list| reached.iter().any(|(address, id)| advertises(list, address, *id)))
}

/// Whether all voters advertise it, as far as they advertise anything, and there are several.
fn is_everybodys(list: &[Listed], address: &str) -> bool {
    let mut voters = list.iter().filter(|member| member.role == Role::Voter && !member.client_urls.is_empty());
    voters.clone().count() > 1 && voters.all(|voter| voter.advertises(address))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Members as a word each, `2=b,c` or, for a learner, `2l=b,c`: what it advertises.
    fn list(text: &str) -> Vec<Listed> {
        let member = |word: &str| {
            let (who, urls) = word.split_once('=').unwrap();
            let role = if who.ends_with('l') { Role::Learner } else { Role::Voter };
            let id = MemberId(who.trim_end_matches('l').parse().unwrap());
            let client_urls = urls.split(',').filter(|url| !url.is_empty()).map(str::to_owned).collect();
            Listed { id, name: String::new(), role, client_urls, unused: vec![], serves_at_a_peer_url: false }
        };
        text.split_whitespace().map(member).collect()
    }

    fn answers(text: &'static str) -> Vec<(&'static str, MemberId)> {
        let answer = |word: &'static str| word.split_once(':').map(|(at, id)| (at, MemberId(id.parse().unwrap())));
        text.split_whitespace().filter_map(answer).collect()
    }

    #[test]
    fn one_who_lies_cannot_have_nobody_reached_as_advertised() {
        for (members, said, expected) in [
            ("1=a 2=b 3=c", "c:3", true),
            ("1=a 2=b 3=c", "x:1 y:2 z:3", false), // across an address translation
            ("1=a 2=b 3=c", "a:2 b:1", false),
            ("1=c 2=b 3=c", "x:1 y:2 c:3", true), // the liar advertises another's address
            ("1=b,c 2=b 3=c", "x:1 y:2 c:3", true),
            ("1=b,c 2=b 3=c 4l=x", "x:4 y:2 c:3", true),
            ("1=c,x 2=b 3=c 4l=x,z", "x:1 z:4 c:3", true),
            ("1=a 2=b 3=c 4l=d", "d:4", false),   // a learner shows nothing
            ("1=l 2=l 3=l", "l:3 y:2", false),    // everybody's loopback, or a balancer
            ("1=l 2=l 3= 4=l", "l:1 y:2", false), // one has never started
            ("1=l,a 2=l,b 3=l,c", "l:3", false),
            ("1=l,a 2=l,b 3=l,c", "l:1 c:3", true),
            ("1=a", "a:1", true),
        ] {
            let (members, said) = (list(members), answers(said));
            assert_eq!(is_reached_as_advertised(&members, [].into_iter(), &said), expected, "{members:?} {said:?}");
        }
        // More lists than one have m3 elsewhere.
        let (members, honest) = (list("1=x 2=y 3=z"), list("1=c 2=b 3=c"));
        let lists = [&*members, &*members, &*honest];
        assert!(is_reached_as_advertised(&members, lists.into_iter(), &answers("x:1 y:2 c:3")));
    }

    /// Where voters are reached as they advertise, and where they are not.
    #[test]
    fn an_address_speaks_for_whoever_advertises_it() {
        use Voice::{Own, Shared, Unclaimed};
        let endpoints = ["x".to_owned(), "c".to_owned()];
        for (members, said, of, at, then, else_) in [
            ("1=a 2=b", "a:1", 1, "a", Some(Own), Some(Own)),
            ("1=a 2=b", "a:1", 2, "a", None, None),
            ("1=a 2=b", "x:2", 2, "x", None, Some(Unclaimed)),
            ("1=a 2=b", "y:2", 2, "y", None, None), // somebody's earlier list had it
            ("1=b 2=b", "b:2", 2, "b", Some(Shared), Some(Shared)),
            // The liar is behind what two others advertise, or itself does.
            ("1=c 2=b 3=c", "c:2", 2, "c", None, None),
            ("1=x 2=b 3l=x,z", "x:2", 2, "x", None, None),
            // Behind a balancer it says that it is one who is silent at an address of its own.
            ("1=l 2=l,b 3=l,c", "l:2 c:3", 2, "l", None, Some(Shared)),
            ("1=b 2=l,b 3=l,c", "l:2 c:3", 2, "l", None, Some(Shared)),
            ("1=b 2=l,b 3=l,c", "l:2 b:2", 2, "b", Some(Shared), Some(Shared)),
        ] {
            let (members, answers) = (list(members), answers(said));
            let of = members.iter().find(|member| member.id == MemberId(of)).unwrap();
            for (as_advertised, expected) in [(true, then), (false, else_)] {
                let voices =
                    Voices { members: &members, endpoints: &endpoints, answers: answers.clone(), as_advertised };
                assert_eq!(voices.of(of, at), expected, "{members:?} {said} {as_advertised}");
            }
        }
        assert!(Own > Shared && Shared > Unclaimed);
    }
}
