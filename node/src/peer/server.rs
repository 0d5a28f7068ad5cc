//! Answers other members.

use std::{future::Future, pin::Pin, sync::Arc};

use bytes::Bytes;
use consensus::{AnswerError, Group, Question, aside, with_causes};
use futures_util::{
    Stream, StreamExt,
    future::{Either, Ready, ready},
    stream,
};
use hyper::body::Incoming;
use hyper_util::service::TowerToHyperService;
use proto::{LeaseId, MemberId, Revision};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status, Streaming, body::Body, metadata::MetadataMap};

use crate::{
    host::Listener,
    transport::{
        connection::{self, Caller},
        log_throttle::LogThrottle,
        silent::Asked,
    },
};

use super::{
    CallBacks, Handshake, MAX_MESSAGE, Remote, Traffic,
    frame::frames,
    handshake::KEY,
    wire::{
        self, Frame, Greeting, HashAt, Judged, LeaseTime, Nothing, Proposals, Proposed, ReadAt,
        peer_server::{Peer, PeerServer},
    },
};

/// The only call that needs no handshake.
const JOIN: &str = "/baton.peer.Peer/Join";
/// Calls of who is there and what it runs: these go on with a member that waits, and with one that does not fit. For the leader hears
/// by them whom it would leave behind.
const OF_WHO_IS_THERE: [&str; 3] = ["/baton.peer.Peer/Started", "/baton.peer.Peer/Greet", "/baton.peer.Peer/CallBack"];
/// What they send, in bytes: nothing.
const MAX_OF_STRANGERS: usize = 1 << 10;
const CALLER: Caller = Caller::Peer { request_window: 4 << 20, connection_window: 8 << 20 };

type Answer<T> = Result<Response<T>, Status>;
type Answering<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// What a member does for others' clients when it leads.
pub trait Answers: Send + Sync + 'static {
    /// Puts a member's proposals into the log; the places of those that it did not put there, and that may be proposed again.
    fn propose(&self, from: MemberId, proposals: Vec<Bytes>) -> impl Future<Output = Result<Vec<u32>, Status>> + Send;

    /// Up to where a reader must wait.
    fn read_index(&self) -> impl Future<Output = Result<u64, Status>> + Send;

    fn renew(&self, lease: LeaseId) -> impl Future<Output = Result<i64, Status>> + Send;

    fn left(&self, lease: LeaseId) -> impl Future<Output = Result<i64, Status>> + Send;

    /// Changes who the members are.
    fn change(&self, change: wire::Change) -> impl Future<Output = Result<wire::Changed, Status>> + Send;

    /// Who the members are, for one that is to join them.
    ///
    /// # Errors
    /// This one does not know.
    fn joined(&self) -> impl Future<Output = Result<wire::Joined, Status>> + Send;

    /// What this member's keys come to at a revision.
    fn hash(&self, at: Revision) -> impl Future<Output = Result<wire::HashOf, Status>> + Send;
}

struct Service<A> {
    handshake: Handshake,
    group: Group,
    answers: Arc<A>,
    traffic: Traffic,
    call_backs: CallBacks,
    ends: watch::Receiver<bool>,
    log_throttle: Arc<LogThrottle>,
}

/// Answers on these listeners until `ends` says so. A connection that says nothing is closed after a while, and so is one whose
/// other end is gone: there are few places.
pub async fn serve<A: Answers>(
    handshake: Handshake,
    group: Group,
    answers: Arc<A>,
    traffic: Traffic,
    call_backs: CallBacks,
    listeners: Vec<Listener>,
    ends: watch::Receiver<bool>,
) {
    let log_throttle = Arc::new(LogThrottle::default());
    let checked = (handshake.clone(), log_throttle.clone());
    let service = Service { handshake, group, answers, traffic, call_backs, ends: ends.clone(), log_throttle };
    let service = Arc::new(service);
    let of_strangers = PeerServer::from_arc(service.clone()).max_decoding_message_size(MAX_OF_STRANGERS);
    let service =
        PeerServer::from_arc(service).max_decoding_message_size(MAX_MESSAGE).max_encoding_message_size(MAX_MESSAGE);
    let stopping = CancellationToken::new();
    let service = Checked {
        service: TowerToHyperService::new(service),
        of_strangers: TowerToHyperService::new(of_strangers),
        handshake: checked.0,
        log_throttle: checked.1,
    };
    connection::serve(CALLER, |_| service.clone(), listeners, ended(ends), stopping).await;
}

async fn ended(mut ends: watch::Receiver<bool>) {
    // Whoever says so may be gone: then it is the end, too.
    let _ = ends.wait_for(|ends| *ends).await;
}

/// Looks at the handshake before anything of a call is read: who is no member is answered at once, and its connection stays one
/// on which nothing was asked.
#[derive(Clone)]
struct Checked<S> {
    service: S,
    of_strangers: S,
    handshake: Handshake,
    log_throttle: Arc<LogThrottle>,
}

