//! The checker against histories that are known to be good or bad, and against a checker that is slow
//! and obvious.
//!
//! `p1:0-2` is a put of 1 sent at 0 and answered at 2, `g1:…` a get that read 1, `g-:…` one that read
//! nothing, `d:…` deleted the key, `s1>2:…` swapped 1 for 2, and `p1:0-?` is a put without an answer.

use super::*;

fn operation(text: &str) -> Operation {
    let (action, times) = text.split_once(':').expect("action:times");
    let (invoked, returned) = times.split_once('-').expect("from-to");
    let action = match action.split_at(1) {
        ("p", value) => Action::Put(value.parse().expect("a value")),
        ("g", "-") => Action::Get(None),
        ("g", value) => Action::Get(Some(value.parse().expect("a value"))),
        ("d", "") => Action::Delete,
        ("s", values) => {
            let (from, to) = values.split_once('>').expect("from>to");
            Action::Swap { from: from.parse().ok(), to: to.parse().expect("a value") }
        }
        other => panic!("{other:?} is none"),
    };
    Operation { action, invoked: invoked.parse().expect("a time"), returned: returned.parse().ok() }
}

fn verdict(text: &str) -> Result<Judged, HistoryError> {
    let operations = text.split_whitespace().map(operation).collect();
    check(&History::from([("k".into(), operations)]), BOUND)
}

#[test]
fn every_bad_history_is_refused() {
    for (why, history) in [
        ("the write is lost", "p1:0-1 g-:2-3"),
        ("the second write is lost", "p1:0-1 p2:2-3 g1:4-5"),
        ("lost behind a read that saw it", "p1:0-1 g1:2-3 g-:4-5"),
        ("a stale read after a fresh one", "p1:0-1 p2:2-9 g2:3-4 g1:5-6"),
        ("a stale read by another client", "p1:0-1 p2:2-3 g2:4-6 g1:7-8"),
        ("a value that nobody wrote", "p1:0-1 g7:2-3"),
        ("a value that nobody wrote, first of all", "g7:0-1"),
        ("read before it was written", "g1:0-1 p1:2-3"),
        ("read before a maybe was sent", "g1:0-1 p1:2-?"),
        ("two readers see two orders", "p1:0-20 p2:0-20 g1:1-4 g2:5-8 g2:1-4 g1:5-8"),
        ("two writes swapped after both were answered", "p1:0-5 p2:0-5 g1:6-7 g2:8-9"),
        ("a value comes back", "p1:0-1 p2:2-3 g2:4-5 g1:6-7"),
        ("a value comes back after the key read as nothing", "p1:0-9 g-:1-2 g1:3-4 g-:5-6"),
        ("a maybe seen and then gone", "p1:0-1 p2:2-? g2:3-4 g1:5-6"),
        ("one maybe takes effect twice", "p1:0-1 p2:2-? g2:3-4 p3:5-6 g3:7-8 g2:9-10"),
        ("a repeated write takes effect three times", "p2:0-? p2:1-2 p3:3-4 g2:5-6 p4:7-8 g2:9-10"),
        ("an acknowledged write hidden behind an unread maybe", "p1:0-1 p9:0-? g-:2-3"),
        ("a deletion is lost", "p1:0-1 d:2-3 g1:4-5"),
        ("a maybe deletion is seen and then gone", "p1:0-1 d:2-? g-:3-4 g1:5-6"),
        ("two swaps of one value", "p1:0-1 s1>2:2-5 s1>3:2-5"),
        ("a swap of what is not there", "p1:0-1 d:2-3 s1>2:4-5"),
        ("a swap of nothing where something is", "p1:0-1 s->2:2-3"),
        ("a swap is lost", "p1:0-1 s1>2:2-3 g1:4-5"),
        ("only the last of many reads is wrong", "p1:0-1 g1:2-3 p2:4-5 g2:6-7 p3:8-9 g3:10-11 g2:12-13"),
    ] {
        assert!(matches!(verdict(history), Err(HistoryError::NotLinearizable { .. })), "{why}: {history}");
    }
}

#[test]
fn every_good_history_is_accepted() {
    for (why, history) in [
        ("nothing happened", ""),
        ("one after the other", "g-:0-1 p1:2-3 g1:4-5 p2:6-7 g2:8-9"),
        ("writes at once, the first wins", "p1:0-5 p2:0-5 g1:6-7 g1:8-9"),
        ("writes at once, the second wins", "p1:0-5 p2:0-5 g2:6-7 g2:8-9"),
        ("a read beside a write sees the old value", "p1:0-1 p2:2-9 g1:3-4 g2:5-6"),
        ("reads beside a write see both, in order", "p1:0-9 g-:1-2 g1:3-4 g1:10-11"),
        ("a long read saw the value of its beginning", "p1:0-1 g1:2-9 p2:3-4 g2:10-11"),
        ("a long read saw the value of its end", "p1:0-1 g2:2-9 p2:3-4"),
        ("a maybe that never takes effect", "p1:0-1 p2:2-? g1:3-4 g1:100-101"),
        ("a maybe that takes effect at once", "p1:0-1 p2:2-? g2:3-4 g2:5-6"),
        ("a maybe that takes effect late, over a newer write", "p1:0-1 p2:2-? p3:3-4 g3:5-6 g2:7-8"),
        ("a maybe that was overwritten unread", "p2:0-? p3:1-2 g3:3-4"),
        ("a repeated write whose first attempt lands late", "p2:0-? p2:1-2 p3:3-4 g3:5-6 g2:7-8"),
        ("two maybes, the later one first", "p1:0-? p2:1-? g2:2-3 g1:4-5"),
        ("a deletion beside a write", "p1:0-5 d:0-5 g-:6-7 s->2:8-9 g2:10-11"),
        ("a maybe deletion that lands late", "p1:0-1 d:2-? g1:3-4 g-:5-6"),
        ("swaps one after the other, told out of order", "s2>3:0-9 s1>2:0-9 s->1:0-9 g3:10-11"),
        ("a swap of what a maybe wrote", "p1:0-1 p2:2-? s2>3:3-4 g3:5-6"),
        ("an answer in the very instant of the next question", "p1:0-5 g-:5-6 g1:7-8"),
    ] {
        assert!(verdict(history).is_ok(), "{why}: {history}: {:?}", verdict(history));
    }
}

