//! Events files, read back. A line that is no event is passed over and named; a newer format is refused, as it might say the opposite.

use std::collections::BTreeMap;

use super::record::{Record, Said, shown};
use crate::{calendar::millis, report::file::FORMAT};

/// How long a line may be, in bytes. One of a look at a hundred members has a fifth of it.
const LONGEST_LINE: usize = 128 << 10;
/// How many lines that are no events are named.
const MOST_FAULTS: usize = 50;

/// A file, and what it is called.
#[derive(Clone, Debug)]
pub struct Source<'a> {
    pub name: String,
    pub bytes: &'a [u8],
}

/// What files say, in order of time.
#[derive(Clone, Debug, Default)]
pub struct Events {
    pub(super) records: Vec<Record>,
    /// The lines that are no events, a sentence each.
    pub faults: Vec<String>,
}

/// Why nothing can be made of files.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    #[error("{file}, line {line}: expected an event of `agent run --events`, one JSON object a line: {why}")]
    NoEvents { file: String, line: usize, why: String },
    #[error("{file}, line {line} is of format {format}, and this agent reads {FORMAT}: use a newer agent")]
    Newer { file: String, line: usize, format: u64 },
    #[error("{file} has no event")]
    Nothing { file: String },
}

/// Reads them.
///
/// # Errors
/// A file of a newer format, one that is none of events, or none at all that has an event.
pub fn events(sources: &[Source]) -> Result<Events, ReadError> {
    let mut events = Events::default();
    let mut left_out = 0;
    for (file, source) in sources.iter().enumerate() {
        let before = events.records.len();
        let mut first = None;
        let end = source.bytes.len();
        let lines = source.bytes.split_inclusive(|byte| *byte == b'\n').enumerate();
        let mut passed = 0;
        let mut latest: BTreeMap<String, u64> = BTreeMap::new();
        for (at, line) in lines {
            passed += line.len();
            let is_torn = passed == end && !line.ends_with(b"\n");
            let line = line.trim_ascii();
            if line.is_empty() {
                continue;
            }
            match event(line) {
                Ok((at, said)) => {
                    // Lines were written one after the other, whatever a host's clock has done meanwhile.
                    let latest = latest.entry(said.host.clone()).or_insert(at);
                    *latest = at.max(*latest);
                    events.records.push(Record { at: *latest, file, said });
                }
                Err(Fault::Newer(format)) => {
                    return Err(ReadError::Newer { file: source.name.clone(), line: at + 1, format });
                }
                Err(Fault::NoEvent(why)) => {
                    let why = if is_torn { "it was cut before its end".to_owned() } else { why };
                    first.get_or_insert((at + 1, why.clone()));
                    match events.faults.len() < MOST_FAULTS {
                        true => events.faults.push(format!("{}, line {} is no event: {why}", source.name, at + 1)),
                        false => left_out += 1,
                    }
                }
            }
        }
        if let (true, Some((line, why))) = (events.records.len() == before, first) {
            return Err(ReadError::NoEvents { file: source.name.clone(), line, why });
        }
        if events.records.len() == before {
            events.faults.push(format!("{} has no event", source.name));
        }
    }
    if left_out > 0 {
        events.faults.push(format!("{left_out} more lines are no events"));
    }
    if events.records.is_empty() {
        let file = sources.first().map_or_else(|| "nothing".to_owned(), |source| source.name.clone());
        return Err(ReadError::Nothing { file });
    }
    // What happened at one moment stays as it was written.
    events.records.sort_by_key(|record| record.at);
    Ok(events)
}

enum Fault {
    NoEvent(String),
    Newer(u64),
}

/// Of a newer format only the number is understood.
#[derive(serde::Deserialize)]
struct Format {
    format: u64,
}

fn event(line: &[u8]) -> Result<(u64, Said), Fault> {
    let no_event = |why: &str| Fault::NoEvent(shown(why));
    if line.len() > LONGEST_LINE {
        return Err(no_event(&format!("it is longer than {LONGEST_LINE} bytes")));
    }
    let text = std::str::from_utf8(line).map_err(|_| no_event("it is no UTF-8"))?;
    let Format { format } = serde_json::from_str(text).map_err(|error| no_event(&error.to_string()))?;
    if format > u64::from(FORMAT) {
        return Err(Fault::Newer(format));
    }
    let said: Said = serde_json::from_str(text).map_err(|error| no_event(&error.to_string()))?;
    let at = millis(&said.time).ok_or_else(|| no_event("its time is none such as 2026-11-21T11:53:00.123Z"))?;
    Ok((at, said.bounded()))
}
