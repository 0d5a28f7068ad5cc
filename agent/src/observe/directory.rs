//! Who is where: the playbook's endpoints, what members advertise, and who answered at which address.
//!
//! Holds addresses only, no connections. An address says who it is by answering with that member's id; what a member
//! advertises is a claim until then.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, MutexGuard, PoisonError},
};

use proto::{ClusterId, MemberId, etcdserverpb::ResponseHeader};

use super::view::Role;

/// The addresses of one cluster; grows with every look.
#[derive(Debug)]
pub struct Directory {
    endpoints: Vec<String>,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    cluster: Option<ClusterId>,
    members: Vec<Listed>,
    answered: BTreeMap<String, MemberId>,
    chosen: BTreeMap<MemberId, String>,
    /// Listed, and without an answer to the last look.
    silent: BTreeSet<MemberId>,
    home: BTreeSet<MemberId>,
    /// Whether a voter was ever reached as it advertises.
    as_advertised: bool,
}

/// A member as the membership lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    pub id: MemberId,
    /// Its name; empty while it has never started.
    pub name: String,
    pub role: Role,
    /// Where it says it serves clients, as far as that may be asked.
    pub client_urls: Vec<String>,
    /// What else it advertises, and why that is not asked: a sentence each.
    pub unused: Vec<String>,
    /// Whether a URL of these is one at which it serves other members, too.
    pub serves_at_a_peer_url: bool,
}

impl Listed {
    /// Whether it is listed as a member is that was added and never started.
    pub fn has_never_started(&self) -> bool {
        self.name.is_empty() && self.client_urls.is_empty() && self.unused.is_empty()
    }

    /// Whether it says that it serves clients there.
    pub fn advertises(&self, address: &str) -> bool {
        self.client_urls.iter().any(|url| url == address)
    }
}

/// What one look found out about addresses.
#[derive(Debug)]
pub struct Findings {
    pub cluster: ClusterId,
    pub members: Vec<Listed>,
    pub answered: BTreeMap<String, MemberId>,
    /// Where each member that answered is asked.
    pub chosen: BTreeMap<MemberId, String>,
}

impl Directory {
    /// Starts with the playbook's endpoints.
    pub fn new(endpoints: impl IntoIterator<Item = String>) -> Self {
        Self { endpoints: endpoints.into_iter().collect(), known: Mutex::default() }
    }

    /// Every address there is, the playbook's first.
    pub fn addresses(&self) -> Vec<String> {
        let known = self.known();
        let mut seen = BTreeSet::new();
        let advertised = known.members.iter().flat_map(|member| &member.client_urls);
        self.endpoints.iter().chain(advertised).filter(|address| seen.insert(*address)).cloned().collect()
    }

    /// From now on calls of the whole cluster go through these members first: this host's own. A host that trusts its
    /// own member is deceived by no other, and no member answers for all hosts at once.
    pub fn prefer(&self, members: &[MemberId]) {
        self.known().home = members.iter().copied().collect();
    }

    /// Addresses to send a call of the whole cluster through: not through a learner, which refuses most calls, nor
    /// through `excluded`. This host's own members come first, then those that are known to belong to somebody, then those
    /// that speak for nobody; whoever was silent at the last look comes last, for each call would wait for it.
    pub fn routes(&self, excluded: Option<MemberId>) -> Vec<String> {
        let known = self.known();
        let mut addresses: Vec<_> = known.chosen.iter().map(|(id, address)| (Some(*id), address.clone())).collect();
        let more = self.endpoints.iter().chain(known.members.iter().flat_map(|member| &member.client_urls));
        for address in more {
            if addresses.iter().all(|(_, listed)| listed != address) {
                addresses.push((known.owner(address), address.clone()));
            }
        }
        addresses.sort_by_key(|(owner, address)| match owner {
            Some(id) if known.silent.contains(id) => 3,
            // Whoever says there that it is this host's own member may be any other.
            _ if !known.speaks(address) => 2,
            Some(id) if known.home.contains(id) => 0,
            _ => 1,
        });
        let serves = |id: Option<MemberId>| id.is_none_or(|id| Some(id) != excluded && !known.is_learner(id));
        addresses.into_iter().filter(|(owner, _)| serves(*owner)).map(|(_, address)| address).collect()
    }

