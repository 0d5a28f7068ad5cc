//! What is known to hurt on the way of a whole cluster to a release, without a playbook: `agent check`.

use std::collections::{BTreeMap, BTreeSet};

use proto::{MemberId, Release};

use super::{hazard as known, in_store};
use crate::{
    hazards::{self, Act, Hazard},
    observe::{
        database::Told,
        difference::Difference,
        view::{ClusterView, Member},
    },
};

/// Below it no data is understood that a later release has written.
const LOWEST: (u64, u64) = (3, 5);

/// What is known of a cluster that is to change its release.
#[derive(Clone, Copy, Debug)]
pub struct Way<'a> {
    pub view: &'a ClusterView,
    /// Who is no etcd, and says so; the catalogue is about no other program. Whoever does not say it is taken for one.
    pub others: &'a BTreeSet<MemberId>,
    /// What was read of whom.
    pub told: &'a BTreeMap<MemberId, Told>,
    /// What members hold differently.
    pub differences: &'a [Difference],
    pub to: &'a Release,
}

/// An entry of the catalogue that is met.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub hazard: &'static Hazard,
    /// Whom it concerns, and the members by which the database of each shows it, if it does.
    pub members: BTreeMap<MemberId, Vec<MemberId>>,
}

impl<'a> Way<'a> {
    /// What is to be refused or warned of, the worst first.
    pub fn findings(&self) -> Vec<Finding> {
        let mut found: BTreeMap<(Act, &str), Finding> = BTreeMap::new();
        let mut add = |hazard: &'static Hazard, member, by| {
            let finding = || Finding { hazard, members: BTreeMap::new() };
            found.entry((hazard.act, hazard.id)).or_insert_with(finding).members.insert(member, by);
        };
        for (member, from) in self.those_to_go() {
            let calls =
                |hazard: &&Hazard| [Act::Refuse, Act::Warn].iter().any(|act| hazard.calls_for(*act, from, self.to));
            hazards::all().filter(calls).for_each(|hazard| add(hazard, member.id, Vec::new()));
            let met = self.told.get(&member.id).map(|told| in_store::met(told, from, self.to));
            met.into_iter().flatten().for_each(|met| add(met.hazard, member.id, met.members));
        }
        for difference in self.differences {
            let hazard = hazards::find(known::Hazard::of_difference(difference));
            let members = difference.members();
            hazard.into_iter().for_each(|hazard| members.iter().for_each(|member| add(hazard, *member, Vec::new())));
        }
        found.into_values().collect()
    }

    /// Why no release such as this may follow what members run, where that is so: etcd goes by one minor at a time, and not down below
    /// 3.5.
    pub fn too_far(&self) -> Option<String> {
        let to = self.to.cluster_version();
        let is_too_far = |from: &&Release| {
            let from = from.cluster_version();
            let is_next = from.major == to.major && from.minor.abs_diff(to.minor) <= 1;
            !is_next || (to < from && (to.major, to.minor) < LOWEST)
        };
        let from = self.view.reports().map(|report| &report.release).find(is_too_far)?;
        Some(format!(
            "no hop goes from {from} to {}: etcd goes by one minor at a time, and not down below 3.5; look at each hop of a longer way by itself",
            self.to
        ))
    }

    /// Whose database is to be read, as anything that it may show matters.
    pub fn to_be_read(&self) -> impl Iterator<Item = &'a Member> {
        let to = self.to;
        self.those_to_go().filter(move |(_, from)| in_store::is_asked(from, to)).map(|(member, _)| member)
    }

    /// Members that may be etcd's own, and do not run the target yet, with what they run.
    fn those_to_go(&self) -> impl Iterator<Item = (&'a Member, &'a Release)> {
        let (to, others) = (self.to, self.others);
        let running = self.view.members.iter().filter_map(|member| Some((member, member.release()?)));
        running.filter(move |(member, from)| *from != to && !others.contains(&member.id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        observe::{database::content::Content, directory::Listed, view::Role},
        plan::samples::{view, with_release},
    };

    #[test]
    fn a_way_goes_by_one_minor_at_a_time() {
        for (from, to, goes) in [
            ("3.5.30", "3.6.14", true),
            ("3.5.30", "3.5.33", true),
            ("3.5.33", "3.5.30", true),
            ("3.6.14", "3.5.30", true),
            ("3.6.14", "3.7.1", true),
            ("3.4.23", "3.4.45", true),
            ("3.4.23", "3.6.14", false),
            ("3.5.30", "3.4.45", false),
            ("3.6.14", "3.4.23", false),
            ("3.6.14", "2.3.0", false),
            ("3.6.14", "4.6.0", false),
            ("3.5.30", "99999999999.0.0", false),
        ] {
            let mut seen = view("1+ 2+ 3+");
            (0..3).for_each(|at| with_release(&mut seen, at, from));
            let (nobody, to) = (BTreeSet::new(), to.parse().unwrap());
            let way = Way { view: &seen, others: &nobody, told: &BTreeMap::new(), differences: &[], to: &to };
            assert_eq!(way.too_far().is_none(), goes, "{from} to {to}: {:?}", way.too_far());
        }
    }

    #[test]
    fn each_entry_names_those_whom_it_concerns() {
        let mut seen = view("1+ 2+ 3+");
        ["3.5.21", "3.5.33", "3.6.14"]
            .iter()
            .enumerate()
            .for_each(|(at, release)| with_release(&mut seen, at, release));
        let to = "3.6.14".parse().unwrap();
        let all = [1, 2, 3].map(MemberId);
        let listed = all.map(|id| Listed {
            id,
            name: String::new(),
            role: Role::Voter,
            client_urls: Vec::new(),
            unused: Vec::new(),
        });
        let members: BTreeMap<_, _> = all.into_iter().chain([MemberId(9)]).map(|id| (id, Role::Voter)).collect();
        let told = Told { listed: listed.to_vec(), content: Content { members, auth_is_on: false } };
        let told = BTreeMap::from([(MemberId(2), told)]);
        let nobody = BTreeSet::new();
        let way = Way { view: &seen, others: &nobody, told: &told, differences: &[], to: &to };
        assert_eq!(way.to_be_read().map(|member| member.id.0).collect::<Vec<_>>(), [1, 2]);
        let found = way.findings();
        let found: Vec<_> = found.iter().map(|one| (one.hazard.id, one.members.clone())).collect();
        assert_eq!(found[0], ("floor-36", [(MemberId(1), vec![])].into()));
        assert_eq!(found[1], ("zombie-members", [(MemberId(2), vec![MemberId(9)])].into()));
        assert!(found.iter().all(|(_, members)| !members.contains_key(&MemberId(3))), "it is there already");
        let of = vec![(MemberId(1), 4), (MemberId(3), 5)];
        let differs = Way { differences: &[Difference::Users { of }], ..way }.findings();
        let users: Vec<_> = differs.iter().filter(|one| one.hazard.id == "users-differ").collect();
        assert_eq!(users[0].members.keys().map(|id| id.0).collect::<Vec<_>>(), [1, 3]);
        let others = all.into();
        assert!(Way { others: &others, ..way }.findings().is_empty(), "it is no etcd");
    }
}
