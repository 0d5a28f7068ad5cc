//! The closed list of ends: name, exit code, meaning, remedy. Scripts match on the names; they never change.

use serde::{Serialize, Serializer};

/// An exit code that may depend on whether this process has taken a member down before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    Always(u8),
    /// 3 while this process has touched nothing, 1 once it has stopped a member.
    Preflight,
}

impl Exit {
    pub fn code(self, touched: bool) -> u8 {
        match self {
            Self::Always(code) => code,
            Self::Preflight if touched => 1,
            Self::Preflight => 3,
        }
    }

    pub fn column(self) -> String {
        match self {
            Self::Always(code) => code.to_string(),
            Self::Preflight => "3, 1".to_owned(),
        }
    }
}

macro_rules! reasons {
    ($($variant:ident $name:literal $exit:expr, $meaning:literal, $remedy:literal;)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Reason {
            $(#[doc = $meaning] $variant,)*
        }

        impl Reason {
            /// Every reason, in the order of the table.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            pub fn exit(self) -> Exit {
                match self { $(Self::$variant => $exit,)* }
            }

            pub fn meaning(self) -> &'static str {
                match self { $(Self::$variant => $meaning,)* }
            }

            pub fn remedy(self) -> &'static str {
                match self { $(Self::$variant => $remedy,)* }
            }
        }
    };
}

use Exit::{Always, Preflight};

