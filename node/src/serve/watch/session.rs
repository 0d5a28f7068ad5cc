//! One stream's watches: what is asked of them, and what they are told.

use std::{
    collections::{BTreeMap, BTreeSet},
    convert::Infallible,
    ops::Bound::{Excluded, Included, Unbounded},
    time::Duration,
};

use proto::{
    Revision,
    etcdserverpb::{WatchCreateRequest, WatchRequest, WatchResponse, watch_request::RequestUnion},
    mvccpb::Event,
};
use tokio::{
    sync::mpsc,
    time::{Instant, MissedTickBehavior, interval_at},
};
use tonic::{Status, Streaming};

use super::{
    counts::WatchCounts,
    fragment,
    hub::Subscription,
    watcher::{WatchError, Watcher},
};
use crate::{
    mvcc::Bound,
    serve::{context::ServiceContext, random},
    state::State,
};

/// The id of no watch: of one that was not made, and of all that a stream has (etcd, `InvalidWatchID`).
const NO_WATCH: i64 = -1;
/// How much is taken out of the store at once, in changes looked at and in bytes: nothing is applied meanwhile.
const BOUND: Bound = Bound { changes: 1000, bytes: 1 << 20 };

pub(super) struct Session {
    context: ServiceContext,
    responses: mpsc::Sender<Result<WatchResponse, Status>>,
    subscription: Subscription,
    watches: BTreeMap<i64, Watcher>,
    /// Those that there may be something for.
    behind: BTreeSet<i64>,
    next_id: i64,
    /// The watch that comes first in the next round.
    turn: i64,
    /// The newest revision when the client asked how far all watches are, and was not told yet.
    asked: Option<Revision>,
    /// As many of those that are behind are counted as slow.
    counted_slow: usize,
}

/// What one look at the store gave.
#[derive(Default)]
struct Round {
    told: Vec<(i64, Told)>,
    /// Of those that were looked at, the ones for which there is nothing more.
    done: Vec<i64>,
    /// The watch that comes first in the next round: the first that had to wait, so that a busy one keeps nobody waiting.
    turn: i64,
}

impl Round {
    /// Looks at the store once, for as many of the watches that are behind as the bound allows.
    fn of(state: &State, watches: &mut BTreeMap<i64, Watcher>, behind: &BTreeSet<i64>, turn: i64) -> Self {
        let mut round = Self { turn, ..Self::default() };
        let mut bound = BOUND;
        for ids in [(Included(turn), Unbounded), (Unbounded, Excluded(turn))] {
            for id in behind.range(ids) {
                if bound.is_reached() {
                    round.turn = *id;
                    return round;
                }
                match watches.get_mut(id) {
                    Some(watcher) => round.advance(*id, watcher, state, &mut bound),
                    None => round.done.push(*id),
                }
            }
        }
        round
    }

    fn advance(&mut self, id: i64, watcher: &mut Watcher, state: &State, bound: &mut Bound) {
        match watcher.advance(&state.keys, bound) {
            Ok(events) => {
                if !events.is_empty() {
                    // The newest there is, also of one that is behind (etcd, `syncWatchers`).
                    self.told.push((id, Told::Events(events, state.keys.revision())));
                }
                if !watcher.is_behind() {
                    self.done.push(id);
                }
            }
            Err(_) => self.told.push((id, Told::Compacted(state.keys.compacted()))),
        }
    }
}

enum Told {
    Events(Vec<Event>, Revision),
    /// History that it was not told of is gone; this is the first that is left.
    Compacted(Revision),
}

impl Session {
    pub(super) fn new(context: ServiceContext, responses: mpsc::Sender<Result<WatchResponse, Status>>) -> Self {
        let subscription = context.hub.subscribe();
        let (watches, behind) = (BTreeMap::new(), BTreeSet::new());
        Self { context, responses, subscription, watches, behind, next_id: 0, turn: 0, asked: None, counted_slow: 0 }
    }