    /// The membership, as the last look found it.
    pub fn members(&self) -> Vec<Listed> {
        self.known().members.clone()
    }

    /// Where this member was reached last.
    pub fn address_of(&self, member: MemberId) -> Option<String> {
        self.known().chosen.get(&member).cloned()
    }

    /// Whether this member advertises the address, and nobody else does.
    pub fn is_own(&self, member: MemberId, address: &str) -> bool {
        sole_owner(&self.known().members, address) == Some(member)
    }

    /// Whose address this is: who answered there last, else who alone advertises it.
    pub fn owner(&self, address: &str) -> Option<MemberId> {
        self.known().owner(address)
    }

    /// Whether `other` is known to be another member's than `address`: a member was reached there at the last look, and
    /// nobody who answered at the one, or alone advertises it, does so at the other. One member may have many addresses.
    pub fn is_elsewhere(&self, other: &str, address: &str) -> bool {
        let known = self.known();
        let is_reached = known.chosen.iter().any(|(id, chosen)| chosen == other && !known.silent.contains(id));
        is_reached && known.owners(other).is_disjoint(&known.owners(address))
    }

    /// Whether voters are reached as they advertise: once one was, for good. Else a member that dies would have the others
    /// looked for at worse addresses.
    pub fn as_advertised(&self, now: bool) -> bool {
        let mut known = self.known();
        known.as_advertised |= now;
        known.as_advertised
    }

    /// The cluster that all of this is about, once one look was made.
    pub fn cluster(&self) -> Option<ClusterId> {
        self.known().cluster
    }

    /// The cluster that an answer comes from, where it is another one than this.
    pub fn foreign(&self, header: Option<&ResponseHeader>) -> Option<ClusterId> {
        let from = header.map(|header| ClusterId(header.cluster_id)).filter(|cluster| cluster.0 != 0);
        from.filter(|from| self.cluster().is_some_and(|cluster| cluster != *from))
    }

    /// The playbook's endpoints alone.
    pub fn endpoints(&self) -> &[String] {
        &self.endpoints
    }

    /// From now on all of this is about that cluster; what another one answers is no answer.
    pub fn settle(&self, cluster: ClusterId) {
        self.known().cluster = Some(cluster);
    }

    /// Whether token and password may be sent to this address: nobody reads an https address on its way and its
    /// certificate is looked at, and an http one is the playbook's own choice.
    pub fn may_have_secrets(&self, address: &str) -> bool {
        address.starts_with("https://") || self.endpoints.iter().any(|endpoint| endpoint == address)
    }

    /// Takes over what a look found. Addresses that nobody advertises any more are forgotten.
    pub fn learn(&self, found: Findings) {
        let Findings { cluster, members, answered, chosen } = found;
        let mut known = self.known();
        known.cluster = Some(cluster);
        known.chosen.retain(|id, _| members.iter().any(|member| member.id == *id));
        known.silent = members.iter().map(|member| member.id).filter(|id| !chosen.contains_key(id)).collect();
        known.chosen.extend(chosen);
        known.members = members;
        known.answered.extend(answered);
        let mut answered = std::mem::take(&mut known.answered);
        answered.retain(|address, _| self.endpoints.contains(address) || known.lists(address));
        known.answered = answered;
    }

    /// Nothing here panics with the lock held, so what a poisoned lock guards is whole.
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn owner(&self, address: &str) -> Option<MemberId> {
        self.answered.get(address).copied().or_else(|| sole_owner(&self.members, address))
    }

