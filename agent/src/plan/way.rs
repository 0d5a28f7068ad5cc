//! What is known to hurt on the way of a whole cluster to a release, without a playbook: `agent check`.

use std::{
    cmp::Ordering,
    collections::{BTreeMap, BTreeSet},
};

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

/// The releases that every member shall run, one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    between: Vec<Release>,
    pub to: Release,
}

/// Releases that are not in the order in which members can get to them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{after} does not follow {before} on the way to {to}")]
pub struct OutOfOrder {
    before: Release,
    after: Release,
    to: Release,
}

impl Path {
    /// # Errors
    /// They lead up and down again.
    pub fn new(between: Vec<Release>, to: Release) -> Result<Self, OutOfOrder> {
        let path = Self { between, to };
        let side = path.releases().next().map(|first| first.cmp(&path.to));
        for (before, after) in path.releases().zip(path.releases().skip(1)) {
            if before == after || Some(before.cmp(after)) != side {
                let [before, after, to] = [before, after, &path.to].map(Release::clone);
                return Err(OutOfOrder { before, after, to });
            }
        }
        Ok(path)
    }

    /// In the order in which members get to them.
    pub fn releases(&self) -> impl Iterator<Item = &Release> + Clone {
        self.between.iter().chain([&self.to])
    }

    /// The hops of a member that runs this release: from, and to. None where it is there.
    fn hops<'a>(&'a self, now: &'a Release) -> impl Iterator<Item = (&'a Release, &'a Release)> {
        let side = self.to.cmp(now);
        let is_left = move |release: &&Release| side != Ordering::Equal && (*release).cmp(now) == side;
        let left = self.releases().filter(is_left);
        let before = [now].into_iter().chain(left.clone());
        before.zip(left)
    }
}

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
    pub path: &'a Path,
}

/// An entry of the catalogue that is met.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub hazard: &'static Hazard,
    /// The hop on which it is met, by the release that it leads to; `None` where it is met whatever the release.
    pub hop: Option<Release>,
    /// It is seen in a database now, and met on a later hop: the one before may mend it.
    pub is_to_be_seen_again: bool,
    /// Whom it concerns, and the members by which the database of each shows it, if it does.
    pub members: BTreeMap<MemberId, Vec<MemberId>>,
}

impl Finding {
    /// Nobody is refused for what may be mended by then.
    pub fn act(&self) -> Act {
        if self.is_to_be_seen_again { Act::Warn } else { self.hazard.act }
    }
}

