//! Text from elsewhere on its way to a terminal: characters that a terminal obeys instead of showing become escapes.
//!
//! Such text comes from shared keys, from answers over gRPC, from files. Filtered are the control characters of ECMA-48
//! (C0, DEL, C1), the controls of direction (Unicode Standard Annex #9), and characters without a width that hide others.

use std::{
    borrow::Cow,
    fmt::Write as _,
    io::{self, Write},
};

/// Whether a terminal may obey this character, or hide others by it.
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
        || matches!(c, '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// One line: line breaks and tabs are escaped too, so that nobody can forge a line of ours.
pub fn line(text: &str) -> Cow<'_, str> {
    escaped(text, is_hidden)
}

pub fn lines(text: &str) -> Cow<'_, str> {
    escaped(text, |c| is_hidden(c) && !matches!(c, '\n' | '\t'))
}

fn escaped(text: &str, is_it: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.chars().any(&is_it) {
        return Cow::Borrowed(text);
    }
    let mut visible = String::with_capacity(text.len());
    for c in text.chars() {
        match is_it(c) {
            true => visible.extend(c.escape_default()),
            false => visible.push(c),
        }
    }
    Cow::Owned(visible)
}

/// JSON on one line, which means the same afterwards: its writer escapes nothing but C0, quote and backslash.
pub fn json(object: String) -> String {
    if !object.chars().any(is_hidden) {
        return object;
    }
    let mut visible = String::with_capacity(object.len());
    for c in object.chars() {
        match is_hidden(c) {
            true => c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| {
                // Writing to a String cannot fail.
                let _ = write!(visible, "\\u{unit:04x}");
            }),
            false => visible.push(c),
        }
    }
    visible
}

/// Where a log goes, which writes each event in one call.
#[derive(Debug)]
pub struct Log<W>(pub W);

impl<W: Write> Write for Log<W> {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(event);
        let (body, end) = text.strip_suffix('\n').map_or((&*text, ""), |body| (body, "\n"));
        self.0.write_all(format!("{}{end}", line(body)).as_bytes())?;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A title, a cleared screen, a forged line, C1, a turned direction, a hidden letter, a tag.
    const HOSTILE: &str = "\u{1b}]0;t\u{7}\u{1b}[2J\r\nnext:  x\u{9b}1m\u{202e}\u{2066}\u{200b}\u{7f}\u{e0041}";

    #[test]
    fn what_a_terminal_obeys_is_shown_as_an_escape() {
        for (text, expected) in [
            ("m1: größer, 日本", "m1: größer, 日本"),
            ("\u{1b}[31m", "\\u{1b}[31m"),
            ("a\r\nb\tc", "a\\r\\nb\\tc"),
            ("\u{9b}2J\u{7}", "\\u{9b}2J\\u{7}"),
            ("\u{202e}x\u{2069}", "\\u{202e}x\\u{2069}"),
        ] {
            assert_eq!(line(text), expected);
        }
        assert_eq!(lines("a\n\tb\r\u{1b}"), "a\n\tb\\r\\u{1b}");
        assert!(!line(HOSTILE).chars().any(is_hidden));
    }

    #[test]
    fn json_means_the_same() {
        let object = serde_json::to_string(&HOSTILE).unwrap();
        let shown = json(object);
        assert!(!shown.chars().any(is_hidden), "{shown}");
        assert_eq!(serde_json::from_str::<String>(&shown).unwrap(), HOSTILE);
    }

    #[test]
    fn an_event_of_the_log_stays_one_line() {
        let mut log = Log(Vec::new());
        log.write_all(b"WARN a\nERROR \x1b[2J\xff\n").unwrap();
        assert_eq!(String::from_utf8(log.0).unwrap(), "WARN a\\nERROR \\u{1b}[2J\u{fffd}\n");
    }
}