    fn owners(&self, address: &str) -> BTreeSet<MemberId> {
        let chosen = self.chosen.iter().filter(|(_, chosen)| *chosen == address).map(|(id, _)| *id);
        let answered = self.answered.get(address).copied();
        chosen.chain(answered).chain(sole_owner(&self.members, address)).collect()
    }

    /// Whether what is said there is a member's: once it was reached there, or it alone advertises it.
    fn speaks(&self, address: &str) -> bool {
        sole_owner(&self.members, address).is_some() || self.chosen.values().any(|chosen| chosen == address)
    }

    fn lists(&self, address: &str) -> bool {
        self.members.iter().any(|member| member.advertises(address))
            || self.chosen.values().any(|chosen| chosen == address)
    }

    fn is_learner(&self, id: MemberId) -> bool {
        self.members.iter().any(|member| member.id == id && member.role == Role::Learner)
    }
}

/// The one member that advertises this address; none if several do.
pub fn sole_owner(members: &[Listed], address: &str) -> Option<MemberId> {
    let mut owners = members.iter().filter(|member| member.advertises(address));
    match (owners.next(), owners.next()) {
        (Some(owner), None) => Some(owner.id),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(id: u64, role: Role, urls: &[&str]) -> Listed {
        let client_urls = urls.iter().map(|url| (*url).to_owned()).collect();
        Listed {
            id: MemberId(id),
            name: format!("m{id}"),
            role,
            client_urls,
            unused: Vec::new(),
            serves_at_a_peer_url: false,
        }
    }

    #[test]
    fn calls_do_not_go_through_a_learner_or_the_excluded_member() {
        let directory = Directory::new(["http://lb".to_owned(), "http://one".to_owned()]);
        assert_eq!(directory.routes(None), ["http://lb", "http://one"]);
        directory.learn(Findings {
            cluster: ClusterId(1),
            members: vec![
                member(1, Role::Voter, &["http://one"]),
                member(2, Role::Voter, &["http://two"]),
                member(3, Role::Learner, &["http://three"]),
            ],
            answered: BTreeMap::from([("http://two".to_owned(), MemberId(2))]),
            chosen: BTreeMap::from([(MemberId(2), "http://two".to_owned())]),
        });
        for (excluded, routes) in [
            (None, vec!["http://two", "http://lb", "http://one"]),
            (Some(1), vec!["http://two", "http://lb"]),
            (Some(2), vec!["http://lb", "http://one"]),
        ] {
            assert_eq!(directory.routes(excluded.map(MemberId)), routes, "without {excluded:?}");
        }
        assert_eq!(directory.addresses(), ["http://lb", "http://one", "http://two", "http://three"]);
        let from = |cluster_id| ResponseHeader { cluster_id, ..Default::default() };
        assert_eq!(directory.foreign(Some(&from(1))), None);
        assert_eq!(directory.foreign(Some(&from(2))), Some(ClusterId(2)), "an address that leads elsewhere");
        assert_eq!(Directory::new([]).foreign(Some(&from(2))), None, "before anybody was seen");
        for (address, may) in [("http://lb", true), ("http://two", false), ("https://two", true)] {
            assert_eq!(directory.may_have_secrets(address), may, "{address}");
        }
    }

    #[test]
    fn calls_go_through_this_hosts_own_members_first() {
        let directory = Directory::new([]);
        let url = |id: u64| format!("http://{id}");
        let members: Vec<_> = (1..=3).map(|id| member(id, Role::Voter, &[&url(id)])).collect();
        let answered = BTreeMap::from([(url(1), MemberId(1))]);
        let chosen: BTreeMap<_, _> = (1..=3).map(|id| (MemberId(id), url(id))).collect();
        let found = |members: &Vec<Listed>, chosen| Findings {
            cluster: ClusterId(1),
            members: members.clone(),
            answered: answered.clone(),
            chosen,
        };
        directory.learn(found(&members, chosen));
        for (home, excluded, expected) in
            [(vec![], None, [1, 2, 3].as_slice()), (vec![3], None, &[3, 1, 2]), (vec![3], Some(3), &[1, 2])]
        {
            directory.prefer(&home.iter().copied().map(MemberId).collect::<Vec<_>>());
            let expected: Vec<_> = expected.iter().copied().map(url).collect();
            assert_eq!(directory.routes(excluded.map(MemberId)), expected, "{home:?} {excluded:?}");
        }
        // Frozen, it would cost each call its time.
        directory.learn(found(&members, BTreeMap::from([1, 2].map(|id| (MemberId(id), url(id))))));
        assert_eq!(directory.routes(None), [1, 2, 3].map(url));
    }

    /// A member that says another's id at one of its addresses is at both all the same.
    #[test]
    fn only_where_another_member_was_reached_is_elsewhere() {
        let directory = Directory::new(["http://lb".to_owned()]);
        let members = [
            member(1, Role::Voter, &["http://a", "http://b"]),
            member(2, Role::Voter, &["http://c"]),
            member(3, Role::Voter, &["http://d"]),
        ];
        let answered = [("http://a", 2), ("http://b", 1), ("http://d", 3), ("http://lb", 3)]
            .map(|(at, id)| (at.to_owned(), MemberId(id)));
        let learn = |chosen: &[(u64, &str)]| {
            let (members, answered) = (members.to_vec(), answered.clone().into());
            let chosen = chosen.iter().map(|(id, at)| (MemberId(*id), (*at).to_owned())).collect();
            directory.learn(Findings { cluster: ClusterId(1), members, answered, chosen });
        };
        learn(&[(1, "http://b")]);
        for (address, expected) in [("http://a", false), ("http://b", false), ("http://c", true), ("http://d", true)] {
            assert_eq!(directory.is_elsewhere("http://b", address), expected, "{address}");
        }
        // Nobody was reached there, though one alone advertises it, or somebody answers.
        for other in ["http://c", "http://d", "http://lb"] {
            assert!(!directory.is_elsewhere(other, "http://b"), "{other}");
        }
        learn(&[(1, "http://b"), (3, "http://lb")]);
        assert!(directory.is_elsewhere("http://lb", "http://b"), "it speaks for that member");
        learn(&[(1, "http://b")]);
        assert!(!directory.is_elsewhere("http://lb", "http://b"), "it was reached there once");
    }

    /// Nor where it says that it is this host's own member.
    #[test]
    fn calls_go_last_through_an_address_that_speaks_for_nobody() {
        let directory = Directory::new(["http://lb".to_owned()]);
        let url = |id: u64| format!("http://{id}");
        let members: Vec<_> = (1..=3).map(|id| member(id, Role::Voter, &[&url(id)])).collect();
        let chosen: BTreeMap<_, _> = (1..=2).map(|id| (MemberId(id), url(id))).collect();
        let answered = BTreeMap::from([("http://lb".to_owned(), MemberId(2))]);
        directory.learn(Findings { cluster: ClusterId(1), members, answered, chosen });
        directory.prefer(&[MemberId(2)]);
        assert_eq!(directory.routes(None), ["http://2", "http://1", "http://lb", "http://3"]);
        assert_eq!(directory.routes(Some(MemberId(2))), ["http://1", "http://3"]);
    }

    #[test]
    fn who_was_reached_as_it_advertises_is_not_forgotten() {
        let directory = Directory::new([]);
        assert_eq!([false, true, false].map(|now| directory.as_advertised(now)), [false, true, true]);
    }

    #[test]
    fn an_address_that_several_advertise_is_nobodys() {
        let members = [member(1, Role::Voter, &["http://lb", "http://a"]), member(2, Role::Voter, &["http://lb"])];
        assert_eq!(sole_owner(&members, "http://a"), Some(MemberId(1)));
        assert_eq!(sole_owner(&members, "http://lb"), None);
        assert_eq!(sole_owner(&members, "http://c"), None);
    }
}
