use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex},
};

use bytes::Bytes;
use futures_util::{FutureExt, StreamExt, future::BoxFuture, stream};
use tokio::sync::mpsc;

use super::*;
use crate::{
    Lane, Outgoing, Peer, PeerError, Peers, Pipe, Question, Settings, bare,
    format::{Ballot, Numbered, Wire},
    types::{AppendRequest, AppendResult, VoteResponse},
};

/// No heartbeat is sent but for a read, and no answer that is held counts as lost: the play is over long before, also where the
/// machine stands still.
const HEARTBEAT: Duration = Duration::from_secs(300);
const ELECTION: Duration = Duration::from_secs(3000);
/// For a read, and for each request.
const LIMIT: Duration = Duration::from_secs(2);
const PATIENCE: Duration = Duration::from_secs(60);

/// A request that was sent, and where its answer goes.
struct Sent {
    lane: Lane,
    entries: usize,
    answer: Bytes,
    to: mpsc::UnboundedSender<Bytes>,
}

impl Sent {
    fn answer(self) {
        let _ = self.to.send(self.answer);
    }
}

/// Members that vote for whoever asks, and answer appends at once or when they are told to.
#[derive(Clone, Default)]
struct Others {
    /// When they are told to, if it is a heartbeat or is about an entry above this index.
    hold_above: Arc<Mutex<Option<u64>>>,
    held: Arc<Mutex<BTreeMap<u64, VecDeque<Sent>>>>,
}

impl Others {
    /// The first held request of this kind to this member, once there is one.
    async fn held(&self, member: u64, is_it: impl Fn(&Sent) -> bool) -> Sent {
        let find = || {
            let mut held = self.held.lock().unwrap();
            let requests = held.entry(member).or_default();
            requests.iter().position(&is_it).and_then(|at| requests.remove(at))
        };
        let found = async {
            loop {
                match find() {
                    Some(sent) => return sent,
                    None => tokio::time::sleep(Duration::from_millis(1)).await,
                }
            }
        };
        tokio::time::timeout(PATIENCE, found).await.expect("a request that is sent")
    }

    fn take(&self, member: u64, lane: Lane, bytes: Bytes, to: mpsc::UnboundedSender<Bytes>) {
        let Numbered { sequence, what: AppendRequest { prev_log_id, entries, .. } } = Numbered::decode(bytes).unwrap();
        let matching = entries.last().map(|entry| entry.log_id).or(prev_log_id);
        let answer = Numbered { sequence, what: AppendResult::Ok(matching) }.encode();
        let sent = Sent { lane, entries: entries.len(), answer, to };
        let is_above = |index| lane == Lane::Heartbeats || matching.is_some_and(|id| id.index > index);
        match self.hold_above.lock().unwrap().is_some_and(is_above) {
            true => self.held.lock().unwrap().entry(member).or_default().push_back(sent),
            false => sent.answer(),
        }
    }
}

impl Peers for Others {
    fn pipe(&self, to: Peer, lane: Lane) -> BoxFuture<'static, Result<Pipe, PeerError>> {
        let (send, mut requests) = mpsc::channel(64);
        let (answer, answers) = mpsc::unbounded_channel();
        let others = self.clone();
        tokio::spawn(async move {
            while let Some(bytes) = requests.recv().await {
                others.take(to.id, lane, bytes, answer.clone());
            }
        });
        let receive = stream::unfold(answers, |mut answers| async { Some((Ok(answers.recv().await?), answers)) });
        async { Ok(Pipe { send, receive: receive.boxed() }) }.boxed()
    }

    fn ask(&self, _: Peer, question: Question, _: Duration) -> BoxFuture<'static, Result<Bytes, PeerError>> {
        let Question::Vote(bytes) = question else { panic!("{question:?}") };
        let vote = Ballot::decode(bytes).unwrap().request.vote;
        async move { Ok(VoteResponse::new(vote, None, true).encode()) }.boxed()
    }

    fn send_snapshot(&self, _: Peer, _: Outgoing) -> BoxFuture<'static, Result<Bytes, PeerError>> {
        panic!("nobody needs one");
    }
}

/// The leader of three, and the others.
async fn leader(folder: &std::path::Path) -> (Group, Others) {
    let others = Others::default();
    let settings = Settings { heartbeat: HEARTBEAT, election: ELECTION, ..bare::SETTINGS };
    let group = bare::member(folder, settings, Arc::new(others.clone())).await;
    group.found(&(1..=3).map(|id| (id, format!("http://127.0.0.1:{id}"))).collect()).await.unwrap();
    group.raft_status().wait_for(|status| status.leader == Some(1)).await.unwrap();
    (group, others)
}

/// A leader stood still. What it finds when it goes on are answers of long ago, and others may have elected another one since.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_to_what_was_sent_before_a_read_confirms_no_read() {
    let folder = tempfile::tempdir().unwrap();
    let (group, others) = leader(folder.path()).await;
    let index = group.read_index(PATIENCE).await.expect("all answer");
    *others.hold_above.lock().unwrap() = Some(index);
    let writer = group.clone();
    let written = tokio::spawn(async move { writer.propose(vec![Bytes::from_static(b"x")]).await });
    let has_entry = |sent: &Sent| sent.entries == 1;
    let (of_2, of_3) = (others.held(2, has_entry).await, others.held(3, has_entry).await);
    let reader = group.clone();
    let read = tokio::spawn(async move { reader.read_index(LIMIT).await });
    others.held(2, |sent| sent.lane == Lane::Heartbeats).await;
    // The entry is committed by one of the old answers. That is news for the other member, and its own old answer comes after it.
    of_3.answer();
    others.held(2, |sent| sent.lane == Lane::Entries && sent.entries == 0).await;
    of_2.answer();
    assert_eq!(written.await.unwrap(), [Ok(())]);
    assert_eq!(read.await.unwrap(), Err(ReadError::NoQuorum));
}
