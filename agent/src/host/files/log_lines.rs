//! Which lines of a log say why its process ended, and what a person reads of each. Pure.
//!
//! etcd writes a JSON object a line (zap: `level`, `msg`, `error`), and 3.4 may write capnslog's lines. Go ends a panic with the
//! stack of every call, and a wrong flag with the help: what is behind them says nothing.

use serde_json::{Map, Value};

use super::secret_words::without_secrets;
use crate::words::{MAX_SAID, said};

/// How many lines are taken.
const LINES: usize = 3;
const SEPARATOR: &str = " | ";

/// What is to be read of a line.
#[derive(Debug, PartialEq, Eq)]
struct Line {
    weight: Weight,
    words: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Weight {
    /// Of etcd's levels those that nobody reads for a cause.
    Low,
    Warning,
    /// It has no level.
    Unknown,
    Error,
}

/// The line that says best why its process ended, its beginning; with those of its kind before it, as long as all of it stays
/// short.
pub(crate) fn last_lines(text: &str) -> Option<String> {
    let lines = lines(text);
    let last_error = lines.iter().rposition(|line| line.weight == Weight::Error);
    let is_loud = lines.iter().any(|line| line.weight != Weight::Low);
    let is_taken = |at: usize, line: &Line| match (last_error, line.weight) {
        // What comes last of all may be somebody else's word about that process.
        (Some(error), Weight::Unknown) => at > error,
        (Some(_), weight) => weight == Weight::Error,
        (None, weight) => weight != Weight::Low || !is_loud,
    };
    let taken: Vec<_> =
        lines.iter().enumerate().filter(|(at, line)| is_taken(*at, line)).map(|(_, line)| line).collect();
    joined(taken.into_iter().map(|line| line.words.as_str()))
}

fn joined<'a>(lines: impl DoubleEndedIterator<Item = &'a str>) -> Option<String> {
    let mut lines = lines.rev();
    let last = said(lines.next()?);
    let mut taken = vec![last];
    let mut length = last.len();
    for line in lines {
        // A member that is started again and again says the same each time.
        if taken.contains(&line) {
            continue;
        }
        length += line.len() + SEPARATOR.len();
        if length > MAX_SAID || taken.len() == LINES {
            break;
        }
        taken.push(line);
    }
    taken.reverse();
    Some(taken.join(SEPARATOR))
}

fn lines(text: &str) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    let mut is_passed_over = false;
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let is_panic = line.starts_with("panic: ") || line.starts_with("fatal error: ");
        let read = match of_zap(line).or_else(|| of_capnslog(line)) {
            Some(read) => {
                is_passed_over = false;
                read
            }
            None if is_panic => {
                is_passed_over = true;
                // The logger has said it already, with more words.
                let words = line.strip_prefix("panic: ").unwrap_or(line);
                if lines.last().is_some_and(|last| last.words.contains(words)) {
                    continue;
                }
                Line { weight: Weight::Error, words: line.into() }
            }
            None if is_passed_over => continue,
            None if matches!(line, "Usage:" | "stack backtrace:") => {
                is_passed_over = true;
                continue;
            }
            None => Line { weight: Weight::Unknown, words: line.into() },
        };
        lines.push(Line { words: without_secrets(&read.words), ..read });
    }
    lines
}

fn of_zap(line: &str) -> Option<Line> {
    let object: Map<String, Value> = serde_json::from_str(line).ok()?;
    let weight = match object.get("level")?.as_str()? {
        "debug" | "info" => Weight::Low,
        "warn" => Weight::Warning,
        _ => Weight::Error,
    };
    let message = object.get("msg")?.as_str()?.trim().to_owned();
    let words = match object.get("error") {
        None | Some(Value::Null) => message,
        Some(Value::String(error)) => format!("{message}: {error}"),
        Some(error) => format!("{message}: {error}"),
    };
    Some(Line { weight, words })
}

/// Date, time and a letter for the level; then the message.
fn of_capnslog(line: &str) -> Option<Line> {
    let (head, message) = line.split_once(" | ")?;
    let [date, time, level] = head.split(' ').collect::<Vec<_>>().try_into().ok()?;
    let is_dated = date.len() == 10 && time.contains(':') && head.starts_with(|c: char| c.is_ascii_digit());
    let weight = match level {
        "C" | "E" => Weight::Error,
        "W" => Weight::Warning,
        "N" | "I" | "D" | "T" => Weight::Low,
        _ => return None,
    };
    is_dated.then(|| Line { weight, words: message.into() })
}

#[cfg(test)]
#[path = "log_lines_test.rs"]
mod tests;
