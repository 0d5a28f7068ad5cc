//! Who was down, starting and ready, and who led, from the first event to the last.
//!
//! Of a step its own agent's events count, to the millisecond. Between steps it is what looks have shown, so a member whose host's
//! events are not here is known as often as somebody looked.

use std::collections::{BTreeMap, BTreeSet};

use super::record::{Record, SaidMember};

/// Of a member with more spans than these the last one is not told apart.
const MOST_SPANS: usize = 400;
/// How many members have a row.
const MOST_MEMBERS: usize = 100;
/// A look takes a while. What one shows so soon after a member was ready, and the next one of the same agent takes back, was before.
const LOOK: u64 = 3_000;

/// How many events are looked at for that.
const MOST_AHEAD: usize = 1_000;

/// How a member is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum State {
    /// It is stopped, or being stopped, or it does not answer.
    Down,
    /// It was started, and is not ready yet.
    Starting,
    Ready,
    /// It runs, and is not ready.
    Sick,
    NeverStarted,
    /// It is no member any more.
    Gone,
    Unknown,
}

impl State {
    pub(super) const ALL: [Self; 7] =
        [Self::Ready, Self::Down, Self::Starting, Self::Sick, Self::NeverStarted, Self::Gone, Self::Unknown];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Down => "down",
            Self::Starting => "starting",
            Self::Ready => "ready",
            Self::Sick => "not ready",
            Self::NeverStarted => "never started",
            Self::Gone => "no member",
            Self::Unknown => "not known",
        }
    }

    fn seen(word: &str) -> Self {
        match word {
            "ready" => Self::Ready,
            "catching_up" => Self::Starting,
            "sick" => Self::Sick,
            "silent" => Self::Down,
            "never_started" => Self::NeverStarted,
            _ => Self::Unknown,
        }
    }

    /// Whether nobody can count on the member.
    fn is_down(self) -> bool {
        matches!(self, Self::Down | Self::Starting | Self::Sick)
    }
}

/// A while in which something did not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span<T> {
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) what: T,
}

/// A member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) host: Option<String>,
    /// The first release that it was seen with, and the last.
    pub(super) releases: Option<(String, String)>,
    pub(super) spans: Vec<Span<State>>,
    /// When it led.
    pub(super) leads: Vec<Span<()>>,
}

/// All members, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Timeline {
    pub(super) rows: Vec<Row>,
    /// The most members that were down, starting or not ready at one time.
    pub(super) most_down: usize,
    /// The fewest that were ready at one time, and of how many; `None` where no look tells of all.
    pub(super) fewest_ready: Option<(usize, usize)>,
}

/// An event, with the number of its process.
pub(super) type Told<'a> = (&'a Record, usize);

impl Timeline {
    pub(super) fn of(told: &[Told]) -> Self {
        let (Some((first, _)), Some((last, _))) = (told.first(), told.last()) else { return Self::default() };
        let mut walk = Walk::new(told, first.at);
        told.iter().enumerate().for_each(|(at, (record, process))| walk.take(at, record, *process));
        walk.end(last.at)
    }
}

struct Walk<'a> {
    told: &'a [Told<'a>],
    began: u64,
    rows: BTreeMap<String, Track>,
    leader: Option<(String, u64)>,
    /// Until when each process has something to say.
    last_words: BTreeMap<usize, u64>,
    most_down: usize,
    fewest_ready: Option<(usize, usize)>,
    /// Whether a look has told of all members.
    has_looked: bool,
}

struct Track {
    row: Row,
    now: (State, u64),
    /// The process that has its step in hand, from the stop to the end.
    in_hand: Option<usize>,
    /// When its own agent last found it ready.
    ready_at: Option<u64>,
    /// The processes whose looks have shown it.
    seen_by: BTreeSet<usize>,
}

