//! The state as simply as can be: every revision is a whole map, every read looks at all of it, every write copies it.

use std::{cmp::Ordering, collections::BTreeMap};

use node::api_error::ApiError;
use proto::{
    etcdserverpb::{
        CompactionRequest, CompactionResponse, Compare, DeleteRangeRequest, DeleteRangeResponse, LeaseGrantRequest,
        LeaseGrantResponse, LeaseRevokeRequest, LeaseRevokeResponse, PutRequest, PutResponse, RangeRequest,
        RangeResponse, RequestOp, ResponseHeader, ResponseOp, TxnRequest, TxnResponse, compare::TargetUnion,
        request_op::Request, response_op::Response,
    },
    mvccpb::{Event, KeyValue},
};

use crate::{answer::Answer, random::Step};

type State = BTreeMap<Vec<u8>, KeyValue>;

pub struct Model {
    /// The state at each revision.
    states: Vec<State>,
    events: Vec<Event>,
    compacted: i64,
    leases: BTreeMap<i64, i64>,
}

/// A write in progress.
struct Draft {
    base: i64,
    state: State,
    events: Vec<Event>,
}

impl Default for Model {
    fn default() -> Self {
        Self { states: vec![State::new(); 2], events: Vec::new(), compacted: -1, leases: BTreeMap::new() }
    }
}

impl Model {
    pub fn newest(&self) -> i64 {
        self.states.len() as i64 - 1
    }

    pub fn compacted(&self) -> i64 {
        self.compacted
    }

    /// The keys that a lease holds.
    pub fn held(&self, lease: i64) -> Vec<Vec<u8>> {
        let state = &self.states[self.newest() as usize];
        state.values().filter(|kv| kv.lease == lease).map(|kv| kv.key.clone()).collect()
    }

    /// Answers a request that passed the check.
    pub fn answer(&mut self, step: &Step) -> Result<Answer, ApiError> {
        let mut draft =
            Draft { base: self.newest(), state: self.states[self.newest() as usize].clone(), events: Vec::new() };
        let answer = match step {
            Step::Put(request) => {
                self.lease(request.lease)?;
                Answer::Put(draft.put(request)?)
            }
            Step::Delete(request) => Answer::Delete(draft.delete(request)),
            Step::Range(request) => Answer::Range(self.range(request, &draft)?),
            Step::Txn(request) => {
                let before = draft.state.clone();
                self.check(request, &before)?;
                let mut response = self.txn(request, &before, &mut draft)?;
                response.header = header(draft.revision());
                Answer::Txn(response)
            }
            Step::Compact(request) => Answer::Compact(self.compact(request)?),
            Step::Grant(request) => Answer::Grant(self.grant(request)?),
            Step::Revoke(request) => Answer::Revoke(self.revoke(request, &mut draft)?),
        };
        if !draft.events.is_empty() {
            self.states.push(draft.state);
            self.events.extend(draft.events);
        }
        Ok(answer)
    }

    /// What a watch with `prev_kv` from `start` on is told.
    pub fn events(&self, start: i64, key: &[u8], end: &[u8]) -> Result<Vec<Event>, ApiError> {
        if start < self.compacted {
            return Err(ApiError::Compacted);
        }
        let at = |event: &Event| event.kv.as_ref().map_or(0, |kv| kv.mod_revision);
        let key_of = |event: &Event| event.kv.as_ref().map_or(Vec::new(), |kv| kv.key.clone());
        let mut told: Vec<Event> = Vec::new();
        for event in self.events.iter().filter(|event| at(event) >= start && within(&key_of(event), key, end)) {
            // Compaction leaves the last change of a key at its revision.
            if at(event) == self.compacted {
                told.retain(|other| at(other) != self.compacted || key_of(other) != key_of(event));
            }
            told.push(event.clone());
        }
        for event in &mut told {
            let created = event.kv.as_ref().is_some_and(|kv| kv.create_revision == kv.mod_revision);
            let before = at(event) - 1;
            if !created && before >= self.compacted {
                event.prev_kv = self.states[before as usize].get(&key_of(event)).cloned();
            }
        }
        Ok(told)
    }

    fn lease(&self, lease: i64) -> Result<(), ApiError> {
        if lease == 0 || self.leases.contains_key(&lease) { Ok(()) } else { Err(ApiError::LeaseNotFound) }
    }

