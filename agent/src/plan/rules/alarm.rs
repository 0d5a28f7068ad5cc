//! Nobody goes while an alarm stands.

use crate::plan::{Case, Next, refusal::Refusal};

/// While an alarm stands no member is ready, nobody can be waited for, and a member that is restarted may find
/// no room: a person must see to it.
pub(super) fn alarm(case: &Case) -> Option<Next> {
    let alarm = case.view.alarm()?;
    Some(Next::Refuse(Refusal::Alarm { kind: alarm.kind.as_str().into(), of: alarm.of }))
}
