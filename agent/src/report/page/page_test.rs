//! Whole pages: one as it is, and what hostile files make of it.

use std::fmt::Write as _;

use super::{
    is_one, of, of_one_run,
    read::{ReadError, Source, events},
    samples,
};

fn line(time: &str, seq: usize, event: &str, more: &str) -> String {
    let run = if seq > 1 { "\"00000abc000000000000000000000000\"" } else { "null" };
    format!(
        "{{\"format\":1,\"time\":\"2026-11-21T11:53:{time}Z\",\"run\":{run},\"host\":\"h1\",\"seq\":{seq},\"event\":\"{event}\"{more}}}\n"
    )
}

fn seen(states: [(&str, &str, &str); 3], version: &str) -> String {
    let member = |(at, (release, role, state)): (usize, &(&str, &str, &str))| {
        format!(
            "{{\"name\":\"m{n}\",\"id\":\"{n}\",\"host\":\"h{n}\",\"release\":\"{release}\",\"role\":\"{role}\",\
             \"state\":\"{state}\",\"cluster_version\":\"{version}\"}}",
            n = at + 1
        )
    };
    let members: Vec<_> = states.iter().enumerate().map(member).collect();
    format!(",\"cluster_id\":\"c1\",\"members\":[{}]", members.join(","))
}

/// One step of one host, as its agent has written it.
fn rollout() -> String {
    let of = ",\"member\":\"m1\",\"member_id\":\"1\",\"step\":\"1\"";
    let (old, new) = (("3.5.30", "follower", "ready"), ("3.6.14", "follower", "ready"));
    let (led, leads) = (("3.5.30", "leader", "ready"), ("3.6.14", "leader", "ready"));
    let accepted = ",\"why\":\"x is accepted by the playbook: it may hurt\",\"hazards\":[\"x\"],\"accepted\":true";
    let gates = ",\"gates\":{\"decided\":true,\"awaited\":[],\"features\":[{\"name\":\"F\",\"enabled\":true,\"kept_off_by\":[]}]}";
    let begun = ",\"cluster\":\"orders\",\"kind\":\"upgrade\",\"from\":\">=3.5, <3.6\",\"to\":\"3.6.14\"";
    let ended = ",\"exit\":0,\"reason\":\"partial\",\"message\":\"this host's part is done\",\
                 \"left\":\"m1 at 3.6.14; 3 of 3 ready\",\"next\":\"agent run upgrade.yaml\"";
    [
        ("00.000", "begun", begun.to_owned()),
        ("00.100", "seen", seen([led, old, old], "3.5")),
        ("00.200", "joined", String::new()),
        ("00.300", "warning", accepted.to_owned()),
        (
            "00.350",
            "backed_up",
            ",\"member\":\"m2\",\"member_id\":\"2\",\"to\":\"/var/backups/orders-c1.db\"".to_owned(),
        ),
        ("00.400", "handed_over", format!("{of},\"to\":\"m2\"")),
        ("00.500", "step_locked", of.to_owned()),
        ("00.600", "member_stopping", of.to_owned()),
        ("00.700", "member_stopped", of.to_owned()),
        ("00.800", "member_switched", of.to_owned()),
        ("00.900", "member_started", of.to_owned()),
        ("01.500", "member_ready", of.to_owned()),
        ("01.600", "step_unlocked", of.to_owned()),
        ("02.000", "seen", seen([new, led, old], "3.5")),
        ("03.000", "seen", seen([new, leads, new], "3.6") + gates),
        ("03.100", "settled", ",\"hashes\":true".to_owned()),
        ("04.000", "ended", ended.to_owned()),
    ]
    .into_iter()
    .enumerate()
    .map(|(seq, (time, event, more))| line(time, seq, event, &more))
    .collect()
}

#[test]
fn a_run_has_its_page() {
    let page = of_one_run(rollout().as_bytes()).unwrap();
    assert!(is_one(page.as_bytes()) && !is_one(b"kind: Upgrade"));
    let style = page.find("<style>").unwrap()..page.find("</style>").unwrap();
    let digest = page.find("sha256-").unwrap()..page.find("'; base-uri").unwrap();
    let without_style = format!("{}{}{}", &page[..digest.start], &page[digest.end..style.start], &page[style.end..]);
    insta::assert_snapshot!(without_style.replace("><", ">\n<"));
}

#[test]
fn a_page_asks_for_nothing_from_elsewhere() {
    let page = of_one_run(rollout().as_bytes()).unwrap();
    assert!(page.contains("content=\"default-src 'none'; style-src 'sha256-"), "{page}");
    for word in ["<script", "http://", "https://", "src=", "@import", " style=\"", "javascript:", "<iframe", "<object"]
    {
        assert!(!page.contains(word), "{word}");
    }
}

