//! Which events belong to one run: those of the processes that took part in it, on whichever host and however often it was typed.
//!
//! A way over several releases is several runs, one a hop; what a process took part in belongs together. A process that never got to a
//! run, as it was refused, belongs to the run beside which it was typed.

use std::collections::{BTreeMap, BTreeSet};

use super::record::Record;

/// A process that was begun so long ago, in others of its host and file, is not gone on with.
const MOST_AT_ONCE: usize = 8;
/// Of more processes than these the newest count.
const MOST_PROCESSES: usize = 20_000;
/// So many runs are named to whoever named another.
const MOST_NAMED: usize = 10;

/// Where the events of one process are.
#[derive(Clone, Debug, Default)]
struct Process {
    runs: BTreeSet<String>,
    records: Vec<usize>,
    next: u64,
    began: u64,
    ended: u64,
}

/// What a page is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Chosen {
    /// The runs' ids; none where no process got that far.
    pub(super) runs: Vec<String>,
    /// The events, in order of time, each with the number of its process.
    pub(super) records: Vec<(usize, usize)>,
}

/// No run has such an id, or several begin so.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} run{} here {} with `{typed}`; there {}", count, plural, verb, known)]
pub struct NoSuchRun {
    typed: String,
    count: &'static str,
    plural: &'static str,
    verb: &'static str,
    known: String,
}

/// The events of the newest run, or of the one whose id begins like this.
pub(super) fn choose(records: &[Record], wanted: Option<&str>) -> Result<Chosen, NoSuchRun> {
    let processes = processes(records);
    let groups = groups(&processes);
    let group = match wanted {
        Some(typed) => named(&groups, &processes, typed)?,
        None => {
            let has_run = groups.iter().any(|group| has_run(group, &processes));
            let fit = groups.iter().filter(|group| has_run == self::has_run(group, &processes));
            fit.max_by_key(|group| ended(group, &processes)).cloned().unwrap_or_default()
        }
    };
    Ok(chosen(&group, &processes))
}

/// Lines of one host in one file belong to one process as long as their numbers go on.
fn processes(records: &[Record]) -> Vec<Process> {
    let mut found: Vec<Process> = Vec::new();
    let mut at_work: BTreeMap<(usize, &str), Vec<usize>> = BTreeMap::new();
    for (at, record) in records.iter().enumerate() {
        let open = at_work.entry((record.file, &record.said.host)).or_default();
        let goes_on = |number: &&usize| found[**number].next == record.said.seq && record.said.seq > 0;
        let is_of_its_run =
            |number: &&usize| record.said.run.as_ref().is_some_and(|run| found[**number].runs.contains(run));
        let number = open.iter().rev().filter(goes_on).find(is_of_its_run).or_else(|| open.iter().rev().find(goes_on));
        let number = number.copied();
        // A line that is missing between two is no other process.
        let follows = || open.last().copied().filter(|last| record.said.seq > found[*last].next);
        let number = number.or_else(follows).unwrap_or_else(|| {
            if open.len() == MOST_AT_ONCE {
                open.remove(0);
            }
            open.push(found.len());
            found.push(Process { began: record.at, ..Process::default() });
            found.len() - 1
        });
        let process = &mut found[number];
        process.records.push(at);
        process.runs.extend(record.said.run.clone());
        (process.next, process.ended) = (record.said.seq.saturating_add(1), record.at);
    }
    found
}

/// The processes that took part in the same runs; those without a run alone.
fn groups(processes: &[Process]) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut group_of: BTreeMap<&str, usize> = BTreeMap::new();
    let older = processes.len().saturating_sub(MOST_PROCESSES);
    for (number, process) in processes.iter().enumerate().skip(older) {
        let joined: BTreeSet<usize> = process.runs.iter().filter_map(|run| group_of.get(&**run).copied()).collect();
        let home = joined.first().copied().unwrap_or(groups.len());
        if home == groups.len() {
            groups.push(Vec::new());
        }
        groups[home].push(number);
        for other in joined.into_iter().skip(1) {
            let moved = std::mem::take(&mut groups[other]);
            groups[home].extend(moved);
            group_of.values_mut().filter(|group| **group == other).for_each(|group| *group = home);
        }
        group_of.extend(process.runs.iter().map(|run| (&**run, home)));
    }
    groups.retain(|group| !group.is_empty());
    groups
}

fn has_run(group: &[usize], processes: &[Process]) -> bool {
    group.iter().any(|number| !processes[*number].runs.is_empty())
}

fn ended(group: &[usize], processes: &[Process]) -> u64 {
    group.iter().map(|number| processes[*number].ended).max().unwrap_or_default()
}

fn named(groups: &[Vec<usize>], processes: &[Process], typed: &str) -> Result<Vec<usize>, NoSuchRun> {
    let begins = |group: &&Vec<usize>| {
        group.iter().any(|number| processes[*number].runs.iter().any(|run| run.starts_with(typed)))
    };
    let found: Vec<&Vec<usize>> = groups.iter().filter(begins).collect();
    if let ([only], false) = (&found[..], typed.is_empty()) {
        return Ok((*only).clone());
    }
    let mut newest: Vec<&Vec<usize>> = groups.iter().filter(|group| has_run(group, processes)).collect();
    newest.sort_by_key(|group| std::cmp::Reverse(ended(group, processes)));
    let ids = newest.iter().filter_map(|group| group.iter().find_map(|number| processes[*number].runs.first()));
    let ids: Vec<&str> = ids.take(MOST_NAMED).map(|id| &**id).collect();
    let known = match &ids[..] {
        [] => "is no run in these files".to_owned(),
        [only] => format!("is {only}"),
        several => format!("are, the newest first, {}", several.join(", ")),
    };
    let (count, plural, verb) = if found.is_empty() { ("no", "", "begins") } else { ("several", "s", "begin") };
    Err(NoSuchRun { typed: super::record::shown(typed), count, plural, verb, known })
}

fn chosen(group: &[usize], processes: &[Process]) -> Chosen {
    let mut numbers = group.to_vec();
    let began = group.iter().map(|number| processes[*number].began).min().unwrap_or_default();
    let ended = ended(group, processes);
    let is_beside = |process: &Process| process.runs.is_empty() && process.began <= ended && process.ended >= began;
    let beside = processes.iter().enumerate().filter(|(_, process)| is_beside(process)).map(|(number, _)| number);
    numbers.extend(beside);
    numbers.sort_unstable();
    numbers.dedup();
    let mut records: Vec<(usize, usize)> =
        numbers.iter().flat_map(|number| processes[*number].records.iter().map(|at| (*at, *number))).collect();
    records.sort_unstable();
    let runs: BTreeSet<&String> = group.iter().flat_map(|number| &processes[*number].runs).collect();
    Chosen { runs: runs.into_iter().cloned().collect(), records }
}

#[cfg(test)]
#[path = "runs_test.rs"]
mod tests;
