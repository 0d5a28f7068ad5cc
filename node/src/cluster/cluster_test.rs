#[path = "cluster_downgrade_test.rs"]
mod downgrade;

use std::collections::BTreeSet;

use super::{
    entry::Entry,
    leader_proposals::{Heard, Own, awaited, of_leader, of_member},
    member::{Attributes, Proposal, StartId, Starts},
    *,
};
use crate::features::{Feature, LEASE_CHECKPOINT, Level, Overrides, Spec, Stage};

const V3_5: ClusterVersion = ClusterVersion { major: 3, minor: 5 };
const V3_6: ClusterVersion = ClusterVersion { major: 3, minor: 6 };
const V3_7: ClusterVersion = ClusterVersion { major: 3, minor: 7 };

/// A new feature, one that comes on by itself, one that gets locked, and a server's own.
const KNOWN: &[Feature] = &[
    Feature { name: "New", level: Level::Cluster, specs: &[spec(V3_7, false, Stage::Alpha, false)] },
    Feature {
        name: LEASE_CHECKPOINT,
        level: Level::Cluster,
        specs: &[spec(V3_6, false, Stage::Alpha, false), spec(V3_7, true, Stage::Beta, false)],
    },
    Feature {
        name: "Locked",
        level: Level::Cluster,
        specs: &[spec(V3_6, true, Stage::Ga, false), spec(V3_7, true, Stage::Deprecated, true)],
    },
    Feature { name: "Own", level: Level::Server, specs: &[spec(V3_6, true, Stage::Beta, false)] },
];

const fn spec(since: ClusterVersion, default: bool, stage: Stage, is_locked: bool) -> Spec {
    Spec { since, patch: 0, default, stage, is_locked }
}

fn known(release: &str) -> Registry {
    Registry::over(KNOWN, &release.parse().unwrap())
}

fn id(number: u64) -> MemberId {
    MemberId(number)
}

