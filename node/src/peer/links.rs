//! Calls to other members. Each is reached over three connections, so that neither entries nor a snapshot hold up a heartbeat.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use consensus::{Lane, Outgoing, Peer, PeerError, Peers, Pipe, Question};
use futures_util::{FutureExt, StreamExt, future::BoxFuture};
use proto::MemberId;
use tokio::{
    sync::{mpsc, watch},
    time::Instant,
};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{
    Code, Response, Status,
    transport::{Channel, Endpoint},
};

use super::{
    CallBacks, Handshake, MAX_MESSAGE, Remote, Told,
    answered::{Noting, Unanswered},
    call_back::CalledBack,
    dial::{Dial, authority},
    frame::frames,
    sending::{send_file, within},
    traffic::{PeerTraffic, Traffic, round_trips},
    wire::{self, Frame, peer_client::PeerClient},
};
use crate::{
    host::{Host, Listener},
    transport::{gathering::Gathering, log_throttle::LogThrottle, tls::ClientTls},
};

/// A stream that is not there after this is given up.
const OPEN: Duration = Duration::from_secs(2);
/// A connection on which nothing comes back for so long is dead.
const ALIVE: Duration = Duration::from_secs(2);
/// As many messages wait to be sent on a stream.
const WINDOW: usize = 64;
/// Once all of a snapshot was sent, it is read, checked and installed: in so long,
const INSTALL: Duration = Duration::from_secs(60);
/// and longer where it is large, in bytes.
const INSTALLED_PER_MICROSECOND: u64 = 10;

type Client = PeerClient<Noting<Channel>>;

/// The connections of a member. Every clone is the same.
#[derive(Clone)]
pub struct Links {
    host: Arc<dyn Host>,
    /// For members that are reached by https.
    tls: Option<Arc<ClientTls>>,
    handshake: Handshake,
    /// What another member has told this one, which must end.
    refused: watch::Sender<Option<Told>>,
    log_throttle: Arc<LogThrottle>,
    traffic: Traffic,
    open: Arc<Mutex<BTreeMap<u64, Link>>>,
    /// What others have opened.
    call_backs: CallBacks,
    called_back: CalledBack,
}

#[derive(Clone)]
struct Link {
    peer: Peer,
    /// Heartbeats and votes.
    heartbeats: Way,
    entries: Way,
    other: Way,
    traffic: Arc<PeerTraffic>,
}

#[derive(Clone)]
struct Way {
    client: Client,
    unanswered: Unanswered,
}

fn broken(status: &Status) -> PeerError {
    let text = status.message().to_owned();
    match status.code() {
        Code::Unavailable | Code::FailedPrecondition | Code::DataLoss => PeerError::Unreachable(text),
        _ => PeerError::Broken(text),
    }
}

impl Links {
    /// For a member that shakes hands so; and where others call it over what it opens.
    pub fn new(host: Arc<dyn Host>, tls: Option<Arc<ClientTls>>, handshake: Handshake) -> (Self, Listener) {
        let (refused, log_throttle, open) = (watch::Sender::default(), Arc::default(), Arc::default());
        let (called_back, listener) = CalledBack::new();
        let call_backs = CallBacks::default();
        let traffic = Traffic::default();
        (Self { host, tls, handshake, refused, log_throttle, traffic, open, call_backs, called_back }, listener)
    }

    /// What others have opened to this member.
    pub fn call_backs(&self) -> CallBacks {
        self.call_backs.clone()
    }

    /// Opens a connection for another member to call this one by. Returns when it has ended.
    pub(crate) async fn be_called_back(&self, by: &Peer) -> Result<(), Status> {
        let (send, sent) = CalledBack::frames();
        let response = self.heed(by.id, self.other(by)?.call_back(self.call(by.id, sent)).await)?;
        self.answerer(by.id, &response)?;
        self.called_back.serve(frames(response.into_inner()), send).await;
        Ok(())
    }

