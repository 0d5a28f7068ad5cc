use super::*;

fn typed(line: &str) -> Result<Cli, clap::Error> {
    parse(line.split(' ').map(Into::into))
}

#[test]
fn the_definition_is_sound() {
    command().debug_assert();
}

#[test]
fn every_verb_takes_the_playbook_first_and_the_output_anywhere() {
    for verb in ["run", "plan", "status", "validate", "finalize", "rollback", "resume", "keys"] {
        for line in [format!("agent {verb} p.yaml --output json"), format!("agent --output json {verb} p.yaml")] {
            let cli = typed(&line).unwrap();
            assert_eq!((cli.verb.name(), cli.output), (verb, Form::Json), "{line}");
            assert_eq!(cli.verb.playbook(), Some(&PathBuf::from("p.yaml")), "{line}");
        }
    }
    let cli = typed("agent abandon p.yaml orders-2 --host-is-fenced").unwrap();
    let playbook = "p.yaml".into();
    let expected = Abandon { playbook, member: "orders-2".into(), host_is_fenced: true, yes: false };
    assert_eq!(cli.verb, Verb::Abandon(expected));
}

#[test]
fn a_run_that_stands_is_replaced_only_where_it_is_typed() {
    for (line, expected) in [("agent plan p.yaml", false), ("agent plan p.yaml --replace", true)] {
        let one = One { playbook: "p.yaml".into() };
        assert_eq!(
            typed(line).unwrap().verb,
            Verb::Plan(Plan { one, replace: expected, accepting: Accepting::default() }),
            "{line}"
        );
    }
    for (line, expected) in [("agent run p.yaml", false), ("agent run p.yaml --replace", true)] {
        let cli = typed(line).unwrap();
        assert!(matches!(cli.verb, Verb::Run(Run { replace, .. }) if replace == expected), "{line}");
    }
}

#[test]
fn status_wants_a_playbook_or_endpoints_and_not_both() {
    let cli = typed("agent status --endpoints http://a:1,http://b:2").unwrap();
    let Verb::Status(status) = cli.verb else { panic!("{cli:?}") };
    assert_eq!(status.endpoints, ["http://a:1", "http://b:2"]);
    for line in [
        "agent status",
        "agent status p.yaml --endpoints http://a:1",
        "agent status p.yaml --ca ca.pem",
        "agent status p.yaml --user root --password-file p",
        "agent status --endpoints https://a:1 --ca ca.pem --user root",
        "agent status --endpoints https://a:1 --ca ca.pem --cert c.pem",
    ] {
        assert_eq!(typed(line).unwrap_err().exit_code(), 2, "{line}");
    }
    let cli = typed("agent status --endpoints https://a:1 --ca ca.pem --user root --password-file p").unwrap();
    let Verb::Status(status) = cli.verb else { panic!("{cli:?}") };
    assert_eq!((status.reach.ca, status.reach.user), (Some("ca.pem".into()), Some("root".into())));
}

#[test]
fn gates_wants_a_playbook_or_endpoints_and_then_perhaps_a_feature() {
    for (line, playbook, feature) in [
        ("agent gates p.yaml", Some("p.yaml"), None),
        ("agent gates p.yaml A --watch", Some("p.yaml"), Some("A")),
        ("agent gates --endpoints http://a:1", None, None),
        ("agent gates --endpoints http://a:1 A", None, Some("A")),
        ("agent gates A --endpoints https://a:1 --ca ca.pem", None, Some("A")),
    ] {
        let Verb::Gates(gates) = typed(line).unwrap().verb else { panic!("{line}") };
        assert_eq!((gates.playbook, gates.feature.as_deref()), (playbook.map(PathBuf::from), feature), "{line}");
    }
    for line in [
        "agent gates",
        "agent gates p.yaml A --endpoints http://a:1",
        "agent gates p.yaml A B",
        "agent gates p.yaml --ca ca.pem",
        "agent gates p.yaml A --user root --password-file p",
    ] {
        assert_eq!(typed(line).unwrap_err().exit_code(), 2, "{line}");
    }
}

#[test]
fn a_wrong_command_line_is_exit_2() {
    for line in ["agent", "agent fly", "agent run", "agent validate p --replace", "agent run p --expect-agents x"] {
        assert_eq!(typed(line).unwrap_err().exit_code(), 2, "{line}");
    }
}

#[test]
fn the_help_has_every_reason() {
    for line in ["agent --help", "agent help", "agent run --help", "agent abandon --help"] {
        let help = typed(line).unwrap_err();
        assert_eq!(help.exit_code(), 0);
        let text = help.to_string();
        for reason in reason::Reason::ALL {
            assert!(text.contains(&format!("  {}\n", reason.name())), "{line}: {}", reason.name());
        }
    }
}

#[test]
fn the_help_has_examples_that_are_right() {
    let examples = EXAMPLES.lines().skip(1).map(|line| line.split('#').next().unwrap_or_default().trim());
    for example in examples {
        assert!(typed("agent -h").unwrap_err().to_string().contains(example), "{example}");
        let words = example.split_whitespace().map(Into::into);
        assert!(parse(words).is_ok(), "{example}");
    }
}

#[test]
fn a_number_that_cannot_be_is_named_as_such() {
    for number in ["-1", "0", "x", "1.5"] {
        let error = typed(&format!("agent run p.yaml --expect-agents {number}")).unwrap_err().to_string();
        let expected = format!("invalid value '{number}' for '--expect-agents <N>': expected a number of hosts");
        assert!(error.contains(&expected), "{error}");
        assert!(!error.contains("'-- "), "{error}");
    }
}
