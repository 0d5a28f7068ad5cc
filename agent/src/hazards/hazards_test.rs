use std::collections::BTreeSet;

use super::*;
use crate::report::shown::hazards as shown;

/// The spans of an entry.
fn spans(hazard: &Hazard) -> Vec<&'static str> {
    let both = match hazard.releases {
        Releases::Way { from, to } | Releases::Back { from, to } => vec![from, to],
        Releases::Run { any_of } => vec![any_of],
    };
    both.into_iter().flat_map(|spans| spans.split("||")).collect()
}

#[test]
fn every_entry_is_whole() {
    let mut ids = BTreeSet::new();
    for hazard in all() {
        let id = hazard.id;
        assert!(ids.insert(id), "{id} is there twice");
        assert!(id.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'), "{id}");
        for span in spans(hazard) {
            assert!(VersionReq::parse(span.trim()).is_ok(), "{id}: `{span}` cannot be read");
        }
        assert_eq!(hazard.when.is_empty(), hazard.found_in == Place::Releases, "{id}: what else must be so?");
        assert!(hazard.remedy.is_empty() <= (hazard.act == Act::Tell), "{id} has no remedy");
        assert!(!hazard.proof.is_empty() && !hazard.sources.is_empty(), "{id}: how is it known?");
        assert!(!hazard.is_certain || hazard.act == Act::Refuse, "{id}");
        for said in [hazard.symptom, hazard.when, hazard.remedy] {
            assert!(!said.ends_with('.') && !said.contains("  ") && !said.contains('\n'), "{id}: {said}");
        }
    }
    assert!(SEEN_TO.iter().all(|id| ids.contains(id)), "{SEEN_TO:?}");
    assert!(ids.len() >= 86, "{}", ids.len());
}

/// The ids of what concerns this way, of those that a run is refused or told of by the releases alone.
fn by_releases(from: &str, to: &str) -> String {
    let [from, to] = [from, to].map(|text| text.parse::<Release>().unwrap());
    let decided = all().filter(|hazard| hazard.found_in == Place::Releases && hazard.act <= Act::Warn);
    decided
        .filter(|hazard| hazard.concerns(Some(&from), Some(&to)))
        .map(|hazard| hazard.id)
        .collect::<Vec<_>>()
        .join(" ")
}

#[test]
fn the_releases_say_which_of_them_concern_a_way() {
    for (from, to, found) in [
        ("3.5.33", "3.6.14", ""),
        ("3.5.30", "3.6.14", "advised-36"),
        ("3.5.25", "3.6.14", "floor-36 stale-read-hand-over"),
        ("3.5.26", "3.6.3", "advised-36 target-36-floor stale-read-hand-over memory-36"),
        ("3.6.14", "3.7.1", ""),
        ("3.6.2", "3.6.3", "stale-read-hand-over"),
        ("3.5.21-k3s1", "3.6.14", "floor-36 stale-read-hand-over"),
        ("3.5.33", "3.6.0-rc.3", "target-36-floor stale-read-hand-over memory-36"),
        ("3.6.10", "3.7.1", "floor-37"),
        ("3.4.45", "3.5.33", ""),
        ("3.4.45", "3.6.14", "skip-minor-36"),
        ("3.5.33", "3.7.1", "skip-minor-37"),
        ("3.6.14", "3.5.33", ""),
        ("3.5.33", "3.4.45", ""),
        ("3.5.33", "3.4.31", "stale-read-hand-over down-floor-34"),
    ] {
        // What watches and leases lose by old patches is the same on each of these ways, and shown by other rows.
        let all = by_releases(from, to);
        let left = all.split(' ').filter(|id| !id.starts_with("watch") && !id.starts_with("lease"));
        assert_eq!(left.collect::<Vec<_>>().join(" "), found, "{from} to {to}");
    }
    let (three, four) = ("3.6.14".parse().unwrap(), "3.5.30".parse().unwrap());
    let down = find("down-flags-36-35").unwrap();
    assert!(down.concerns(Some(&three), Some(&four)) && !down.concerns(Some(&four), Some(&three)));
    assert!(down.concerns(None, None) && down.concerns(Some(&three), None));
}

#[test]
fn what_is_certain_or_no_refusal_is_not_accepted() {
    for (id, accepted) in [("floor-36", true), ("auth-34-35", true), ("hop-too-fast-37", false), ("watch-gaps", false)]
    {
        assert_eq!(find(id).unwrap().can_be_accepted(), accepted, "{id}");
    }
}

#[test]
fn every_entry_is_told() {
    let all: Vec<_> = all().collect();
    let told: Vec<_> = all.iter().map(|hazard| shown::whole(hazard)).collect();
    insta::assert_snapshot!(told.join("\n"));
    insta::assert_snapshot!("in_lines", shown::lines(&all));
    let some: Vec<_> = ["zombie-35", "watch-gaps", "target-36-floor"].iter().filter_map(|id| find(id)).collect();
    insta::assert_snapshot!("as_osv", format!("{:#}", shown::osv(&some)));
}