reasons! {
    Done "done" Always(0), "every member is at the target and the cluster has settled", "nothing";
    RolledBack "rolled_back" Always(0), "every member is back on its old release", "nothing";
    NothingToDo "nothing_to_do" Always(0), "everything was at its target before", "nothing";
    Partial "partial" Always(0), "this host's part is done; other members have no agent at work", "run it on the hosts that are left";
    Held "held" Always(0), "one member is left before the point of no return", "agent finalize, or agent rollback";
    Approved "approved" Always(0), "the last member may go, its host must run", "agent run on that host";
    Guarded "guarded" Always(0), "the command ran, and this host's members are ready", "nothing";
    HostGoesDown "host_goes_down" Always(0), "the guarded command has ended and the host goes down; its step ends after the boot", "nothing where baton-guard.service is enabled; else agent guard --finish there";
    RunPaused "run_paused" Always(0), "the run is paused: no step of it begins", "agent resume";
    Resumed "resumed" Always(0), "the pause of the run is lifted, and the agent that is at work on this host goes on", "agent status";
    HandedOver "handed_over" Always(0), "a member of this host led, and passed leadership on", "nothing";
    MayGo "may_go" Always(0), "a guarded command could begin now", "agent guard without --check";
    Planned "planned" Always(0), "the plan is printed; nothing was touched", "agent run";
    Looked "looked" Always(0), "the status is printed", "nothing";
    MembersAsExpected "members_as_expected" Always(0), "the cluster's members are those that the playbook expects", "nothing";
    MembersUnknown "members_unknown" Always(0), "nobody answered, so no member is known to differ from what is expected", "agent verify membership --require-answer, where that shall be an error";
    Room "room" Always(0), "there is room for a backup", "nothing";
    BackedUp "backed_up" Always(0), "a member's database is saved in a file", "nothing";
    Restored "restored" Always(0), "every member of the cluster that was made from a file is ready", "nothing";
    GivenUp "given_up" Always(0), "the restore in hand on this host is given up; its members keep the data that they have", "agent run, which starts those that are down";
    Valid "valid" Always(0), "the playbook is right", "agent plan";
    Clear "clear" Always(0), "nothing that is known stands in the way of a release", "nothing";
    Shown "shown" Always(0), "what was asked for is printed", "nothing";
    Written "written" Always(0), "a file was written: a playbook from the live cluster, or a report from events", "read it; after a playbook, agent plan";
    Abandoned "abandoned" Always(0), "the step was given up; its member counts as lost", "bring its host back, or replace the member";
    Fenced "fenced" Always(0), "the abandoned host was declared dead; the others may go on", "agent run";
    Adopted "adopted" Always(0), "what is known of this host was written: it is held, or forgotten", "nothing";
    MayLeave "may_leave" Always(0), "nothing keeps the host any more", "take it away";
    Unmarked "unmarked" Always(0), "the host is not marked to go any more", "nothing";
    HoldAdded "hold_added" Always(0), "the hold stands", "nothing";
    HoldRemoved "hold_removed" Always(0), "the hold is gone", "nothing";
    Cleared "cleared" Always(0), "what was nobody's among the shared keys was deleted", "agent run";
    MatrixPassed "matrix_passed" Always(0), "no plan of the matrix failed", "nothing";
    MatrixFailed "matrix_failed" Always(1), "a plan of the matrix failed", "run it again with the command that is printed, and look at its logs";
    StepFailed "step_failed" Always(1), "a member did not become ready, was not stopped, or was removed; it was left as it is", "look at its log, repair it (end its process if it hangs), then agent run";
    PutBack "put_back" Always(1), "a member did not become ready in its step; it was put back and is ready", "look at its log, then agent run or agent rollback";
    NewBinaryKept "new_binary_kept" Always(1), "a member's new binary failed and there is no way back", "repair it on the new binary, then agent run";
    NotJoined "not_joined" Always(1), "a newcomer did not become a member; it was taken back, and its data put aside", "look at its log, repair what is named, then agent run";
    NotRestored "not_restored" Always(1), "a member of this host was not started on its new data", "repair what is named, then the same agent restore";
    Alone "alone" Always(1), "a member of this host lists no other any more, and they were there a moment ago", "start nothing; keep the data of every host; agent restore";
    MemberSick "member_sick" Always(1), "a member of this host does not become ready", "look at its log, repair it (end its process if it hangs), then agent run";
    HandOverFailed "hand_over_failed" Always(1), "the leader did not pass leadership on; nothing was stopped by this step", "agent run";
    HookFailed "hook_failed" Always(1), "a before_node hook failed; nothing was stopped by this step", "repair the hook, then agent run";
    FeatureOff "feature_off" Always(1), "the feature is off for the whole cluster", "agent gates without its name says why";
    CommandFailed "command_failed" Always(1), "the guarded command failed; this host's members are ready, and its step is over", "see why the command failed";
    RunFailed "run_failed" Always(1), "a step failed on another host, which has not come back", "agent run on that host; where it is gone for good, agent abandon and agent resume";
    Usage "usage" Always(2), "the command line is wrong", "agent help";
    Playbook "playbook" Always(2), "the playbook, or the matrix, is wrong", "correct it, then agent validate, or agent matrix --list";
    NoSuchMember "no_such_member" Always(2), "the cluster has no member of this name or id", "agent status";
    NoSuchHost "no_such_host" Always(2), "no host of this name, or with a member of it, is known", "agent hold list";
    HostHeld "host_held" Always(3), "something keeps the host: a hold, or a member that the cluster counts on", "see what is named; agent drain waits for it";
    MarkLifted "mark_lifted" Always(3), "somebody took the mark away while the drain waited: the host stays", "agent drain again, where it is to go all the same";
    HoldOfAnother "hold_of_another" Always(3), "the hold has another owner", "its owner removes it";
    HostOfAnother "host_of_another" Always(3), "another state directory has adopted this host's member", "agent adopt with that one; where it is lost: agent adopt --take-over";
    RemovalBegun "removal_begun" Always(3), "the member's removal has begun, and no hold stops it", "nothing";
    MatrixShowsNothing "matrix_shows_nothing" Always(3), "of no plan of the matrix did a fault come to pass", "see in the record what kept them from it, such as strace or root that is missing";
    Unprepared "unprepared" Preflight, "this host is not fit for its step", "repair what is named, then agent run";
    Credentials "credentials" Preflight, "a certificate, key or password cannot be used, or a member's certificate is not trusted", "correct the file or the address that is named";
    Unreachable "unreachable" Preflight, "no member answered", "start the members, or correct cluster.endpoints";
    OtherCluster "other_cluster" Preflight, "an address or the journal belongs to another cluster", "correct cluster.endpoints; where they are right, put the journal aside as is printed";
    AuthRefused "auth_refused" Preflight, "the cluster does not take the user or password, or was asked without one", "correct cluster.auth";
    NotRoot "not_root" Always(3), "the user does not have the role that this needs", "agent init --print-role says which; grant it, or name another user";
    MembersDiffer "members_differ" Always(3), "the cluster's members are not those that the playbook expects", "correct expect_members, or the membership with etcdctl member";
    BadBackup "bad_backup" Always(3), "nothing is made from this file: it is torn, damaged, or another program's", "take another file";
    ClusterServes "cluster_serves" Always(3), "the cluster that was to be replaced serves, or it is not known whether it does", "nothing; where it is to go: agent restore --discard-cluster";
    Restoring "restoring" Always(3), "a restore is in hand on this host", "the same agent restore, which goes on";
    NoRoom "no_room" Always(3), "there is too little room for a backup", "make room, or name another folder";
    NoGates "no_gates" Always(3), "no member has cluster feature gates, so none is on or off", "nothing; no release of etcd has them";
    GatesUnsupported "gates_unsupported" Preflight, "gates are expected, and a member that is at its target has none", "remove gates.expect, then agent run, with --replace where a run stands";
    NewerAgent "newer_agent" Preflight, "a newer agent wrote keys, or this host's journal, that this one does not know", "run the newer agent here too";
    KeysDamaged "keys_damaged" Preflight, "a shared key holds what no agent writes", "agent keys, and look at the key that is named";
    KeysTooLarge "keys_too_large" Preflight, "a shared key is larger than any agent makes it, or there are too many of them", "agent keys, and delete what is named there as none of an agent's";
    JournalDamaged "journal_damaged" Preflight, "the journal is damaged", "put it aside with the command that is printed, then agent run";
    StateDir "state_dir" Preflight, "the state directory cannot be used", "repair what is named, then agent run";
    System "system" Preflight, "the operating system refused something", "repair what is named";
    OwnsNothing "owns_nothing" Preflight, "no member of the cluster has a name of this playbook's nodes", "correct nodes[].name";
    NoLeader "no_leader" Preflight, "no majority agrees on a leader", "start the members that are down, then agent run";
    MemberVersion "member_version" Preflight, "a member runs a release that from and to do not allow", "correct from, or bring the member to it";
    SkipsMinor "skips_minor" Preflight, "the step would leave out a minor", "name a release of each minor in between in `hops`, or in `artifacts`";
    StrictJoin "strict_join" Preflight, "a member takes part beside its own release alone", "start all members with --join-policy=compatible";
    GoingDown "going_down" Preflight, "a downgrade is enabled, so the cluster version cannot rise", "end it, or cancel it with `etcdctl downgrade cancel`";
    Mixed "mixed" Preflight, "a downgrade would begin while members run several minors", "end the upgrade, or roll it back, first";
    Learner "learner" Preflight, "a downgrade would begin while there is a learner", "promote it, or remove it, first";
    NotLowered "not_lowered" Preflight, "a downgrade could not be enabled, or not be cancelled", "repair what is named, then agent run";
    NotBackedUp "not_backed_up" Preflight, "the backup that the playbook asks for could not be made", "repair what is named, then agent run";
    BelowQuorum "below_quorum" Preflight, "too few ready voters would stand", "start the members that are down";
    MemberNotReady "member_not_ready" Preflight, "a member is not ready and its host takes no part", "agent run on its host, or repair it";
    DataGone "data_gone" Preflight, "a member has lost its data, and does not begin anew", "replace it by itself (playbooks/replace.yaml), with --replace where a run stands";
    NoClusterVersion "no_cluster_version" Preflight, "a member does not say which cluster version it holds", "wait for a new cluster to decide it, or set cluster.http";
    Hazard "hazard" Preflight, "something that is known to hurt a member when it is restarted stands in the way", "see to what is named, then agent run";
    Alarm "alarm" Preflight, "an alarm stands: etcd wants none before a member is stopped", "see to its cause, etcdctl alarm disarm, then agent run";
    AbandonedMember "abandoned_member" Preflight, "the host of an abandoned step may still wake up", "bring it back, replace the member, or agent abandon --host-is-fenced";
    TwinHost "twin_host" Preflight, "another agent goes by this host's id: a state directory was copied", "remove host-id from the state directory of the copy, then agent run";
    StepOfAnother "step_of_another" Preflight, "a step of this host's member belongs to another agent", "end that agent, or agent abandon";
    ForeignChange "foreign_change" Preflight, "somebody else has changed the members while they were being changed", "see who, then agent resume, which takes them as they are";
    NameTaken "name_taken" Preflight, "a newcomer has the name or the address of another member, or two members have one name", "correct the playbook, or the members";
    TargetRefused "target_refused" Preflight, "the members that the playbook asks for are not to be had in one run, or not safely", "correct the playbook as is said";
    SeveralReleases "several_releases" Preflight, "the voters run several releases, so it is not known which a newcomer is to run", "end the upgrade or downgrade first";
    NewcomerUnfit "newcomer_unfit" Preflight, "a newcomer's place on this host is not as it must be", "correct what is named, then agent run";
    SeatOfAnother "seat_of_another" Preflight, "a newcomer is on its way from a host that takes no part", "agent run there, or agent abandon";
    HostMarked "host_marked" Preflight, "a newcomer's host is marked to go", "another host, or agent drain HOST --undo, then agent run";
    LearnerInTheWay "learner_in_the_way" Preflight, "a learner has the place that a newcomer needs", "promote or remove it, then agent run";
    GoingBack "going_back" Preflight, "the run goes back", "agent rollback";
    NothingToRollBack "nothing_to_roll_back" Preflight, "there is no run that could go back", "nothing";
    NothingToResume "nothing_to_resume" Preflight, "no run stands that could be resumed", "agent run";
    NoWayBack "no_way_back" Preflight, "no voter runs the old release any more", "agent run";
    NotHeld "not_held" Preflight, "the run does not hold", "agent run";
    NothingToPause "nothing_to_pause" Always(3), "no run stands that could be paused", "nothing";
    NothingToAbandon "nothing_to_abandon" Always(3), "no step of this member stands", "agent status";
    AgentAtWork "agent_at_work" Always(3), "the agent whose step is to be abandoned keeps its lease alive", "end that agent, then agent abandon; or agent abandon --yes";
    StepLockChanged "step_lock_changed" Always(3), "the step changed while it was being abandoned", "agent status";
    LeaderVersion "leader_version" Always(4), "the leader runs a release that from and to do not allow", "correct from, or bring the leader to it";
    NotSettled "not_settled" Always(5), "versions, gates or hashes did not agree in time, or a gate stays other than expected", "agent status; start the member that is named with the flag that is named; then agent run";
    Incomplete "incomplete" Always(5), "--require-complete, and the cluster is not done", "run it on the hosts that are left, or agent finalize";
    Stalled "stalled" Always(6), "nobody made progress for longer than strategy.stall_timeout", "agent status, then agent run";
    NotYet "not_yet" Always(6), "a guarded command would have to wait for what is named", "agent guard without --check, which waits";
    OtherRun "other_run" Always(6), "a run with another intent stands", "correct the playbook, or finish that run; agent run --replace gives it up";
    Paused "paused" Always(6), "the run is paused, and nobody has resumed it for longer than strategy.stall_timeout", "agent resume, which goes on; or agent run, which waits";
    StateDirLocked "state_dir_locked" Always(6), "another agent works on this host", "wait for it to end";
    NoQuorum "no_quorum" Always(10), "this host's members run, but there is no quorum to judge them by", "agent run on the other hosts, then here";
    StepLockLeft "step_lock_left" Always(10), "the member runs, but its step lock could not be deleted", "agent run";
    NoAnswer "no_answer" Always(10), "the cluster did not answer for too long", "agent run";
    Interrupted "interrupted" Always(10), "a signal asked for an end; the step in hand was finished or undone", "agent run";
    Declined "declined" Always(10), "the question after the plan was not answered with yes; no member was taken down", "agent run, or agent run --yes";
    InterruptedAtOnce "interrupted_at_once" Always(10), "a second signal, or one while the host shuts down; the step in hand was left where it was", "agent run, soon: a member may be down";
}

