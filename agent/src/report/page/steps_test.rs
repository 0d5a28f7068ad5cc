use super::*;
use crate::report::page::samples;

fn told_of(lines: &str) -> Vec<Step> {
    let records = samples::told(lines);
    let number = |host: &str| host.bytes().last().map_or(0, usize::from);
    let told: Vec<Told> = records.iter().map(|record| (record, number(&record.said.host))).collect();
    steps(&told).0
}

#[test]
fn a_step_has_its_releases_how_long_it_was_down_and_its_evidence() {
    let steps = told_of(
        "0 h1 seen m1* m2
         1 h1 hook_ran m1
         2 h1 handed_over m1 m2
         3 h1 step_locked m1
         4 h1 seen m1 m2*
         5 h1 member_stopping m1
         6 h1 member_stopped m1
         7 h1 member_started m1
         9 h1 member_ready m1
         10 h1 step_unlocked m1
         11 h1 hook_ran m1
         12 h1 seen m1@3.6.0 m2*",
    );
    let [step] = &steps[..] else { panic!("{steps:?}") };
    assert_eq!((step.outcome, step.down, step.began), (Outcome::Done, Some((5, Some(9))), 3));
    assert_eq!(step.releases, (Some("3.5.0".into()), Some("3.6.0".into())));
    let evidence: Vec<_> = step.evidence.iter().map(|(at, what)| format!("{at} {what}")).collect();
    assert_eq!(
        evidence,
        [
            "1 hook of no name ran",
            "2 passed leadership to m2",
            "3 the step lock stands",
            "5 the last look before the stop showed 2 of 2 voters ready, m2 leads",
            "5 is being stopped",
            "6 stopped",
            "7 started",
            "9 ready, and was for the soak time",
            "10 the step lock is gone",
            "11 hook of no name ran",
            "12 a look shows m1 ready at 3.6.0",
        ]
    );
}

#[test]
fn a_step_ends_as_its_events_say() {
    for (what, lines, expected) in [
        (
            "a lock that was taken away before anything was stopped",
            "1 h1 step_locked m1\n2 h1 step_unlocked m1",
            &[][..],
        ),
        ("an agent that died", "1 h1 step_locked m1\n2 h1 member_stopping m1", &[Outcome::Unknown]),
        (
            "a member that was put back",
            "1 h1 step_locked m1\n2 h1 member_stopping m1\n3 h1 member_failed m1\n4 h1 member_putting_back m1\n5 h1 member_ready m1",
            &[Outcome::PutBack],
        ),
        (
            "a member that is kept",
            "1 h1 step_locked m1\n2 h1 member_stopping m1\n3 h1 member_kept_new m1\n4 h1 member_failed m1",
            &[Outcome::KeptNew],
        ),
        ("a failure", "1 h1 step_locked m1\n2 h1 member_stopping m1\n3 h1 member_failed m1", &[Outcome::Failed]),
        (
            "a step that another process takes over",
            "1 h1 step_locked m1\n2 h1 member_stopping m1\n3 h2 step_taken_over m1\n4 h2 member_started m1\n5 h2 member_ready m1",
            &[Outcome::Unknown, Outcome::Done],
        ),
        ("a word on a member that has no step", "1 h1 member_mended m1\n2 h1 member_ready m1", &[]),
    ] {
        let outcomes: Vec<_> = told_of(lines).iter().map(|step| step.outcome).collect();
        assert_eq!(outcomes, expected, "{what}");
    }
}

/// A look that shows the same as the one before is no event: a release that was seen before the end stands after it.
#[test]
fn each_step_of_a_member_has_the_release_that_it_reached() {
    let step = |at: u64, release: &str| {
        format!(
            "{} h1 step_locked m1\n{} h1 member_stopping m1\n{} h2 seen m1@3.5.0\n{} h1 member_started m1\n{} h2 seen m1@9.9.9\n\
             {} h1 seen m1@{release} m2\n{} h1 member_ready m1\n{} h1 step_unlocked m1\n",
            at,
            at + 1,
            at + 2,
            at + 3,
            at + 4,
            at + 5,
            at + 6,
            at + 7
        )
    };
    let steps = told_of(&format!("0 h1 seen m1@3.5.0 m2\n{}{}", step(1, "3.6.0"), step(10, "3.7.0")));
    let reached: Vec<_> = steps.iter().map(|step| step.releases.1.as_deref()).collect();
    assert_eq!(reached, [Some("3.6.0"), Some("3.7.0")]);
}