    fn range(&self, request: &RangeRequest, draft: &Draft) -> Result<RangeResponse, ApiError> {
        if request.revision > draft.revision() {
            return Err(ApiError::FutureRevision);
        }
        if request.revision > 0 && request.revision < self.compacted {
            return Err(ApiError::Compacted);
        }
        let past = self.states.get(request.revision as usize).filter(|_| request.revision > 0);
        let state = past.unwrap_or(&draft.state);
        let mut kvs: Vec<_> =
            state.values().filter(|kv| within(&kv.key, &request.key, &request.range_end)).cloned().collect();
        let mut response =
            RangeResponse { header: header(draft.revision()), count: kvs.len() as i64, ..RangeResponse::default() };
        if request.count_only {
            return Ok(response);
        }
        let filters = [
            request.min_mod_revision,
            request.max_mod_revision,
            request.min_create_revision,
            request.max_create_revision,
        ];
        if request.limit > 0 && request.sort_order == 0 && filters == [0; 4] {
            kvs.truncate(request.limit as usize + 1);
        }
        let or = |number: i64, otherwise| if number == 0 { otherwise } else { number };
        kvs.retain(|kv| {
            (or(filters[0], i64::MIN)..=or(filters[1], i64::MAX)).contains(&kv.mod_revision)
                && (or(filters[2], i64::MIN)..=or(filters[3], i64::MAX)).contains(&kv.create_revision)
        });
        let by = |a: &KeyValue, b: &KeyValue| match request.sort_target {
            0 => a.key.cmp(&b.key),
            1 => a.version.cmp(&b.version),
            2 => a.create_revision.cmp(&b.create_revision),
            3 => a.mod_revision.cmp(&b.mod_revision),
            _ => a.value.cmp(&b.value),
        };
        kvs.sort_by(|a, b| if request.sort_order == 2 { by(b, a) } else { by(a, b) });
        if request.limit > 0 && kvs.len() > request.limit as usize {
            kvs.truncate(request.limit as usize);
            response.more = true;
        }
        if request.keys_only {
            kvs.iter_mut().for_each(|kv| kv.value.clear());
        }
        response.kvs = kvs;
        Ok(response)
    }

    fn compact(&mut self, request: &CompactionRequest) -> Result<CompactionResponse, ApiError> {
        if request.revision <= self.compacted {
            return Err(ApiError::Compacted);
        }
        if request.revision > self.newest() {
            return Err(ApiError::FutureRevision);
        }
        self.compacted = request.revision;
        Ok(CompactionResponse { header: header(self.newest()) })
    }

    fn grant(&mut self, request: &LeaseGrantRequest) -> Result<LeaseGrantResponse, ApiError> {
        if self.leases.insert(request.id, request.ttl).is_some() {
            return Err(ApiError::LeaseExists);
        }
        let header = header(self.newest());
        Ok(LeaseGrantResponse { header, id: request.id, ttl: request.ttl, ..LeaseGrantResponse::default() })
    }

    fn revoke(&mut self, request: &LeaseRevokeRequest, draft: &mut Draft) -> Result<LeaseRevokeResponse, ApiError> {
        self.leases.remove(&request.id).ok_or(ApiError::LeaseNotFound)?;
        for key in self.held(request.id) {
            draft.delete(&DeleteRangeRequest { key, ..DeleteRangeRequest::default() });
        }
        Ok(LeaseRevokeResponse { header: header(draft.revision()) })
    }

