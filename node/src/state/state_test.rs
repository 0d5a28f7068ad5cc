use proto::{
    ClusterId, ClusterVersion,
    etcdserverpb::{
        LeaseCheckpoint, LeaseCheckpointRequest, LeaseGrantRequest, LeaseRevokeRequest, PutRequest, RangeRequest,
    },
};

use super::*;
use crate::{
    cluster::{
        entry::Entry as E,
        member::{Attributes, Proposal, Starts},
    },
    features::FEATURES,
};

const V3_6: ClusterVersion = ClusterVersion { major: 3, minor: 6 };

/// A log, applied as it grows.
#[derive(Default)]
struct Log {
    state: State,
    index: u64,
    entries: Vec<Entry>,
}

impl Log {
    fn add(&mut self, what: EntryKind) -> Result<Applied, Refusal> {
        self.add_entry(what.into())
    }

    fn add_entry(&mut self, entry: Entry) -> Result<Applied, Refusal> {
        self.index += 1;
        self.entries.push(entry.clone());
        self.state.apply(LogIndex(self.index), entry, &FEATURES)
    }

    /// One member, at 3.6.
    fn founded() -> Self {
        let mut log = Self::default();
        let members = [(MemberId(1), ("m1".to_owned(), vec![]))].into();
        log.add(EntryKind::Cluster(E::Bootstrap { id: ClusterId(9), members })).unwrap();
        let heard = [(MemberId(1), Starts(0))].into();
        log.add(EntryKind::Cluster(E::SetVersion { version: V3_6, heard })).unwrap();
        log
    }

    fn wants(&mut self, starts: u64, checkpoints: bool) {
        let features = [(LEASE_CHECKPOINT.to_owned(), checkpoints)].into_iter().collect();
        let proposal = Some(Proposal { version: V3_6, features });
        let attributes = Attributes { proposal, ..Attributes::default() };
        self.add(EntryKind::Cluster(E::Publish {
            member: MemberId(1),
            starts: Starts(starts),
            start_id: None,
            incarnation: None,
            attributes,
        }))
        .unwrap();
        let (features, inputs) = (self.state.cluster.reconciled().unwrap(), self.state.cluster.inputs);
        self.add(EntryKind::Cluster(E::Decide { features, inputs })).unwrap();
    }

    fn checkpoint(&mut self, remaining_ttl: i64) -> Applied {
        let checkpoints = vec![LeaseCheckpoint { id: 7, remaining_ttl }];
        self.add(EntryKind::LeaseCheckpoint(LeaseCheckpointRequest { checkpoints })).unwrap()
    }

    fn left(&self) -> Option<i64> {
        self.state.lease_left_s(LeaseId(7), &FEATURES)
    }
}

fn put(key: &str, lease: i64) -> EntryKind {
    EntryKind::Put(PutRequest { key: key.into(), value: b"v".to_vec(), lease, ..PutRequest::default() })
}

fn restored(state: &State, pieces: usize) -> State {
    let bytes: Vec<u8> = state.snapshot(Form::FIRST).flatten().collect();
    let mut restore = Restore::default();
    bytes.chunks(bytes.len().div_ceil(pieces)).for_each(|chunk| restore.push(chunk).unwrap());
    restore.finish().unwrap()
}

/// The one feature there is changes what an entry does, from the index on at which it is switched.
#[test]
fn what_a_lease_has_left_is_written_down_only_where_the_feature_is_on() {
    let mut log = Log::founded();
    log.add(EntryKind::LeaseGrant(LeaseGrantRequest { id: 7, ttl: 60 })).unwrap();
    assert_eq!(log.checkpoint(40), Applied::LeaseCheckpoint { written: false }, "undecided");
    assert_eq!(log.left(), Some(60));
    log.wants(1, true);
    assert_eq!(log.checkpoint(30), Applied::LeaseCheckpoint { written: true });
    assert_eq!(log.left(), Some(30), "kept over a change of leader");
    log.wants(2, false);
    assert_eq!(log.checkpoint(20), Applied::LeaseCheckpoint { written: false });
    assert_eq!(log.left(), Some(60), "it starts again");
    log.wants(3, true);
    assert_eq!(
        log.left(),
        Some(60),
        "what was written before it was off was forgotten: it may have been renewed since"
    );
    assert_eq!(log.state.lease_left_s(LeaseId(8), &FEATURES), None);
}

#[test]
fn an_entry_that_needs_a_feature_is_refused_where_it_is_off() {
    let mut log = Log::founded();
    let needy = || Entry { requires: vec![LEASE_CHECKPOINT.to_owned()], ..put("k", 0).into() };
    let refused = log.add_entry(needy()).unwrap_err();
    assert_eq!(refused.to_string(), "etcdserver: required feature ClusterLeaseCheckpoint is not enabled");
    assert_eq!(log.state.keys.revision().0, 1, "nothing was done");
    log.wants(1, true);
    log.add_entry(needy()).unwrap();
    assert_eq!(log.state.keys.revision().0, 2);
}

