//! What is said of an alarm, as etcd's `Maintenance.Alarm` lists them.

use proto::MemberId;

use super::{Context, Reason, Stop};
use crate::{observe::view::Alarm, report::names::printable};

impl Context<'_> {
    /// That an alarm stands, as all say or as one member `alone` does.
    pub(super) fn alarm(&self, kind: &str, of: MemberId, alone: Option<MemberId>) -> String {
        let (kind, of) = (printable(kind), self.names.member(of));
        match alone {
            Some(alone) => format!(
                "{} alone reports the alarm {kind} of {of}, and the others that answered report none such",
                self.names.member(alone)
            ),
            None => format!("the alarm {kind} of {of} stands"),
        }
    }

    /// What a person does about it.
    pub(super) fn disarm(&self, alone: Option<MemberId>) -> String {
        match alone {
            Some(alone) => format!(
                "no member goes while {} says so; look at that member, and type `etcdctl alarm disarm` where it is right",
                self.names.short(alone)
            ),
            None => "no member goes before `etcdctl alarm disarm`".to_owned(),
        }
    }

    /// The cluster did answer, and takes no writes.
    pub(super) fn alarm_keeps_step_lock(&self, alarm: &Alarm, member: MemberId) -> Stop {
        let alone = self.view.and_then(|view| view.alone_with(alarm));
        let message = format!(
            "{}; under an alarm the cluster takes no writes, and the step lock of {} could not be deleted",
            self.alarm(&alarm.kind, alarm.of, alone),
            self.names.member(member)
        );
        self.stop(Reason::Alarm, message, self.onward()).leaving(
            "no other member goes; once the cause is seen to and `etcdctl alarm disarm` was typed, the next run on this \
             host deletes the lock",
        )
    }
}