/// A log that three members apply at once, each of whom runs a release with its flags.
struct Bench {
    cluster: Cluster,
    index: u64,
    members: Vec<(Own, &'static str)>,
}

impl Bench {
    fn new(releases: [&'static str; 3]) -> Self {
        let own = |number: u64| Own {
            id: id(number),
            starts: Starts(1),
            start_id: None,
            incarnation: None,
            name: format!("m{number}"),
            client_urls: vec![format!("http://{number}")],
            overrides: Overrides::default(),
        };
        let members = (1..=3).zip(releases).map(|(number, release)| (own(number), release)).collect();
        let mut bench = Self { cluster: Cluster::default(), index: 0, members };
        let founders = (1..=3).map(|number| (id(number), (format!("m{number}"), vec![]))).collect();
        assert!(bench.apply(Entry::Bootstrap { id: ClusterId(7), members: founders }));
        bench
    }

    fn apply(&mut self, entry: Entry) -> bool {
        self.index += 1;
        self.cluster.apply(LogIndex(self.index), entry)
    }

    fn heard(&self) -> BTreeMap<MemberId, Heard> {
        let heard =
            |(own, release): &(Own, &str)| (own.id, Heard { release: release.parse().unwrap(), starts: own.starts });
        self.members.iter().map(heard).collect()
    }

    fn flag(mut self, member: usize, feature: &str, on: bool) -> Self {
        self.members[member].0.overrides.0.insert(feature.into(), on);
        self
    }

    /// Restarts a member on this release.
    fn restart(&mut self, member: usize, release: &'static str) {
        let (own, runs) = &mut self.members[member];
        own.starts.0 += 1;
        *runs = release;
    }

    /// What leader and members have to do, until nobody has; what was applied.
    fn settle(&mut self) -> Vec<Entry> {
        let mut done = Vec::new();
        while let Some(entry) = self.due().into_iter().next() {
            done.push(entry.clone());
            assert!(self.apply(entry.clone()), "proposed for nothing: {entry:?}");
            assert!(done.len() < 50, "no end: {done:?}");
        }
        done
    }

    fn due(&self) -> Vec<Entry> {
        let of = |(own, release): &(Own, &str)| of_member(&self.cluster, own, &known(release));
        let own = self.members.iter().filter_map(of);
        of_leader(&self.cluster, &self.heard()).into_iter().chain(own).collect()
    }

    fn is_on(&self, feature: &str) -> bool {
        let by = |(_, release): &(Own, &str)| self.cluster.is_enabled(feature, &known(release));
        let answers: BTreeSet<_> = self.members.iter().map(by).collect();
        assert_eq!(answers.len(), 1, "the members' releases do not agree about {feature}");
        answers.contains(&true)
    }
}

fn proposal(version: ClusterVersion, features: &[(&str, bool)]) -> Proposal {
    Proposal { version, features: features.iter().map(|(name, on)| ((*name).to_owned(), *on)).collect() }
}

#[test]
fn a_new_cluster_decides_its_version_and_then_its_gate_in_one_step() {
    let mut bench = Bench::new(["3.6.0", "3.6.1", "3.6.0"]);
    assert_eq!((bench.cluster.version, &bench.cluster.gate), (None, &Gate::Undecided));
    assert!(!bench.is_on("Locked"), "the default says nothing before the version");
    let done = bench.settle();
    let decisions = done.iter().filter(|entry| matches!(entry, Entry::Decide { .. })).count();
    assert_eq!((bench.cluster.version, decisions), (Some(V3_6), 1), "{done:?}");
    assert!(bench.is_on("Locked") && !bench.is_on(LEASE_CHECKPOINT) && !bench.is_on("New") && !bench.is_on("Own"));
}

#[test]
fn a_feature_is_on_only_where_every_voter_wants_it_and_knows_it() {
    for (flags, on) in [([true; 3], true), ([true, true, false], false), ([false; 3], false)] {
        let mut bench = Bench::new(["3.6.0"; 3]);
        for (member, flag) in flags.into_iter().enumerate() {
            bench = bench.flag(member, LEASE_CHECKPOINT, flag);
        }
        bench.settle();
        assert_eq!(bench.is_on(LEASE_CHECKPOINT), on, "{flags:?}");
    }
    // One that has never heard of the name.
    let mut bench = Bench::new(["3.6.0"; 3]);
    bench.settle();
    let features = proposal(V3_6, &[("Locked", true)]);
    let attributes = Attributes { proposal: Some(features), ..Attributes::default() };
    bench.apply(Entry::Publish { member: id(2), starts: Starts(2), start_id: None, incarnation: None, attributes });
    let said = bench.cluster.reconciled().unwrap();
    assert_eq!((said.get("Locked"), said.get(LEASE_CHECKPOINT)), (Some(true), Some(false)));
}

#[test]
fn an_upgrade_keeps_the_gate_until_the_last_member_is_there() {
    let mut bench = Bench::new(["3.6.0"; 3]).flag(0, "New", true).flag(1, "New", true).flag(2, "New", true);
    bench.settle();
    let before = bench.cluster.gate.clone();
    for member in [0, 1] {
        bench.restart(member, "3.7.0");
        bench.settle();
        assert_eq!((bench.cluster.version, &bench.cluster.gate), (Some(V3_6), &before), "mixed");
    }
    bench.restart(2, "3.7.0");
    let late = Entry::Reset { prepares: V3_7 };
    let done = bench.settle();
    let decided = bench.cluster.gate.clone();
    assert!(!bench.apply(late), "it prepares what is there");
    assert_eq!(bench.cluster.gate, decided);
    let rises: Vec<_> = done.iter().filter(|e| !matches!(e, Entry::Publish { .. })).collect();
    assert!(
        matches!(rises[..], [Entry::Reset { prepares: V3_7 }, Entry::SetVersion { .. }, Entry::Decide { .. }]),
        "reset, rise, one decision: {rises:?}"
    );
    assert!(bench.is_on("New") && bench.is_on(LEASE_CHECKPOINT) && bench.is_on("Locked"));
}

/// One of 3.5 among others keeps every gate off, and stores no wish.
#[test]
fn below_3_6_there_is_no_gate() {
    let mut bench = Bench::new(["3.5.0", "3.6.0", "3.6.0"]);
    bench.settle();
    assert_eq!((bench.cluster.version, &bench.cluster.gate), (Some(V3_5), &Gate::Undecided));
    assert!(bench.cluster.members.values().all(|member| member.proposal.is_none()));
    let attributes = Attributes { proposal: Some(proposal(V3_5, &[("New", true)])), ..Attributes::default() };
    bench.apply(Entry::Publish { member: id(2), starts: Starts(9), start_id: None, incarnation: None, attributes });
    assert!(bench.cluster.members[&id(2)].proposal.is_none());
    let features = proposal(V3_5, &[("New", true)]).features;
    assert!(!bench.apply(Entry::Decide { features, inputs: bench.cluster.inputs }));
}

#[test]
fn a_version_rises_by_one_minor_and_only_when_all_were_heard_as_they_are() {
    let mut bench = Bench::new(["3.5.0"; 3]);
    bench.settle();
    let heard = |starts: [u64; 3]| (1..=3).map(id).zip(starts.map(Starts)).collect::<BTreeMap<_, _>>();
    for (version, heard, applies) in [
        (V3_7, heard([1; 3]), false), // leaves one out
        (V3_5, heard([1; 3]), false), // the same again wipes nothing
        (ClusterVersion { major: 3, minor: 4 }, heard([1; 3]), false),
        (V3_6, heard([1, 0, 1]), false), // it has started anew since
        (V3_6, heard([1; 3]).into_iter().take(2).collect(), false),
        (V3_6, heard([1, 2, 1]), true),
    ] {
        let mut cluster = bench.cluster.clone();
        let entry = Entry::SetVersion { version, heard: heard.clone() };
        assert_eq!(cluster.apply(LogIndex(90), entry), applies, "{version} {heard:?}");
    }
    bench.members.iter_mut().for_each(|(_, release)| *release = "3.7.0");
    bench.settle();
    assert_eq!(bench.cluster.version, Some(V3_7), "one by one, to the end");

    let mut bench = Bench::new(["3.6.0"; 3]);
    bench.settle();
    bench.members.iter_mut().for_each(|(_, release)| *release = "3.7.0");
    let mut heard = bench.heard();
    heard.remove(&id(3));
    assert_eq!(of_leader(&bench.cluster, &heard), None, "a silent member holds it back");
}

/// An older copy of a member's data directory counts the same start once more (N-7).
#[test]
fn of_one_number_there_is_one_start() {
    let mut bench = Bench::new(["3.6.0"; 3]);
    bench.settle();
    for (starts, start_id, is_it) in
        [(2, 8, true), (2, 9, false), (2, 0, false), (1, 8, false), (2, 8, true), (3, 9, true)]
    {
        let attributes = Attributes { name: format!("{starts} {start_id} {}", bench.index), ..Attributes::default() };
        let (starts, start_id) = (Starts(starts), StartId::read(start_id));
        let published = Entry::Publish { member: id(2), starts, start_id, incarnation: None, attributes };
        assert_eq!(bench.apply(published), is_it, "{starts:?} {start_id:?}");
    }
}

#[test]
fn wishes_of_another_version_and_of_an_earlier_process_count_for_nothing() {
    let mut bench = Bench::new(["3.6.0"; 3]);
    bench.settle();
    bench.restart(1, "3.6.0");
    bench.settle();
    let publish = |version, starts, name: &str| Entry::Publish {
        member: id(2),
        starts: Starts(starts),
        start_id: None,
        incarnation: None,
        attributes: Attributes {
            name: name.into(),
            client_urls: vec![],
            proposal: Some(proposal(version, &[(LEASE_CHECKPOINT, true)])),
        },
    };
    let stored = bench.cluster.members[&id(2)].proposal.clone();
    assert!(!bench.apply(publish(V3_6, 1, "late")), "from before its restart");
    assert!(bench.apply(publish(V3_5, 2, "renamed")));
    assert_eq!((&*bench.cluster.members[&id(2)].name, &bench.cluster.members[&id(2)].proposal), ("renamed", &stored));
    bench.cluster.version = None;
    assert_eq!(bench.cluster.reconciled(), None, "no version, no wishes");
}

#[test]
fn a_decision_from_older_inputs_is_dropped_and_made_anew() {
    let mut bench = Bench::new(["3.6.0"; 3]);
    bench.settle();
    let features = proposal(V3_6, &[(LEASE_CHECKPOINT, true)]).features;
    let stale = Entry::Decide { features, inputs: bench.cluster.inputs };
    bench.members[0].0.overrides.0.insert("Locked".into(), false);
    bench.restart(0, "3.6.0");
    let publish = of_member(&bench.cluster, &bench.members[0].0, &known("3.7.0")).unwrap();
    assert!(bench.apply(publish));
    assert!(!bench.apply(stale), "a deposed leader's");
    bench.settle();
    assert!(!bench.is_on("Locked"));
}

#[test]
fn a_lock_wins_over_gate_and_flag() {
    let mut bench = Bench::new(["3.7.0"; 3]).flag(1, "Locked", false);
    assert_eq!(known("3.7.0").overruled(V3_7, &bench.members[1].0.overrides).collect::<Vec<_>>(), ["Locked"]);
    assert_eq!(known("3.7.0").overruled(V3_6, &bench.members[1].0.overrides).count(), 0);
    bench.settle();
    bench.cluster.gate = Gate::Undecided;
    assert!(bench.is_on("Locked") && !bench.is_on("New"));
}

#[test]
fn those_whose_wish_is_missing_are_named() {
    let mut bench = Bench::new(["3.6.0"; 3]);
    assert_eq!(awaited(&bench.cluster), [], "without a version nobody is asked");
    let rise = of_leader(&bench.cluster, &bench.heard()).unwrap();
    bench.apply(rise);
    let first = of_member(&bench.cluster, &bench.members[0].0, &known("3.7.0")).unwrap();
    bench.apply(first);
    assert_eq!((awaited(&bench.cluster), bench.cluster.reconciled()), (vec![id(2), id(3)], None));
}

/// A log in which anything that is due may be proposed late, twice or never, by leaders old and new, while members
/// restart on newer releases. Whatever the order, no gate outlives its version, and it settles where it must.
#[test]
fn whatever_is_lost_late_or_doubled_it_settles_the_same() {
    for seed in 0..2_000u64 {
        let mut random = Random(seed);
        let mut bench = Bench::new(["3.6.0"; 3]).flag(seed as usize % 3, LEASE_CHECKPOINT, true).flag(0, "New", true);
        let (mut flying, mut waiting): (Vec<Entry>, BTreeSet<usize>) = (Vec::new(), (0..3).collect());
        for _ in 0..random.below(60) {
            match random.below(8) {
                0 if !waiting.is_empty() => {
                    let member = *waiting.iter().nth(random.below(waiting.len())).unwrap();
                    waiting.remove(&member);
                    bench.restart(member, "3.7.0");
                }
                1..=3 => flying.extend(bench.due()),
                // A leader that hears nobody.
                4 => flying.extend(of_leader(&bench.cluster, &BTreeMap::new())),
                _ if !flying.is_empty() => {
                    let at = random.below(flying.len());
                    let entry = if random.below(4) == 0 { flying[at].clone() } else { flying.swap_remove(at) };
                    let before = bench.cluster.clone();
                    bench.apply(entry);
                    holds(&before, &bench.cluster);
                }
                _ => {}
            }
        }
        waiting.into_iter().for_each(|member| bench.restart(member, "3.7.0"));
        bench.settle();
        assert_eq!(bench.cluster.version, Some(V3_7), "{seed}");
        let on = [LEASE_CHECKPOINT, "Locked", "New"].map(|feature| bench.is_on(feature));
        assert_eq!(on, [true, true, false], "{seed}: one of three wants New");
    }
}

fn holds(before: &Cluster, after: &Cluster) {
    let rose = before.version != after.version;
    assert!(before.version <= after.version);
    assert!(!rose || after.gate == Gate::Undecided, "a gate outlived its version");
    let is_decided = before.gate != after.gate && after.gate != Gate::Undecided;
    assert!(
        !is_decided || Some(&after.gate) == after.reconciled().map(Gate::Decided).as_ref(),
        "decided from old wishes"
    );
}

/// Numbers that look random and are the same each time (splitmix64).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % bound.max(1) as u64) as usize
    }
}

#[test]
fn a_member_is_moved_to_where_no_other_is_and_nothing_is_decided_anew() {
    let mut bench = Bench::new(["3.6.0"; 3]);
    bench.settle();
    let urls = |text: &str| vec![text.to_owned()];
    assert!(bench.apply(Entry::Move { member: id(1), peer_urls: urls("https://a:1") }));
    assert_eq!(bench.cluster.members[&id(1)].peer_urls, urls("https://a:1"));
    for (member, to, refusal) in [
        (9, "https://b:1", Some(ApiError::MemberNotFound)),
        (2, "https://a:1", Some(ApiError::PeerUrlExists)),
        (1, "https://a:1", None),
    ] {
        assert_eq!(bench.cluster.may_move(id(member), &urls(to)).err(), refusal);
        let before = bench.cluster.clone();
        assert!(!bench.apply(Entry::Move { member: id(member), peer_urls: urls(to) }));
        assert_eq!(bench.cluster, before);
    }
    assert_eq!(bench.settle(), [], "neither gate nor version comes of it");
}
