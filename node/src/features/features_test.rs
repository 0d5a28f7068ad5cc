use std::{collections::BTreeSet, fmt::Write};

use super::{history::minor, *};

/// The releases that are out, and those that are none yet.
const RELEASES: [&str; 6] = ["3.5.0", "3.6.0", "3.6.1", "3.7.0", "3.8.0", "3.9.0"];

fn release(text: &str) -> Release {
    text.parse().unwrap()
}

/// What is wrong with a feature's life (KEP-4647, "Non-Goals", "Register New Feature Gates", "Feature Removal").
fn fault(feature: &Feature) -> Option<&'static str> {
    let Feature { specs, .. } = feature;
    let pairs = || specs.windows(2).map(|pair| (pair[0], pair[1]));
    // The rows of the minor before the one that a row begins.
    let before = |of: &Spec| specs.iter().filter(|spec| spec.since < of.since).max_by_key(|spec| spec.since);
    let was_still = |of: &Spec| {
        let last = before(of).map(|spec| spec.since);
        let defaults: BTreeSet<_> = specs.iter().filter(|spec| Some(spec.since) == last).map(|s| s.default).collect();
        defaults.len() == 1 && defaults.contains(&of.default)
    };
    let locks = |spec: &&Spec| spec.is_locked && before(spec).is_none_or(|before| !before.is_locked);
    let faults = [
        (!pairs().all(|(a, b)| (a.since, a.patch) < (b.since, b.patch)), "has its minors out of order"),
        (specs.first().is_none_or(|first| first.patch > 0), "is new in a patch"),
        (specs.first().is_some_and(|first| first.is_locked), "is locked from the start"),
        (
            pairs().any(|(a, b)| a.since == b.since && (a.is_locked, a.stage) != (b.is_locked, b.stage)),
            "has another lock or stage in a patch",
        ),
        (
            specs.iter().filter(locks).any(|spec| spec.stage != Stage::Removed && !was_still(spec)),
            "is locked at once after its default has changed",
        ),
        (pairs().any(|(a, b)| a.is_locked && !b.is_locked), "is unlocked again"),
        (specs.iter().any(|spec| spec.stage == Stage::Alpha && spec.default), "is alpha and on"),
        (specs.iter().any(|spec| spec.stage == Stage::Deprecated && !spec.is_locked), "is deprecated and not locked"),
        (pairs().any(|(a, _)| a.stage == Stage::Removed), "comes back"),
        (
            pairs().any(|(a, b)| b.stage == Stage::Removed && !matches!(a.stage, Stage::Alpha | Stage::Deprecated)),
            "is removed without a minor in which it was deprecated",
        ),
        (
            pairs().any(|(a, b)| b.stage == Stage::Removed && (!b.is_locked || a.default != b.default)),
            "is removed and does not stay what it was",
        ),
    ];
    faults.into_iter().find(|(is, _)| *is).map(|(_, what)| what)
}

const fn row(of: u64, patch: u64, default: bool, stage: Stage, is_locked: bool) -> Spec {
    Spec { since: minor(of), patch, default, stage, is_locked }
}

#[test]
fn the_features_go_through_life_as_they_must() {
    use Stage::{Alpha, Beta, Deprecated, Ga, Removed};
    let names: Vec<_> = HISTORY.iter().map(|feature| feature.name).collect();
    let different: BTreeSet<_> = names.iter().collect();
    assert_eq!(names.len(), different.len(), "a name is there twice, on one level or on both: {names:?}");
    for feature in HISTORY {
        assert_eq!(fault(feature), None, "{}", feature.name);
    }
    let bad: [(&[Spec], &str); 12] = [
        (&[row(7, 0, true, Ga, false), row(6, 0, true, Beta, false)], "has its minors out of order"),
        (&[row(6, 1, false, Alpha, false)], "is new in a patch"),
        (&[row(6, 0, true, Ga, true)], "is locked from the start"),
        (&[row(6, 0, true, Ga, false), row(6, 1, true, Ga, true)], "has another lock or stage in a patch"),
        (
            &[row(6, 0, false, Beta, false), row(7, 0, true, Ga, true)],
            "is locked at once after its default has changed",
        ),
        (
            &[row(6, 0, false, Beta, false), row(6, 1, true, Beta, false), row(7, 0, true, Ga, true)],
            "is locked at once after its default has changed",
        ),
        (&[row(6, 0, true, Ga, false), row(7, 0, true, Ga, true), row(8, 0, true, Ga, false)], "is unlocked again"),
        (&[row(6, 0, true, Alpha, false)], "is alpha and on"),
        (&[row(6, 0, true, Ga, false), row(7, 0, true, Deprecated, false)], "is deprecated and not locked"),
        (
            &[row(6, 0, false, Alpha, false), row(7, 0, false, Removed, true), row(8, 0, false, Removed, true)],
            "comes back",
        ),
        (
            &[row(6, 0, true, Ga, false), row(7, 0, true, Removed, true)],
            "is removed without a minor in which it was deprecated",
        ),
        (&[row(6, 0, false, Alpha, false), row(7, 0, true, Removed, true)], "is removed and does not stay what it was"),
    ];
    for (specs, what) in bad {
        let specs = Box::leak(specs.to_vec().into_boxed_slice());
        assert_eq!(fault(&Feature { name: "A", level: Level::Cluster, specs }), Some(what));
    }
}

