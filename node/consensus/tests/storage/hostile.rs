//! Whoever reaches the peer port can say anything: nothing of it ends a member, or leaves it without a leader for ever.

use bytes::Bytes;
use consensus::{Group, Question};
use futures_util::{StreamExt, stream};
use prost::Message;

use crate::alone::{Alone, ID};

/// A member that says what is not so.
const LIAR: u64 = 9;

#[derive(Clone, PartialEq, Message)]
struct Vote {
    #[prost(uint64, tag = "1")]
    term: u64,
    #[prost(uint64, tag = "2")]
    member: u64,
    #[prost(bool, tag = "3")]
    committed: bool,
}

#[derive(Clone, PartialEq, Message)]
struct LogId {
    #[prost(uint64, tag = "1")]
    term: u64,
    #[prost(uint64, tag = "2")]
    index: u64,
}

#[derive(Clone, PartialEq, Message)]
struct VoteRequest {
    #[prost(message, tag = "1")]
    vote: Option<Vote>,
    #[prost(message, tag = "2")]
    last: Option<LogId>,
    #[prost(bool, tag = "3")]
    leadership_transfer: bool,
}

#[derive(Clone, PartialEq, Message)]
struct Lost {
    #[prost(message, tag = "1")]
    leader: Option<Vote>,
    #[prost(message, tag = "2")]
    acknowledged: Option<LogId>,
}

