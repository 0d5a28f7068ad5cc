use super::*;
use crate::report::page::record::Said;

/// `file host seq run`; the line's number is its moment.
fn records(lines: &[(usize, &str, u64, &str)]) -> Vec<Record> {
    let record = |(at, (file, host, seq, run)): (usize, &(usize, &str, u64, &str))| Record {
        at: at as u64,
        file: *file,
        said: Said {
            host: (*host).into(),
            seq: *seq,
            run: (!run.is_empty()).then(|| (*run).into()),
            ..Said::default()
        },
    };
    lines.iter().enumerate().map(record).collect()
}

fn chosen(lines: &[(usize, &str, u64, &str)], run: Option<&str>) -> Result<(Vec<String>, Vec<usize>), String> {
    let chosen = choose(&records(lines), run).map_err(|error| error.to_string())?;
    Ok((chosen.runs, chosen.records.into_iter().map(|(at, _)| at).collect()))
}

#[test]
fn a_page_is_about_what_belongs_to_one_run() {
    let two = [
        (0, "h1", 0, ""),
        (0, "h1", 1, "aaa"),
        (0, "h1", 2, "aaa"),
        // The same host once more, and another beside it that was refused.
        (0, "h1", 0, ""),
        (1, "h2", 0, ""),
        (0, "h1", 1, "abb"),
        (1, "h3", 0, ""),
        (1, "h3", 1, "abb"),
    ];
    let newest = (vec!["abb".to_owned()], vec![3, 4, 5, 6, 7]);
    assert_eq!(chosen(&two, None).unwrap(), newest);
    assert_eq!(chosen(&two, Some("ab")).unwrap(), newest);
    assert_eq!(chosen(&two, Some("aaa")).unwrap(), (vec!["aaa".to_owned()], vec![0, 1, 2]));
    assert_eq!(
        chosen(&two, Some("a")).unwrap_err(),
        "several runs here begin with `a`; there are, the newest first, abb, aaa"
    );
    assert_eq!(
        chosen(&two, Some("c\u{1b}")).unwrap_err(),
        "no run here begins with `c\\u{1b}`; there are, the newest first, abb, aaa"
    );
}

#[test]
fn hops_of_one_way_are_one_page() {
    let hops = [(0, "h1", 0, "a"), (0, "h1", 1, "b"), (1, "h2", 0, "b"), (1, "h2", 1, "c"), (2, "h3", 0, "c")];
    assert_eq!(chosen(&hops, None).unwrap().1, [0, 1, 2, 3, 4]);
    let late = [(0, "h1", 0, "a"), (1, "h2", 0, "b"), (2, "h3", 0, "a"), (2, "h3", 1, "b")];
    assert_eq!(chosen(&late, Some("a")).unwrap().0, ["a", "b"]);
}

#[test]
fn a_process_that_never_got_to_a_run_is_a_page_where_nothing_else_is() {
    let refused = [(0, "h1", 0, ""), (0, "h1", 1, ""), (0, "h1", 0, "")];
    assert_eq!(chosen(&refused, None).unwrap(), (vec![], vec![2]));
    assert_eq!(chosen(&refused, Some("a")).unwrap_err(), "no run here begins with `a`; there is no run in these files");
    assert_eq!(chosen(&[], None).unwrap(), (vec![], vec![]));
}

#[test]
fn processes_of_one_host_that_write_at_once_are_told_apart_by_their_numbers() {
    let mixed = [(0, "h", 0, "a"), (0, "h", 0, ""), (0, "h", 1, "a"), (0, "h", 1, ""), (0, "h", 2, "a")];
    let processes = processes(&records(&mixed));
    assert_eq!(processes.iter().map(|process| &process.records[..]).collect::<Vec<_>>(), [&[0, 2, 4][..], &[1, 3][..]]);
}
