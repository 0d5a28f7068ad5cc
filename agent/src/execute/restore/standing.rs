//! Whether a member may be made from the file. One that may have served in the new cluster may not: its id has promised things there that
//! it would not know of (raft paper, 5.4).

/// Whose data lies where the member would find it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Has {
    New,
    Another,
    Nothing,
}

/// What is known of it in the new cluster, besides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Known {
    /// By the record its new data was made here. Where that lies beside its place still, it was never in it: both are exchanged in one
    /// rename, and nothing is made a second time under the same record.
    Recorded { lies_beside: bool },
    /// There is no record of it.
    Otherwise {
        /// This host was in that cluster before, or keeps data of it aside.
        was_in_it: bool,
        /// That cluster says that this member has served.
        has_served: bool,
    },
}

/// Why it is not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spent {
    /// It has lost its data.
    Gone,
    /// It has other data now.
    Left,
}

/// # Errors
/// It may have served, and what it had of it is not there.
pub(super) fn may_be_made(has: Has, known: Known) -> Result<(), Spent> {
    match (has, known) {
        (Has::New, _)
        | (_, Known::Recorded { lies_beside: true } | Known::Otherwise { was_in_it: false, has_served: false }) => {
            Ok(())
        }
        (Has::Another, _) | (Has::Nothing, Known::Otherwise { was_in_it: true, .. }) => Err(Spent::Left),
        (Has::Nothing, _) => Err(Spent::Gone),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_may_have_served_and_has_not_its_data_is_not_made_again() {
        let recorded = |lies_beside| Known::Recorded { lies_beside };
        let otherwise = |was_in_it, has_served| Known::Otherwise { was_in_it, has_served };
        for (known, other, nothing) in [
            (recorded(true), Ok(()), Ok(())),
            (recorded(false), Err(Spent::Left), Err(Spent::Gone)),
            (otherwise(false, false), Ok(()), Ok(())),
            (otherwise(false, true), Err(Spent::Left), Err(Spent::Gone)),
            (otherwise(true, false), Err(Spent::Left), Err(Spent::Left)),
            (otherwise(true, true), Err(Spent::Left), Err(Spent::Left)),
        ] {
            let judged = [Has::New, Has::Another, Has::Nothing].map(|has| may_be_made(has, known));
            assert_eq!(judged, [Ok(()), other, nothing], "{known:?}");
        }
    }
}
