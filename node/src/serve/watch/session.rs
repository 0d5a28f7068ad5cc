//! One stream's watches: what is asked of them, and what they are told.

use std::{
    collections::BTreeMap,
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
    fragment,
    watcher::{WatchError, Watcher},
};
use crate::{
    api_error::ApiError,
    mvcc::Bound,
    serve::{
        context::{LONGEST_MESSAGE_BYTES, ServiceContext},
        random,
    },
    state::State,
};

/// The id of no watch: of one that was not made, and of all that a stream has (etcd, `InvalidWatchID`).
const NO_WATCH: i64 = -1;
/// How much is taken out of the store at once, in changes looked at and in bytes: nothing is applied meanwhile.
const BOUND: Bound = Bound { changes: 1000, bytes: 1 << 20 };

pub(super) struct Session {
    context: ServiceContext,
    responses: mpsc::Sender<Result<WatchResponse, Status>>,
    watches: BTreeMap<i64, Watcher>,
    next_id: i64,
    /// The watch that comes first in the next round.
    turn: i64,
    /// Whether the client has asked how far all watches are.
    is_asked: bool,
}

/// What one look at the store gave.
struct Round {
    told: Vec<(i64, Told)>,
    newest: Revision,
    /// Whether there is more to be told.
    is_behind: bool,
}

impl Round {
    /// Looks at the store once, for as many watches as the bound allows; the next round begins with the first that had to
    /// wait, so that a busy one keeps nobody waiting.
    fn of(state: &State, watches: &mut BTreeMap<i64, Watcher>, turn: &mut i64) -> Self {
        let newest = state.keys.revision();
        let mut round = Self { told: Vec::new(), newest, is_behind: false };
        let mut bound = BOUND;
        let first = *turn;
        for ids in [(Included(first), Unbounded), (Unbounded, Excluded(first))] {
            for (id, watcher) in watches.range_mut(ids).filter(|(_, watcher)| watcher.is_behind(newest)) {
                if bound.is_reached() {
                    (*turn, round.is_behind) = (*id, true);
                    return round;
                }
                round.advance(*id, watcher, state, &mut bound);
            }
        }
        round
    }

    fn advance(&mut self, id: i64, watcher: &mut Watcher, state: &State, bound: &mut Bound) {
        match watcher.advance(&state.keys, bound) {
            Ok(events) => {
                if !events.is_empty() {
                    self.told.push((id, Told::Events(events, watcher.told())));
                }
                self.is_behind |= watcher.is_behind(self.newest);
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
        Self { context, responses, watches: BTreeMap::new(), next_id: 0, turn: 0, is_asked: false }
    }

    /// Serves the stream until the client ends it; says why.
    pub(super) async fn run(mut self, mut requests: Streaming<WatchRequest>) -> Result<Infallible, Status> {
        let mut applied = self.context.member.applied();
        // Not the same for all streams, which clients open together (etcd, `GetProgressReportInterval`).
        let period = self.context.options.progress_interval.max(Duration::from_millis(1));
        let period = period + period.mul_f64(0.1 * random::fraction());
        let mut reports = interval_at(Instant::now() + period, period);
        reports.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut is_open = true;
        loop {
            let (newest, is_behind) = self.tell_what_is_new().await?;
            tokio::select! {
                request = requests.message(), if is_open => match request? {
                    Some(request) => self.take(request).await?,
                    // It may have said all that it has to say, and listen on.
                    None => is_open = false,
                },
                _ = reports.tick() => self.report(newest).await?,
                changed = applied.changed(), if !is_behind => changed.map_err(|_| ApiError::Stopped)?,
                () = std::future::ready(()), if is_behind => {}
            }
        }
    }

    async fn take(&mut self, request: WatchRequest) -> Result<(), Status> {
        match request.request_union {
            Some(RequestUnion::CreateRequest(request)) => self.create(request).await,
            Some(RequestUnion::CancelRequest(request)) => self.cancel(request.watch_id).await,
            Some(RequestUnion::ProgressRequest(_)) => {
                self.is_asked = true;
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
        self.watches.insert(id, watcher);
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
        if self.watches.remove(&watch_id).is_none() {
            return Ok(());
        }
        let newest = self.context.member.read(|state| state.keys.revision());
        self.send(WatchResponse { watch_id, canceled: true, ..WatchResponse::default() }, newest).await
    }

    /// Tells each watch what is new to it; the newest revision, and whether there is more to tell.
    async fn tell_what_is_new(&mut self) -> Result<(Revision, bool), Status> {
        let Self { context, watches, turn, .. } = self;
        let Round { told, newest, is_behind } = context.member.read(|state| Round::of(state, watches, turn));
        for (watch_id, told) in told {
            match told {
                Told::Events(events, up_to) => self.tell(watch_id, events, up_to).await?,
                Told::Compacted(first) => {
                    self.watches.remove(&watch_id);
                    let compact_revision = first.0;
                    let end = WatchResponse { watch_id, canceled: true, compact_revision, ..WatchResponse::default() };
                    self.send(end, newest).await?;
                }
            }
        }
        if self.is_asked && !is_behind {
            self.is_asked = false;
            self.report_all(newest).await?;
        }
        Ok((newest, is_behind))
    }

    async fn tell(&self, watch_id: i64, events: Vec<Event>, up_to: Revision) -> Result<(), Status> {
        let response = WatchResponse { watch_id, events, ..WatchResponse::default() };
        if !self.watches.get(&watch_id).is_some_and(|watcher| watcher.may_fragment) {
            return self.send(response, up_to).await;
        }
        for part in fragment::cut(response, LONGEST_MESSAGE_BYTES) {
            self.send(part, up_to).await?;
        }
        Ok(())
    }

    /// Tells those that want to hear of progress, and heard nothing for a while, how far they are.
    async fn report(&mut self, newest: Revision) -> Result<(), Status> {
        let mut quiet = Vec::new();
        for (id, watcher) in &mut self.watches {
            if watcher.wants_progress && watcher.is_quiet && watcher.told() <= newest {
                quiet.push((*id, watcher.told()));
            }
            watcher.is_quiet = true;
        }
        for (watch_id, told) in quiet {
            self.send(WatchResponse { watch_id, ..WatchResponse::default() }, told).await?;
        }
        Ok(())
    }

    /// Says how far all watches are, unless one is for a time to come (etcd, `progressIfSync`).
    async fn report_all(&self, newest: Revision) -> Result<(), Status> {
        let is_here = |watcher: &Watcher| watcher.told() <= newest;
        if self.watches.is_empty() || !self.watches.values().all(is_here) {
            return Ok(());
        }
        self.send(WatchResponse { watch_id: NO_WATCH, ..WatchResponse::default() }, newest).await
    }

    /// Waits until the client has taken what was sent before.
    async fn send(&self, response: WatchResponse, revision: Revision) -> Result<(), Status> {
        let response = WatchResponse { header: self.context.header(revision.0), ..response };
        self.responses.send(Ok(response)).await.map_err(|_| Status::cancelled("the client has gone"))
    }
}