    /// What goes to and comes from the others.
    pub fn traffic(&self) -> &Traffic {
        &self.traffic
    }

    /// A connection for what is not raft's.
    pub(crate) fn other(&self, peer: &Peer) -> Result<Client, Status> {
        self.link(peer).map(|link| link.other.client).map_err(|error| Status::unavailable(error.to_string()))
    }

    /// Waits until another member says that this one is none any more, or has lost its data directory.
    pub(crate) async fn refused(&self) -> Told {
        let mut refused = self.refused.subscribe();
        match refused.wait_for(Option::is_some).await.map(|text| text.clone()) {
            Ok(Some(text)) => text,
            _ => std::future::pending().await,
        }
    }

    /// Takes in what came of a call; a refusal is told, as nothing but a person mends that. That this member has lost its data is
    /// believed of the member that was called alone: whoever listens at its address while it is down may say anything.
    pub(crate) fn heed<T>(&self, called: u64, outcome: Result<T, Status>) -> Result<T, Status> {
        outcome.inspect_err(|status| match status.code() {
            Code::DataLoss => match self.handshake.answerer(MemberId(called), status.metadata()) {
                Ok(_) => drop(self.refused.send_replace(Some(Told::read(status.message())))),
                Err(stranger) => self.log_throttle.say("somebody answers in a member's place", stranger.message()),
            },
            Code::FailedPrecondition => {
                self.log_throttle.say("a member refuses a call, or is not the one that was called", status.message());
                if self.call_backs.is_another(MemberId(called)) {
                    // The next connection goes over what the right one has opened.
                    self.open.lock().unwrap_or_else(PoisonError::into_inner).remove(&called);
                }
            }
            _ => self.go_another_way(called),
        })
    }

    /// Gives up connections over which no member has answered yet, where the member has opened others itself.
    fn go_another_way(&self, called: u64) {
        if !self.call_backs.has_any(MemberId(called)) {
            return;
        }
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(Link { peer, heartbeats, entries, other, .. }) = open.get_mut(&called) else { return };
        for way in [heartbeats, entries, other] {
            if way.unanswered.is_so()
                && let Ok(another) = self.way(peer, way.unanswered.clone())
            {
                *way = another;
            }
        }
    }

    pub(crate) fn call<T>(&self, to: u64, message: T) -> tonic::Request<T> {
        self.handshake.call(MemberId(to), message)
    }

    pub(crate) fn answerer<T>(&self, called: u64, response: &Response<T>) -> Result<Remote, Status> {
        self.handshake.answerer(MemberId(called), response.metadata())
    }

    /// Who has answered what one has to fit for.
    fn partner<T>(&self, called: u64, response: &Response<T>) -> Result<Remote, Status> {
        let remote = self.answerer(called, response)?;
        self.handshake.talks_to(&remote).map(|()| remote)
    }

    fn outcome<T>(&self, called: u64, outcome: Result<T, Status>) -> Result<T, PeerError> {
        self.heed(called, outcome).map_err(|status| {
            self.traffic.of(MemberId(called)).sent_failures.inc();
            broken(&status)
        })
    }

