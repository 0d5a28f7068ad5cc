//! What a page tells of a run. Pure: made of its events alone.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    cautions::{Caution, cautions},
    cluster::{Change, changes},
    moment,
    read::Events,
    record::{Record, Said},
    runs::Chosen,
    steps::{Step, steps},
    timeline::{Timeline, Told},
    words,
};
use crate::observe::canary::Availability;

/// How many events the journal has at most: the first half of them, and the last.
const MOST_ENTRIES: usize = 4_000;

/// How many ends the head has.
const MOST_ENDS: usize = 10;
/// The reasons of an end after which nothing is left to be done.
const WHOLE: [&str; 4] = ["done", "rolled_back", "nothing_to_do", "guarded"];

/// How a run went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Well,
    Ill,
    /// Something is left to be done, or nobody says.
    Open,
}

/// All of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Story {
    pub(super) cluster: Option<String>,
    pub(super) cluster_ids: BTreeSet<String>,
    pub(super) runs: Vec<String>,
    pub(super) hosts: BTreeSet<String>,
    /// Whose database was saved, on which host, and where it lies there.
    pub(super) backups: Vec<(String, String, String)>,
    /// What the canary of each host was told.
    pub(super) canaries: Vec<(String, Availability)>,
    /// What is to be done, where an event says so: its kind, and the release at its end.
    pub(super) kind: Option<String>,
    pub(super) to: Option<String>,
    pub(super) began: u64,
    pub(super) ended: u64,
    /// The last word of each agent, by its host and the file that it wrote; `None` where it has not told its end.
    pub(super) ends: BTreeMap<(String, usize), Option<(u64, Said)>>,
    pub(super) timeline: Timeline,
    pub(super) steps: Vec<Step>,
    pub(super) more_steps: usize,
    pub(super) cautions: Vec<Caution>,
    pub(super) more_cautions: usize,
    pub(super) changes: Vec<Change>,
    pub(super) journal: Vec<Record>,
    /// How many events are not in the journal, in its middle.
    pub(super) left_out: usize,
}

impl Story {
    pub(super) fn of(events: &Events, chosen: &Chosen) -> Self {
        let told: Vec<Told> =
            chosen.records.iter().filter_map(|(at, process)| Some((events.records.get(*at)?, *process))).collect();
        let (Some((first, _)), Some((last, _))) = (told.first(), told.last()) else { return Self::default() };
        let (steps, more_steps) = steps(&told);
        let (cautions, more_cautions) = cautions(&told, &events.faults);
        let (journal, left_out) = journal(&told);
        let mut story = Self {
            runs: chosen.runs.clone(),
            began: first.at,
            ended: last.at,
            ends: ends(&told),
            timeline: Timeline::of(&told),
            steps,
            more_steps,
            cautions,
            more_cautions,
            changes: changes(&told),
            journal,
            left_out,
            ..Self::default()
        };
        told.iter().for_each(|(record, _)| story.learn(&record.said));
        story
    }

    fn learn(&mut self, said: &Said) {
        if self.hosts.len() < MOST_ENTRIES {
            self.hosts.insert(said.host.clone());
        }
        if let Some(id) = said.cluster_id.as_ref().filter(|_| self.cluster_ids.len() < 10) {
            self.cluster_ids.insert(id.clone());
        }
        if said.event == "backed_up" && self.backups.len() < MOST_ENDS {
            let member = said.member.clone().unwrap_or_default();
            self.backups.push((member, said.host.clone(), said.to.clone().unwrap_or_default()));
        }
        if let Some(found) = said.canary.as_ref().filter(|_| said.event == "canary" && self.canaries.len() < MOST_ENDS)
        {
            self.canaries.push((said.host.clone(), found.clone()));
        }
        if said.event == "begun" {
            self.cluster = said.cluster.clone().or(self.cluster.take());
        }
        if matches!(said.event.as_str(), "begun" | "hop") {
            // Of a way over several releases the last one counts.
            self.kind = said.kind.clone().or(self.kind.take());
            self.to = said.to.clone().or(self.to.take());
        }
    }

    /// `upgrade from 3.5.30 to 3.6.0`: what the members were first seen with, as a playbook allows a range.
    pub(super) fn what(&self) -> String {
        let kind = self.kind.as_deref().unwrap_or("run");
        let firsts = self.timeline.rows.iter().filter_map(|row| row.releases.as_ref().map(|(first, _)| first.as_str()));
        let firsts: BTreeSet<&str> = firsts.filter(|first| self.to.as_deref() != Some(*first)).collect();
        let from = firsts.into_iter().collect::<Vec<_>>().join(" and ");
        let from = if from.is_empty() || self.to.is_none() { String::new() } else { format!(" from {from}") };
        let to = self.to.as_ref().map_or_else(String::new, |to| format!(" to {to}"));
        format!("{kind}{from}{to}")
    }

