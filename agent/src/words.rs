//! Words as a person reads or types them: an error with its causes, a word on a command line.

use std::{error::Error, fmt::Write as _};

/// An error with its causes, each after a colon; one whose text says its cause already says it once.
pub fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let said = error.to_string();
        if !text.contains(&said) {
            // Writing to a String cannot fail.
            let _ = write!(text, ": {said}");
        }
        cause = error.source();
    }
    text
}

/// How many bytes are taken of what a member says in its own words: an answer may have some MiB of them.
pub const MAX_SAID: usize = 300;

/// The beginning of what a member says.
pub fn said(words: &str) -> &str {
    let end = (0..=MAX_SAID.min(words.len())).rev().find(|end| words.is_char_boundary(*end));
    &words[..end.unwrap_or(0)]
}

/// A word as a shell takes it.
pub fn typed(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:,@%".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// A text as the comment behind a command: hosts choose their names, and not every shell passes over what follows a `#`.
pub fn remark(text: &str) -> String {
    let plain = |c: char| if c.is_alphanumeric() || " ._-:,".contains(c) { c } else { '?' };
    text.chars().take(200).map(plain).collect()
}

#[cfg(test)]
mod tests {
    use std::{fmt, io};

    use super::*;

    #[test]
    fn a_remark_is_no_command() {
        assert_eq!(remark("h1, the host of m1"), "h1, the host of m1");
        assert_eq!(remark("h1; touch $(x) `y`\n|&<>"), "h1? touch ??x? ?y??????");
        assert_eq!(remark(&"h".repeat(300)).len(), 200);
    }

    #[test]
    fn of_what_a_member_says_the_beginning_is_taken() {
        assert_eq!(said("no leader"), "no leader");
        assert_eq!(said(&"é".repeat(MAX_SAID)), "é".repeat(MAX_SAID / 2));
        assert_eq!(said(&format!("x{}", "é".repeat(MAX_SAID))).len(), MAX_SAID - 1);
    }

    #[derive(Debug)]
    struct Outer(&'static str, io::Error);

    impl fmt::Display for Outer {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }
    }

    impl Error for Outer {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            Some(&self.1)
        }
    }

    #[test]
    fn a_cause_is_told_once() {
        for (outer, text) in [("no file", "no file: it is gone"), ("no file: it is gone", "no file: it is gone")] {
            assert_eq!(with_causes(&Outer(outer, io::Error::other("it is gone"))), text);
        }
    }

    #[test]
    fn a_word_is_quoted_where_a_shell_would_read_it_otherwise() {
        for (word, text) in [("a/b-1.yaml", "a/b-1.yaml"), ("", "''"), ("a b", "'a b'"), ("it's", r"'it'\''s'")] {
            assert_eq!(typed(word), text);
        }
    }
}