impl<'a> Way<'a> {
    /// What is to be refused or warned of, the worst first.
    pub fn findings(&self) -> Vec<Finding> {
        let mut found: BTreeMap<(Act, Option<usize>, &str), Finding> = BTreeMap::new();
        let mut add = |hazard: &'static Hazard, hop: Option<&Release>, is_to_be_seen_again, member, by| {
            let finding = Finding { hazard, hop: hop.cloned(), is_to_be_seen_again, members: BTreeMap::new() };
            let at = self.path.releases().position(|release| Some(release) == hop);
            found.entry((finding.act(), at, hazard.id)).or_insert(finding).members.insert(member, by);
        };
        for (member, from, to) in self.hops() {
            let calls = |hazard: &&Hazard| [Act::Refuse, Act::Warn].iter().any(|act| hazard.calls_for(*act, from, to));
            hazards::all().filter(calls).for_each(|hazard| add(hazard, Some(to), false, member.id, Vec::new()));
            let is_later = member.release() != Some(from);
            let met = self.told.get(&member.id).map(|told| in_store::met(told, from, to));
            met.into_iter().flatten().for_each(|met| add(met.hazard, Some(to), is_later, member.id, met.members));
        }
        for difference in self.differences {
            let hazard = hazards::find(known::Hazard::of_difference(difference));
            let members = difference.members();
            hazard.into_iter().for_each(|hazard| {
                members.iter().for_each(|member| add(hazard, None, false, *member, Vec::new()));
            });
        }
        found.into_values().collect()
    }

    /// Why a release of the path may not follow the one before it, where that is so: etcd goes by one minor at a time, and not down
    /// below 3.5.
    pub fn too_far(&self) -> Option<String> {
        let is_too_far = |(from, to): &(&Release, &Release)| {
            let (from, to) = (from.cluster_version(), to.cluster_version());
            let is_next = from.major == to.major && from.minor.abs_diff(to.minor) <= 1;
            !is_next || (to < from && (to.major, to.minor) < LOWEST)
        };
        let mut hops = self.view.reports().flat_map(|report| self.path.hops(&report.release));
        let (from, to) = hops.find(is_too_far)?;
        Some(format!(
            "no hop goes from {from} to {to}: etcd goes by one minor at a time, and not down below 3.5; --via names a release of each minor in between"
        ))
    }

    /// Whose database is to be read, as anything that it may show matters on the way.
    pub fn to_be_read(&self) -> impl Iterator<Item = &'a Member> {
        let asked: BTreeSet<_> =
            self.hops().filter(|(_, from, to)| in_store::is_asked(from, to)).map(|(member, ..)| member.id).collect();
        self.view.members.iter().filter(move |member| asked.contains(&member.id))
    }

    /// The hops of each member that may be etcd's own: who, from, and to.
    fn hops(&self) -> impl Iterator<Item = (&'a Member, &'a Release, &'a Release)> {
        let (path, others) = (self.path, self.others);
        let running = self.view.members.iter().filter(|member| !others.contains(&member.id));
        running
            .filter_map(|member| Some((member, member.release()?)))
            .flat_map(|(member, now)| path.hops(now).map(move |(from, to)| (member, from, to)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        observe::{database::content::Content, directory::Listed, view::Role},
        plan::samples::{view, with_release},
    };

    fn path(releases: &str) -> Result<Path, OutOfOrder> {
        let mut releases: Vec<Release> = releases.split_whitespace().map(|release| release.parse().unwrap()).collect();
        let to = releases.pop().unwrap();
        Path::new(releases, to)
    }

    #[test]
    fn a_way_goes_by_one_minor_at_a_time() {
        for (from, path_to, goes) in [
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
            ("3.4.23", "3.5.33 3.6.14 3.7.1", true),
            ("3.4.23", "3.5.30 3.5.33 3.6.14", true),
            ("3.4.23", "3.6.14 3.7.1", false),
            ("3.4.23", "3.5.33 3.7.1", false),
            ("3.6.14", "3.5.33 3.6.14 3.7.1", true),
            ("3.7.1", "3.5.33 3.6.14 3.7.1", true),
            ("3.7.1", "3.6.14 3.5.33", true),
            ("3.7.1", "3.6.14 3.5.33 3.4.45", false),
        ] {
            let mut seen = view("1+ 2+ 3+");
            (0..3).for_each(|at| with_release(&mut seen, at, from));
            let (nobody, path) = (BTreeSet::new(), path(path_to).unwrap());
            let way = Way { view: &seen, others: &nobody, told: &BTreeMap::new(), differences: &[], path: &path };
            assert_eq!(way.too_far().is_none(), goes, "{from} to {path_to}: {:?}", way.too_far());
        }
    }

    #[test]
    fn a_path_leads_one_way() {
        for wrong in ["3.6.14 3.5.33 3.7.1", "3.5.33 3.5.33", "3.5.33 3.7.1 3.6.14", "3.6.14 3.6.14 3.7.1"] {
            path(wrong).unwrap_err();
        }
        let error = path("3.6.14 3.5.33 3.7.1").unwrap_err().to_string();
        assert_eq!(error, "3.5.33 does not follow 3.6.14 on the way to 3.7.1");
    }

    /// The findings of a member of this release, `id of TO` each, `~` before one that is to be seen again.
    fn found(from: &str, releases: &str, stored: &[u64]) -> Vec<String> {
        let (mut seen, path) = (view("1+"), path(releases).unwrap());
        with_release(&mut seen, 0, from);
        let listed = Listed {
            id: MemberId(1),
            name: String::new(),
            role: Role::Voter,
            client_urls: vec![],
            unused: vec![],
            serves_at_a_peer_url: false,
        };
        let members = stored.iter().map(|id| (MemberId(*id), Role::Voter)).collect();
        let told = Told { listed: vec![listed], content: Content { members, auth_is_on: false } };
        let (nobody, told) = (BTreeSet::new(), BTreeMap::from([(MemberId(1), told)]));
        let way = Way { view: &seen, others: &nobody, told: &told, differences: &[], path: &path };
        let findings = way.findings();
        let refused = findings.iter().filter(|one| one.hazard.act == Act::Refuse);
        let words = refused.map(|one| {
            let again = if one.is_to_be_seen_again { "~" } else { "" };
            format!("{again}{} of {}", one.hazard.id, one.hop.as_ref().unwrap())
        });
        words.collect()
    }

    #[test]
    fn each_hop_of_a_longer_way_is_looked_at() {
        let none: [&str; 0] = [];
        assert_eq!(found("3.4.23", "3.5.33 3.6.14 3.7.1", &[1]), none);
        // What is met by release is known beforehand.
        assert_eq!(found("3.4.23", "3.5.16 3.6.14", &[1]), ["floor-36 of 3.6.14"]);
        assert_eq!(found("3.5.16", "3.5.16 3.6.14", &[1]), ["floor-36 of 3.6.14"]);
        assert_eq!(found("3.5.16", "3.5.33 3.6.14", &[1]), none);
        // What a database shows now the patch in between may mend, and is seen again before the hop that it matters to.
        assert_eq!(found("3.5.21", "3.6.14", &[1, 9]), ["floor-36 of 3.6.14", "zombie-members of 3.6.14"]);
        assert_eq!(found("3.5.21", "3.5.33 3.6.14", &[1, 9]), ["~zombie-members of 3.6.14"]);
        assert_eq!(found("3.6.14", "3.5.33 3.6.14 3.7.1", &[1, 9]), none, "it is past that hop");
    }

    #[test]
    fn each_entry_names_those_whom_it_concerns() {
        let mut seen = view("1+ 2+ 3+");
        ["3.5.21", "3.5.33", "3.6.14"]
            .iter()
            .enumerate()
            .for_each(|(at, release)| with_release(&mut seen, at, release));
        let path = path("3.6.14").unwrap();
        let all = [1, 2, 3].map(MemberId);
        let listed = all.map(|id| Listed {
            id,
            name: String::new(),
            role: Role::Voter,
            client_urls: Vec::new(),
            unused: Vec::new(),
            serves_at_a_peer_url: false,
        });
        let members: BTreeMap<_, _> = all.into_iter().chain([MemberId(9)]).map(|id| (id, Role::Voter)).collect();
        let told = Told { listed: listed.to_vec(), content: Content { members, auth_is_on: false } };
        let told = BTreeMap::from([(MemberId(2), told)]);
        let nobody = BTreeSet::new();
        let way = Way { view: &seen, others: &nobody, told: &told, differences: &[], path: &path };
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