#[test]
fn a_fault_names_the_key_and_what_cannot_be_explained() {
    let error = verdict("p1:0-1 p2:2-3 g1:4-5").expect_err("the second write is lost");
    assert_eq!(
        error.to_string(),
        "key k: no order explains get 1 (4 to 5 ns), after 2 operations and with Some(2) written"
    );
}

#[test]
fn one_bad_key_among_many_is_found() {
    let good: Vec<_> = ["p1:0-1", "g1:2-3"].map(operation).into();
    let mut history: History = (0..100).map(|key| (format!("k{key}"), good.clone())).collect();
    assert_eq!(check(&history, BOUND).map(|judged| (judged.keys, judged.operations)), Ok((100, 200)));
    history.insert("k77".into(), ["p1:0-1", "g-:2-3"].map(operation).into());
    assert!(matches!(check(&history, BOUND), Err(HistoryError::NotLinearizable { key, .. }) if key == "k77"));
}

#[test]
fn a_search_that_hits_its_bound_fails() {
    let crowd: String = (1..=14).map(|value| format!("p{value}:0-50 ")).collect();
    let operations = format!("{crowd} g99:60-61").split_whitespace().map(operation).collect();
    let history = History::from([("k".into(), operations)]);
    assert_eq!(check(&history, 1_000), Err(HistoryError::Undecided { key: "k".into(), bound: 1_000 }));
}

#[test]
fn a_long_history_with_many_maybes_is_decided() {
    let mut operations = Vec::new();
    for round in 0..2_000 {
        let time = round * 10;
        operations.push(Operation { action: Action::Put(round), invoked: time, returned: Some(time + 6) });
        if round % 10 == 0 {
            operations.push(Operation { action: Action::Put(round), invoked: time, returned: None });
        }
        for start in [1, 3, 7] {
            let action = Action::Get(if start == 1 { round.checked_sub(1) } else { Some(round) });
            operations.push(Operation { action, invoked: time + start, returned: Some(time + start + 1) });
        }
    }
    let judged = check(&History::from([("k".into(), operations)]), BOUND).expect("linearizable");
    assert!(judged.configurations < 50_000, "{judged:?}");
}

/// Tries every order of every choice of maybes: slow, and too simple to be wrong.
fn obviously_linearizable(left: &[Operation], value: Option<u64>) -> bool {
    if left.iter().all(|operation| operation.returned.is_none()) {
        return true;
    }
    (0..left.len()).any(|index| {
        let first = left[index];
        let rest: Vec<_> = left.iter().enumerate().filter(|(at, _)| *at != index).map(|(_, other)| *other).collect();
        let in_time = rest.iter().all(|other| other.returned.is_none_or(|returned| first.invoked <= returned));
        in_time
            && match first.action {
                Action::Put(written) => obviously_linearizable(&rest, Some(written)),
                Action::Get(read) => read == value && obviously_linearizable(&rest, value),
                Action::Delete => obviously_linearizable(&rest, None),
                Action::Swap { from, to } => from == value && obviously_linearizable(&rest, Some(to)),
            }
    })
}

#[test]
fn it_agrees_with_the_obvious_checker_on_random_histories() {
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move |below: u64| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed % below
    };
    let mut verdicts = [0, 0];
    for round in 0..20_000 {
        let operations: Vec<_> = (0..1 + random(6))
            .map(|_| {
                let invoked = random(10);
                let returned = invoked + random(6);
                let answered = |action| Operation { action, invoked, returned: Some(returned) };
                let read = Some(random(4)).filter(|value| *value > 0);
                match random(8) {
                    0 => Operation { action: Action::Put(1 + random(3)), invoked, returned: None },
                    1 => Operation { action: Action::Delete, invoked, returned: None },
                    2 | 3 => answered(Action::Put(1 + random(3))),
                    4 => answered(Action::Delete),
                    5 => answered(Action::Swap { from: read, to: 1 + random(3) }),
                    _ => answered(Action::Get(read)),
                }
            })
            .collect();
        let expected = obviously_linearizable(&operations, None);
        verdicts[usize::from(expected)] += 1;
        let found = check(&History::from([("k".into(), operations.clone())]), BOUND).is_ok();
        assert_eq!(found, expected, "round {round}: {}", list(&operations));
    }
    assert!(verdicts.iter().all(|count| *count > 2_000), "bad and good: {verdicts:?}");
}