#[test]
fn an_alarm_stands_until_it_is_disarmed() {
    let mut log = Log::founded();
    let mut alarm = |action: AlarmAction, member_id, alarm| match log
        .add(EntryKind::Alarm(AlarmRequest { action: action.into(), member_id, alarm }))
        .unwrap()
    {
        Applied::Alarm(answer) => answer.alarms.iter().map(|a| (a.member_id, a.alarm)).collect::<Vec<_>>(),
        other => panic!("{other:?}"),
    };
    assert_eq!(alarm(AlarmAction::Activate, 1, 1), [(1, 1)]);
    assert_eq!(alarm(AlarmAction::Activate, 2, 2), [(2, 2)]);
    assert_eq!(alarm(AlarmAction::Get, 0, 0), [(1, 1), (2, 2)]);
    assert_eq!(alarm(AlarmAction::Get, 0, 2), [(2, 2)]);
    assert_eq!(alarm(AlarmAction::Deactivate, 1, 1), [(1, 1)]);
    assert_eq!(alarm(AlarmAction::Deactivate, 1, 1), [], "no news");
    assert_eq!(alarm(AlarmAction::Activate, 1, 0), [], "no kind");
    assert_eq!(log.state.alarms, [(MemberId(2), 2)].into());
}

/// A member that joins from a snapshot, at whatever index, ends as one that has applied everything.
#[test]
fn a_snapshot_taken_anywhere_changes_nothing() {
    let mut log = Log::founded();
    log.add(EntryKind::LeaseGrant(LeaseGrantRequest { id: 7, ttl: 60 })).unwrap();
    log.add(put("a", 7)).unwrap();
    log.wants(1, true);
    log.checkpoint(30);
    log.add(put("b", 8)).unwrap_err();
    log.add(EntryKind::Alarm(AlarmRequest { action: AlarmAction::Activate.into(), member_id: 1, alarm: 1 })).unwrap();
    log.add(put("c", 0)).unwrap();
    log.add(EntryKind::LeaseRevoke(LeaseRevokeRequest { id: 7 })).unwrap();
    let lower = ClusterVersion { minor: 5, ..V3_6 };
    log.add(EntryKind::Cluster(E::Downgrade { to: Some(lower) })).unwrap();
    let heard = [(MemberId(1), Starts(1))].into();
    log.add(EntryKind::Cluster(E::SetVersion { version: lower, heard })).unwrap();
    assert_eq!((log.state.cluster.downgrade, log.state.cluster.behind), (Some(lower), Some(LogIndex(log.index))));
    for from in 0..=log.entries.len() {
        let mut state = State::default();
        for (index, entry) in (1..).zip(&log.entries) {
            if index == from as u64 + 1 {
                state = restored(&state, 1 + from);
            }
            let _ = state.apply(LogIndex(index), entry.clone(), &FEATURES);
        }
        assert_eq!(restored(&state, 3), log.state, "a snapshot after {from} entries");
    }
    let all = RangeRequest { key: vec![0], range_end: vec![0], ..RangeRequest::default() };
    assert_eq!(log.state.keys.range(&all).unwrap().count, 1, "the lease took its key along");
}

#[test]
fn a_state_that_is_damaged_or_newer_is_refused() {
    let bytes: Vec<u8> = Log::founded().state.snapshot(Form::FIRST).flatten().collect();
    let read = |bytes: &[u8]| {
        let mut restore = Restore::default();
        restore.push(bytes)?;
        restore.finish()
    };
    assert!(read(&bytes).is_ok());
    for at in 0..bytes.len() {
        assert!(read(&bytes[..at]).is_err(), "cut at {at}");
        for bit in 0..8 {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << bit;
            assert!(read(&flipped).is_err(), "bit {bit} of byte {at}");
        }
    }
    let mut head = crate::stored::entry::StateHead { format: 2, ..Default::default() };
    head.checksum = 1;
    let newer = prost::Message::encode_length_delimited_to_vec(&head);
    assert!(matches!(read(&newer), Err(StateError::Newer(2))));
}

/// What was written once is read by every later release.
#[test]
fn the_head_is_that_of_the_release_that_first_wrote_it() {
    let golden = include_bytes!("../../tests/golden/state-head-1.bin");
    let mut log = Log::founded();
    log.wants(1, true);
    log.add(EntryKind::Alarm(AlarmRequest { action: AlarmAction::Activate.into(), member_id: 1, alarm: 1 })).unwrap();
    let written: Vec<u8> = log.state.snapshot(Form::FIRST).next().unwrap();
    assert!(written == golden, "the format has changed");
}

/// Proposed before the version was lowered, it may come after that: a member of the lower release cannot read it.
#[test]
fn what_is_above_the_cluster_version_is_applied_by_nobody() {
    let mut log = Log::founded();
    let checkpoint = || EntryKind::LeaseCheckpoint(LeaseCheckpointRequest::default());
    assert_eq!(log.add(checkpoint()), Ok(Applied::LeaseCheckpoint { written: false }), "3.6 knows it");
    let lower = ClusterVersion { minor: 5, ..V3_6 };
    log.add(EntryKind::Cluster(E::Downgrade { to: Some(lower) })).unwrap();
    log.add(EntryKind::Cluster(E::SetVersion { version: lower, heard: [(MemberId(1), Starts(0))].into() })).unwrap();
    assert_eq!(log.state.cluster.version, Some(lower));
    assert_eq!(log.add(checkpoint()), Err(Refusal::AboveVersion(V3_6)));
    assert_eq!(State::default().apply(LogIndex(1), checkpoint().into(), &FEATURES), Err(Refusal::AboveVersion(V3_6)));
    log.add(put("a", 0)).unwrap();
}
