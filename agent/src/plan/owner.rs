//! Whose a record is, and whether its member is still one of the cluster's. Source: agent/PROTOCOL.md, R-1, R-12.

use proto::MemberId;

use super::{Case, Next, refusal::Refusal};
use crate::keys::{At, StepLock};

pub(super) enum Whose {
    /// This host's, and the agent that put it is gone.
    Mine,
    /// Of a member of this host, put by an agent that may still live.
    MinePerhaps,
    Anothers,
}

/// A record is this host's own where its process is gone, and its member runs here; what bears this host's id and has a
/// process at work was refused before.
pub(super) fn whose(case: &Case, record: &StepLock) -> Whose {
    let is_gone = case.process == record.process || case.gone.contains(&record.process);
    let owns = case.me.seats.has(record.member);
    // Only the journal beside that host id knows whether its command still runs in this boot.
    let is_of_this_boot = record.process.boot_id == case.process.boot_id;
    let may_run_on = record.guarded.is_some() && record.host != case.me.host && is_of_this_boot;
    let is_gone = is_gone && !may_run_on;
    match record.host == case.me.host {
        true if !case.rules.twins_are_refused => Whose::Mine,
        _ if owns && is_gone => Whose::Mine,
        _ if owns => Whose::MinePerhaps,
        _ => Whose::Anothers,
    }
}

/// A record that may belong to an agent at work is left to it.
pub(super) fn refuse(record: &At<StepLock>, case: &Case) -> Next {
    let alive = record.value.host.machine.is_some() && record.value.host.machine == case.me.host.machine;
    Next::Refuse(Refusal::StepOfAnother { record: record.value.clone(), alive })
}

/// Whether a majority says that this member was removed. Where this host has all voters there is nobody else to ask.
pub(super) fn is_removed(case: &Case, member: MemberId) -> bool {
    let is_all_mine = || case.view.voters().all(|voter| voter.is_ready() && case.me.seats.has(voter.id));
    let is_gone = case.view.leader().is_some() && case.view.member(member).is_none();
    is_gone && (case.view.removed_by(member, None).is_some() || is_all_mine())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        keys::{Guarded, Keys, ProcessId, rules::Rules},
        plan::{Me, samples},
    };

    #[test]
    fn a_guards_lock_of_another_state_directory_is_this_hosts_own_only_after_a_boot() {
        let (rules, keys, view) = (Rules::default(), Keys::default(), samples::view("1+ 2+ 3*"));
        let same = samples::me(&[2]);
        let other = Me { host: samples::host(9), ..samples::me(&[2]) };
        for (me, is_guarded, boot_id, is_mine) in [
            (&other, false, 1, true),
            (&other, true, 1, false),
            (&other, true, 2, true),
            // Its journal says nothing of it: it was put after it was forgotten, and its command never began.
            (&same, true, 1, true),
        ] {
            let mut record = samples::record();
            record.guarded = is_guarded.then(|| Box::new(Guarded { beside: Vec::new(), command: "sh".into() }));
            let process = ProcessId { boot_id, ..ProcessId::default() };
            let gone = [record.process];
            let case = Case { process, gone: &gone, ..samples::case(me, &rules, &keys, &view) };
            let found = matches!(whose(&case, &record), Whose::Mine);
            assert_eq!(found, is_mine, "guarded: {is_guarded}, boot {boot_id}");
        }
    }
}