    /// Serves the stream until the client ends it; says why.
    pub(super) async fn run(mut self, mut requests: Streaming<WatchRequest>) -> Result<Infallible, Status> {
        // Not the same for all streams, which clients open together (etcd, `GetProgressReportInterval`).
        let period = self.context.options.progress_interval.max(Duration::from_millis(1));
        let period = period + period.mul_f64(0.1 * random::fraction());
        let mut reports = interval_at(Instant::now() + period, period);
        reports.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut is_open, mut is_report_due) = (true, false);
        loop {
            let seen = self.tell_what_is_new().await?;
            if is_report_due {
                self.report(seen).await?;
                is_report_due = false;
            }
            let is_behind = !self.behind.is_empty();
            tokio::select! {
                request = requests.message(), if is_open => match request? {
                    Some(request) => self.take(request).await?,
                    // It may have said all that it has to say, and listen on.
                    None => is_open = false,
                },
                // Not at once: how far the watches are is not known any more.
                _ = reports.tick() => is_report_due = true,
                () = self.subscription.changed(), if !is_behind => {}
                () = self.subscription.reaches(self.asked), if !is_behind => {}
                () = std::future::ready(()), if is_behind => {}
            }
        }
    }

    async fn take(&mut self, request: WatchRequest) -> Result<(), Status> {
        match request.request_union {
            Some(RequestUnion::CreateRequest(request)) => self.create(request).await,
            Some(RequestUnion::CancelRequest(request)) => self.cancel(request.watch_id).await,
            Some(RequestUnion::ProgressRequest(_)) => {
                self.asked = Some(self.context.member.read(|state| state.keys.revision()));
                Ok(())
            }
            // Of a release to come.
            None => Ok(()),
        }
    }

    async fn create(&mut self, request: WatchCreateRequest) -> Result<(), Status> {
        let newest = self.context.member.read(|state| state.keys.revision());
        let (watch_id, failure) = match self.add(request, newest) {
            Ok(id) => (id, None),
            Err(error) => (NO_WATCH, Some(error)),
        };
        let mut created = WatchResponse { watch_id, created: true, ..WatchResponse::default() };
        if let Some(error) = failure {
            (created.canceled, created.cancel_reason) = (true, error.to_string());
        }
        self.send(created, newest).await
    }

    fn add(&mut self, request: WatchCreateRequest, newest: Revision) -> Result<i64, WatchError> {
        let asked = request.watch_id;
        let watcher = Watcher::new(request, newest)?;
        if asked != 0 && self.watches.contains_key(&asked) {
            return Err(WatchError::DuplicateId);
        }
        let id = if asked != 0 { asked } else { self.free_id() };
        self.subscription.add(id, watcher.range());
        self.watches.insert(id, watcher);
        self.behind.insert(id);
        Ok(id)
    }

    fn free_id(&mut self) -> i64 {
        while self.watches.contains_key(&self.next_id) {
            self.next_id += 1;
        }
        self.next_id += 1;
        self.next_id - 1
    }

    async fn cancel(&mut self, watch_id: i64) -> Result<(), Status> {
        if !self.remove(watch_id) {
            return Ok(());
        }
        let newest = self.context.member.read(|state| state.keys.revision());
        self.send(WatchResponse { watch_id, canceled: true, ..WatchResponse::default() }, newest).await
    }

    fn remove(&mut self, id: i64) -> bool {
        let Some(watcher) = self.watches.remove(&id) else { return false };
        self.subscription.remove(id, watcher.range());
        self.behind.remove(&id);
        true
    }

    /// Tells each watch what is new to it; the revision up to which there is nothing else for any that is not behind.
    async fn tell_what_is_new(&mut self) -> Result<Revision, Status> {
        let (touched, seen) = self.subscription.take();
        for (id, first) in touched {
            if let Some(watcher) = self.watches.get_mut(&id) {
                watcher.touched(first);
                self.behind.insert(id);
            }
        }
        let advanced = if self.behind.is_empty() { Ok(()) } else { self.advance(seen).await };
        self.count_slow();
        advanced?;
        if self.behind.is_empty() && self.asked.is_some_and(|asked| asked <= seen) {
            self.report_all(seen).await?;
        }
        Ok(seen)
    }

    async fn advance(&mut self, seen: Revision) -> Result<(), Status> {
        let Self { context, watches, behind, turn, .. } = self;
        let round = context.member.read(|state| Round::of(state, watches, behind, *turn));
        self.turn = round.turn;
        for id in round.done {
            self.behind.remove(&id);
        }
        for (watch_id, told) in round.told {
            match told {
                Told::Events(events, up_to) => self.tell(watch_id, events, up_to).await?,
                Told::Compacted(first) => {
                    self.remove(watch_id);
                    let compact_revision = first.0;
                    let end = WatchResponse { watch_id, canceled: true, compact_revision, ..WatchResponse::default() };
                    self.send(end, seen.max(first)).await?;
                }
            }
        }
        Ok(())
    }

    fn count_slow(&mut self) {
        let (counts, now) = (self.subscription.counts(), self.behind.len());
        if now != self.counted_slow {
            counts.slow.add(now);
            counts.slow.sub(self.counted_slow);
            self.counted_slow = now;
        }
    }

    async fn tell(&self, watch_id: i64, events: Vec<Event>, up_to: Revision) -> Result<(), Status> {
        let response = WatchResponse { watch_id, events, ..WatchResponse::default() };
        if !self.watches.get(&watch_id).is_some_and(|watcher| watcher.may_fragment) {
            return self.send(response, up_to).await;
        }
        for part in fragment::cut(response, self.context.options.longest_message_bytes()) {
            self.send(part, up_to).await?;
        }
        Ok(())
    }

    /// Tells those that want to hear of progress, and heard nothing for a while, how far they are.
    async fn report(&mut self, seen: Revision) -> Result<(), Status> {
        let mut quiet = Vec::new();
        for (id, watcher) in &mut self.watches {
            if watcher.wants_progress && watcher.is_quiet && watcher.told(seen) <= seen {
                quiet.push((*id, watcher.told(seen)));
            }
            watcher.is_quiet = true;
        }
        for (watch_id, told) in quiet {
            self.send(WatchResponse { watch_id, ..WatchResponse::default() }, told).await?;
        }
        Ok(())
    }

    /// Says how far all watches are, unless one is for a time to come (etcd, `progressIfSync`). What is said of all must not be
    /// less than what one was told: where one is ahead, it is said once the others are there.
    async fn report_all(&mut self, seen: Revision) -> Result<(), Status> {
        let newest = self.context.member.read(|state| state.keys.revision());
        self.asked = in_step(self.watches.values().map(|watcher| watcher.told(seen)), newest);
        if self.asked != Some(seen) {
            return Ok(());
        }
        self.asked = None;
        self.send(WatchResponse { watch_id: NO_WATCH, ..WatchResponse::default() }, seen).await
    }

    /// Waits until the client has taken what was sent before.
    async fn send(&self, response: WatchResponse, revision: Revision) -> Result<(), Status> {
        let response = WatchResponse { header: self.context.header(revision.0), ..response };
        let (counts, events) = (self.subscription.counts(), response.events.len());
        let sent = match self.responses.try_reserve() {
            Ok(place) => {
                place.send(Ok(response));
                Ok(())
            }
            Err(_) => {
                // Counted for as long as it waits, or until the stream ends.
                let _waits = Waits::begin(counts, events);
                self.responses.send(Ok(response)).await.map_err(|_| Status::cancelled("the client has gone"))
            }
        };
        if events > 0 && sent.is_ok() {
            counts.events.add(events as u64);
        }
        sent
    }
}

