//! The live display: one line a member, drawn over and over in place.
//!
//! What is drawn is pure text made of a progress and a size. The size is asked for before each drawing, so a
//! terminal that changes its size, or is closed, needs no signal of its own.

use std::{os::fd::AsFd, time::Duration};

use rustix::{
    process::getpgrp,
    termios::{LocalModes, isatty, tcgetattr, tcgetpgrp, tcgetwinsize},
};

use super::progress::Progress;
use crate::{
    report::{file::json::MemberLine, lasted::lasted, wait::with_until},
    visible,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    pub columns: usize,
    pub rows: usize,
}

/// What is on the screen: how wide each line was drawn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Screen {
    drawn: Vec<usize>,
}

/// The size of the terminal behind `fd`; a usual one where it does not say.
pub fn size(fd: impl AsFd) -> Size {
    let size = tcgetwinsize(fd).ok().filter(|size| size.ws_col > 0 && size.ws_row > 0);
    size.map_or(Size { columns: 80, rows: 24 }, |size| Size {
        columns: usize::from(size.ws_col),
        rows: usize::from(size.ws_row),
    })
}

/// Whether writing to `fd` would stop this process: a terminal with `tostop` set, used by another job.
pub fn would_stop(fd: impl AsFd) -> bool {
    let fd = fd.as_fd();
    isatty(fd)
        && tcgetpgrp(fd).is_ok_and(|group| group != getpgrp())
        && tcgetattr(fd).is_ok_and(|modes| modes.local_modes.contains(LocalModes::TOSTOP))
}

/// The lines of the display, cut to the size.
pub fn frame(progress: &Progress, elapsed: Duration, size: Size) -> Vec<String> {
    let rows = progress.rows();
    let names = rows.iter().map(|(line, _)| line.name.chars().count()).max().unwrap_or(0);
    let mut lines: Vec<String> = rows.iter().map(|(line, doing)| row(line, *doing, names)).collect();
    lines.extend(progress.gates().map(|gates| format!("  gates: {}", gates.words())));
    lines.push(footer(progress, elapsed));
    lines.extend(wait(progress, elapsed));
    // The last line must stay on the screen whatever else does not.
    let surplus = lines.len().saturating_sub(size.rows.saturating_sub(1).max(1));
    lines.drain(..surplus);
    lines.iter().map(|line| cut(&visible::line(line), size.columns.saturating_sub(1))).collect()
}

fn row(line: &MemberLine, doing: Option<&str>, names: usize) -> String {
    let star = if line.mine { '*' } else { ' ' };
    let version = line.version.as_deref().unwrap_or("-");
    let state = doing.unwrap_or(line.state);
    let trouble = line.trouble.as_ref().map_or_else(String::new, |trouble| format!("  {trouble}"));
    format!("{star} {:<names$}  {version:<10}  {:<8}  {state}{trouble}", line.name, line.role)
}

fn footer(progress: &Progress, elapsed: Duration) -> String {
    let waiting = progress.waiting().map(|waiting| format!("waiting for {waiting}"));
    let unsettled = || progress.unsettled().map(|missing| format!("not settled yet: {missing}"));
    let at_work = || progress.preparing().unwrap_or("at work").to_owned();
    let starting = || progress.starting().map(|member| format!("waiting for {member} to be ready"));
    let doing = waiting.or_else(unsettled).or_else(starting).unwrap_or_else(at_work);
    format!("{:>3}:{:02}  {doing}", elapsed.as_secs() / 60, elapsed.as_secs() % 60)
}

/// How long it waits already, and what ends that.
fn wait(progress: &Progress, elapsed: Duration) -> Option<String> {
    let (waited, until) = progress.wait(elapsed)?;
    Some(format!("        for {}", with_until(&lasted(waited), until.as_deref())))
}

/// As much of a line as fits. Other characters than ASCII may be two columns wide.
fn cut(line: &str, columns: usize) -> String {
    let mut used = 0;
    let fits = |c: &char| {
        used += width(*c);
        used <= columns
    };
    line.chars().take_while(fits).collect()
}

fn width(c: char) -> usize {
    if c.is_ascii() { 1 } else { 2 }
}

impl Screen {
    /// The bytes that put `lines` in the place of what was drawn before, with `above` left for good over them.
    #[must_use = "what was drawn must be written"]
    pub fn draw(&mut self, above: &[String], lines: &[String], size: Size) -> String {
        // A line drawn on a wider screen now fills several rows.
        let rows: usize = self.drawn.iter().map(|width| width.div_ceil(size.columns.max(1)).max(1)).sum();
        let up = rows.min(size.rows.saturating_sub(1));
        let mut text = String::from("\r");
        if up > 0 {
            text.push_str(&format!("\x1b[{up}A"));
        }
        text.push_str("\x1b[J");
        for line in above.iter().chain(lines) {
            text.push_str(&visible::line(line));
            text.push('\n');
        }
        self.drawn = lines.iter().map(|line| line.chars().map(width).sum()).collect();
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a terminal of this size would show.
    fn shown(text: &str, size: Size) -> Vec<String> {
        let (mut rows, mut at): (Vec<String>, usize) = (vec![String::new()], 0);
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            rest = &rest[c.len_utf8()..];
            match c {
                '\r' => {}
                '\n' => {
                    at += 1;
                    if rows.len() <= at {
                        rows.push(String::new());
                    }
                }
                '\x1b' if rest.starts_with("[J") => {
                    rest = &rest[2..];
                    rows.truncate(at);
                    rows.push(String::new());
                }
                '\x1b' => {
                    let (count, after) = rest[1..].split_once('A').unwrap();
                    at = at.saturating_sub(count.parse().unwrap());
                    rest = after;
                }
                c => {
                    if rows[at].chars().count() == size.columns {
                        at += 1;
                        rows.push(String::new());
                    }
                    rows[at].push(c);
                }
            }
        }
        rows
    }

    fn lines(text: &[&str]) -> Vec<String> {
        text.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_drawing_takes_the_place_of_the_last_one() {
        let size = Size { columns: 20, rows: 10 };
        let mut screen = Screen::default();
        let first = screen.draw(&[], &lines(&["a  ready", "b  ready"]), size);
        let second = screen.draw(&lines(&["warning: x"]), &lines(&["a  down", "b  ready"]), size);
        let third = screen.draw(&[], &lines(&["a  ready"]), size);
        assert_eq!(shown(&(first + &second + &third), size), ["warning: x", "a  ready", ""]);
    }

    #[test]
    fn a_terminal_made_narrower_is_cleared_of_the_wrapped_lines() {
        let (wide, narrow) = (Size { columns: 12, rows: 10 }, Size { columns: 5, rows: 10 });
        let mut screen = Screen::default();
        let first = screen.draw(&[], &lines(&["0123456789", "b"]), wide);
        let second = screen.draw(&[], &lines(&["a"]), narrow);
        assert_eq!(shown(&(first + &second), narrow), ["a", ""]);
    }

    #[test]
    fn a_line_is_cut_before_the_last_column() {
        assert_eq!(cut("abcdef", 4), "abcd");
        assert_eq!(cut("aéé", 4), "aé");
        assert_eq!(cut("", 0), "");
    }
}
