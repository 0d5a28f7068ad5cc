//! A snapshot that comes in. Where its transfer breaks off, what has arrived is kept, and the next transfer of the same
//! snapshot by the same member goes on behind it. One is kept at most, and none longer than the process.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use crate::{
    format::Offer,
    snapshots::{Incoming, SnapshotError, SnapshotFile},
    types::LogId,
};

/// Why a snapshot does not go on coming in.
#[derive(Debug, thiserror::Error)]
pub enum ArrivalError {
    /// It cannot be stored.
    #[error(transparent)]
    Store(#[from] SnapshotError),
    /// Another transfer has begun meanwhile.
    #[error("another transfer has taken the place of this one")]
    Overtaken,
    /// It was to begin behind what is not here.
    #[error("{held} bytes of the snapshot are here, and not {from}")]
    NotHere {
        /// Where it was to begin, in bytes.
        from: u64,
        /// How many bytes are here.
        held: u64,
    },
    /// It has not as many bytes as were offered.
    #[error("a snapshot of {offered} bytes has {arrived}")]
    Length {
        /// How many it should have.
        offered: u64,
        /// How many there are.
        arrived: u64,
    },
}

/// Which snapshot, and whose: that of another member may have other bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Origin {
    sender: u64,
    last: Option<LogId>,
    size: u64,
}

impl Origin {
    fn of(sender: u64, offer: &Offer) -> Self {
        Self { sender, last: offer.last, size: offer.size }
    }
}

/// What has arrived. Every clone is the same.
#[derive(Clone, Default)]
pub(crate) struct Arriving {
    part: Arc<Mutex<Part>>,
}

#[derive(Default)]
struct Part {
    /// Counts transfers: what one that was given up still brings is not taken.
    transfer: u64,
    /// Which snapshot the last one was of, and from which byte on.
    begun: Option<(Origin, u64)>,
    arrived: Option<(Origin, Incoming)>,
}

impl Part {
    fn held(&self, origin: Origin) -> u64 {
        let same = self.arrived.as_ref().filter(|(arrived, _)| *arrived == origin);
        same.map_or(0, |(_, incoming)| incoming.length())
    }
}

impl Arriving {
    fn part(&self) -> MutexGuard<'_, Part> {
        self.part.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many bytes of what this member offers are here.
    pub(crate) fn held(&self, sender: u64, offer: &Offer) -> u64 {
        self.part().held(Origin::of(sender, offer))
    }

    /// Begins a transfer, behind what is here of it, or at the start.
    pub(crate) fn begin(
        &self,
        sender: u64,
        offer: &Offer,
        incoming: impl FnOnce() -> Result<Incoming, SnapshotError>,
    ) -> Result<Arrival, ArrivalError> {
        let origin = Origin::of(sender, offer);
        let mut part = self.part();
        let held = part.held(origin);
        match offer.from {
            0 => part.arrived = Some((origin, incoming()?)),
            from if from == held => {}
            from => return Err(ArrivalError::NotHere { from, held }),
        }
        part.transfer += 1;
        let begun = Some((origin, offer.from));
        let is_again = std::mem::replace(&mut part.begun, begun) == begun;
        Ok(Arrival { arriving: self.clone(), transfer: part.transfer, size: offer.size, is_again })
    }
}

/// One transfer.
pub struct Arrival {
    arriving: Arriving,
    transfer: u64,
    size: u64,
    /// The last one was the same, and has brought nothing.
    pub(crate) is_again: bool,
}

impl Arrival {
    fn part(&self) -> Result<MutexGuard<'_, Part>, ArrivalError> {
        Some(self.arriving.part()).filter(|part| part.transfer == self.transfer).ok_or(ArrivalError::Overtaken)
    }

    /// Adds what comes next.
    ///
    /// # Errors
    /// [`ArrivalError`]
    pub fn push(&self, piece: Bytes) -> Result<(), ArrivalError> {
        let mut part = self.part()?;
        let (_, incoming) = part.arrived.as_mut().ok_or(ArrivalError::Overtaken)?;
        let arrived = incoming.length() + piece.len() as u64;
        if arrived > self.size {
            part.arrived = None;
            return Err(ArrivalError::Length { offered: self.size, arrived });
        }
        Ok(incoming.push(piece)?)
    }

    /// The file, when nothing more comes. Whatever is done with it, the next transfer begins at the start.
    ///
    /// # Errors
    /// [`ArrivalError`]
    pub fn whole(self) -> Result<SnapshotFile, ArrivalError> {
        let mut part = self.part()?;
        let arrived = part.arrived.as_ref().map_or(0, |(_, incoming)| incoming.length());
        let whole = part.arrived.take_if(|_| arrived == self.size);
        whole.map(|(_, incoming)| incoming.whole()).ok_or(ArrivalError::Length { offered: self.size, arrived })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::{
        format::log_id,
        snapshots::Snapshots,
        types::{LeaderId, Vote},
    };

    fn offer(index: u64, from: u64) -> Offer {
        let vote = Vote { leader_id: LeaderId { term: 7, voted_for: 1 }, committed: true };
        Offer { vote, last: Some(log_id(7, index)), size: 6, from }
    }

    #[test]
    fn what_has_arrived_is_kept_for_the_same_snapshot_of_the_same_member() {
        let folder = tempfile::tempdir().unwrap();
        let snapshots = Snapshots::open(disk::real(folder.path()).unwrap()).unwrap();
        let arriving = Arriving::default();
        let begin = |sender, offer| arriving.begin(sender, &offer, || snapshots.incoming());
        let first = begin(1, offer(4, 0)).unwrap();
        first.push(Bytes::from_static(b"abc")).unwrap();
        assert!(matches!(first.whole(), Err(ArrivalError::Length { offered: 6, arrived: 3 })));
        for (sender, index, held) in [(1, 4, 3), (2, 4, 0), (1, 5, 0)] {
            assert_eq!(arriving.held(sender, &offer(index, 0)), held, "member {sender}, entry {index}");
        }
        for from in [2, 4, 6] {
            assert!(matches!(begin(1, offer(4, from)), Err(ArrivalError::NotHere { held: 3, .. })), "from {from}");
        }
        let given_up = begin(1, offer(4, 3)).unwrap();
        given_up.push(Bytes::from_static(b"d")).unwrap();
        let second = begin(1, offer(4, 4)).unwrap();
        assert!(matches!(given_up.push(Bytes::from_static(b"e")), Err(ArrivalError::Overtaken)));
        second.push(Bytes::from_static(b"ef")).unwrap();
        drop(second.whole().unwrap());
        assert_eq!(arriving.held(1, &offer(4, 0)), 0);
        let long = begin(1, offer(4, 0)).unwrap();
        assert!(matches!(
            long.push(Bytes::from_static(b"abcdefg")),
            Err(ArrivalError::Length { offered: 6, arrived: 7 })
        ));
        assert_eq!(arriving.held(1, &offer(4, 0)), 0, "nothing of it can be used");
        assert!([&given_up, &long].iter().all(|arrival| !arrival.is_again), "each has brought something");
        assert!(begin(1, offer(4, 0)).unwrap().is_again, "the last one has brought nothing that stays");
        drop((arriving, given_up, long));
        assert_eq!(
            std::fs::read_dir(folder.path()).unwrap().count(),
            0,
            "a file that is not whole goes with the process"
        );
    }
}
