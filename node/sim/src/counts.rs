//! Whether a key counts only while the feature for that is on (N-5).

use std::collections::BTreeMap;

use node::{
    cluster::gate::Gate,
    features::{COUNTERS, Registry},
    member::Member,
};
use proto::{LogIndex, Release, etcdserverpb::RangeRequest};

use crate::{clients::COUNTER, network::HostId};

/// How each member was when it was looked at last.
#[derive(Default)]
pub struct Counts(BTreeMap<HostId, Looked>);

struct Looked {
    applied: LogIndex,
    inputs: LogIndex,
    gate: Gate,
    held: i64,
}

/// What the counter holds; 0 where it is not there.
pub fn held(member: &Member) -> i64 {
    let request = RangeRequest { key: COUNTER.into(), ..RangeRequest::default() };
    let found = member.read(|state| state.keys.range(&request)).unwrap_or_default();
    let value = found.kvs.first().map(|pair| String::from_utf8_lossy(&pair.value).into_owned());
    value.map_or(0, |value| value.parse().unwrap_or(-1))
}

impl Counts {
    /// Takes in what a member of this release holds now.
    ///
    /// # Errors
    /// Something was added where the feature was off before and after, and the same was decided.
    pub fn see(&mut self, host: HostId, member: &Member, release: &Release) -> Result<(), String> {
        let applied = member.read(|state| state.applied);
        if self.0.get(&host).is_some_and(|before| before.applied == applied) {
            return Ok(());
        }
        let (inputs, gate, version) = member.read(|s| (s.cluster.inputs, s.cluster.gate.clone(), s.cluster.version));
        let locked = version.and_then(|version| Registry::of(release).locked(COUNTERS, version));
        let is_on = locked.unwrap_or(gate.get(COUNTERS) == Some(true));
        let now = Looked { applied, inputs, gate, held: held(member) };
        let (inputs, gate, held) = (now.inputs, now.gate.clone(), now.held);
        let before = self.0.insert(host, now);
        match before.filter(|before| !is_on && before.inputs == inputs && before.gate == gate && before.held != held) {
            Some(before) => Err(format!(
                "at index {} member {host} has counted from {} to {held} with the feature off",
                applied.0, before.held
            )),
            None => Ok(()),
        }
    }
}