    fn check(&self, request: &TxnRequest, before: &State) -> Result<(), ApiError> {
        for operation in branch(request, before) {
            match operation.request.as_ref() {
                Some(Request::RequestRange(range)) if range.revision == 0 => {}
                Some(Request::RequestRange(range)) if range.revision > self.newest() => {
                    return Err(ApiError::FutureRevision);
                }
                Some(Request::RequestRange(range)) if range.revision < self.compacted => {
                    return Err(ApiError::Compacted);
                }
                Some(Request::RequestPut(put)) => {
                    if (put.ignore_value || put.ignore_lease) && !before.contains_key(&put.key) {
                        return Err(ApiError::KeyNotFound);
                    }
                    self.lease(put.lease)?;
                }
                Some(Request::RequestTxn(nested)) => self.check(nested, before)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn txn(&self, request: &TxnRequest, before: &State, draft: &mut Draft) -> Result<TxnResponse, ApiError> {
        let mut responses = Vec::new();
        for operation in branch(request, before) {
            let response = match operation.request.as_ref() {
                Some(Request::RequestRange(range)) => Some(Response::ResponseRange(self.range(range, draft)?)),
                Some(Request::RequestPut(put)) => Some(Response::ResponsePut(draft.put(put)?)),
                Some(Request::RequestDeleteRange(delete)) => Some(Response::ResponseDeleteRange(draft.delete(delete))),
                Some(Request::RequestTxn(nested)) => Some(Response::ResponseTxn(self.txn(nested, before, draft)?)),
                None => None,
            };
            responses.push(ResponseOp { response });
        }
        Ok(TxnResponse { header: header(0), succeeded: succeeds(request, before), responses })
    }
}

impl Draft {
    fn revision(&self) -> i64 {
        self.base + i64::from(!self.events.is_empty())
    }

    fn put(&mut self, request: &PutRequest) -> Result<PutResponse, ApiError> {
        let before = self.state.get(&request.key).cloned();
        if (request.ignore_value || request.ignore_lease) && before.is_none() {
            return Err(ApiError::KeyNotFound);
        }
        let old = before.clone().unwrap_or_default();
        let mod_revision = self.base + 1;
        let kv = KeyValue {
            key: request.key.clone(),
            create_revision: if old.version == 0 { mod_revision } else { old.create_revision },
            mod_revision,
            version: old.version + 1,
            value: if request.ignore_value { old.value } else { request.value.clone() },
            lease: if request.ignore_lease { old.lease } else { request.lease },
        };
        self.state.insert(kv.key.clone(), kv.clone());
        self.event(0, kv);
        Ok(PutResponse { header: header(self.revision()), prev_kv: before.filter(|_| request.prev_kv) })
    }

    fn delete(&mut self, request: &DeleteRangeRequest) -> DeleteRangeResponse {
        let inside = |kv: &&KeyValue| within(&kv.key, &request.key, &request.range_end);
        let doomed: Vec<KeyValue> = self.state.values().filter(inside).cloned().collect();
        for kv in &doomed {
            self.state.remove(&kv.key);
            let mod_revision = self.base + 1;
            self.event(1, KeyValue { key: kv.key.clone(), mod_revision, ..KeyValue::default() });
        }
        DeleteRangeResponse {
            header: header(self.revision()),
            deleted: doomed.len() as i64,
            prev_kvs: if request.prev_kv { doomed } else { Vec::new() },
        }
    }

    fn event(&mut self, kind: i32, kv: KeyValue) {
        self.events.push(Event { r#type: kind, kv: Some(kv), prev_kv: None });
    }
}

fn branch<'a>(request: &'a TxnRequest, before: &State) -> &'a [RequestOp] {
    if succeeds(request, before) { &request.success } else { &request.failure }
}

fn succeeds(request: &TxnRequest, before: &State) -> bool {
    request.compare.iter().all(|condition| holds(condition, before))
}

fn holds(condition: &Compare, state: &State) -> bool {
    let mut kvs: Vec<_> =
        state.values().filter(|kv| within(&kv.key, &condition.key, &condition.range_end)).cloned().collect();
    if kvs.is_empty() {
        if condition.target == 3 {
            return false;
        }
        kvs.push(KeyValue::default());
    }
    kvs.iter().all(|kv| {
        let number = |actual: i64, given: Option<i64>| actual.cmp(&given.unwrap_or(0));
        let ordering = match (condition.target, &condition.target_union) {
            (0, Some(TargetUnion::Version(given))) => number(kv.version, Some(*given)),
            (0, _) => number(kv.version, None),
            (1, Some(TargetUnion::CreateRevision(given))) => number(kv.create_revision, Some(*given)),
            (1, _) => number(kv.create_revision, None),
            (2, Some(TargetUnion::ModRevision(given))) => number(kv.mod_revision, Some(*given)),
            (2, _) => number(kv.mod_revision, None),
            (3, Some(TargetUnion::Value(given))) => kv.value.cmp(given),
            (3, _) => kv.value.cmp(&Vec::new()),
            (_, Some(TargetUnion::Lease(given))) => number(kv.lease, Some(*given)),
            (_, _) => number(kv.lease, None),
        };
        match condition.result {
            0 => ordering == Ordering::Equal,
            1 => ordering == Ordering::Greater,
            2 => ordering == Ordering::Less,
            _ => ordering != Ordering::Equal,
        }
    })
}

fn within(key: &[u8], first: &[u8], end: &[u8]) -> bool {
    match end {
        [] => key == first,
        [0] => key >= first,
        end => key >= first && key < end,
    }
}

fn header(revision: i64) -> Option<ResponseHeader> {
    Some(ResponseHeader { revision, ..ResponseHeader::default() })
}
