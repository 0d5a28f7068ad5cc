//! When a snapshot is due. It costs as much as the state is large, so the log since the last one must be as large: then each byte
//! is written about twice, whatever the size of the state.

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{sync::Notify, time::sleep};

/// No snapshot is due for less of the log, in bytes.
const LEAST_BYTES: u64 = 64 << 20;
/// What an entry counts for beside its command, in bytes: replaying it takes time, however small it is.
const ENTRY_BYTES: u64 = 128;

/// A transfer that broke off is waited for so long.
const RESUMPTION: Duration = Duration::from_secs(30);

/// A snapshot on its way: until this is gone none is taken for the number of entries alone, as it would take the place of what
/// the member needs next.
#[derive(Debug)]
pub(crate) struct Transfer(Arc<Schedule>);

impl Transfer {
    pub(crate) fn begin(schedule: &Arc<Schedule>) -> Self {
        schedule.transfers.fetch_add(1, Ordering::Relaxed);
        Self(schedule.clone())
    }

    /// It goes on soon, if the member is there again: with the same snapshot, or from the start.
    pub(crate) fn breaks_off(self) {
        tokio::spawn(async move {
            sleep(RESUMPTION).await;
            drop(self);
        });
    }
}

impl Drop for Transfer {
    fn drop(&mut self) {
        self.0.transfers.fetch_sub(1, Ordering::Relaxed);
        // What became due meanwhile is taken now, and not only when more is written.
        self.0.applied(0, 0);
    }
}

/// What a member has applied since its last snapshot, and how much that may be.
#[derive(Debug, Default)]
pub(crate) struct Schedule {
    limits: OnceLock<Limits>,
    entries: AtomicU64,
    bytes: AtomicU64,
    /// How large the last snapshot is.
    stored: AtomicU64,
    /// How many snapshots are on their way to other members.
    transfers: AtomicU64,
    is_due: Notify,
}

#[derive(Clone, Copy, Debug)]
struct Limits {
    /// Entries; 0 for any number.
    entries: u64,
    /// Out of 256: how much more than the others this member waits, so that not all take theirs at the same moment.
    offset: u64,
}

impl Limits {
    fn are_reached(self, entries: u64, bytes: u64, stored: u64) -> bool {
        let most = stored.max(LEAST_BYTES);
        let most = most.saturating_add(most / 1024 * self.offset);
        bytes >= most || self.entries != 0 && entries >= self.entries
    }
}

impl Schedule {
    /// Snapshots are due from now on, after so many entries at the latest; 0 is no such number.
    pub(crate) fn begin(&self, member: u64, entries: u64) {
        // Ids are no small numbers: any eight of their bits differ from member to member.
        let _ = self.limits.set(Limits { entries, offset: member % 256 });
    }

    pub(crate) fn applied(&self, entries: u64, bytes: u64) {
        let bytes = bytes.saturating_add(entries.saturating_mul(ENTRY_BYTES));
        let entries = self.entries.fetch_add(entries, Ordering::Relaxed) + entries;
        let bytes = self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let stored = self.stored.load(Ordering::Relaxed);
        let entries = if self.transfers.load(Ordering::Relaxed) == 0 { entries } else { 0 };
        if self.limits.get().is_some_and(|limits| limits.are_reached(entries, bytes, stored)) {
            self.is_due.notify_one();
        }
    }

    /// The state is taken as it is now.
    pub(crate) fn taken(&self) {
        self.entries.store(0, Ordering::Relaxed);
        self.bytes.store(0, Ordering::Relaxed);
    }

    /// The newest snapshot has so many bytes.
    pub(crate) fn stored(&self, bytes: u64) {
        self.stored.store(bytes, Ordering::Relaxed);
    }

    pub(crate) async fn due(&self) {
        self.is_due.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_is_due_when_the_log_is_as_large_as_it() {
        let mib = 1 << 20;
        for (count, offset, entries, bytes, stored, is_due) in [
            (0, 0, 1_000_000, 63 * mib, 0, false),
            (0, 0, 1, 64 * mib, 0, true),
            (0, 0, 1, 64 * mib, 100 * mib, false),
            (0, 0, 1, 100 * mib, 100 * mib, true),
            (0, 255, 1, 100 * mib, 100 * mib, false),
            (0, 255, 1, 125 * mib, 100 * mib, true),
            (0, 255, 1, u64::MAX, u64::MAX, true),
            (10, 255, 9, 0, 0, false),
            (10, 255, 10, 0, 100 * mib, true),
        ] {
            let limits = Limits { entries: count, offset };
            assert_eq!(limits.are_reached(entries, bytes, stored), is_due, "{limits:?} {entries} {bytes} {stored}");
        }
    }

    #[tokio::test]
    async fn what_was_taken_counts_no_more() {
        let schedule = Schedule::default();
        schedule.begin(7, 3);
        schedule.applied(2, 10);
        schedule.taken();
        schedule.applied(2, 10);
        assert!(futures_util::FutureExt::now_or_never(schedule.due()).is_none());
        let (schedule, one) = (Arc::new(schedule), 1);
        let transfer = Transfer::begin(&schedule);
        schedule.applied(one, 10);
        assert!(futures_util::FutureExt::now_or_never(schedule.due()).is_none(), "another member needs what follows");
        drop(transfer);
        schedule.due().await;
    }
}
