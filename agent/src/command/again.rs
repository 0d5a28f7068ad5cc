//! The same command once more, as it was typed: a flag that is left out may make it another one.

use std::ffi::OsString;

use crate::{cli::Verb, words};

/// Options of every verb, each with a value, that say nothing of what is done.
const GLOBAL: [&str; 2] = ["--output", "--log"];

/// What is to be typed next, with all that was typed behind the playbook where it is the same command. Where words stand there already,
/// whoever wrote them knows better; and a rollout's own ends say what goes on with it.
pub(super) fn as_typed(next: String, verb: &Verb, arguments: &[OsString]) -> String {
    let is_rollout = matches!(verb, Verb::Run(_) | Verb::Finalize(_) | Verb::Rollback(_) | Verb::Resume(_));
    let Some(playbook) = verb.playbook().filter(|_| !is_rollout).map(|path| path.to_string_lossy()) else {
        return next;
    };
    let command = format!("agent {} {}", verb.name(), words::typed(&playbook));
    match next.split_once(&command) {
        Some((before, after)) if !after.starts_with(' ') => {
            format!("{before}{command}{}{after}", behind(arguments, verb.name(), &playbook))
        }
        _ => next,
    }
}

/// All that was typed but the program, the verb, the playbook and [`GLOBAL`].
fn behind(arguments: &[OsString], verb: &str, playbook: &str) -> String {
    let mut left_out: Vec<&str> = verb.split(' ').chain([playbook]).collect();
    let (mut behind, mut is_value, mut is_command) = (String::new(), false, false);
    for word in arguments.iter().skip(1).map(|word| word.to_string_lossy()) {
        let is_global = GLOBAL.iter().any(|name| word.strip_prefix(name).is_some_and(|rest| rest.starts_with('=')));
        match &*word {
            _ if is_command => {}
            _ if std::mem::take(&mut is_value) => continue,
            _ if is_global => continue,
            word if GLOBAL.contains(&word) => {
                is_value = true;
                continue;
            }
            "--" => is_command = true,
            word => {
                if let Some(at) = left_out.iter().position(|left_out| *left_out == word) {
                    left_out.remove(at);
                    continue;
                }
            }
        }
        behind.push(' ');
        behind += &words::typed(&word);
    }
    behind
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli;

    #[test]
    fn what_is_to_be_typed_again_is_what_was_typed() {
        for (typed, next, expected) in [
            ("drain P h1 --check", "agent drain P", "agent drain P h1 --check"),
            ("--output json drain P h1 --undo", "agent drain P", "agent drain P h1 --undo"),
            ("drain P drain --wait 5m", "agent drain P", "agent drain P drain --wait 5m"),
            ("hold add P h1 n --owner me", "agent hold add P", "agent hold add P h1 n --owner me"),
            ("keys P --clear --log=info", "start it, then: agent keys P", "start it, then: agent keys P --clear"),
            ("guard P --hand-over", "agent guard P", "agent guard P --hand-over"),
            ("guard P --wait 5m -- sh -c --log", "agent guard P", "agent guard P --wait 5m -- sh -c --log"),
            ("restore P --from F --check", "agent restore P, there", "agent restore P --from F --check, there"),
            ("restore P --from F --check", "agent restore P --from G", "agent restore P --from G"),
            ("restore P --from F --yes", "agent status P", "agent status P"),
            ("run P --yes", "agent run P", "agent run P"),
        ] {
            let arguments: Vec<OsString> = ["agent"].into_iter().chain(typed.split(' ')).map(OsString::from).collect();
            let parsed = cli::parse(arguments.iter().cloned()).unwrap();
            assert_eq!(as_typed(next.into(), &parsed.verb, &arguments), expected, "{typed}");
        }
    }
}
