use std::collections::BTreeSet;

use super::*;

/// What is wrong with a registry (KEP-4647, "Feature Removal").
fn fault(registry: &Registry) -> Option<String> {
    let mut names = BTreeSet::new();
    registry.0.iter().find_map(|feature| {
        let twice = !names.insert(feature.name);
        let sorted = feature.specs.windows(2).all(|pair| pair[0].since < pair[1].since);
        let sudden = feature.specs.first().is_none_or(|first| first.is_locked);
        // The minor before the lock had the same default, and that did not change with it.
        let restless = feature.specs.windows(2).any(|pair| pair[1].is_locked && pair[0].default != pair[1].default);
        let bold = feature.specs.iter().any(|spec| spec.stage == Stage::Alpha && spec.default);
        let unlocked = feature.specs.iter().any(|spec| spec.stage == Stage::Deprecated && !spec.is_locked);
        let faults = [
            (twice, "is there twice"),
            (!sorted, "has its minors out of order"),
            (sudden, "is locked from the start"),
            (restless, "is locked at another default than it had"),
            (bold, "is alpha and on"),
            (unlocked, "is deprecated and not locked"),
        ];
        faults.into_iter().find(|(is, _)| *is).map(|(_, what)| format!("{} {what}", feature.name))
    })
}

const fn spec(of: u64, default: bool, stage: Stage, is_locked: bool) -> Spec {
    Spec { since: minor(of), default, stage, is_locked }
}

#[test]
fn the_features_go_through_life_as_they_must() {
    assert_eq!(fault(&FEATURES), None);
    const BAD: &[(&[Feature], &str)] = &[
        (
            &[
                Feature { name: "A", level: Level::Cluster, specs: &[spec(6, false, Stage::Beta, false)] },
                Feature { name: "A", level: Level::Server, specs: &[spec(6, false, Stage::Beta, false)] },
            ],
            "A is there twice",
        ),
        (
            &[Feature {
                name: "B",
                level: Level::Cluster,
                specs: &[spec(7, true, Stage::Ga, false), spec(6, true, Stage::Beta, false)],
            }],
            "B has its minors out of order",
        ),
        (
            &[Feature { name: "C", level: Level::Cluster, specs: &[spec(6, true, Stage::Ga, true)] }],
            "C is locked from the start",
        ),
        (
            &[Feature {
                name: "D",
                level: Level::Cluster,
                specs: &[spec(6, false, Stage::Beta, false), spec(7, true, Stage::Ga, true)],
            }],
            "D is locked at another default than it had",
        ),
        (
            &[Feature { name: "E", level: Level::Cluster, specs: &[spec(6, true, Stage::Alpha, false)] }],
            "E is alpha and on",
        ),
        (
            &[Feature {
                name: "F",
                level: Level::Cluster,
                specs: &[spec(6, true, Stage::Ga, false), spec(7, true, Stage::Deprecated, false)],
            }],
            "F is deprecated and not locked",
        ),
    ];
    for (features, what) in BAD {
        assert_eq!(fault(&Registry(features)).as_deref(), Some(*what));
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
