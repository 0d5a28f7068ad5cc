//! What was acknowledged, and is read back after every step: the old release's data set in full, of the load samples.

use std::collections::BTreeMap;

use lab::{Error, client::Client, workload::Acked};
use proto::Revision;

/// How many keys the old release writes.
const KEYS: usize = 60;
/// How many of a step's writes are remembered.
const SAMPLES: usize = 100;

/// A key's value at a revision.
type At = (String, Revision);

/// All that is remembered.
#[derive(Debug, Default)]
pub(super) struct Written {
    data: BTreeMap<At, String>,
    load: Vec<Acked>,
}

impl Written {
    /// Writes the data set: small values, large ones, and some written twice.
    pub(super) async fn fill(&mut self, members: &[Client]) -> Result<(), Error> {
        for (number, member) in (0..KEYS).zip(members.iter().cycle()) {
            let key = format!("data/{number:03}");
            for version in 0..=usize::from(number % 3 == 0) {
                let value = format!("{number}.{version} ").repeat(1 + number * number);
                let revision = member.put(&key, &value).await?;
                self.data.insert((key.clone(), revision), value);
            }
        }
        Ok(())
    }

    /// Remembers some of what a step's load wrote.
    pub(super) fn remember(&mut self, acked: &[Acked]) {
        self.load.extend(acked.iter().step_by(acked.len().div_ceil(SAMPLES).max(1)).cloned());
    }

    /// Reads all that is remembered back, through one member after the other.
    pub(super) async fn read_back(&self, members: &[Client]) -> Result<(), Error> {
        let data = self.data.iter().map(|((key, revision), value)| (key, *revision, value.clone()));
        let load = self.load.iter().map(|acked| (&acked.key, acked.revision, acked.value.to_string()));
        for ((key, revision, value), member) in data.chain(load).zip(members.iter().cycle()) {
            let found = member.get_at(key, revision).await?;
            let is_there =
                found.as_ref().is_some_and(|kv| kv.value == value.as_bytes() && kv.mod_revision == revision.0);
            if !is_there {
                let found = found.map(|kv| (kv.mod_revision, String::from_utf8_lossy(&kv.value).len()));
                return Err(format!("{key} of revision {} was read back as {found:?}", revision.0).into());
            }
        }
        Ok(())
    }
}