impl<'a> Walk<'a> {
    fn new(told: &'a [Told<'a>], began: u64) -> Self {
        let last_words = told.iter().map(|(record, process)| (*process, record.at)).collect();
        Self {
            told,
            began,
            rows: BTreeMap::new(),
            leader: None,
            last_words,
            most_down: 0,
            fewest_ready: None,
            has_looked: false,
        }
    }

    fn take(&mut self, at: usize, record: &Record, process: usize) {
        let said = &record.said;
        if said.event == "seen" {
            self.look(at, record, process);
        } else if let Some(id) = said.member_id.clone() {
            let named = said.member.as_ref().filter(|name| **name != id);
            let now = record.at;
            let Some(track) = self.track(&id) else { return };
            named.into_iter().for_each(|name| track.row.name.clone_from(name));
            let (state, in_hand) = match said.event.as_str() {
                "member_stopping" | "member_stopped" | "member_switched" => (Some(State::Down), Some(process)),
                "member_started" => (Some(State::Starting), Some(process)),
                "member_mended" => (Some(State::Starting), None),
                "member_ready" => {
                    track.ready_at = Some(now);
                    (Some(State::Ready), None)
                }
                "member_failed" => (Some(State::Sick), None),
                "member_removed" => (Some(State::Gone), None),
                "step_unlocked" => (None, None),
                _ => (None, track.in_hand),
            };
            track.in_hand = in_hand;
            state.into_iter().for_each(|state| track.turn(state, now));
            if said.event == "handed_over" {
                let to = said.to.as_ref().and_then(|to| self.rows.values().find(|track| track.row.name == *to));
                let to = to.map(|track| track.row.id.clone());
                self.lead(to, now);
            }
        }
        let down = self.rows.values().filter(|track| track.now.0.is_down()).count();
        let ready = self.rows.values().filter(|track| track.now.0 == State::Ready).count();
        self.most_down = self.most_down.max(down);
        self.has_looked |= said.event == "seen";
        if self.has_looked && self.fewest_ready.is_none_or(|(fewest, _)| ready < fewest) {
            self.fewest_ready = Some((ready, ready + down));
        }
    }

    fn look(&mut self, at: usize, record: &Record, process: usize) {
        let now = record.at;
        let listed = |id: &String| record.said.members.iter().any(|member| member.id == *id);
        for track in self.rows.values_mut() {
            if track.seen_by.contains(&process) && !listed(&track.row.id) {
                track.turn(State::Gone, now);
            }
        }
        for member in &record.said.members {
            let state = State::seen(&member.state);
            let is_stale = || self.takes_back(at, process, member, now);
            let is_taken_back = state != State::Ready && self.is_fresh(&member.id, now) && is_stale();
            let in_hand = self.rows.get(&member.id).and_then(|track| track.in_hand);
            let is_in_hand = in_hand.and_then(|by| self.last_words.get(&by)).is_some_and(|until| *until >= now);
            let Some(track) = self.track(&member.id) else { continue };
            track.learn(member, process);
            if !is_in_hand && !is_taken_back {
                track.turn(state, now);
            }
        }
        let leader = record.said.members.iter().find(|member| member.role == "leader");
        self.lead(leader.map(|member| member.id.clone()), now);
    }

    /// Whether this member's own agent has just found it ready.
    fn is_fresh(&self, id: &str, now: u64) -> bool {
        let ready_at = self.rows.get(id).and_then(|track| track.ready_at);
        ready_at.is_some_and(|ready_at| now.saturating_sub(ready_at) <= LOOK)
    }

    /// Whether the next look of the same agent says, soon after, that the member is ready.
    fn takes_back(&self, at: usize, process: usize, member: &SaidMember, now: u64) -> bool {
        let soon = self.told.iter().skip(at + 1).take(MOST_AHEAD).take_while(|(record, _)| record.at <= now + LOOK);
        let mut looks = soon.filter(|(record, by)| *by == process && record.said.event == "seen");
        let is_ready = |seen: &SaidMember| seen.id == member.id && seen.state == "ready";
        looks.any(|(record, _)| record.said.members.iter().any(is_ready))
    }

    /// `None` where there are too many.
    fn track(&mut self, id: &str) -> Option<&mut Track> {
        if !self.rows.contains_key(id) && self.rows.len() == MOST_MEMBERS {
            return None;
        }
        let began = self.began;
        Some(self.rows.entry(id.to_owned()).or_insert_with(|| Track {
            row: Row {
                id: id.to_owned(),
                name: id.to_owned(),
                host: None,
                releases: None,
                spans: Vec::new(),
                leads: Vec::new(),
            },
            now: (State::Unknown, began),
            in_hand: None,
            ready_at: None,
            seen_by: BTreeSet::new(),
        }))
    }

    fn lead(&mut self, to: Option<String>, now: u64) {
        if self.leader.as_ref().map(|(id, _)| id) == to.as_ref() {
            return;
        }
        if let Some((id, from)) = self.leader.take()
            && let Some(track) = self.rows.get_mut(&id)
            && track.row.leads.len() < MOST_SPANS
        {
            track.row.leads.push(Span { from, to: now, what: () });
        }
        self.leader = to.map(|id| (id, now));
    }

    fn end(mut self, ended: u64) -> Timeline {
        self.lead(None, ended);
        let tracks = self.rows.into_values();
        let mut rows: Vec<_> = tracks.map(|track| track.end(ended)).collect();
        rows.sort_by(|one, other| (&one.name, &one.id).cmp(&(&other.name, &other.id)));
        Timeline { rows, most_down: self.most_down, fewest_ready: self.fewest_ready }
    }
}

impl Track {
    fn learn(&mut self, member: &SaidMember, process: usize) {
        self.seen_by.insert(process);
        self.row.name.clone_from(&member.name);
        if let Some(host) = &member.host {
            self.row.host = Some(host.clone());
        }
        if let Some(release) = &member.release {
            let first = self.row.releases.take().map_or_else(|| release.clone(), |(first, _)| first);
            self.row.releases = Some((first, release.clone()));
        }
    }

    fn turn(&mut self, state: State, now: u64) {
        let (before, from) = self.now;
        if before != state && self.row.spans.len() < MOST_SPANS {
            self.row.spans.push(Span { from, to: now, what: before });
            self.now = (state, now);
        }
    }

    fn end(mut self, ended: u64) -> Row {
        let (what, from) = self.now;
        self.row.spans.push(Span { from, to: ended, what });
        self.row
    }
}

#[cfg(test)]
#[path = "timeline_test.rs"]
mod tests;
