//! A database near its quota is told, and no run begins beside a full one: an alarm would take the cluster's writes away.

use std::time::Duration;

use tests::{on_both, rollout::Rollout, system::System, wait};
use tokio::time::sleep;

use crate::{case, is_refused, untouched};

on_both! {
    a_database_near_its_quota, etcd #[ignore = "slow: a hundred megabytes to disk; the node's row shows the same"];
}

const QUOTA: i64 = 32 << 20;
/// Longer than etcd waits before it commits what was written (100 ms).
const COMMIT: Duration = Duration::from_millis(300);
/// How much is written at a time, in bytes: less than one percent.
const PIECE: usize = 200_000;

async fn a_database_near_its_quota(system: System) {
    let Some(case) = case(system, |spec| spec.flags = vec![format!("--quota-backend-bytes={QUOTA}")]).await else {
        return;
    };
    let rollout = case.begin().await;
    fill(&rollout, 82).await;
    let planned = rollout.one("plan", 0).await;
    planned.must_be(0, "planned");
    assert!(planned.warnings().contains("% of its quota; compact and defragment it"), "{planned}");
    fill(&rollout, 96).await;
    is_refused(&rollout, 0..3, (3, "hazard"), &["the database of m", " uses 9", "% of its quota"]).await;
    untouched(rollout).await;
}

/// Writes until the database of every member uses more than so many percent of its quota.
async fn fill(rollout: &Rollout, percent: i64) {
    let piece = "x".repeat(PIECE);
    let client = rollout.client(0);
    let mut written = 0;
    loop {
        let used = client.status().await.expect("it answers").db_size * 100;
        if used > percent * QUOTA {
            break;
        }
        written += 1;
        client.put(&format!("/filler/{percent}/{written}"), &piece).await.expect("written");
        // etcd says how large its file is after the next commit: too much would be written, or all of the quota.
        if written % 5 == 0 || used > (percent - 6) * QUOTA {
            sleep(COMMIT).await;
        }
    }
    for member in 0..3 {
        let client = rollout.client(member);
        let has_applied = || async {
            let used = client.status().await.map_err(|error| error.to_string())?.db_size * 100;
            (used > percent * QUOTA).then_some(()).ok_or_else(|| format!("{used}"))
        };
        wait::until("the others to have it", tests::rollout::LIMIT, has_applied).await.expect("applied");
    }
}
