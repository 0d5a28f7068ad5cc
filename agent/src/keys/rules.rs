//! The protocol's rules as switches. Production is the default and nothing in the product changes it; the
//! model checker turns one off at a time to show that it would notice.

/// Which rules hold. Every one closes a fault that the model checker finds without it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rules {
    /// The unleased record is the lock, not the leased baton.
    pub record_is_the_lock: bool,
    /// An abandoned step leaves a `abandoned/` key.
    pub abandon_leaves_a_sign: bool,
    /// A Txn without an answer is sent again until it has one.
    pub unknown_is_asked_again: bool,
    /// Only the failed member's owner lifts the mark.
    pub owner_lifts_the_mark: bool,
    /// No way back from the start of the last old member's new binary on, seen by its absence, not by the
    /// version's rise.
    pub no_return_is_the_start: bool,
    /// The baton is given back before every wait.
    pub baton_is_dropped_to_wait: bool,
    /// The look before the stop asks everything that was asked before.
    pub check_asks_everything: bool,
    /// The mark is put by the write that deletes the record.
    pub mark_is_one_write: bool,
    /// From *starting new* on, repairing starts the new binary.
    pub repair_respects_the_start: bool,
    /// A rollback compares the run and the record.
    pub rollback_compares: bool,
    /// A downgrade is enabled and cancelled with the baton in hand.
    pub downgrade_takes_the_baton: bool,
    /// Down a minor a member is stopped only when its own data is fit for the lower release.
    pub data_is_fit_to_go: bool,
    /// The way back from a downgrade begins with its end.
    pub back_is_cancelled: bool,
    /// Where somebody may be about to enable a downgrade the way back waits for that.
    pub back_waits_for_the_baton: bool,
    /// A member whose new binary failed and runs is stopped only where every other voter is ready (I-2, R-9).
    pub put_back_looks_first: bool,
    /// A member goes back only while another voter is seen on the old release.
    pub back_needs_an_old_voter: bool,
    /// What bears this host's id is its own only once its process is gone.
    pub twins_are_refused: bool,
    /// The baton is given back before another hop of a way.
    pub hop_gives_the_baton_back: bool,
    /// Who finalizes or rolls back means the run that stood, and no hop after it.
    pub verb_is_of_its_hop: bool,
    /// A guarded step ends only when the host is back, or was seen to stay.
    pub guard_awaits_the_host: bool,
    /// A guarded command counts every member of its host as lost.
    pub guard_counts_the_host: bool,
    /// A guarded command begins only once its process is in the journal.
    pub guard_notes_the_command: bool,
    /// A learner is promoted only once it is ready by its own word. etcd's measure is of log positions, and counts a dead one.
    pub learner_is_ready: bool,
    /// A ready voter that is replaced leaves only after its replacement votes.
    pub replacement_votes_first: bool,
    /// A newcomer that has begun and whose data is gone is given up, and not begun again: it has forgotten what it acknowledged.
    pub lost_data_burns_the_id: bool,
    /// Who has started its newcomer may not begin it with nothing once more, though no look has seen its data yet.
    pub newcomer_begins_once: bool,
    /// A newcomer is given up by a write, and removed only afterwards: else a late removal finds it promoted.
    pub given_up_is_said_first: bool,
    /// Whoever writes members, or puts the lock of a role, compares the run: two would have the last place.
    pub members_compare_the_run: bool,
    /// The run says that a call may have been sent before it is: until then the step may be given up.
    pub call_is_said_first: bool,
    /// The step of a role goes only at its end: a call that was sent takes effect whenever it arrives.
    pub step_outlives_its_call: bool,
    /// A step that turns into a removal writes the run: else its first owner still ends it as a promotion.
    pub turn_writes_the_run: bool,
    /// A newcomer's host is held before it votes.
    pub hold_comes_first: bool,
    /// A newcomer is not promoted on a host that is marked to go.
    pub mark_stops_a_promotion: bool,
    /// While somebody else holds its host a member is not removed.
    pub hold_stops_a_removal: bool,
    /// Who says that a call may be sent compares what is known of the member's host.
    pub call_compares_the_host: bool,
    /// Where a run asks for a backup, it is made before anything is changed.
    pub backup_comes_first: bool,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            record_is_the_lock: true,
            abandon_leaves_a_sign: true,
            unknown_is_asked_again: true,
            owner_lifts_the_mark: true,
            no_return_is_the_start: true,
            baton_is_dropped_to_wait: true,
            check_asks_everything: true,
            mark_is_one_write: true,
            repair_respects_the_start: true,
            rollback_compares: true,
            downgrade_takes_the_baton: true,
            data_is_fit_to_go: true,
            back_is_cancelled: true,
            back_waits_for_the_baton: true,
            put_back_looks_first: true,
            back_needs_an_old_voter: true,
            twins_are_refused: true,
            hop_gives_the_baton_back: true,
            verb_is_of_its_hop: true,
            guard_awaits_the_host: true,
            guard_counts_the_host: true,
            guard_notes_the_command: true,
            learner_is_ready: true,
            replacement_votes_first: true,
            lost_data_burns_the_id: true,
            newcomer_begins_once: true,
            given_up_is_said_first: true,
            members_compare_the_run: true,
            call_is_said_first: true,
            step_outlives_its_call: true,
            turn_writes_the_run: true,
            hold_comes_first: true,
            mark_stops_a_promotion: true,
            hold_stops_a_removal: true,
            call_compares_the_host: true,
            backup_comes_first: true,
        }
    }
}