type Refused<E> = Ready<Result<http::Response<Body>, E>>;

impl<S: hyper::service::Service<http::Request<Incoming>, Response = http::Response<Body>>>
    hyper::service::Service<http::Request<Incoming>> for Checked<S>
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Either<Refused<S::Error>, S::Future>;

    fn call(&self, request: http::Request<Incoming>) -> Self::Future {
        if request.uri().path() == JOIN {
            // It cannot say who it is yet. Its connection stays one on which nothing was asked.
            return Either::Right(self.of_strangers.call(request));
        }
        let talks = |remote: &Remote| match OF_WHO_IS_THERE.contains(&request.uri().path()) {
            true => Ok(()),
            false => self.handshake.talks_to(remote),
        };
        let caller = self.handshake.caller(&MetadataMap::from_headers(request.headers().clone()));
        match caller.and_then(|remote| talks(&remote)) {
            Ok(()) => {
                request.extensions().get::<Asked>().into_iter().for_each(Asked::note);
                Either::Right(self.service.call(request))
            }
            Err(status) => {
                self.log_throttle.say("refuses calls on the peer port", status.message());
                // Who says nothing of itself learns nothing of this member.
                let status = match request.headers().contains_key(KEY) {
                    true => self.handshake.refusal(status),
                    false => status,
                };
                Either::Left(ready(Ok(status.into_http())))
            }
        }
    }
}

fn lease(request: Request<Frame>) -> Result<LeaseId, Status> {
    request.into_inner().carried().map(|wire::LeaseId { id }| LeaseId(id))
}

fn refused(error: AnswerError) -> Status {
    match error {
        AnswerError::Damaged(text) => Status::invalid_argument(text),
        AnswerError::Stopped(text) => Status::unavailable(text),
    }
}

impl<A: Answers> Service<A> {
    fn check<T>(&self, request: &Request<T>) -> Result<Remote, Status> {
        self.handshake.caller(request.metadata())
    }

    fn answer<T>(&self, message: T) -> Answer<T> {
        Ok(self.handshake.answer(message))
    }

    fn counted(
        &self,
        sender: Remote,
        request: Request<Streaming<Frame>>,
    ) -> impl Stream<Item = Result<Bytes, Status>> + Send + use<A> {
        let traffic = self.traffic.of(sender.member);
        frames(request.into_inner()).inspect(move |frame| match frame {
            Ok(bytes) => traffic.received_bytes.add(bytes.len() as u64),
            Err(_) => traffic.received_failures.inc(),
        })
    }

    /// Takes a snapshot in and installs it once it is whole.
    async fn take_in(
        &self,
        from: MemberId,
        mut pieces: impl Stream<Item = Result<Bytes, Status>> + Unpin,
    ) -> Result<Bytes, Status> {
        let next = |piece: Option<Result<Bytes, Status>>| piece.transpose();
        let offer =
            next(pieces.next().await)?.ok_or_else(|| Status::invalid_argument("a snapshot without an offer"))?;
        let mut arrival = self.group.incoming(from.0, offer.clone()).map_err(refused)?;
        let failed = |error: &dyn std::error::Error| {
            Status::internal(format!("cannot take in a snapshot: {}", with_causes(error)))
        };
        let mut coming = pieces.next().await;
        while let Some(piece) = next(coming)? {
            // The next one comes in while this one is written.
            let pushing = aside(move || arrival.push(piece).map(|()| arrival));
            let (pushed, after) = tokio::join!(pushing, pieces.next());
            arrival = pushed.map_err(|error| failed(&error))?.map_err(|error| failed(&error))?;
            coming = after;
        }
        let file = arrival.whole().map_err(|error| Status::aborted(error.to_string()))?;
        self.group.install(offer, file).await.map_err(refused)
    }
}

#[tonic::async_trait]
impl<A: Answers> Peer for Service<A> {
    type AppendStream = Answering<Frame>;
    type CallBackStream = Answering<Frame>;
    type GreetStream = Answering<Frame>;

    async fn append(&self, request: Request<Streaming<Frame>>) -> Answer<Self::AppendStream> {
        let caller = self.check(&request)?;
        let (from, is_open) = (caller.member.0, self.traffic.of(caller.member).streams.hold());
        let frames = self.counted(caller, request).scan((), |(), frame| std::future::ready(frame.ok()));
        let answers = self.group.append(from, frames).map(move |bytes| {
            let _is_open = &is_open;
            Ok(Frame::of(bytes))
        });
        self.answer(Box::pin(answers.take_until(ended(self.ends.clone()))))
    }

