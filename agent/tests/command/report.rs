//! `agent report`: pages of what runs have written.

use std::{fs, os::unix::fs::symlink, process::Command};

use super::{Folder, agent, exit, object, text};

fn line(seq: usize, event: &str, more: &str) -> String {
    format!(
        "{{\"format\":1,\"time\":\"2026-11-21T11:53:0{seq}.000Z\",\"run\":\"abc\",\"host\":\"h1\",\"seq\":{seq},\
         \"event\":\"{event}\"{more}}}\n"
    )
}

fn events() -> String {
    let of = ",\"member\":\"<b>m1\",\"member_id\":\"1\"";
    let ended = ",\"exit\":0,\"reason\":\"done\",\"message\":\"all at 3.6.14\"";
    let lines = [("begun", ""), ("step_locked", of), ("member_stopping", of), ("member_ready", of), ("ended", ended)];
    lines.iter().enumerate().map(|(seq, (event, more))| line(seq, event, more)).collect()
}

#[test]
fn a_page_is_printed_or_written_and_nothing_is_written_over_unasked() {
    let folder = Folder::new();
    let (source, page) = (folder.path("h1.events"), folder.path("report.html"));
    fs::write(&source, events()).unwrap();
    let (source, page) = (source.to_str().unwrap(), page.to_str().unwrap());
    let printed = agent(&["report", source]);
    assert_eq!(exit(&printed), 0, "{}", text(&printed.stderr));
    let html = text(&printed.stdout);
    assert!(html.starts_with("<!DOCTYPE html>") && html.ends_with("</html>\n"), "{html}");
    assert!(html.contains("all at 3.6.14") && html.contains("&lt;b&gt;m1") && !html.contains("<b>m1"), "{html}");
    assert_eq!(text(&agent(&["report", source, "-o", "-"]).stdout), html);

    let written = agent(&["report", source, "-o", page]);
    assert_eq!(exit(&written), 0, "{}", text(&written.stderr));
    assert_eq!(text(&written.stdout), format!("{page} is written: run: all at 3.6.14\n"));
    assert_eq!(fs::read_to_string(page).unwrap(), html);
    fs::write(page, "mine").unwrap();
    let refused = agent(&["report", source, "-o", page]);
    assert_eq!(exit(&refused), 2);
    assert!(text(&refused.stderr).contains("is there already; --force writes over it"), "{}", text(&refused.stderr));
    assert_eq!(fs::read_to_string(page).unwrap(), "mine");
    assert_eq!(exit(&agent(&["report", source, "-o", page, "--force"])), 0);
    assert_eq!(fs::read_to_string(page).unwrap(), html);

    let told = object(&agent(&["report", source, source, "--run", "ab", "--output", "json"]));
    assert_eq!((&told["reason"], &told["runs"][0]), (&"shown".into(), &"abc".into()));
    assert!(told["text"].as_str().unwrap().starts_with("<!DOCTYPE html>"), "{told}");
}

#[test]
fn events_of_a_pipe_are_read() {
    let folder = Folder::new();
    let source = folder.path("h1.events");
    fs::write(&source, events()).unwrap();
    let line = r#"cat "$1" | "$0" report - --output json"#;
    let told = Command::new("bash").args(["-c", line, env!("CARGO_BIN_EXE_agent")]).arg(&source).output().unwrap();
    assert_eq!(object(&told)["result"], "run: all at 3.6.14");
}

#[test]
fn what_is_no_events_file_is_refused_in_a_sentence_and_a_torn_one_is_read() {
    let folder = Folder::new();
    let at = |name: &str, text: &str| {
        let path = folder.path(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let good = events();
    symlink("/dev/zero", folder.path("zero")).unwrap();
    let missing = folder.path("missing").to_str().unwrap().to_owned();
    let zero = folder.path("zero").to_str().unwrap().to_owned();
    let large = folder.path("large");
    fs::File::create(&large).unwrap().set_len(65 << 20).unwrap();
    for (file, more, expected) in [
        (missing, &[][..], "there is no such file"),
        (zero, &[], "this is a device"),
        (large.to_str().unwrap().to_owned(), &[], "larger than 67108864 bytes that are read at most"),
        (
            at("playbook.yaml", "kind: Upgrade\n"),
            &[],
            "playbook.yaml, line 1: expected an event of `agent run --events`",
        ),
        (at("newer", &good.replace("\"format\":1", "\"format\":2")), &[], "newer, line 1 is of format 2"),
        (at("empty", ""), &[], "has no event"),
        (at("sound", &good), &["--run", "x"], "no run here begins with `x`; there is abc"),
    ] {
        let told = agent(&[&["report", &file], more].concat());
        let said = text(&told.stderr);
        assert_eq!(exit(&told), 2, "{file}: {said}");
        assert!(said.contains(expected) && said.contains("reason usage"), "{file}: {said}");
        assert!(told.stdout.is_empty(), "{file}");
    }
    let torn = agent(&["report", &at("torn", &good[..good.len() - 20])]);
    assert_eq!(exit(&torn), 0);
    assert!(
        text(&torn.stderr).contains("torn, line 5 is no event: it was cut before its end"),
        "{}",
        text(&torn.stderr)
    );
    assert!(text(&torn.stdout).contains("no agent has told its end"), "{}", text(&torn.stdout));
}

#[test]
fn a_report_that_cannot_be_written_keeps_a_run_from_beginning() {
    let folder = Folder::new();
    let playbook = folder.playbook("http://127.0.0.1:1");
    let missing = folder.path("missing/report.html");
    let told = agent(&["run", &playbook, "--report", missing.to_str().unwrap()]);
    assert_eq!(exit(&told), 2);
    assert!(
        text(&told.stderr).contains("--report ") && text(&told.stderr).contains("No such file"),
        "{}",
        text(&told.stderr)
    );
    let told = agent(&["run", &playbook, "--report", &playbook]);
    assert!(text(&told.stderr).contains("no report of Baton's"), "{}", text(&told.stderr));
    assert!(fs::read_to_string(&playbook).unwrap().contains("kind: Upgrade"), "it is left alone");
}

#[test]
fn a_run_that_ends_at_once_has_its_report_too() {
    let folder = Folder::new();
    let playbook = folder.playbook("http://127.0.0.1:1");
    let page = folder.path("report.html");
    let told = agent(&["run", &playbook, "--report", page.to_str().unwrap()]);
    assert_ne!(exit(&told), 0);
    let html = fs::read_to_string(&page).unwrap_or_else(|error| panic!("{error}: {}", text(&told.stderr)));
    assert!(html.contains(&format!("<dt>Exit</dt><dd>{}, ", exit(&told))), "{html}");
}
