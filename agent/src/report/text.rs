//! How a command's end is printed for a person: what happened, what was left, what to type next.

use super::stop::Stop;

/// The lines of an end: an error's begin with `error:`, and say exit code and reason.
pub fn end(stop: &Stop) -> String {
    let mut text = match stop.exit {
        0 => format!("{}\n", stop.message),
        _ => format!("error: {}\n", stop.message),
    };
    if !stop.left.is_empty() {
        text.push_str(&format!("left:  {}\n", stop.left));
    }
    if let Some(next) = &stop.next {
        text.push_str(&format!("next:  {next}\n"));
    }
    if stop.exit != 0 {
        text.push_str(&format!("       (exit {}, reason {})\n", stop.exit, stop.reason.name()));
    }
    text
}
