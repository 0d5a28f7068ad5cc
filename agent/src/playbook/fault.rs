//! What is wrong with a playbook, where, and what was expected there.
//!
//! The rest of this folder speaks of `Fault`s, which know a [`Place`] in the source; only here are they
//! joined with the file's name and the offending line, for a person to read.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use super::secret;
use crate::{regular_file::ReadError, visible};

/// The most characters of a line that are shown.
const LINE_SHOWN: usize = 120;
/// The most characters of a sentence that are shown.
const TEXT_SHOWN: usize = 300;

/// What is said of a file with another `kind`.
pub(super) const IS_A_MATRIX: &str = "this is a matrix, not a playbook";

/// A playbook that cannot be used. Nothing was touched.
///
/// `Display` is the whole text for a person: place, the line with a caret, and what was expected.
#[derive(Debug, thiserror::Error)]
pub enum PlaybookError {
    /// The file cannot be read.
    #[error("{}: {source}\nexpected: {expected}", file.display())]
    Unreadable {
        /// The file as it was named.
        file: PathBuf,
        source: ReadError,
        expected: &'static str,
    },
    /// The file was read and is no playbook.
    #[error(transparent)]
    Mistake(Box<Mistake>),
}

impl PlaybookError {
    /// Whether the file is of the other kind that the agent knows, and right as far as it was read.
    pub fn is_a_matrix(&self) -> bool {
        matches!(self, Self::Mistake(mistake) if mistake.problem == IS_A_MATRIX)
    }

    /// What is wrong, in one sentence, without the place.
    pub fn sentence(&self) -> String {
        match self {
            Self::Unreadable { .. } => self.to_string(),
            Self::Mistake(mistake) => format!("{}; expected: {}", mistake.problem, mistake.expected),
        }
    }
}

/// One mistake in a playbook.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Mistake {
    /// The file as it was named.
    pub file: PathBuf,
    /// Where in the file; `None` when it is about the file as a whole.
    pub place: Option<Place>,
    /// The line at `place`, without what is nobody's to see.
    pub line: String,
    pub problem: String,
    /// What should have been there.
    pub expected: String,
}

/// A stretch of one line of the source, counted in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Line, from 1.
    pub line: usize,
    /// Column of the first character, from 1.
    pub column: usize,
    /// How many characters, at least 1.
    pub width: usize,
}

/// A mistake as the rooms of this folder find it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    pub place: Option<Place>,
    pub problem: String,
    pub expected: String,
}

impl Fault {
    pub fn new(place: Place, problem: impl Into<String>, expected: impl Into<String>) -> Self {
        Self { place: Some(place), problem: problem.into(), expected: expected.into() }
    }

    pub fn of_file(problem: impl Into<String>, expected: impl Into<String>) -> Self {
        Self { place: None, problem: problem.into(), expected: expected.into() }
    }

    /// For what a playbook may say one day, and this release would have to ignore.
    pub fn not_in_this_release(place: Place, what: &str, instead: &str) -> Self {
        Self::new(place, format!("{what} is not in this release"), instead)
    }

    pub fn in_source(self, file: &Path, source: &str) -> PlaybookError {
        let line = self.place.map(|place| secret::line(source, place.line.saturating_sub(1)));
        PlaybookError::Mistake(Box::new(Mistake {
            file: file.into(),
            place: self.place,
            line: line.unwrap_or_default(),
            problem: presentable(&secret::in_text(&self.problem)),
            expected: presentable(&secret::in_text(&self.expected)),
        }))
    }
}

/// A text that may quote the playbook, made fit for a terminal: no control characters, and not too long.
fn presentable(text: &str) -> String {
    let shown: String = text.chars().take(TEXT_SHOWN).map(printable).collect();
    if text.chars().nth(TEXT_SHOWN).is_some() { shown + "…" } else { shown }
}

fn printable(c: char) -> char {
    if visible::is_hidden(c) { '\u{fffd}' } else { c }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place {
            Some(place) => {
                writeln!(f, "{}:{}:{}: {}", self.file.display(), place.line, place.column, self.problem)?;
                self.excerpt(place).fmt(f)?;
            }
            None => writeln!(f, "{}: {}", self.file.display(), self.problem)?,
        }
        write!(f, "expected: {}", self.expected)
    }
}

impl Mistake {
    /// The line with a caret under the place, cropped when it is long.
    fn excerpt(&self, place: Place) -> String {
        let margin = place.line.to_string().len();
        let before = place.column - 1;
        let start = if before > LINE_SHOWN * 2 / 3 { before - LINE_SHOWN / 3 } else { 0 };
        let printable = |c: char| if c == '\t' { c } else { printable(c) };
        let shown: Vec<char> = self.line.chars().skip(start).take(LINE_SHOWN).map(printable).collect();
        let ahead = if start > 0 { "…" } else { "" };
        let after = if self.line.chars().nth(start + LINE_SHOWN).is_some() { "…" } else { "" };
        // Tabs stay tabs, so that the caret stands under its character however wide they are shown.
        let tab_or_space = |c: &char| if *c == '\t' { '\t' } else { ' ' };
        let under = (0..before - start).map(|i| shown.get(i).map_or(' ', tab_or_space)).collect::<String>();
        let carets = place.width.min((start + LINE_SHOWN).saturating_sub(before)).max(1);
        format!(
            "{line:>margin$} | {ahead}{shown}{after}\n{empty:>margin$} | {indent}{under}{carets}\n",
            line = place.line,
            shown = shown.iter().collect::<String>().trim_end(),
            empty = "",
            indent = " ".repeat(ahead.chars().count()),
            carets = "^".repeat(carets),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn excerpt(line: &str, column: usize, width: usize) -> String {
        let (problem, expected) = (String::new(), String::new());
        let mistake = Mistake { file: "p.yaml".into(), place: None, line: line.into(), problem, expected };
        mistake.excerpt(Place { line: 7, column, width })
    }

    #[test]
    fn the_caret_stands_under_its_character() {
        assert_eq!(excerpt("to: 3.6", 5, 3), "7 | to: 3.6\n  |     ^^^\n");
        assert_eq!(excerpt("\tü: 3.6", 5, 3), "7 | \tü: 3.6\n  | \t   ^^^\n");
        assert_eq!(excerpt("", 1, 1), "7 | \n  | ^\n");
        assert_eq!(excerpt("short", 9, 1), "7 | short\n  |         ^\n");
    }

    #[test]
    fn a_long_line_is_cropped_around_the_place_and_never_sent_to_a_terminal_raw() {
        let line = format!("{}HERE{}", "a".repeat(5_000), "b".repeat(5_000));
        let text = excerpt(&line, 5_001, 4);
        let [shown, carets] = text.lines().collect::<Vec<_>>()[..] else { panic!("{text}") };
        assert!(shown.chars().count() < 130, "{shown}");
        let column = carets.find('^').unwrap();
        assert_eq!(shown.chars().skip(column).take(4).collect::<String>(), "HERE");
        assert_eq!(excerpt("\u{1b}[2J", 1, 1), "7 | \u{fffd}[2J\n  | ^\n");
        assert!(excerpt("x", 1, usize::MAX).len() < 300);
    }
}
