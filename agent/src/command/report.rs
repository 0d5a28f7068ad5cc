//! `agent report`: one HTML page of what runs have written with `--events`. Asks nobody; writes one file, or to stdout.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::json;

use super::{
    Outcome,
    init::{is_there, write},
};
use crate::{
    cli,
    event::trouble::Trouble,
    regular_file,
    report::{
        file::json::Facts,
        page::{self, Page, read},
        stop::{Reason, Stop},
    },
};

/// How many bytes are read of all files together.
const MOST_READ: usize = 64 << 20;

/// Reads the files, and makes the page of the newest run, or of the one that is named.
///
/// # Errors
/// A file cannot be read or is none of events, there is no such run, or the file to write is there already.
pub fn report(typed: &cli::Report) -> Result<Outcome, Trouble> {
    let file = typed.file.as_deref().filter(|file| *file != Path::new("-"));
    if let Some(file) = file.filter(|file| !typed.force && fs::symlink_metadata(file).is_ok()) {
        return Err(is_there(file));
    }
    let bytes = typed.events.iter().scan(MOST_READ, |left, path| Some(content(path, left)));
    let bytes: Vec<(String, Vec<u8>)> = bytes.collect::<Result<_, _>>()?;
    let sources: Vec<_> = bytes.iter().map(|(name, bytes)| read::Source { name: name.clone(), bytes }).collect();
    let events = read::events(&sources).map_err(|error| Trouble::Usage(error.to_string()))?;
    let page = page::of(&events, typed.run.as_deref()).map_err(|error| Trouble::Usage(error.to_string()))?;
    if let Some(file) = file {
        write(file, &page.html, typed.force)?;
    }
    Ok(told(page, file, events.faults))
}

fn content(path: &PathBuf, left: &mut usize) -> Result<(String, Vec<u8>), Trouble> {
    let (place, name) = match path == Path::new("-") {
        true => (Path::new("/dev/stdin"), "stdin".to_owned()),
        false => (path.as_path(), path.display().to_string()),
    };
    let bytes = regular_file::read(place, *left).map_err(|error| {
        let fewer = match &error {
            regular_file::ReadError::TooLarge(_) => {
                format!(" that are read at most; make it of the last lines: tail -n 100000 {name} | agent report -")
            }
            _ => String::new(),
        };
        Trouble::Usage(format!("{name}: {error}{fewer}"))
    })?;
    *left -= bytes.len();
    Ok((name, bytes))
}

fn told(page: Page, file: Option<&Path>, warnings: Vec<String>) -> Outcome {
    let Page { html, result, runs } = page;
    let reason = if file.is_some() { Reason::Written } else { Reason::Shown };
    let message = format!("a report was made: {result}");
    let stop = Stop { next: None, ..Stop::well(reason, message, "status", Path::new("")) };
    let mut facts = Facts { warnings, ..Facts::default() };
    facts.more.insert("file".into(), json!(file.map(Path::to_string_lossy)));
    facts.more.insert("result".into(), json!(result));
    facts.more.insert("runs".into(), json!(runs));
    let text = match file {
        Some(file) => format!("{} is written: {result}\n", file.display()),
        None => {
            facts.more.insert("text".into(), json!(html));
            html
        }
    };
    Outcome { stop, facts, text }
}