impl Serialize for Reason {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// The table for `agent run --help`: exit code and reason, then what happened, then what to do. Its lines are
/// short enough for any terminal.
pub fn table() -> String {
    let mut text =
        String::from("Exit codes and reasons (\"3, 1\": 3, or 1 once this process has stopped a member):\n\n");
    for reason in Reason::ALL {
        text.push_str(&format!("{:>4}  {}\n", reason.exit().column(), reason.name()));
        text.push_str(&format!("        {}\n        -> {}\n", reason.meaning(), reason.remedy()));
    }
    text
}

/// The same as rows of a Markdown table, for EXIT-CODES.md.
pub fn markdown() -> String {
    let row = |r: &Reason| {
        let exit = r.exit().column();
        format!("| {exit} | `{}` | {} | {} |\n", r.name(), r.meaning(), r.remedy())
    };
    let head = "| exit | reason | what happened | what to do |\n|---|---|---|---|\n".to_owned();
    head + &Reason::ALL.iter().map(row).collect::<String>()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_reason_has_a_name_of_its_own_and_a_known_exit_code() {
        let names: BTreeSet<_> = Reason::ALL.iter().map(|reason| reason.name()).collect();
        assert_eq!(names.len(), Reason::ALL.len());
        for reason in Reason::ALL {
            let snake = reason.name().chars().all(|c| c.is_ascii_lowercase() || c == '_');
            assert!(snake, "{}", reason.name());
            for touched in [false, true] {
                assert!([0, 1, 2, 3, 4, 5, 6, 10].contains(&reason.exit().code(touched)), "{}", reason.name());
            }
        }
    }

    #[test]
    fn the_table_has_each_reason_once() {
        let (table, markdown) = (table(), markdown());
        for reason in Reason::ALL {
            let is_row = |line: &&str| line.get(6..) == Some(reason.name());
            assert_eq!(table.lines().filter(is_row).count(), 1, "{}", reason.name());
            assert!(markdown.contains(&format!("`{}`", reason.name())));
        }
    }
}