    async fn ask(&self, request: Request<wire::Question>) -> Answer<Frame> {
        let caller = self.check(&request)?;
        let question = match request.into_inner().what {
            Some(wire::question::What::Vote(frame)) => Question::Vote(frame.read()?),
            Some(wire::question::What::TakeOver(frame)) => Question::TakeOver(frame.read()?),
            Some(wire::question::What::Lost(frame)) => Question::Lost(frame.read()?),
            Some(wire::question::What::Held(frame)) => Question::Held(frame.read()?),
            None => return Err(Status::invalid_argument("a question that asks nothing")),
        };
        let bytes = self.group.answer(caller.member.0, question).await.map_err(refused)?;
        self.answer(Frame::of(bytes))
    }

    async fn install(&self, request: Request<Streaming<Frame>>) -> Answer<Frame> {
        let caller = self.check(&request)?;
        let from = caller.member;
        let frames = self.counted(caller, request);
        let taken_in = self.take_in(from, Box::pin(frames)).await;
        let bytes = taken_in.inspect_err(|status| {
            self.log_throttle.say("a snapshot was not taken in, and will be sent again", status.message());
        })?;
        self.answer(Frame::of(bytes))
    }

    async fn greet(&self, request: Request<Frame>) -> Answer<Self::GreetStream> {
        self.check(&request)?;
        let greeting: Greeting = request.into_inner().carried()?;
        let answers = stream::iter([Ok(Frame::carrying(&greeting))]).chain(stream::pending());
        self.answer(Box::pin(answers.take_until(ended(self.ends.clone()))))
    }

    async fn call_back(&self, request: Request<Streaming<Frame>>) -> Answer<Self::CallBackStream> {
        let caller = self.check(&request)?;
        let opened = self.call_backs.offer(caller.member, Box::pin(frames(request.into_inner()))).map(Ok);
        // Raft tells a removed member nothing: no entry goes to it any more, not that of its removal either. It opens them again,
        // and hears why it may not.
        let (handshake, ends) = (self.handshake.clone(), self.ends.clone());
        let closed = async move {
            tokio::select! {
                () = ended(ends) => {}
                () = handshake.removed(caller.member) => {}
            }
        };
        self.answer(Box::pin(opened.take_until(Box::pin(closed))))
    }

    async fn started(&self, request: Request<Nothing>) -> Answer<Judged> {
        let caller = self.check(&request)?;
        self.group.is_back(caller.member.0).await.map_err(|error| Status::unavailable(error.to_string()))?;
        let mismatch = self.handshake.judge(&caller).err();
        if let Some(mismatch) = &mismatch {
            self.log_throttle.say("a member may take no part", &format!("member {}: {mismatch}", caller.member));
        }
        self.answer(Judged { refused: mismatch.map_or_else(String::new, |mismatch| mismatch.to_string()) })
    }

    async fn propose(&self, request: Request<Proposals>) -> Answer<Frame> {
        let caller = self.check(&request)?;
        let proposals = request.into_inner().proposals.into_iter().map(Frame::read);
        let proposals = proposals.collect::<Result<Vec<_>, _>>()?;
        let bytes = proposals.iter().map(|proposal| proposal.len() as u64).sum();
        self.traffic.of(caller.member).received_bytes.add(bytes);
        let proposed = self.answers.propose(caller.member, proposals).await;
        let again = proposed.inspect_err(|status| self.log_throttle.say("refuses proposals", status.message()))?;
        self.answer(Frame::carrying(&Proposed { again }))
    }

    async fn read_index(&self, request: Request<Nothing>) -> Answer<Frame> {
        self.check(&request)?;
        let index = self.answers.read_index().await?;
        self.answer(Frame::carrying(&ReadAt { index }))
    }

    async fn renew(&self, request: Request<Frame>) -> Answer<Frame> {
        self.check(&request)?;
        let seconds = self.answers.renew(lease(request)?).await?;
        self.answer(Frame::carrying(&LeaseTime { seconds }))
    }

    async fn hash(&self, request: Request<Frame>) -> Answer<Frame> {
        self.check(&request)?;
        let HashAt { revision } = request.into_inner().carried()?;
        let hashed = self.answers.hash(Revision(revision)).await?;
        self.answer(Frame::carrying(&hashed))
    }

    async fn change(&self, request: Request<Frame>) -> Answer<Frame> {
        self.check(&request)?;
        let changed = self.answers.change(request.into_inner().carried()?).await?;
        self.answer(Frame::carrying(&changed))
    }

    async fn join(&self, _: Request<Nothing>) -> Answer<Frame> {
        self.answer(Frame::carrying(&self.answers.joined().await?))
    }

    async fn left(&self, request: Request<Frame>) -> Answer<Frame> {
        self.check(&request)?;
        let seconds = self.answers.left(lease(request)?).await?;
        self.answer(Frame::carrying(&LeaseTime { seconds }))
    }
}
