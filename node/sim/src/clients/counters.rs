//! A key that counts: whoever adds to it is told what it holds then. No two are told the same, and who asks later is told more.

use std::time::Duration;

use proto::batonpb::{AddRequest, counters_client::CountersClient};
use simulated_disk::Chance;
use tokio::time::{sleep, timeout};
use tonic::Code;

use super::{Client, PATIENCE, now};

/// The one that everybody counts in.
pub const KEY: &str = "count";

/// What came of all that was added, one at a time.
#[derive(Default)]
pub struct Counted {
    pub told: Vec<Told>,
    /// Nobody knows whether these were added.
    pub unknown: u64,
    /// The feature was off.
    pub refused: u64,
}

pub struct Told {
    invoked: u64,
    returned: u64,
    value: i64,
}

pub(super) async fn run(client: Client, mut chance: Chance) {
    while !client.is_quiet() {
        sleep(Duration::from_millis(20 + chance.below(200) as u64)).await;
        client.seen.lock().unwrap().under_way += 1;
        let invoked = now();
        let request = AddRequest { key: KEY.into(), by: 1 };
        let answer = timeout(PATIENCE, CountersClient::new(client.any(&mut chance)).add(request)).await;
        let mut seen = client.seen.lock().unwrap();
        seen.under_way -= 1;
        let counted = &mut seen.counted;
        match answer {
            Ok(Ok(answer)) => {
                let value = answer.into_inner().value;
                counted.told.push(Told { invoked, returned: now(), value });
            }
            // 3.5 does not know the call.
            Ok(Err(status)) if matches!(status.code(), Code::FailedPrecondition | Code::Unimplemented) => {
                counted.refused += 1;
            }
            _ => counted.unknown += 1,
        }
    }
}

impl Counted {
    /// # Errors
    /// What was told does not fit, or not with what the key holds in the end.
    pub fn judge(&self, held: i64) -> Result<(), String> {
        let told = self.told.len() as i64;
        if held < told || held > told + self.unknown as i64 {
            let unknown = self.unknown;
            return Err(format!("the counter holds {held}; {told} were added, and of {unknown} nobody knows"));
        }
        let mut by_value: Vec<&Told> = self.told.iter().collect();
        by_value.sort_by_key(|told| told.value);
        if let Some([one, _]) = by_value.windows(2).find(|pair| pair[0].value == pair[1].value) {
            return Err(format!("two were told that the counter holds {}", one.value));
        }
        // Whoever was told more had not returned before another one asked that was told less.
        let mut earliest = u64::MAX;
        for told in by_value.into_iter().rev() {
            if earliest < told.invoked {
                return Err(format!("the counter fell to {}", told.value));
            }
            earliest = earliest.min(told.returned);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_counter_told_fits_or_it_does_not() {
        let told = |invoked, returned, value| Told { invoked, returned, value };
        let counted = |told, unknown| Counted { told, unknown, refused: 0 };
        for (told, unknown, held, fault) in [
            (vec![told(0, 9, 2), told(1, 8, 1)], 0, 2, None),
            (vec![told(0, 9, 3), told(1, 8, 1)], 1, 3, None), // what is not known was added
            (vec![told(0, 1, 1), told(2, 3, 2)], 0, 3, Some("of 0 nobody knows")),
            (vec![told(0, 1, 1), told(2, 3, 2)], 5, 1, Some("holds 1;")),
            (vec![told(0, 5, 1), told(1, 6, 1)], 0, 2, Some("two were told")),
            (vec![told(0, 1, 2), told(2, 3, 1)], 0, 2, Some("fell to 1")), // the one had returned
        ] {
            let found = counted(told, unknown).judge(held).err();
            assert_eq!(found.is_some(), fault.is_some(), "{found:?}");
            assert!(found.is_none_or(|found| fault.is_some_and(|fault| found.contains(fault))));
        }
    }
}