    fn link(&self, peer: &Peer) -> Result<Link, PeerError> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(link) = open.get(&peer.id) {
            return Ok(link.clone());
        }
        let way = || self.way(peer, Unanswered::default());
        let traffic = self.traffic.of(MemberId(peer.id));
        let link = Link { peer: peer.clone(), heartbeats: way()?, entries: way()?, other: way()?, traffic };
        open.insert(peer.id, link.clone());
        Ok(link)
    }

    /// Connects when it is first used, and again whenever the connection is lost.
    fn way(&self, peer: &Peer, unanswered: Unanswered) -> Result<Way, PeerError> {
        let (handshake, peer, member) = (self.handshake.clone(), peer.clone(), MemberId(peer.id));
        // A member that was moved keeps the connections that it has, and gets the next where it is then.
        let urls = move || handshake.urls_of(member).unwrap_or_else(|| peer.address.clone());
        // Where it is, and whether by TLS, the connection alone knows.
        let endpoint = Endpoint::from_shared(format!("http://{}", authority(&urls())));
        let dial = Dial::new(self.host.clone(), self.tls.clone(), Arc::new(urls), self.log_throttle.clone());
        let dial = dial.or_over(member, self.call_backs(), unanswered.clone());
        let endpoint = endpoint.map_err(|error| PeerError::Broken(error.to_string()))?;
        let channel = endpoint
            .http2_keep_alive_interval(ALIVE)
            .keep_alive_timeout(ALIVE)
            .keep_alive_while_idle(true)
            .executor(Gathering)
            .initial_stream_window_size(4 << 20)
            .initial_connection_window_size(8 << 20)
            .connect_with_connector_lazy(dial);
        let client = PeerClient::new(Noting::new(channel, unanswered.clone()));
        let client = client.max_decoding_message_size(MAX_MESSAGE).max_encoding_message_size(MAX_MESSAGE);
        Ok(Way { client, unanswered })
    }

    async fn append(self, to: Peer, lane: Lane) -> Result<Pipe, Status> {
        let link = self.link(&to).map_err(|error| Status::unavailable(error.to_string()))?;
        let mut client = match lane {
            Lane::Heartbeats => link.heartbeats.client,
            Lane::Entries => link.entries.client,
        };
        let (send, sent) = mpsc::channel::<Bytes>(WINDOW);
        let (traffic, sending) = (link.traffic.clone(), link.traffic);
        let (mut leaving, mut returning) = round_trips();
        let frames = ReceiverStream::new(sent).map(move |bytes| {
            sending.sent_bytes.add(bytes.len() as u64);
            leaving.note(Instant::now());
            Frame::of(bytes)
        });
        let response = client.append(self.call(to.id, frames)).await?;
        self.partner(to.id, &response)?;
        // Heartbeats alone: a stream for entries is read only while there are some, so its end is noticed late.
        let is_open = (lane == Lane::Heartbeats).then(|| traffic.streams.hold());
        let receive = response.into_inner().map(move |frame| {
            let (_is_open, took) = (&is_open, returning.note(Instant::now()));
            let bytes = frame.and_then(Frame::read).map_err(|error| {
                traffic.sent_failures.inc();
                if lane == Lane::Heartbeats {
                    traffic.heartbeat_failures.inc();
                }
                broken(&error)
            })?;
            // An answer to entries waits for a disk.
            took.filter(|_| lane == Lane::Heartbeats).into_iter().for_each(|took| traffic.round_trips.observe(took));
            Ok(bytes)
        });
        Ok(Pipe { send, receive: receive.boxed() })
    }

    async fn question(self, to: Peer, question: Question) -> Result<Bytes, Status> {
        let Link { heartbeats: Way { mut client, .. }, traffic, .. } =
            self.link(&to).map_err(|error| Status::unavailable(error.to_string()))?;
        let frame = |bytes: Bytes| {
            traffic.sent_bytes.add(bytes.len() as u64);
            Frame::of(bytes)
        };
        let what = match question {
            Question::Vote(bytes) => wire::question::What::Vote(frame(bytes)),
            Question::TakeOver(bytes) => wire::question::What::TakeOver(frame(bytes)),
            Question::Lost(bytes) => wire::question::What::Lost(frame(bytes)),
            Question::Held(bytes) => wire::question::What::Held(frame(bytes)),
        };
        let response = client.ask(self.call(to.id, wire::Question { what: Some(what) })).await?;
        self.partner(to.id, &response)?;
        response.into_inner().read()
    }

    async fn snapshot(self, to: Peer, snapshot: Outgoing) -> Result<Bytes, Status> {
        let link = self.link(&to).map_err(|error| Status::unavailable(error.to_string()))?;
        let (mut client, traffic) = (link.other.client, link.traffic);
        let patience = INSTALL + Duration::from_micros(snapshot.file.length() / INSTALLED_PER_MICROSECOND);
        let (send, sent) = mpsc::channel(2);
        let install = client.install(self.call(to.id, ReceiverStream::new(sent)));
        tokio::pin!(install);
        let response = tokio::select! {
            // Without having taken all of it, which is no success.
            response = &mut install => response,
            sent = send_file(snapshot, send, &traffic) => {
                sent?;
                within(patience, install).await
            }
        }?;
        self.partner(to.id, &response)?;
        response.into_inner().read()
    }
}

