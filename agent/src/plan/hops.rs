//! A way over several releases: which hops it has, and which of them is due.
//!
//! Pure. Each hop is a run of its own, by the rules of its kind; a hop begins when the one before it is done, and all agents see that in
//! the keys and in what the members run. Source: agent/PROTOCOL.md, "Hops".

use std::cmp::Ordering;

use proto::Release;

use crate::{
    keys::{Intent, Run, RunResult, RunState, change::Change},
    observe::view::ClusterView,
};

/// The hop of this intent's way that is to be gone now; `None` where it leads over one release alone, or nobody says what he runs.
pub fn due<'a>(intent: &'a Intent, run: Option<&Run>, view: &ClusterView) -> Option<&'a Change> {
    let hops = &intent.hops.as_ref()?.changes;
    let by_releases = by_releases(hops, view.reports().map(|report| &report.release));
    let run = run.filter(|run| run.intent.is_on_the_way_of(intent));
    let at = run.and_then(|run| Some((run, hops.iter().position(|hop| *hop == run.intent.change)?)));
    // What a key says is believed where no member says otherwise (I-5): one that has not got to where the hop begins. Of a run that stands
    // one may have been taken back by hand, and that is refused in its words; it is not believed where nobody has got there.
    let is_contradicted = |at: usize| by_releases.is_some_and(|by_releases| by_releases < at);
    let stands_for_nobody = |at: usize| is_contradicted(at) && !has_begun(hops, at, view);
    let at = match at {
        Some((Run { state: RunState::Done { result: RunResult::Reached }, .. }, at)) => {
            let after = (at + 1).min(hops.len() - 1);
            if is_contradicted(after) { by_releases } else { Some(by_releases.map_or(after, |it| it.max(after))) }
        }
        Some((run, at)) if !run.is_over() && !stands_for_nobody(at) => Some(at),
        _ => by_releases,
    };
    hops.get(at?)
}

/// Whether any member is where this hop begins, or further.
fn has_begun(hops: &[Change], at: usize, view: &ClusterView) -> bool {
    let begins = at.checked_sub(1).and_then(|before| hops[before].to());
    let order = order(hops);
    begins.is_none_or(|begins| view.reports().any(|report| order(&report.release, begins) != Ordering::Less))
}

/// Of two releases, which one the way comes to first.
fn order(hops: &[Change]) -> impl Fn(&Release, &Release) -> Ordering + use<> {
    let is_up = !matches!(hops.first(), Some(Change::Downgrade(_)));
    move |one, other| if is_up { one.cmp(other) } else { other.cmp(one) }
}

/// By what members run: the hop to the first release that one of them has not reached.
pub fn by_releases<'a>(hops: &[Change], releases: impl Iterator<Item = &'a Release>) -> Option<usize> {
    let order = order(hops);
    let last = releases.min_by(|one, other| order(one, other))?;
    let is_left = |hop: &Change| hop.to().is_some_and(|to| order(to, last) == Ordering::Greater);
    Some(hops.iter().position(is_left).unwrap_or(hops.len().saturating_sub(1)))
}

/// Whether a later hop of the way leads to this release.
pub fn is_ahead(intent: &Intent, release: &Release) -> bool {
    let Some(hops) = &intent.hops else { return false };
    leading_to(&hops.changes, release).is_some_and(|hop| hops.number(hop) > hops.number(&intent.change))
}