/// From where on all watches are in step that were told up to these revisions; nowhere if one is for a time to come.
fn in_step(told: impl Iterator<Item = Revision>, newest: Revision) -> Option<Revision> {
    told.max().filter(|ahead| *ahead <= newest)
}

/// A response that waits for a client to take those before it.
struct Waits<'a> {
    counts: &'a WatchCounts,
    events: usize,
}

impl<'a> Waits<'a> {
    fn begin(counts: &'a WatchCounts, events: usize) -> Self {
        counts.slow.add(1);
        counts.pending_events.add(events);
        Self { counts, events }
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.counts.slow.sub(1);
        self.counts.pending_events.sub(self.events);
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.subscription.counts().slow.sub(self.counted_slow);
        for (id, watcher) in &self.watches {
            self.subscription.remove(*id, watcher.range());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_watches_are_in_step_where_the_first_of_them_is() {
        for (told, expected) in [
            (&[][..], None),
            (&[11], Some(11)),
            (&[11, 11], Some(11)),
            (&[11, 12, 11], Some(12)), // it has looked at the store since
            (&[11, 99], None),         // it is for a time to come
        ] {
            let told = told.iter().copied().map(Revision);
            assert_eq!(in_step(told, Revision(12)), expected.map(Revision));
        }
    }
}