    /// A moment: the time of day, with the date where the run is longer than a day.
    pub(super) fn clock(&self, at: u64) -> String {
        let clock = moment::clock(at);
        match moment::date(self.began) == moment::date(self.ended) {
            true => clock,
            false => format!("{} {clock}", moment::date(at)),
        }
    }

    /// The last end that any agent has told, as that one knows most; of those that did not go well, where there are any.
    pub(super) fn end(&self) -> Option<&(u64, Said)> {
        self.ends.values().flatten().max_by_key(|(at, said)| (said.exit != Some(0), *at))
    }

    /// Hosts whose agent has not told its end.
    pub(super) fn endless(&self) -> Vec<&str> {
        self.ends.iter().filter(|(_, end)| end.is_none()).map(|((host, _), _)| host.as_str()).collect()
    }

    /// Whether all of it went well, as far as the agents have told.
    pub(super) fn verdict(&self) -> Verdict {
        let is_well = |said: &Said| said.exit == Some(0);
        let is_whole = |said: &Said| said.reason.as_deref().is_some_and(|reason| WHOLE.contains(&reason));
        let mut ends = self.ends.values().flatten().map(|(_, said)| said);
        match self.end() {
            None => Verdict::Open,
            Some(_) if !ends.all(is_well) => Verdict::Ill,
            Some((_, said)) if is_whole(said) && self.endless().is_empty() => Verdict::Well,
            Some(_) => Verdict::Open,
        }
    }

    /// The ends of other agents that did not go well, in words.
    pub(super) fn other_ends(&self) -> Vec<String> {
        let last = self.end();
        let others = self.ends.iter().filter_map(|((host, _), end)| Some((host, end.as_ref()?)));
        let ill = others.filter(|(_, end)| Some(*end) != last && end.1.exit != Some(0));
        ill.map(|(host, (_, said))| format!("{host}: {}", words::end(said))).take(MOST_ENDS).collect()
    }

    /// How it ended.
    pub(super) fn result(&self) -> String {
        let end = self.end().map(|(_, said)| said);
        let message = end.and_then(|said| said.message.clone());
        match (message, end) {
            (Some(message), _) => message,
            (None, Some(said)) => words::end(said),
            (None, None) => "no agent has told its end: it is at work, or was ended from outside".to_owned(),
        }
    }

    /// What it is about and how that ended.
    pub(super) fn sentence(&self) -> String {
        let cluster = self.cluster.as_ref().map_or_else(String::new, |cluster| format!("{cluster}, "));
        format!("{cluster}{}: {}", self.what(), self.result())
    }
}

/// The end of the process that spoke last, of each host and file, where it has told one.
fn ends(told: &[Told]) -> BTreeMap<(String, usize), Option<(u64, Said)>> {
    let (mut last, mut end_of) = (BTreeMap::new(), BTreeMap::new());
    for (record, process) in told {
        last.insert((&*record.said.host, record.file), *process);
        if record.said.event == "ended" {
            end_of.insert(*process, *record);
        }
    }
    let end = |process| end_of.get(&process).map(|record| (record.at, record.said.clone()));
    let agents = last.into_iter().take(MOST_ENTRIES);
    agents.map(|((host, file), process)| ((host.to_owned(), file), end(process))).collect()
}

fn journal(told: &[Told]) -> (Vec<Record>, usize) {
    let left_out = told.len().saturating_sub(MOST_ENTRIES);
    let half = if left_out > 0 { MOST_ENTRIES / 2 } else { told.len() };
    let (begin, rest) = told.split_at(half);
    let end = rest.iter().skip(left_out);
    (begin.iter().chain(end).map(|(record, _)| (*record).clone()).collect(), left_out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_went_well_where_every_agent_says_so_and_nothing_is_left() {
        for (ends, expected, others) in [
            (&[(0, "done"), (0, "done")][..], Verdict::Well, 0),
            (&[(0, "rolled_back")], Verdict::Well, 0),
            (&[(0, "partial")], Verdict::Open, 0),
            (&[(0, "partial"), (0, "done")], Verdict::Well, 0),
            (&[(0, "done"), (0, "held")], Verdict::Open, 0),
            (&[(3, "unprepared"), (0, "partial")], Verdict::Ill, 0),
            (&[(3, "unprepared"), (1, "step_failed"), (0, "done")], Verdict::Ill, 1),
            (&[(0, "done"), (1, "step_failed")], Verdict::Ill, 0),
            (&[(0, "done"), (0, "")], Verdict::Open, 0),
            (&[(0, "")], Verdict::Open, 0),
        ] {
            let end = |(at, (exit, reason)): (usize, &(u8, &str))| {
                let said = Said { exit: Some(*exit), reason: Some((*reason).into()), ..Said::default() };
                ((at.to_string(), 0), (!reason.is_empty()).then_some((at as u64, said)))
            };
            let story = Story { ends: ends.iter().enumerate().map(end).collect(), ..Story::default() };
            assert_eq!((story.verdict(), story.other_ends().len()), (expected, others), "{ends:?}");
        }
    }
}