/// What a release says, a line for each feature and version that it can be at.
fn told(registry: Registry) -> String {
    let mut lines = String::new();
    for feature in HISTORY {
        for version in (5..=registry.minor.minor).map(minor) {
            if let Some(Spec { default, stage, is_locked, .. }) = registry.at(feature, version) {
                let Feature { name, level, .. } = feature;
                let locked = if *is_locked { " locked" } else { "" };
                writeln!(lines, "{name} {level:?} at {version}: {stage:?} {default}{locked}").unwrap();
            }
        }
    }
    lines
}

/// A release that is out is never another one afterwards. Never written anew: what changes is a row of a later release.
#[test]
fn what_a_release_says_of_features_stays_as_it_was() {
    for (of, golden) in [
        ("3.5.0", ""),
        ("3.6.0", include_str!("../../tests/golden/features-3.6.0.txt")),
        ("3.7.0", include_str!("../../tests/golden/features-3.7.0.txt")),
    ] {
        assert_eq!(told(Registry::of(&release(of))), golden, "release {of}");
    }
}

/// Whoever can be at a version together says the same of locks and of names there (K-01, A-06).
#[test]
fn two_releases_agree_about_each_version_that_both_can_have() {
    let mut locked = 0;
    for (a, b) in RELEASES.iter().flat_map(|a| RELEASES.iter().map(move |b| (a, b))) {
        let (one, other) = (Registry::of(&release(a)), Registry::of(&release(b)));
        for version in (5..=one.minor.minor.min(other.minor.minor)).map(minor) {
            for Feature { name, .. } in HISTORY {
                let lock = one.locked(name, version);
                assert_eq!(lock, other.locked(name, version), "{name} at {version}: {a} and {b}");
                locked += usize::from(lock.is_some());
            }
            let names = |of: Registry| of.known_at(version).map(|(feature, _)| feature.name).collect::<Vec<_>>();
            assert_eq!(names(one), names(other), "{version}: {a} and {b}");
        }
    }
    assert!(locked > 0, "nothing was compared");
}

#[test]
fn a_name_that_is_dropped_is_proposed_no_more_and_stays_what_it_was() {
    let (has, dropped) = (Registry::of(&release("3.8.0")), Registry::of(&release("3.9.0")));
    let none = Overrides::default();
    assert!(has.get(LEASE_CHECKPOINT).is_some() && dropped.get(LEASE_CHECKPOINT).is_none());
    assert_eq!(has.proposal(minor(8), &none).get(LEASE_CHECKPOINT), Some(true));
    assert_eq!(dropped.proposal(minor(8), &none).get(LEASE_CHECKPOINT), None);
    for version in [8, 9] {
        assert_eq!(dropped.locked(LEASE_CHECKPOINT, minor(version)), Some(true), "at 3.{version}");
    }
}

/// Two patches of one minor want different things where nobody says otherwise: the one that is on in both is on (K-27).
#[test]
fn a_patch_changes_a_default_and_nothing_else() {
    let wants =
        |of: &str, version| Registry::of(&release(of)).proposal(minor(version), &Overrides::default()).get(COUNTERS);
    for (of, version, expected) in [
        ("3.5.0", 5, None),
        ("3.6.0", 6, Some(false)),
        ("3.6.1", 6, Some(true)),
        ("3.7.0", 6, Some(true)),
        ("3.7.0", 7, Some(true)),
    ] {
        assert_eq!(wants(of, version), expected, "{of} at 3.{version}");
    }
}

#[test]
fn a_member_wants_what_its_flags_say_of_what_is_known_at_the_version() {
    let on = Overrides([(LEASE_CHECKPOINT.to_owned(), true)].into());
    for (version, overrides, wants) in [
        (minor(5), &on, None),
        (minor(6), &Overrides::default(), Some(false)),
        (minor(6), &on, Some(true)),
        (minor(7), &Overrides::default(), Some(true)),
        (minor(8), &Overrides::default(), Some(true)),
    ] {
        assert_eq!(FEATURES.proposal(version, overrides).get(LEASE_CHECKPOINT), wants, "{version} {overrides:?}");
    }
}

#[test]
fn of_a_name_that_comes_twice_off_wins() {
    for pair in [[true, false], [false, true]] {
        let features: Features = pair.into_iter().map(|on| ("A".to_owned(), on)).collect();
        assert_eq!(features.get("A"), Some(false));
    }
}