/// The hop that leads to this release.
pub fn leading_to<'a>(hops: &'a [Change], to: &Release) -> Option<&'a Change> {
    hops.iter().find(|hop| hop.to() == Some(to))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{
        keys::{
            change::{Downgrade, Upgrade},
            hops::Hops,
        },
        plan::samples::{self, view, with_release},
    };

    fn ups(releases: &str) -> Vec<Change> {
        let up = |release: &str| Change::Upgrade(Upgrade { from: "*".parse().unwrap(), to: release.parse().unwrap() });
        releases.split_whitespace().map(up).collect()
    }

    fn downs(releases: &str) -> Vec<Change> {
        let down =
            |release: &str| Change::Downgrade(Downgrade { from: "*".parse().unwrap(), to: release.parse().unwrap() });
        releases.split_whitespace().map(down).collect()
    }

    fn words(changes: &[Change]) -> String {
        let words: Vec<_> = changes.iter().filter_map(Change::to).map(ToString::to_string).collect();
        words.join(" ")
    }

    fn intent(changes: Vec<Change>) -> Intent {
        let hops = Hops { changes, gates: [("Gate".to_owned(), true)].into() };
        let change = hops.changes[0].clone();
        let whole = Intent { hops: Some(Arc::new(hops)), ..samples::intent(">=3.4, <3.5", "3.5.33") };
        whole.at(&change)
    }

    #[test]
    fn the_hop_that_is_due_is_read_off_the_run_and_the_members() {
        let reached = RunState::Done { result: RunResult::Reached };
        let back = RunState::Done { result: RunResult::RolledBack };
        let up = || ups("3.5.33 3.6.14 3.7.1");
        for (changes, releases, run, due_is) in [
            (up(), "3.4.23 3.4.23 3.4.23", None, "3.5.33"),
            (up(), "3.5.33 3.4.23 3.5.33", None, "3.5.33"),
            (up(), "3.5.20 3.5.33 3.5.33", None, "3.5.33"),
            (up(), "3.5.33 3.5.33 3.5.33", None, "3.6.14"),
            (up(), "3.6.14 3.5.33 3.5.33", None, "3.6.14"),
            (up(), "3.6.14 3.6.14 3.6.14", None, "3.7.1"),
            (up(), "3.6.14 3.6.14 3.7.1", None, "3.7.1"),
            (up(), "3.7.1 3.7.1 3.7.1", None, "3.7.1"),
            (up(), "3.8.0 3.8.0 3.8.0", None, "3.7.1"),
            // A run that stands, or is over.
            (up(), "3.5.33 3.5.33 3.5.33", Some((0, RunState::Rolling)), "3.5.33"),
            (up(), "3.5.33 3.5.33 3.5.33", Some((0, reached.clone())), "3.6.14"),
            (up(), "3.6.14 3.6.14 3.6.14", Some((1, reached.clone())), "3.7.1"),
            (up(), "3.6.14 3.6.14 3.6.14", Some((1, RunState::Rolling)), "3.6.14"),
            (up(), "3.7.1 3.7.1 3.7.1", Some((2, reached.clone())), "3.7.1"),
            (up(), "3.5.33 3.5.33 3.5.33", Some((1, back)), "3.6.14"),
            // What contradicts the members is not believed; what they are ahead of is past.
            (up(), "3.4.23 3.4.23 3.4.23", Some((0, reached.clone())), "3.5.33"),
            (up(), "3.5.33 3.5.33 3.5.33", Some((1, reached.clone())), "3.6.14"),
            (up(), "3.4.23 3.5.33 3.5.33", Some((2, RunState::Rolling)), "3.5.33"),
            (up(), "3.5.33 3.5.33 3.5.33", Some((1, RunState::RollingBack)), "3.6.14"),
            (up(), "3.4.23 3.5.33 3.5.33", Some((1, reached.clone())), "3.5.33"),
            (up(), "3.4.23 3.5.33 3.6.14", Some((1, RunState::Rolling)), "3.6.14"), // one taken back by hand: refused
            (up(), "3.4.23 3.4.23 3.5.33", Some((1, RunState::Rolling)), "3.6.14"),
            (downs("3.6.14 3.5.33"), "3.7.1 3.6.14 3.5.33", Some((1, RunState::Rolling)), "3.5.33"),
            (downs("3.6.14 3.5.33"), "3.7.1 3.7.1 3.7.1", Some((1, RunState::Rolling)), "3.6.14"),
            (up(), "3.6.14 3.6.14 3.6.14", Some((0, reached.clone())), "3.7.1"),
            (downs("3.6.14 3.5.33"), "3.7.1 3.7.1 3.7.1", None, "3.6.14"),
            (downs("3.6.14 3.5.33"), "3.6.14 3.7.1 3.6.14", None, "3.6.14"),
            (downs("3.6.14 3.5.33"), "3.6.14 3.6.14 3.6.14", None, "3.5.33"),
            (downs("3.6.14 3.5.33"), "3.5.33 3.6.14 3.6.14", None, "3.5.33"),
            (downs("3.6.14 3.5.33"), "3.5.33 3.5.33 3.5.33", Some((1, reached)), "3.5.33"),
        ] {
            let intent = intent(changes);
            let hops = intent.hops.clone().unwrap();
            let mut seen = view("1+ 2+ 3+");
            releases.split_whitespace().enumerate().for_each(|(at, release)| with_release(&mut seen, at, release));
            let run =
                run.map(|(at, state)| Run { intent: Arc::new(intent.at(&hops.changes[at])), ..samples::run(state) });
            let due = due(&intent, run.as_ref(), &seen).cloned();
            assert_eq!(words(due.as_slice()), due_is, "{releases} {run:?}");
        }
    }

    #[test]
    fn the_run_of_another_way_says_nothing_of_this_one() {
        let (mine, other) = (intent(ups("3.5.33 3.6.14")), intent(ups("3.5.33 3.6.13")));
        let mut seen = view("1+ 2+ 3+");
        (0..3).for_each(|at| with_release(&mut seen, at, "3.5.33"));
        let run = |intent: &Intent| Run { intent: Arc::new(intent.clone()), ..samples::run(RunState::Rolling) };
        assert_eq!(due(&mine, Some(&run(&mine)), &seen), Some(&mine.change));
        assert_eq!(words(due(&mine, Some(&run(&other)), &seen).cloned().as_slice()), "3.6.14");
        assert_eq!(due(&samples::intent(">=3.4, <3.5", "3.5.33"), None, &seen), None);
    }

    #[test]
    fn gates_are_expected_at_the_end_of_the_way() {
        let first = intent(ups("3.5.33 3.6.14"));
        assert!(first.gates.is_empty());
        let last = first.at(&first.hops.clone().unwrap().changes[1]);
        assert_eq!(last.gates, [("Gate".to_owned(), true)].into());
        assert!(last.is_on_the_way_of(&first) && first.is_on_the_way_of(&last));
    }
}