#[derive(Clone, PartialEq, Message)]
struct Entry {
    #[prost(message, tag = "1")]
    id: Option<LogId>,
    #[prost(bytes = "vec", tag = "2")]
    payload: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
struct Append {
    #[prost(uint64, tag = "1")]
    sequence: u64,
    #[prost(message, tag = "2")]
    vote: Option<Vote>,
    #[prost(message, tag = "3")]
    previous: Option<LogId>,
    #[prost(message, repeated, tag = "4")]
    entries: Vec<Entry>,
}

#[derive(Clone, PartialEq, Message)]
struct Offer {
    #[prost(message, tag = "1")]
    vote: Option<Vote>,
    #[prost(uint64, tag = "2")]
    size: u64,
}

fn vote(term: u64, member: u64) -> Option<Vote> {
    Some(Vote { term, member, committed: true })
}

fn bytes(message: impl Message) -> Bytes {
    message.encode_to_vec().into()
}

fn ballot(term: u64, member: u64) -> Question {
    let last = Some(LogId { term: u64::MAX, index: u64::MAX });
    Question::Vote(bytes(VoteRequest { vote: vote(term, member), last, leadership_transfer: true }))
}

fn lost(term: u64, member: u64) -> Question {
    let acknowledged = Some(LogId { term, index: 1 << 60 });
    Question::Lost(bytes(Lost { leader: vote(term, member), acknowledged }))
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_member_cannot_say_is_refused_and_changes_nothing() {
    let Alone { group, notebook, term, .. } = &Alone::begin().await;
    let (term, far) = (*term, u64::MAX);
    for (what, question) in [
        ("a term out of reach", ballot(far, LIAR)),
        ("a vote for another", ballot(term + 1, ID)),
        ("a loss that another leader tells of", lost(term, ID)),
        ("a loss, by one that does not lead", lost(term, LIAR)),
        ("a loss, in a later term", lost(term + 1, LIAR)),
        ("no question", Question::Vote(Bytes::from_static(b"\xff"))),
        ("a part of another's snapshot", Question::Held(bytes(Offer { vote: vote(term, ID), size: far }))),
        ("half a question", Question::Lost(Bytes::from_static(b"\x0a\x7f"))),
    ] {
        assert!(group.answer(LIAR, question).await.is_err(), "{what}");
    }
    for (what, offered) in [("far", vote(far, LIAR)), ("another's", vote(term, ID)), ("nobody's", None)] {
        let offer = bytes(Offer { vote: offered, size: far });
        assert!(group.incoming(LIAR, offer).is_err(), "a snapshot, {what}");
    }
    for (what, leads) in [("far", vote(far, LIAR)), ("another's", vote(term, ID)), ("nobody's", None)] {
        let append = stream::iter([bytes(Append { sequence: 1, vote: leads, ..Append::default() })]);
        assert_eq!(group.append(LIAR, append).count().await, 0, "entries, {what}");
    }
    // Of a leader of the next term, which has a place in raft: but not in any log.
    for (what, previous, ids) in [
        ("with a hole", Some((term, 1)), &[(term, 7)][..]),
        ("twice the same", Some((term, 1)), &[(term, 2), (term, 2)]),
        ("of a term before", Some((term, 1)), &[(term, 2), (term - 1, 3)]),
        ("of a term to come", Some((term, 1)), &[(term + 2, 2)]),
        ("after the last there can be", Some((term, far)), &[(term, 0)]),
        ("from nowhere", None, &[(term, 5)]),
    ] {
        let id = |(term, index): (u64, u64)| LogId { term, index };
        // A leader's first word (`Payload.blank`).
        let entries = ids.iter().map(|at| Entry { id: Some(id(*at)), payload: b"\x0a\0".into() }).collect();
        let append = Append { sequence: 1, vote: vote(term + 1, LIAR), previous: previous.map(id), entries };
        assert_eq!(group.append(LIAR, stream::iter([bytes(append)])).count().await, 0, "entries {what}");
    }
    group.propose_as_leader(term, Bytes::from_static(b"on")).await.expect("it leads as before");
    assert_eq!(notebook.lines(), ["on"]);
    group.shutdown().await;
}

/// One that stood still goes on sending what no later leader has taken over: raft refuses it, and nobody has lost anything.
#[tokio::test(flavor = "multi_thread")]
async fn what_differs_from_a_committed_entry_ends_a_member_only_if_its_leader_is_not_outdated() {
    let Alone { group, term, .. } = &Alone::begin().await;
    let term = *term;
    group.propose_as_leader(term, Bytes::from_static(b"on")).await.expect("committed");
    let voted = group.answer(LIAR, ballot(term + 2, LIAR)).await;
    voted.expect("one whose log is longer has this member's vote");
    assert_eq!(appended(group, term, term + 1).await, 1, "it is answered, by a refusal");
    assert_eq!(group.fault(), None);
    // Where it has stood for election itself meanwhile, that leader is outdated as well.
    let mut leads = term + 2;
    while appended(group, term, leads).await > 0 {
        assert_eq!(group.fault(), None);
        leads += 2;
        assert!(leads < term + 100, "it is never the last to stand");
        drop(group.answer(LIAR, ballot(leads, LIAR)).await);
    }
    let why = group.fault().expect("one of the two has lost what it had acknowledged");
    assert!(why.contains("differs from this one's in entry 2, which was committed"), "{why}");
}

/// What comes while a member ends, or after its raft has failed, is no word of what was lost.
#[tokio::test(flavor = "multi_thread")]
async fn what_differs_from_a_committed_entry_says_nothing_once_raft_has_stopped() {
    let Alone { group, term, .. } = &Alone::begin().await;
    group.propose_as_leader(*term, Bytes::from_static(b"on")).await.expect("committed");
    group.shutdown().await;
    assert_eq!(appended(group, *term, term + 2).await, 0);
    assert_eq!(group.fault().as_deref(), Some("raft stopped"));
}

/// How many answers there are to an entry that differs from the second one here, of one that leads in this term.
async fn appended(group: &Group, term: u64, leads: u64) -> usize {
    let id = |term, index| Some(LogId { term, index });
    let entries = vec![Entry { id: id(leads, 2), payload: b"\x0a\0".into() }];
    let append = Append { sequence: 1, vote: vote(leads, LIAR), previous: id(term, 1), entries };
    group.append(LIAR, stream::iter([bytes(append)])).count().await
}
