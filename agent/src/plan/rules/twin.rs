//! Another agent goes by this host's id: the image of a machine was copied, or a state directory restored elsewhere.
//!
//! What such a one has put is not this host's, though it says so: it must neither be deleted nor taken for what an earlier
//! agent of this host left. So whatever bears this host's id counts as this host's only once its process is gone. Source:
//! agent/PROTOCOL.md, R-12.

use crate::{
    keys::{Keys, ProcessId, host_id::HostId},
    plan::{Case, Next, refusal::Refusal},
};

pub(super) fn twin(case: &Case) -> Option<Next> {
    let refusal = of(case.me.host, case.process, case.keys, case.gone)?;
    case.rules.twins_are_refused.then_some(Next::Refuse(refusal))
}

/// The refusal, where a process that is not known to be gone has put something under this id.
pub fn of(host: HostId, own: ProcessId, keys: &Keys, gone: &[ProcessId]) -> Option<Refusal> {
    let agent = keys.agents.get(&host).map(|at| (&at.value.host_name, at.value.process));
    let baton = keys.baton.iter().filter(|at| at.value.host == host).map(|at| (&at.value.host_name, at.value.process));
    let records = keys.step.iter().chain(keys.abandoned.values()).filter(|at| at.value.host == host);
    let records = records.map(|at| (&at.value.host_name, at.value.process));
    let mut all = agent.into_iter().chain(baton).chain(records);
    let (host_name, process) = all.find(|(_, process)| *process != own && !gone.contains(process))?;
    Some(Refusal::TwinHost { host_name: host_name.clone(), process })
}

#[cfg(test)]
mod tests {
    use proto::{MemberId, Revision};

    use super::*;
    use crate::{
        keys::{At, AttemptId, Baton, Participant, StepLock, TakeId, rules::Rules, seat::Seats},
        plan::{next, samples},
        unknown::Unknown,
    };

    fn at<T>(value: T) -> At<T> {
        At { created: Revision(3), modified: Revision(3), value }
    }

    fn process(pid: u32) -> ProcessId {
        ProcessId { boot_id: 1, pid_namespace: 1, pid, start_time: 0 }
    }

    /// Keys in which this host's id stands with that process: as agent, with the baton, in a record, as given up.
    fn keys(host: HostId, what: &str, pid: u32) -> Keys {
        let (process, unknown, member) = (process(pid), Unknown::default(), MemberId(2));
        let host_name: std::sync::Arc<str> = "h9".into();
        let record = StepLock {
            member,
            host,
            host_name: host_name.clone(),
            attempt: AttemptId(9),
            process,
            back: false,
            guarded: None,
            role: None,
            unknown: unknown.clone(),
        };
        let mut keys = Keys::default();
        match what {
            "agent" => {
                let (seats, done) = (Seats::on(host, [("m".into(), member)]), vec![]);
                let agent = Participant {
                    host_name,
                    process,
                    seats,
                    done,
                    waits_for: None,
                    waits_since: None,
                    waits_until: None,
                    does: None,
                    backed_up: None,
                    is_closed: false,
                    unknown,
                };
                keys.agents.insert(host, at(agent));
            }
            "baton" => keys.baton = Some(at(Baton { host, process, host_name, take: TakeId(1), unknown })),
            "record" => keys.step = Some(at(record)),
            _ => drop(keys.abandoned.insert(member, at(record))),
        }
        keys
    }

    #[test]
    fn what_bears_this_hosts_id_is_its_own_only_once_its_process_is_gone() {
        let me = samples::me(&[1]);
        let another = HostId { machine: None, instance: 77 };
        for what in ["agent", "baton", "record", "lost"] {
            for (host, pid, gone, is_twin) in [
                (me.host, 1, vec![], false), // this very process
                (me.host, 2, vec![process(2)], false),
                (me.host, 2, vec![], true),
                (me.host, 2, vec![process(3)], true),
                (another, 2, vec![], false),
            ] {
                let keys = keys(host, what, pid);
                let found = of(me.host, process(1), &keys, &gone);
                assert_eq!(found.is_some(), is_twin, "{what} of pid {pid}, gone {gone:?}");
                let view = samples::view("1+ 2+ 3+");
                let (me, rules, keys, view, gone) = (&me, &Rules::default(), &keys, &view, &gone);
                let case = Case { gone, process: process(1), ..samples::case(me, rules, keys, view) };
                let is_refused = matches!(next(&case), Next::Refuse(Refusal::TwinHost { .. }));
                assert_eq!(is_refused, is_twin, "{what} of pid {pid}, gone {gone:?}");
            }
        }
    }
}
