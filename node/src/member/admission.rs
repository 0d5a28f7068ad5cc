//! Waits until its cluster lets this member in. Until then it is as if it were off: it neither votes nor stands for election, takes no
//! entry, and serves no client. What others may know of it is what it runs (etcd's proposal for join control).
//!
//! Whoever is asked says what it thinks, and this member judges by itself, too. A newcomer waits for a member that is in. One that has
//! been a member is let in at once: kept out it would take a majority along, and what it knows may be newer than what they know. By
//! `--join-policy=strict` it waits as well, and judges by whoever answers: while all are started at once there is no leader to ask, and
//! waiting for one would never end.

use std::{
    collections::BTreeMap,
    hash::{BuildHasher, RandomState},
    sync::Arc,
    time::Duration,
};

use futures_util::{StreamExt, stream::FuturesUnordered};
use tokio::time::sleep;

use super::{Shared, announcing::Answer};

/// Before it asks for the second time, at the most; twice as long each time,
const FIRST_INTERVAL: Duration = Duration::from_millis(500);
/// up to this.
const LONGEST_INTERVAL: Duration = Duration::from_secs(10);

/// Asks the others, again and again until none of them is against it.
pub(super) async fn run(shared: &Arc<Shared>, members: &BTreeMap<u64, String>, is_newcomer: bool) {
    let (mut said, mut asked, mut needs_a_member) = (None, 0, is_newcomer);
    while is_newcomer || shared.handshake.is_strict() {
        let answers = Tally::of(shared, members).await;
        let Err(why) = answers.judge(needs_a_member) else { break };
        // Whoever was refused once is not let in by silence.
        needs_a_member = true;
        let pause = interval(asked, RandomState::new().hash_one(asked));
        if said.as_ref() != Some(&why) {
            tracing::warn!(%why, "waits: this member takes no part in its cluster yet, and asks again");
            said = Some(why);
        }
        asked += 1;
        sleep(pause).await;
    }
    if said.is_some() {
        tracing::info!("is let in");
    }
    shared.group.may_stand(true);
    shared.handshake.let_in();
}

/// Why it waits.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum Waits {
    #[error("{0}")]
    Refused(String),
    #[error("no member of its cluster answers")]
    Alone,
}

/// What the others have said.
#[derive(Debug, Default)]
struct Tally {
    /// In favour, and in the cluster.
    members: usize,
    refused: Option<String>,
}

impl Tally {
    /// From all that answer in time; a majority with this member itself is enough.
    async fn of(shared: &Arc<Shared>, members: &BTreeMap<u64, String>) -> Self {
        let others = members.iter().filter(|(id, _)| **id != shared.identity.member.0);
        let mut answers: FuturesUnordered<_> = others.map(|(id, address)| shared.tell_of_start(*id, address)).collect();
        let mut tally = Self::default();
        while let Some(answer) = answers.next().await {
            tally.count(answer.ok());
            if tally.refused.is_some() || 2 * (1 + tally.members) > members.len() {
                break;
            }
        }
        tally
    }

    fn count(&mut self, answer: Option<Answer>) {
        let Some(Answer { remote, mismatch }) = answer else { return };
        match mismatch {
            Some(mismatch) => self.refused = Some(format!("member {}: {mismatch}", remote.member)),
            None => self.members += usize::from(!remote.waits && !remote.is_new),
        }
    }

    fn judge(self, needs_a_member: bool) -> Result<(), Waits> {
        match self {
            Self { refused: Some(why), .. } => Err(Waits::Refused(why)),
            Self { members: 0, .. } if needs_a_member => Err(Waits::Alone),
            _ => Ok(()),
        }
    }
}

/// After so many tries without success. At random, or all would ask at the same moments.
fn interval(asked: u32, chance: u64) -> Duration {
    let most = FIRST_INTERVAL.saturating_mul(2_u32.saturating_pow(asked)).min(LONGEST_INTERVAL);
    most.mul_f64(0.5 + chance as f64 / u64::MAX as f64 / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_asks_at_random_and_more_and_more_seldom() {
        for (asked, least, most) in
            [(0, 250, 500), (1, 500, 1000), (3, 2000, 4000), (5, 5000, 10_000), (99, 5000, 10_000)]
        {
            for chance in [0, u64::MAX / 3, u64::MAX] {
                let found = interval(asked, chance).as_millis();
                assert!((least..=most).contains(&found), "{found} ms after {asked}");
            }
            assert_ne!(interval(asked, 1 << 62), interval(asked, 1 << 63));
        }
    }

    #[test]
    fn a_newcomer_alone_waits_for_a_member_that_is_in() {
        let tally = |members, refused: Option<&str>| Tally { members, refused: refused.map(str::to_owned) };
        for (members, refused, is_newcomer, is_in) in [
            (0, None, true, false),
            (0, None, false, true), // all are started at once
            (1, None, true, true),
            (1, Some("it runs 3.5.0"), true, false),
            (2, Some("it runs 3.5.0"), false, false),
        ] {
            assert_eq!(
                tally(members, refused).judge(is_newcomer).is_ok(),
                is_in,
                "{members} {refused:?} {is_newcomer}"
            );
        }
    }
}
