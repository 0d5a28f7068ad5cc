use super::*;
use crate::report::page::samples;

/// Each host is a process of its own.
fn timeline(lines: &str) -> Timeline {
    let records = samples::told(lines);
    let number = |host: &str| host.bytes().last().map_or(0, usize::from);
    let told: Vec<Told> = records.iter().map(|record| (record, number(&record.said.host))).collect();
    Timeline::of(&told)
}

/// `name: state from-to …, leads from-to`
fn drawn(timeline: &Timeline) -> Vec<String> {
    let row = |row: &Row| {
        let spans: Vec<_> = row.spans.iter().map(|it| format!("{} {}-{}", it.what.name(), it.from, it.to)).collect();
        let leads: String = row.leads.iter().map(|it| format!(", leads {}-{}", it.from, it.to)).collect();
        format!("{}: {}{leads}", row.name, spans.join(", "))
    };
    timeline.rows.iter().map(row).collect()
}

#[test]
fn events_become_who_was_down_when() {
    for (what, lines, expected, most_down) in [
        (
            "a step of its own agent",
            "0 h1 seen m1* m2
             10 h1 member_stopping m1
             12 h1 member_stopped m1
             20 h1 member_started m1
             30 h1 member_ready m1
             40 h1 step_unlocked m1",
            &["m1: ready 0-10, down 10-20, starting 20-30, ready 30-40, leads 0-40", "m2: ready 0-40"][..],
            1,
        ),
        (
            "leadership that is passed on, and a look that shows it",
            "0 h1 seen m1* m2
             5 h1 handed_over m1 m2
             9 h1 seen m1 m2*",
            &["m1: ready 0-9, leads 0-5", "m2: ready 0-9, leads 5-9"],
            0,
        ),
        (
            "a member of another host, by looks alone",
            "0 h1 seen m1 m2
             10 h1 seen m1 m2-
             20 h1 seen m1 m2~
             30 h1 seen m1 m2",
            &["m1: ready 0-30", "m2: ready 0-10, down 10-20, starting 20-30, ready 30-30"],
            1,
        ),
        (
            "what others see of a step counts less than what its agent does",
            "0 h1 seen m1
             10 h1 member_stopping m1
             11 h2 seen m1
             20 h1 member_ready m1
             30 h1 step_unlocked m1",
            &["m1: ready 0-10, down 10-20, ready 20-30"],
            1,
        ),
        (
            "a look that began before the member was ready, and the next one",
            "0 h1 seen m1 m2
             10 h1 member_stopping m1
             20 h1 member_ready m1
             21 h2 seen m1- m2
             25 h2 member_stopping m2
             40 h2 member_ready m2
             50 h2 seen m1 m2",
            &["m1: ready 0-10, down 10-20, ready 20-50", "m2: ready 0-25, down 25-40, ready 40-50"],
            1,
        ),
        (
            "a member that is really down after its step",
            "0 h1 seen m1
             10 h1 member_stopping m1
             20 h1 member_ready m1
             30 h2 seen m1-
             9000 h2 seen m1",
            &["m1: ready 0-10, down 10-20, ready 20-30, down 30-9000, ready 9000-9000"],
            1,
        ),
        (
            "an agent that died in the middle of a step",
            "0 h1 seen m1
             10 h1 member_stopping m1
             20 h2 seen m1-
             30 h2 seen m1",
            &["m1: ready 0-10, down 10-30, ready 30-30"],
            1,
        ),
        (
            "a member that failed, was put back and is ready",
            "0 h1 member_stopping m1
             10 h1 member_started m1
             20 h1 member_failed m1
             25 h1 member_putting_back m1
             30 h1 member_stopping m1
             40 h1 member_started m1
             50 h1 member_ready m1",
            &["m1: not known 0-0, down 0-10, starting 10-20, not ready 20-30, down 30-40, starting 40-50, ready 50-50"],
            1,
        ),
        (
            "two at once, and one that is no member any more",
            "0 h1 seen m1 m2 m3
             10 h1 seen m1- m2- m3
             20 h1 seen m1 m2",
            &[
                "m1: ready 0-10, down 10-20, ready 20-20",
                "m2: ready 0-10, down 10-20, ready 20-20",
                "m3: ready 0-20, no member 20-20",
            ],
            2,
        ),
    ] {
        let timeline = timeline(lines);
        let told: Vec<_> = drawn(&timeline).iter().map(|row| row.replace("not known 0-0, ready", "ready")).collect();
        assert_eq!(told, expected, "{what}");
        assert_eq!(timeline.most_down, most_down, "{what}");
    }
}

#[test]
fn a_member_that_comes_and_goes_for_ever_has_a_bounded_row() {
    let lines: String =
        (0..5_000).map(|at| format!("{at} h1 seen m1{}\n", if at % 2 == 0 { "" } else { "-" })).collect();
    let timeline = timeline(&lines);
    assert!(timeline.rows[0].spans.len() <= MOST_SPANS + 1, "{}", timeline.rows[0].spans.len());
    let many: String = (0..500).map(|at| format!("{at} h1 member_started m{at}\n")).collect();
    assert_eq!(super::Timeline::of(&[]).rows, []);
    assert!(self::timeline(&many).rows.len() <= MOST_MEMBERS);
}

#[test]
fn the_fewest_that_were_ready_are_counted_once_all_are_known() {
    for (lines, expected) in [
        ("0 h1 member_started m1", None),
        ("0 h1 member_stopping m1\n1 h1 member_ready m1\n5 h1 seen m1 m2 m3\n9 h1 member_stopping m2", Some((2, 3))),
        ("0 h1 seen m1 m2 m3\n5 h1 seen m1- m2! m3\n9 h1 seen m1 m2 m3", Some((1, 3))),
        ("0 h1 seen m1 m2 m3", Some((3, 3))),
    ] {
        assert_eq!(timeline(lines).fewest_ready, expected, "{lines}");
    }
}