impl Peers for Links {
    fn pipe(&self, to: Peer, lane: Lane) -> BoxFuture<'static, Result<Pipe, PeerError>> {
        let links = self.clone();
        async move {
            let opened = links.outcome(to.id, within(OPEN, links.clone().append(to.clone(), lane)).await);
            if opened.is_err() && lane == Lane::Heartbeats {
                links.traffic.of(MemberId(to.id)).heartbeat_failures.inc();
            }
            opened
        }
        .boxed()
    }

    fn ask(&self, to: Peer, question: Question, limit: Duration) -> BoxFuture<'static, Result<Bytes, PeerError>> {
        let links = self.clone();
        async move { links.outcome(to.id, within(limit, links.clone().question(to, question)).await) }.boxed()
    }

    fn send_snapshot(&self, to: Peer, snapshot: Outgoing) -> BoxFuture<'static, Result<Bytes, PeerError>> {
        let links = self.clone();
        async move { links.outcome(to.id, links.clone().snapshot(to, snapshot).await) }.boxed()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proto::{ClusterId, Release};

    use super::*;
    use crate::{
        cluster::{
            entry::Entry,
            member::{Attributes, Incarnation, Starts},
        },
        entry::EntryKind,
        features::FEATURES,
        host::RealHost,
        identity::Identity,
        machine::{Machine, Proposals},
    };

    const CALLED: MemberId = MemberId(9);

    fn handshake(member: MemberId, incarnation: Option<Incarnation>) -> (Handshake, Machine) {
        let release = Release::new(3, 6, 0);
        let machine = Machine::new(release.clone(), FEATURES, Proposals::new(member, Starts(1)));
        let mut identity = Identity::of_none(ClusterId(1), member, release, Starts(1));
        identity.incarnation = incarnation;
        (Handshake::new(Arc::new(identity), machine.clone(), true), machine)
    }

    /// Whoever listens at the address of a member that is down may say anything.
    #[test]
    fn that_a_member_has_lost_its_data_is_believed_of_a_member_alone() {
        let (own, machine) = handshake(MemberId(7), None);
        let members = [MemberId(7), CALLED].map(|id| (id, ("m".to_owned(), vec![]))).into();
        let incarnation = Incarnation::read(5);
        let attributes = Attributes::default();
        let published = Entry::Publish { member: CALLED, starts: Starts(0), start_id: None, incarnation, attributes };
        for entry in [Entry::Bootstrap { id: ClusterId(1), members }, published] {
            machine.apply_of_test(EntryKind::Cluster(entry));
        }
        let (links, _) = Links::new(Arc::new(RealHost::default()), None, own);
        let lost = || Status::data_loss("it is lost");
        for (refusal, is_believed) in [
            (lost(), false),
            (handshake(CALLED, None).0.refusal(lost()), false),
            (handshake(CALLED, Incarnation::read(6)).0.refusal(lost()), false),
            (handshake(MemberId(7), incarnation).0.refusal(lost()), false),
            (handshake(CALLED, incarnation).0.refusal(lost()), true),
        ] {
            let _ = links.heed(CALLED.0, Err::<(), _>(refusal));
            assert_eq!(links.refused.borrow().is_some(), is_believed);
        }
    }
}