#[test]
fn what_files_say_is_text_and_nothing_else() {
    let hostile = "<script>alert(1)</script>\\\"'&<\\/style><img src=x>\\u001b[2J\\u202e\\u0000";
    let of =
        format!(",\"member\":\"{hostile}\",\"member_id\":\"{hostile}\",\"to\":\"{hostile}\",\"why\":\"{hostile}\"");
    let seen = format!(
        ",\"cluster_id\":\"{hostile}\",\"members\":[{{\"name\":\"{hostile}\",\"id\":\"{hostile}\",\"host\":\"{hostile}\",\
         \"release\":\"{hostile}\",\"role\":\"leader\",\"state\":\"{hostile}\"}}]"
    );
    let text: String = [
        ("begun", format!(",\"cluster\":\"{hostile}\",\"kind\":\"{hostile}\"")),
        ("seen", seen),
        ("step_locked", of.clone()),
        ("member_stopping", of.clone()),
        ("member_failed", of.clone()),
        ("warning", of.clone()),
        ("backed_up", of.clone()),
        ("x<b>", format!(",\"new<i>\":\"{hostile}\"")),
        (
            "ended",
            format!(
                ",\"message\":\"{hostile}\",\"left\":\"{hostile}\",\"next\":\"{hostile}\",\"reason\":\"{hostile}\""
            ),
        ),
    ]
    .into_iter()
    .enumerate()
    .map(|(seq, (event, more))| line("00.000", seq, event, &more))
    .collect();
    let page = of_one_run(text.as_bytes()).unwrap();
    let style = page.find("</style>").unwrap();
    for word in ["<script", "<img", "<b>", "<i>", "\u{1b}", "\u{202e}", "\0"] {
        assert!(!page.contains(word), "{word:?}");
    }
    assert!(!page[style + 1..].contains("</style"), "no text ends the style");
    assert!(page.contains("&lt;script&gt;alert(1)"), "{page}");
}

#[test]
fn what_is_no_events_file_is_told_with_its_line() {
    let good = line("00.000", 0, "begun", "");
    let long = format!("{{\"format\":1,\"x\":\"{}\"}}\n{good}", "x".repeat(200 << 10));
    let deep = format!("{}\n{good}", "[".repeat(100_000));
    for (text, expected) in [
        (String::new(), Err("f1 has no event")),
        ("\n\n".to_owned(), Err("f1 has no event")),
        (
            "kind: Upgrade\n".to_owned(),
            Err("f1, line 1: expected an event of `agent run --events`, one JSON object a line: expected value"),
        ),
        (
            "{}\n".to_owned(),
            Err(
                "f1, line 1: expected an event of `agent run --events`, one JSON object a line: missing field `format`",
            ),
        ),
        (
            "{\"format\":1}".to_owned(),
            Err("line 1: expected an event of `agent run --events`, one JSON object a line: it was cut"),
        ),
        (
            format!("{good}{{\"format\":2,\"when\":1}}\n"),
            Err("f1, line 2 is of format 2, and this agent reads 1: use a newer agent"),
        ),
        (format!("{good}{}", &good[..20]), Ok("f1, line 2 is no event: it was cut before its end")),
        (format!("{}{good}", good.replace("11:53", "11-53")), Ok("f1, line 1 is no event: its time is none such as")),
        (format!("{good}{}", good.replace("\"seq\":0", "\"seq\":-1")), Ok("f1, line 2 is no event: invalid value")),
        (format!("{good}null\n"), Ok("f1, line 2 is no event: invalid type: null")),
        (long, Ok("f1, line 1 is no event: it is longer than 131072 bytes")),
        (deep, Ok("f1, line 1 is no event: ")),
    ] {
        let told = events(&samples::sources(&[&text]));
        match (told, expected) {
            (Ok(events), Ok(fault)) => {
                assert!(events.faults.len() == 1 && events.faults[0].starts_with(fault), "{:?}", events.faults);
                assert!(of(&events, None).unwrap().html.contains("is no event"));
            }
            (Err(error), Err(expected)) => assert!(error.to_string().contains(expected), "{error}"),
            (told, _) => panic!("{expected:?}: {told:?}"),
        }
    }
    let bytes = [b"\xff\xfe\n", good.as_bytes()].concat();
    let told = events(&[Source { name: "f".into(), bytes: &bytes }]).unwrap();
    assert_eq!(told.faults, ["f, line 1 is no event: it is no UTF-8"]);
}

#[test]
fn files_of_several_hosts_are_one_story_and_an_empty_one_is_named() {
    let other = rollout().replace("\"h1\"", "\"h2\"").replace("\"m1\"", "\"m2\"").replace(":\"1\"", ":\"2\"");
    let told = samples::read(&[&rollout(), &other, ""]);
    assert_eq!(told.faults, ["f3 has no event"]);
    let page = of(&told, Some("00000abc")).unwrap();
    assert_eq!(page.runs, ["00000abc000000000000000000000000"]);
    assert!(page.html.contains("<dt>Hosts that report</dt><dd>2</dd>"), "{}", page.html);
    assert_eq!(events(&samples::sources(&[])).unwrap_err(), ReadError::Nothing { file: "nothing".into() });
}

#[test]
fn a_page_of_very_many_events_is_bounded() {
    let mut text = String::new();
    for at in 0..60_000 {
        // Writing to a String cannot fail.
        let _ =
            write!(text, "{}", line("00.000", at, "warning", &format!(",\"why\":\"w{at}\",\"member_id\":\"{at}\"")));
    }
    let page = of_one_run(text.as_bytes()).unwrap();
    assert!(page.len() < 4 << 20, "{}", page.len());
    assert!(page.contains("56000 events are left out here"));
}
