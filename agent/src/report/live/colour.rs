//! Colour for `agent status` on a terminal: a line is red, yellow or green by the first word of the field in it. Pure.
//!
//! `NO_COLOR` (no-color.org) turns it off, and so does a terminal that is `dumb`.

const RED: &str = "\x1b[31m";
const YELLOW: &str = "\x1b[33m";
const GREEN: &str = "\x1b[32m";
const PLAIN: &str = "\x1b[0m";

/// What is wrong comes before what is under way, and that before what is done.
const WORDS: [(&str, &[&str]); 3] = [
    (RED, &["silent", "sick", "failed", "error:", "alarm", "abandoned:", "stale:", "given", "left"]),
    (YELLOW, &["catching_up", "stopping", "restarting", "starting", "soaking", "held", "undecided", "never_started"]),
    (GREEN, &["done"]),
];

/// Whether this environment wants colour, of one that writes to a terminal.
pub fn is_wanted(variable: impl Fn(&str) -> Option<std::ffi::OsString>) -> bool {
    let no_color = variable("NO_COLOR").is_some_and(|value| !value.is_empty());
    !no_color && variable("TERM").is_some_and(|term| term != "dumb")
}

/// A text of whole lines, which holds no control characters of its own any more.
pub fn painted(text: &str) -> String {
    text.split_inclusive('\n').map(line).collect()
}

fn line(line: &str) -> String {
    let (shown, end) = line.strip_suffix('\n').map_or((line, ""), |shown| (shown, "\n"));
    let has = |words: &[&str]| shown.split([' ', ',', ';']).any(|word| words.contains(&word));
    match WORDS.iter().find(|(_, words)| has(words)) {
        Some((colour, _)) => format!("{colour}{shown}{PLAIN}{end}"),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_the_colour_of_its_worst_word() {
        for (text, colour) in [
            ("   m1  3.5.30  follower  ready  -\n", None),
            ("   m1  3.5.30  follower  ready  done\n", Some(GREEN)),
            ("   m1  3.5.30  follower  silent  restarting\n", Some(RED)),
            ("   m1  3.5.30  follower  ready  soaking 3 of 8 s\n", Some(YELLOW)),
            ("run: to 3.6.14, failed at m1: it ended; nobody goes\n", Some(RED)),
            ("silently\n", None),
        ] {
            let expected = match colour {
                Some(colour) => format!("{colour}{}{PLAIN}\n", text.trim_end_matches('\n')),
                None => text.to_owned(),
            };
            assert_eq!(painted(text), expected);
        }
    }

    #[test]
    fn colour_is_for_a_terminal_that_can_and_a_person_who_wants_it() {
        for (no_color, term, wanted) in [
            (None, Some("xterm"), true),
            (Some(""), Some("xterm"), true),
            (Some("1"), Some("xterm"), false),
            (None, Some("dumb"), false),
            (None, None, false),
        ] {
            let variable = |name: &str| if name == "NO_COLOR" { no_color } else { term }.map(Into::into);
            assert_eq!(is_wanted(variable), wanted, "{no_color:?} {term:?}");
        }
    }
}
