//! What people type beside their work: explanations, the schema, completions, the manual page.

use std::{
    io::Write,
    process::{Command, Stdio},
};

use super::{agent, exit, object, text};

/// Runs a program with this on its stdin: what it printed, and its complaints. `None` where it is not installed.
fn fed(argv: &[&str], input: &[u8]) -> Option<(String, String)> {
    let mut command = Command::new(argv[0]);
    command.args(&argv[1..]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(_) => {
            eprintln!("skipped: {} is not installed", argv[0]);
            return None;
        }
    };
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    // One that prints before it has read all of it must not wait for us.
    let writer = std::thread::spawn(move || stdin.write_all(&input));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    let said = text(&output.stderr).to_owned();
    assert!(output.status.success(), "{argv:?}: {said}");
    Some((text(&output.stdout).to_owned(), said))
}

#[test]
fn a_field_is_explained_and_a_mistyped_one_is_exit_2_with_the_nearest() {
    let told = agent(&["explain", "strategy.order"]);
    assert_eq!(exit(&told), 0, "{}", text(&told.stderr));
    assert!(text(&told.stdout).starts_with("strategy.order\n"), "{}", text(&told.stdout));
    let all = agent(&["explain"]);
    assert!(text(&all.stdout).lines().any(|line| line.starts_with("nodes[].binary ")), "{}", text(&all.stdout));
    let json = object(&agent(&["explain", "strategy", "--output", "json"]));
    assert_eq!((&json["reason"], &json["fields"][1]["path"]), (&"shown".into(), &"strategy.order".into()));

    let wrong = agent(&["explain", "stratgy.order"]);
    assert_eq!(exit(&wrong), 2);
    let expected = "error: a playbook has no field `stratgy.order`; perhaps `strategy.order` is meant";
    assert!(text(&wrong.stderr).starts_with(expected), "{}", text(&wrong.stderr));
}

#[test]
fn the_schema_is_printed_for_an_editor() {
    let told = agent(&["schema"]);
    let schema: serde_json::Value = serde_json::from_slice(&told.stdout).unwrap();
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    assert_eq!(object(&agent(&["schema", "--output", "json"]))["schema"], schema);
}

#[test]
fn bash_completes_verbs_flags_and_fields() {
    let script = agent(&["completions", "bash"]);
    assert_eq!(exit(&script), 0, "{}", text(&script.stderr));
    let ask = "\nt() { COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); \
               _agent agent \"${@: -1}\" \"${@: -2:1}\"; echo \"${COMPREPLY[*]}\"; }\n\
               t agent ru; t agent run --y; t agent explain strategy.on; t agent completions ba\n";
    let input = [&script.stdout[..], ask.as_bytes()].concat();
    let Some((completed, complaints)) = fed(&["bash", "--norc"], &input) else { return };
    assert_eq!(completed, "run\n--yes\nstrategy.on_failure\nbash\n", "{complaints}");
}

#[test]
fn zsh_and_fish_take_their_completions() {
    for (shell, check) in [("zsh", "-n"), ("fish", "--no-execute")] {
        let script = agent(&["completions", shell]);
        assert!(text(&script.stdout).contains("rollback"), "{shell}");
        let _ = fed(&[shell, check], &script.stdout);
    }
}

#[test]
fn the_manual_page_is_rendered_without_a_complaint() {
    let page = agent(&["man"]);
    assert_eq!(exit(&page), 0, "{}", text(&page.stderr));
    let Some((shown, complaints)) = fed(&["groff", "-man", "-Tutf8", "-ww", "-P-c", "-P-b", "-P-u"], &page.stdout)
    else {
        return;
    };
    assert_eq!(complaints, "");
    for wanted in ["AGENT RUN", "AGENT INIT", "--endpoints", "EXIT STATUS"] {
        assert!(shown.contains(wanted), "{wanted} is missing in\n{shown}");
    }
    for reason in agent::report::stop::reason::Reason::ALL {
        assert!(shown.contains(reason.name()), "{}", reason.name());
    }
}

#[test]
fn init_says_what_is_wrong_with_its_command_line() {
    for (line, expected) in [
        (&["init"][..], "--endpoints"),
        (&["init", "--endpoints", "https://127.0.0.1:1"], "https wants --ca"),
        (&["init", "--endpoints", "http://127.0.0.1:1", "--to", "3.6"], "'3.6'"),
        (&["init", "--endpoints", "http://127.0.0.1:1", "--user", "root"], "--password-file"),
        (&["init", "--endpoints", "::"], "::"),
    ] {
        let told = agent(line);
        assert_eq!(exit(&told), 2, "{line:?}: {}", text(&told.stderr));
        assert!(text(&told.stderr).contains(expected), "{line:?}: {}", text(&told.stderr));
    }
}
